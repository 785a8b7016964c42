"""Files nobody would import on purpose, and folders that were damaged: one sentence, or it goes on sensibly."""

import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest
import zstandard
from accident_data import SETTINGS
from killed_calls import import_facts
from one_line import Call, caller, is_refused

from dpmpn.ask.question_files import read_queries
from dpmpn.ask.tables import write_table
from dpmpn.bulk.parts import Parts
from dpmpn.data.importer import load_dataset
from dpmpn.data.labels import read_labels
from dpmpn.data.sources.formats import source_of
from dpmpn.errors import DataError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
FACTS = b"".join(b"c%d\tmother\tm%d\nm%d\thusband\tf%d\n" % (i, i % 5, i % 5, i % 5) for i in range(20))
PACKED = gzip.compress(FACTS)
LINES = "a\tknows\tb\nb\tknows\tc\n" * 5


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


# A name, what the file holds, what is said of it.
REFUSED: list[tuple[str, bytes, str]] = [
    ("empty.tsv", b"", "is empty"),
    ("blank.tsv", b"\n \n\t\n", "no facts were read"),
    ("image.png", PNG, "looks like a PNG image"),
    ("image.tsv", PNG, "looks like a PNG image"),
    ("random.tsv", bytes(range(256)) * 400, "is not a text file"),
    ("archive.tsv", zipped(a=FACTS, b=FACTS), "holds 2 files (a, b) instead of one"),
    ("cut.zip", zipped(a=FACTS)[:-30], "cannot be read"),
    ("cut.tsv.gz", PACKED[: len(PACKED) // 2], "it is cut off"),
    ("almost.tsv.gz", PACKED[:-1], "it is cut off"),
    ("start.tsv.gz", PACKED[:2], "it is cut off"),
    ("flipped.tsv.gz", PACKED[:40] + bytes([PACKED[40] ^ 8]) + PACKED[41:], "cannot be read"),
    ("twice.tsv.gz", gzip.compress(PACKED), "looks like a gzip archive in another archive"),
    ("cut.tsv.zst", zstandard.compress(FACTS)[:-9], "it is cut off"),
    ("huge.tsv", FACTS + b"x" * 3_000_000 + b"\tr\tc\n", "line 41: is longer than 1 MiB"),
    ("one.tsv", b"abc\ndef\n", "line 1: has 1 column"),
    ("two.tsv", b"a\tb\nc\td\n", "line 1: has 2 columns"),
    ("mixed.tsv", FACTS + b"a\tb\n", "line 41: 2 columns instead of 3 in 'a b'"),
    ("four.tsv", FACTS + b"a\tb\tc\td\n", "line 41: 4 columns instead of 3"),
    ("field.tsv", FACTS + b"a\t\tc\n", "line 41: empty relation"),
    ("latin.tsv", FACTS + "x\tä\tb\n".encode("latin-1"), "line 41: byte 0xe4 at position 3 is not UTF-8"),
    ("latin.csv", "a,b,c\nx,b,café\n".encode("latin-1"), "line 2: byte 0xe9 at position 8 is not UTF-8"),
    ("nul.tsv", FACTS + b"a\0\tb\tc\n", "line 41: byte 0x00 at position 2"),
    ("mac.tsv", FACTS.replace(b"\n", b"\r"), "its lines end with CR alone"),
    ("little.csv", LINES.replace("\t", ",").encode("utf-16-le"), "looks like UTF-16 text"),
    ("big.jsonl", ('{"head": "a", "relation": "b", "tail": "c"}\n' * 3).encode("utf-16-be"), "UTF-16 text"),
    ("chinese.tsv", ("北京\t首都\t中国\n" * 9).encode("utf-16-le"), "looks like UTF-16 text"),
    ("labels.tsv", LINES.encode("utf-32"), "looks like UTF-32 text"),
    ("quote.csv", b'head,relation,tail\n"a,b,c\n', "line 2: a quote is not closed"),
    ("page.tsv", b"<!doctype html><html></html>", "looks like a web page"),
    (
        "half.jsonl",
        b'{"head": "a", "relation": "b", "tail": "c"}\n{"head":\n',
        "line 2: not JSON at position",
    ),
    ("deep.jsonl", b"[" * 200_000, "not JSON"),
    ("cut.parquet", b"PAR1", "cannot be read"),
    ("forged.parquet", b"PAR1" + bytes(range(256)) + b"PAR1", "cannot be read"),
    ("text.parquet", FACTS, "is named like a parquet file and is none"),
]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


@pytest.mark.parametrize(("name", "content", "says"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_files_that_hold_no_facts(call: Call, tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert is_refused(call("import", path, "--out", tmp_path / "graph"), path, says)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_file(call: Call, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    names = {
        "missing.tsv": "no such file",
        "missing/facts.tsv": "no such file",
        "pipe": "is a pipe or a device",
        "loop": "Too many levels of symbolic links",
        "folder": "has no file train.*",
        "n" * 300: "File name too long",
    }
    for name, says in names.items():
        assert is_refused(call("import", tmp_path / name, "--out", tmp_path / "graph"), says)
    assert is_refused(call("import", "/dev/zero", "--out", tmp_path / "graph"), "is a pipe or a device")
    assert not (tmp_path / "graph").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(FACTS)
    path.chmod(0)
    assert is_refused(call("import", path, "--out", tmp_path / "graph"), path, "Permission denied")


@pytest.mark.parametrize("name", ["bomb.tsv.gz", "bomb.tsv.zst", "bomb.zip"])
def test_bombs_are_refused_quickly(tmp_path: Path, name: str) -> None:
    """In a process of its own, whose memory and time are measured."""
    size, line = 320 << 20, b"a\tb\tc\n"
    path = tmp_path / name
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(line * (size // len(line)), 6))
    elif name.endswith("zst"):
        path.write_bytes(zstandard.compress(line * (size // len(line))))
    else:
        path.write_bytes(zipped(facts=line * (size // len(line))))
    assert path.stat().st_size < 1 << 20
    code = (
        "import resource, sys, time\n"
        "from dpmpn.data.sources.formats import open_source\n"
        "from dpmpn.data.sources.base import ReadOptions\n"
        "from dpmpn.errors import DataError\n"
        "before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()\n"
        "try:\n"
        "    for _ in open_source(sys.argv[1], ReadOptions()).batches(): pass\n"
        "except DataError as error:\n"
        "    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    print(peak - before, time.process_time() - began, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    kilobytes, seconds, said = done.stdout.split(maxsplit=2)
    assert "unpacks to more than 250 times its size" in said
    assert int(kilobytes) < 100_000 and float(seconds) < 1


def write_csv(path: Path, rows: list[tuple[str, ...]], *header: str) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


LONG = "n" * 10_000
ODD_GRAPHS = {
    "names like markers": [
        ("a", "x", "b"),
        ("b", "x_inv", "c"),
        ("c", "self_loop", "a"),
        ("a", "x_inv_inv", "self_loop"),
        ("x", "x", "x_inv"),
        ("_inv", "_inv", "a"),
    ],
    "one entity": [("a", "knows", "a")],
    "names of all kinds": [
        ("tab\there", "line\nbreak", "return\r\nhere"),
        ('"quoted" "twice"', 'it\'s, "so"', "👩‍👩‍👧"),
        ("شخص", "علاقة", "\u202eיש"),
        ("in  between", "a  b", "nb\u00a0sp"),
        ("[bold]x[/]", "%s{}", "\\n\\"),
        ("\x1b[31mred", "-1", "--top"),
        ("é", "e\u0301", "É"),
    ],
    "long names": [(LONG, "r" * 10_000, "b"), ("b", "s", LONG)],
    "parts without connection": [("a", "likes", "b"), ("c", "likes", "d")],
    "the same fact again and again": [("a", "r", "b")] * 9,
}


@pytest.mark.parametrize("facts", ODD_GRAPHS.values(), ids=ODD_GRAPHS)
def test_odd_graphs_from_file_to_answers(
    call: Call, tmp_path: Path, facts: list[tuple[str, str, str]]
) -> None:
    """What is written as CSV comes back as the same names from every command."""
    source = write_csv(tmp_path / "facts.csv", facts, "head", "relation", "tail")
    graph, run, out = tmp_path / "graph", tmp_path / "run", tmp_path / "answers.jsonl"
    assert call("import", source, "--split", "none", "--out", graph).code == 0
    assert call("train", graph, "--out", run, *SETTINGS, "--max-queries", 10).code == 0
    entities = {name for head, _, tail in facts for name in (head, tail)}
    for head, relation, tail in set(facts[:3]):
        asked = call("predict", run, "--any-role", "--json", "-", "--", head, relation)
        assert (asked.code, asked.err) == (0, ""), asked
        answers = {answer["answer"]: answer["known"] for answer in json.loads(asked.out)}
        assert answers[tail] and answers.keys() <= entities
        assert call("predict", run, "--why", "--", head, relation).code == 0
    queries = write_csv(tmp_path / "q.csv", [fact[:2] for fact in facts], "head", "relation")
    assert call("predict", run, "--queries", queries, "--out", out).code == 0
    found = pl.read_ndjson(out)
    for number, (head, relation, tail) in enumerate(facts, 1):
        rows = found.filter(pl.col("query") == number, pl.col("known"))
        assert set(rows["head"]) == {head} and set(rows["relation"]) == {relation}
        assert tail in rows["answer"].to_list()
    assert call("complete", run, "--top", 5).code == 0


def test_line_ends_of_windows_and_byte_order_marks_are_no_part_of_names(call: Call, tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_bytes(b"\xef\xbb\xbf" + FACTS.replace(b"\n", b"\r\n"))
    assert call("import", tmp_path / "facts.tsv", "--out", tmp_path / "graph").code == 0
    names = (tmp_path / "graph" / "graph" / "entities.txt").read_text().split("\n")
    assert "m0" in names and "c0" in names
    assert not [name for name in names if "\r" in name or "\ufeff" in name]


def test_many_relations(call: Call, tmp_path: Path) -> None:
    """More relations and inverses than 16 bits can number."""
    facts = tmp_path / "facts.tsv"
    facts.write_text("".join(f"e{i % 997}\trelation{i}\te{i % 991}\n" for i in range(40_000)))
    run = tmp_path / "run"
    assert call("import", facts, "--out", tmp_path / "graph").code == 0
    assert call("train", tmp_path / "graph", "--out", run, *SETTINGS, "--max-queries", 10).code == 0
    for question in (("e118", "relation39001"), ("e352", "relation39001", "--inverse")):
        asked = call("predict", run, *question, "--top", 1000, "--json", "-")
        known = {answer["answer"] for answer in json.loads(asked.out) if answer["known"]}
        assert known == {"e352" if len(question) == 2 else "e118"}


def test_a_head_without_edges(call: Call, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tr\tb\nb\tr\tc\n")
    (tmp_path / "valid.tsv").write_text("alone\tr\ta\n")
    run = tmp_path / "run"
    sources = (tmp_path / "train.tsv", "--valid", tmp_path / "valid.tsv")
    assert call("import", *sources, "--out", tmp_path / "graph").code == 0
    assert call("train", tmp_path / "graph", "--out", run, *SETTINGS, "--max-queries", 4).code == 0
    assert "no answers" in call("predict", run, "alone", "r", "--why").out
    queries = write_csv(tmp_path / "q.csv", [("alone", "r"), ("a", "r")], "head", "relation")
    assert call("predict", run, "--queries", queries, "--out", tmp_path / "a.csv").code == 0
    assert pl.read_csv(tmp_path / "a.csv").row(0)[-1] == "no answers"
    assert call("evaluate", run, "--split", "valid").code == 0


QUERIES: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"head,relation\n", "holds no questions"),
    "columns.csv": (b"a,b\nc,d\n", "head and relation"),
    "image.csv": (PNG, "looks like a PNG image"),
    "wide.csv": ("head,relation\nchild0,mother\n".encode("utf-16-le"), "UTF-16"),
    "latin.csv": ("head,relation\nchild0,vätter\n".encode("latin-1"), "line 2: byte 0xe4 at position 9"),
    "cut.csv.gz": (PACKED[:30], "it is cut off"),
    "fields.csv": (b"head,relation\nchild0\n", "line 2"),
    "field.csv": (b"head,relation\nchild0,\n", "line 2: the relation is empty"),
    "name.csv": (b"head,relation\nchild0,mother\nchidl1,mother\n", "row 2"),
    "half.jsonl": (b'{"head": "child0", "relation":\n', "line 1"),
    "list.jsonl": (b'["child0", "mother"]\n', "line 1"),
    "deep.jsonl": (b"[" * 200_000, "line 1"),
    "cut.parquet": (b"PAR1", "cannot be read"),
    "huge.csv": (b"head,relation\n" + b"x" * 2_000_000 + b",mother\n", "longer than"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_odd_files_of_questions(call: Call, trained_once: Path, tmp_path: Path, name: str) -> None:
    content, says = QUERIES[name]
    path = tmp_path / name
    path.write_bytes(content)
    ended = call("predict", trained_once, "--queries", path, "--out", tmp_path / "out.csv")
    assert is_refused(ended, path, says)
    assert list(tmp_path.iterdir()) == [path]


def test_odd_facts_to_add(call: Call, trained_once: Path, tmp_path: Path) -> None:
    for name, content, _ in REFUSED:
        (tmp_path / name).write_bytes(content)
        ended = call("predict", trained_once, "child0", "mother", "--add", tmp_path / name)
        assert name == "blank.tsv" or is_refused(ended, tmp_path / name)


def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"b\xe4r")
    folder.mkdir()
    (folder / "facts.tsv").write_bytes(FACTS)
    (folder / "names.tsv").write_text("id\tname\nc0\tChild\n")
    import_facts(str(folder / "facts.tsv"), str(folder / "names.tsv"), str(folder / "graph"))
    assert load_dataset(str(folder / "graph")).graph.entities.label(0) == "Child"
    for suffix in ("parquet", "csv"):
        parts = Parts(folder / f"table.{suffix}", {"of": str(folder)})
        parts.write(0, pl.DataFrame({"a": [1]}))
        parts.finish(lambda path, parts=parts: write_table(path, parts.read([0])))
        assert (folder / f"table.{suffix}").stat().st_size
    for read in (source_of, read_labels, lambda path: next(read_queries(path))):
        with pytest.raises(DataError, match="the name of such a file must be UTF-8"):
            read(folder / "table.parquet")


def test_labels_that_are_no_text(call: Call, tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_bytes(FACTS)
    lines = '{"id": "c0", "name": "Child"}\n'
    for name, content, says in (
        ("half.json", '[{"id": "c0", "name": "\\ud83d"}]', "is not Unicode"),
        ("cut.jsonl", lines + '{"id": "c1", "na', "cut.jsonl, line 2: is not valid JSON"),
    ):
        (tmp_path / name).write_text(content)
        given = (tmp_path / "facts.tsv", "--labels", tmp_path / name)
        assert is_refused(call("import", *given, "--out", tmp_path / "graph"), tmp_path / name, says)
        assert not (tmp_path / "graph").exists()


def damages(content: bytes) -> dict[str, bytes | None]:
    """What may become of a file: missing is None."""
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]
    return {
        "flipped": flipped,
        "cut": content[:middle],
        "empty": b"",
        "longer": content + b"\0",
        "missing": None,
    }


def damaged_each(folder: Path) -> list[tuple[str, Path, bytes | None]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return [(how, path, to) for path in files for how, to in damages(path.read_bytes()).items()]


def said_or_goes_on(call: Call, path: Path, to: bytes | None, *command: object) -> bool:
    """Run a command with a file damaged; whether it was refused with a sentence."""
    content = path.read_bytes()
    path.unlink() if to is None else path.write_bytes(to)
    try:
        ended = call(*command)
    finally:
        path.write_bytes(content)
    return ended.code != 0 and is_refused(ended)


def test_damaged_graph_folders(call: Call, tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_bytes(FACTS)
    (tmp_path / "names.tsv").write_text("id\tname\nc0\tChild\n")
    graph, run = tmp_path / "graph", tmp_path / "run"
    given = (tmp_path / "facts.tsv", "--labels", tmp_path / "names.tsv")
    assert call("import", *given, "--out", graph).code == 0
    report = graph / "import.json"  # for people; nothing reads it
    for how, path, to in damaged_each(graph):
        harmless = path == report or (path.name == "dataset.json" and how in ("flipped",))
        refused = said_or_goes_on(call, path, to, "train", graph, "--out", run, *SETTINGS, "--max-queries", 1)
        assert refused or harmless, (how, path)
        assert refused != run.exists()
        shutil.rmtree(run, ignore_errors=True)


def test_damaged_run_folders(call: Call, trained: Path) -> None:
    asked = ("child0", "mother", "--json", "-")
    expected = call("predict", trained, *asked).out
    unread = {"metrics.jsonl", "versions.json", "checkpoint.json", ".lock"}  # by what asks the best weights
    for how, path, to in damaged_each(trained):
        if path.name in unread or path.name.startswith("checkpoint-"):
            continue
        content = path.read_bytes()
        path.unlink() if to is None else path.write_bytes(to)
        ended = call("predict", trained, *asked)
        assert (ended.code, ended.out) == (0, expected) or is_refused(ended), (how, path)
        assert how == "flipped" or path.suffix == ".json" or ended.code == 2, (how, path)
        if how == "cut":
            measured = call("evaluate", trained)
            assert ended.code == 0 or is_refused(measured), path
        path.write_bytes(content)
    assert call("predict", trained, *asked).out == expected


def test_foreign_folders_and_newer_versions(call: Call, trained: Path, tmp_path: Path) -> None:
    graph, new = trained, tmp_path / "new"
    commands = [
        ("train", graph, "--out", new),
        ("evaluate", trained),
        ("predict", trained, "child0", "mother"),
    ]
    for manifest in ("dataset.json", "graph/manifest.json", "best.json"):
        path = trained / manifest
        values = json.loads(path.read_text())
        for change, says in (
            ({"version": 99}, "newer dpmpn"),
            ({"format": "other"}, "format"),
            ({}, "JSON object"),
        ):
            path.write_text(json.dumps(values | change if change else [values]))
            for command in commands:
                if manifest != "best.json" or command[0] != "train":
                    assert is_refused(call(*command), path, says)
        path.write_text(json.dumps(values))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("hello")
    for folder in (
        tmp_path / "foreign",
        tmp_path / "foreign" / "notes.txt",
        tmp_path / "missing",
        "/dev/null",
    ):
        for command in (("evaluate", folder), ("predict", folder, "a", "b"), ("complete", folder)):
            assert is_refused(call(*command), folder)
        assert is_refused(call("train", folder, "--out", new))
    assert not new.exists()
