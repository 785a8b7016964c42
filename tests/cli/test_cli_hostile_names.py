"""Names that are meant for a terminal to act on: every command shows them spelled out, piped or not."""

import json
import logging
import re
import sys
from pathlib import Path

import pytest
from tiny_family import FACTS, TINY, Call

from dpmpn.cli.main import run
from dpmpn.cli.output import Output, table

ESCAPE = "\x1b]0;owned\x07"
NAMES = {
    "child0": f"{ESCAPE}child",
    "mother0": "\u202emother[/red]",
    "father0": "=father\x9b2J",
    "mother": "m\x1b[2Jother",
}
SEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ufeff]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run trained on facts with such names."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = ("\t".join(NAMES.get(name, name) for name in fact) + "\n" for fact in FACTS)
    (folder / "train.txt").write_text("".join(lines), "utf-8", newline="")
    with pytest.raises(SystemExit) as ended:
        run(["train", str(folder), "--out", str(folder / "run"), *TINY, "--epochs", "1"])
    assert not ended.value.code
    return folder


ASKED = ["RUN", NAMES["child0"], NAMES["mother"]]
COMMANDS = {
    "predict": ["predict", *ASKED],
    "predict why": ["predict", *ASKED, "--why"],
    "predict json": ["predict", *ASKED, "--any-role", "--json", "-"],
    "explain": ["explain", *ASKED, "--why-not", NAMES["father0"]],
    "explain json": ["explain", *ASKED, "--json", "-"],
    "explain dot": ["explain", *ASKED, "--format", "dot"],
    "unknown name": ["predict", "RUN", ESCAPE, "mother"],
    "unknown answer": ["explain", *ASKED, "\x1b[31m"],
    "unknown run": ["predict", f"FOLDER/{ESCAPE}", "a", "b"],
    "unknown option": ["predict", f"--{ESCAPE}"],
    "unknown dataset": ["datasets", "stats", ESCAPE],
    "stats": ["datasets", "stats", "FOLDER"],
    "evaluate": ["evaluate", "RUN", "--per-relation"],
    "added": ["predict", *ASKED, "--add", "FOLDER/bad.tsv"],
    "broken": ["import", "FOLDER/broken.tsv", "--out", "FOLDER/graph"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_printed_does_nothing(hostile: Path, call: Call, name: str) -> None:
    (hostile / "bad.tsv").write_text(f"a\t{ESCAPE}\tb\n", newline="")
    (hostile / "broken.tsv").write_text(f"a\t{ESCAPE}\n", newline="")
    places = {"RUN": str(hostile / "run"), "FOLDER": str(hostile)}
    result = call(*(re.sub("RUN|FOLDER", lambda found: places[found[0]], each) for each in COMMANDS[name]))
    assert not SEEN.search(result.out + result.err)
    assert "Traceback" not in result.err
    if name.endswith("json"):
        assert ESCAPE in json.dumps(json.loads(result.out), ensure_ascii=False).encode().decode(
            "unicode_escape"
        )
    else:
        assert "\\x1b" in result.out + result.err or name in ("evaluate", "stats", "unknown option")


def test_tables_on_a_terminal_are_safe_and_exact_in_a_pipe(
    hostile: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CSV is data: a program gets the names, and a person sees them; sentences are for people anywhere."""
    asked = ["explain", hostile / "run", NAMES["child0"], NAMES["mother"], "--format", "csv", "--keep-fact"]
    assert call(*asked, "--out", tmp_path).code == 0
    assert ESCAPE in (tmp_path / "key_facts.csv").read_bytes().decode()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert not SEEN.search(call(*asked).out)


def test_cells_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table("name")
    for name in ("[bold]x[/bold]", "[/foo]", ":smile:", "a\nb"):
        rows.add_row(name)
    Output(None).show(rows)
    assert capsys.readouterr().out.split() == ["name", "[bold]x[/bold]", "[/foo]", ":smile:", "a\\nb"]


def test_lines_of_the_server_s_log_are_safe() -> None:
    from dpmpn.serve.run import LogFormatter

    formatter = LogFormatter("%(levelprefix)s %(message)s", use_colors=False)
    try:
        raise ValueError(ESCAPE)
    except ValueError:
        record = logging.LogRecord(
            "uvicorn.error", logging.ERROR, "", 1, f"no {ESCAPE}", None, sys.exc_info()
        )
    text = formatter.format(record)
    assert "no \\x1b]0;owned" in text and "ValueError: \\x1b" in text and not SEEN.search(text)
