"""Every command, option, target and script that a page tells to type exists."""

import re
from functools import cache
from pathlib import Path

import pytest
from _generators.commands import Command, commands
from docs_reading import PAGES, ROOT, page_name, spans, typed_lines, words

BENCHMARKS = ROOT / "benchmarks"


@cache
def known_commands() -> dict[str, Command]:
    return {command.name: command for command in commands()}


@cache
def known_options() -> set[str]:
    """The options of all commands and of all benchmarks."""
    scripts = "".join(script.read_text("utf-8") for script in BENCHMARKS.glob("*.py"))
    of_commands = {flag for command in commands() for flag in command.flags}
    return of_commands | set(re.findall(r"\"(--[\w-]+)\"", scripts))


def mistake(line: str) -> str | None:
    """What is wrong with a line that is to be typed."""
    typed = words(line)
    options = [re.match(r"--?[\w-]*", word)[0] for word in typed if re.match(r"--?[a-z]", word)]  # type: ignore[index]
    if typed[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return None if typed[1] in targets else f"no target {typed[1]}"
    if typed[0] == "python":
        script = ROOT / typed[1]
        if not script.is_file():
            return f"no script {typed[1]}"
        return next((f"no option {o}" for o in options if f'"{o}"' not in script.read_text("utf-8")), None)
    if typed[1].isupper() or typed[1].startswith("-"):  # dpmpn COMMAND
        return None
    names = [" ".join(typed[:length]) for length in (3, 2)]
    command = next((known_commands()[name] for name in names if name in known_commands()), None)
    if command is None:
        return f"no command {typed[1]}"
    return next((f"no option {o}" for o in options if o.replace("_", "-") not in command.flags), None)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_what_is_typed_exists(page: Path) -> None:
    assert not [f"{line}: {wrong}" for line in typed_lines(page) if (wrong := mistake(line))]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_options_that_are_named_exist(page: Path) -> None:
    named = {found[0] for span in spans(page) if (found := re.match(r"--[a-z][\w-]*", span))}
    assert named <= known_options(), named - known_options()


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("dpmpn predict runs/demo Serbia in_subregion --why", None),
        ("dpmpn datasets stats NAME [--json FILE]", None),
        ("dpmpn predikt runs/demo", "no command predikt"),
        ("dpmpn train countries --n-dim 3", "no option --n-dim"),
        ("make tests", "no target tests"),
        ("python benchmarks/none.py", "no script benchmarks/none.py"),
        ("python benchmarks/fuzz.py --hours 2", "no option --hours"),
    ],
)
def test_mistakes_are_found(line: str, wrong: str | None) -> None:
    assert mistake(line) == wrong
