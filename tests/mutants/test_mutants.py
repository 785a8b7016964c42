"""The list of mutants fits the program: each can still be made, and names tests that exist."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from all_mutants import MUTANTS
from mutation import PACKAGE, Change, Mutant, forget_compiled, mutant

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(listed.name for listed in MUTANTS).items() if times > 1] == []


@pytest.mark.parametrize("listed", MUTANTS, ids=lambda listed: listed.name)
def test_a_mutant_can_be_made(listed: Mutant) -> None:
    """Where this fails the program was changed: change the mutant's text as well, or let it go."""
    assert [change.problem(ROOT / "src") for change in listed.changes] == [""] * len(listed.changes)
    texts: dict[str, str] = {}
    for change in listed.changes:
        text = texts.get(change.file) or (ROOT / "src" / PACKAGE / change.file).read_text()
        texts[change.file] = text.replace(change.old, change.new)
    for file, text in texts.items():
        ast.parse(text, file)  # a mutant that no interpreter reads is noticed too easily
    assert listed.tests and all((ROOT / path).exists() for path in listed.tests)
    assert listed.sentence.endswith(".")


def test_a_text_must_be_there_exactly_once(tmp_path: Path) -> None:
    (tmp_path / PACKAGE).mkdir()
    path = tmp_path / PACKAGE / "some.py"
    path.write_text("a = 1\nb = 1\n")
    assert "0 times" in Change("some.py", "c = 1", "c = 2").problem(tmp_path)
    assert "2 times" in Change("some.py", " = 1", " = 2").problem(tmp_path)
    assert "no other.py" in Change("other.py", "a", "b").problem(tmp_path)
    with pytest.raises(ValueError, match="2 times"):
        mutant("twice", "It is.", ("some.py", " = 1", " = 2"), tests=("tests",)).make(tmp_path)
    mutant("once", "It is.", ("some.py", "a = 1", "a = 2"), tests=("tests",)).make(tmp_path)
    assert path.read_text() == "a = 2\nb = 1\n"


def test_what_compiles_with_a_changed_file_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / PACKAGE
    (folder / "__pycache__").mkdir(parents=True)
    texts = {
        "low": "@kernel\ndef f(): ...",
        "middle": "from dpmpn.low import f\n@float_kernel\ndef g(): ...",
        "high": "from dpmpn.middle import g\n@inline_kernel\ndef h(): ...",
        "plain": "from dpmpn.low import f",
        "other": "@kernel\ndef i(): ...",
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
        (folder / "__pycache__" / f"{name}.f-1.py311.nbi").touch()
    forget_compiled(tmp_path, ["low.py"])
    assert {path.name.split(".")[0] for path in (folder / "__pycache__").iterdir()} == {"plain", "other"}
