"""Questions from a file get the answers they would get one by one, also when the run is killed in between."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from dpmpn.ask import answer_files
from dpmpn.ask.answer_files import answer_queries
from dpmpn.ask.question_files import read_queries
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import ConfigError, DataError, RunError, UnknownName
from dpmpn.reasoner.reasoner import Reasoner

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
QUESTIONS = [
    *((f"child{i}", relation, False) for i in range(8) for relation in ("mother", "father")),
    *((f"father{i}", "husband", True) for i in range(5)),
    *((f"father{i}", "father", True) for i in (0, 6, 7)),
    ("child0", "mother", False),  # asked twice
    ("CHILD1", "Mother", False),  # another spelling
    ("mother3", "mother_inv", False),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"model": "paper", "n_dims": 6, "n_dims_att": 4, "n_steps_in_agnn": 3, "n_steps_in_ignn": 1}
    out = tmp_path_factory.mktemp("runs") / "family"
    reasoner = Reasoner(**settings, batch_size=10, threads=1, n_epochs=2)
    held_out = [("child6", "father", "father6")], [("child7", "father", "father7")]
    reasoner.fit(dataset_from_tuples(FACTS, *held_out), out=out)
    return out


@pytest.fixture(scope="module")
def reasoner(run: Path) -> Reasoner:
    return Reasoner.load(run)


def question_frame() -> pl.DataFrame:
    return pl.DataFrame(QUESTIONS, ["head", "relation", "inverse"], orient="row")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    question_frame().write_csv(tmp_path / "questions.csv")
    return tmp_path / "questions.csv"


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def assert_same_answers(rows: pl.DataFrame, predictions) -> None:
    """The same answers in the same order; only those as good as equal may change places."""
    assert rows["rank"].to_list() == [p.rank for p in predictions]
    assert rows["score"].to_list() == pytest.approx([p.score for p in predictions], rel=1e-4)
    for row, p in zip(rows.iter_rows(named=True), predictions, strict=True):
        if row["answer"] == p.answer:
            assert (row["known"], row["held_out"] or "") == (p.known, p.held_out)
        else:
            other = next(q for q in predictions if q.answer == row["answer"])
            assert other.score == pytest.approx(p.score, rel=1e-4)


@pytest.mark.parametrize("any_role", [False, True])
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("top", [1, 4, 1000])
def test_answers_are_those_of_predict(
    reasoner: Reasoner, questions: Path, tmp_path: Path, monkeypatch, top: int, new: bool, any_role: bool
) -> None:
    monkeypatch.setattr(answer_files, "PART", 7)
    options = {"top": top, "new": new, "any_role": any_role}
    report = answer_queries(reasoner, questions, tmp_path / "a.parquet", **options)
    answers = pl.read_parquet(tmp_path / "a.parquet")
    assert answers.columns == [
        *("query", "head", "relation", "inverse"),
        *("rank", "answer", "probability", "probability_low", "probability_high"),
        *("probability_if_missing", "cases", "score", "known", "held_out", "problem"),
    ]
    # In this graph of small families, all that fits is stated already.
    nothing = new and not any_role
    assert report.questions == len(QUESTIONS)
    assert (report.answered, report.without_answers) == ((0, 27) if nothing else (27, 0))
    assert report.rows == len(answers)
    for number, (head, relation, inverse) in enumerate(QUESTIONS, start=1):
        rows = answers.filter(pl.col("query") == number)
        assert rows.select("head", "relation", "inverse").unique().rows() == [(head, relation, inverse)]
        expected = reasoner.predict(head, relation, inverse=inverse, **options)
        assert bool(expected) is not nothing
        if nothing:
            assert rows["problem"].to_list() == ["no answers"] and rows["answer"].to_list() == [None]
        else:
            assert_same_answers(rows, expected)
    assert answers["query"].is_sorted()


def test_held_out_facts_are_marked(reasoner: Reasoner, tmp_path: Path) -> None:
    file = written(tmp_path / "q.csv", "head,relation,inverse\nchild6,father,\nfather7,father,true\n")
    answer_queries(reasoner, file, tmp_path / "a.parquet", top=1000, any_role=True)
    answers = pl.read_parquet(tmp_path / "a.parquet")
    marked = answers.filter(pl.col("held_out").is_not_null())
    assert marked.select("answer", "held_out").rows() == [("father6", "valid"), ("child7", "test")]
    answer_queries(reasoner, file, tmp_path / "new.parquet", top=1000, new=True, any_role=True)
    every, left = (
        set(frame.select("query", "answer").iter_rows())
        for frame in (answers, pl.read_parquet(tmp_path / "new.parquet"))
    )
    assert left and every - left == {(1, "father6"), (2, "child7")}


def test_columns_that_look_like_ids_are_only_kept(reasoner: Reasoner, tmp_path: Path) -> None:
    text = "head,relation,head_id,relation_id,head_problem\nchild0,mother,5,x,none\nchild1,mother,6,y,none\n"
    file = written(tmp_path / "q.csv", text)
    answer_queries(reasoner, file, tmp_path / "a.parquet", top=1)
    answers = pl.read_parquet(tmp_path / "a.parquet")
    assert answers.select("head_id", "relation_id", "head_problem").rows() == [
        ("5", "x", "none"),
        ("6", "y", "none"),
    ]
    for head, answer in answers.select("head", "answer").iter_rows():
        assert answer == reasoner.predict(head, "mother")[0].answer


def test_labels_of_several_are_not_called_unknown(run: Path, tmp_path: Path) -> None:
    reasoner = Reasoner.load(run)
    graph = reasoner.dataset.graph
    frame = pl.DataFrame({"id": ["mother0", "mother1"], "name": ["Ada", "Ada"]}).with_columns(
        description=pl.lit(None, pl.String), type=pl.lit(None, pl.String)
    )
    entities = graph.entities.labelled(frame)
    reasoner.__dict__["dataset"] = replace(reasoner.dataset, graph=replace(graph, entities=entities))
    file = written(tmp_path / "q.csv", "head,relation\nada,husband\nEve,husband\nmother0,husband\n")
    answer_queries(reasoner, file, tmp_path / "a.csv", top=1, skip_unknown=True)
    assert pl.read_csv(tmp_path / "a.csv")["problem"].to_list() == [
        *("'ada' is the label of several", "unknown entity 'Eve'", None),
    ]
    with pytest.raises(DataError, match=r"row 1: 'ada' is the label of several: mother0 .*--skip-unknown"):
        answer_queries(reasoner, file, tmp_path / "b.csv")


def test_reasons_are_those_of_predict(reasoner: Reasoner, tmp_path: Path) -> None:
    file = written(tmp_path / "q.tsv", "head\trelation\nchild0\tmother\nchild7\tfather\n")
    answer_queries(reasoner, file, tmp_path / "a.jsonl", top=2, why=True, any_role=True)
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(rows) == 4
    for row in rows:
        expected = reasoner.predict(row["head"], row["relation"], any_role=True).why(row["answer"])
        assert [path["share"] for path in row["why"]] == pytest.approx([p.share for p in expected], rel=1e-3)
        assert sorted(path["facts"] for path in row["why"]) == sorted(
            [list(fact) for fact in path.facts] for path in expected
        )


def test_a_question_without_answers_has_a_row_that_says_so(tmp_path: Path, run: Path) -> None:
    reasoner = Reasoner.load(run).with_facts(remove=[("child7", "mother", "mother7")])
    file = written(tmp_path / "q.csv", "head,relation\nchild7,mother\nchild0,mother\n")
    report = answer_queries(reasoner, file, tmp_path / "a.csv", top=1)
    answers = pl.read_csv(tmp_path / "a.csv")
    assert answers["problem"].to_list() == ["no answers", None]
    assert answers["rank"].to_list() == [None, 1]
    assert (report.answered, report.without_answers) == (1, 1)


def test_answers_through_new_entities_are_marked(tmp_path: Path, run: Path) -> None:
    facts = [("child8", "mother", "mother8"), ("mother8", "husband", "father0")]
    reasoner = Reasoner.load(run).with_facts(add=facts)
    file = written(tmp_path / "q.csv", "head,relation\nchild8,father\nchild1,father\n")
    answer_queries(reasoner, file, tmp_path / "a.csv", top=3, any_role=True)
    answers = pl.read_csv(tmp_path / "a.csv")
    for head, rows in answers.group_by("head"):
        expected = [p.through_unseen for p in reasoner.predict(head[0], "father", 3, any_role=True)]
        assert rows["through_unseen"].to_list() == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert (answers.filter(head="child8")["through_unseen"] == 1).all()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_questions_are_read_from_each_format_with_their_other_columns(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"q.{suffix}"
    frame = question_frame().with_columns(id=pl.format("n{}", pl.int_range(pl.len())))
    match suffix:
        case "jsonl":
            frame.write_ndjson(path)
        case "parquet":
            frame.write_parquet(path)
        case _:
            frame.write_csv(path, separator="," if suffix == "csv" else "\t")
    frames = list(read_queries(path, rows=10))
    assert [len(f) for f in frames] == [10, 10, 7]
    numbers = pl.int_range(1, len(frame) + 1, eager=True).alias("query")
    assert pl.concat(frames).equals(frame.insert_column(0, numbers))


@pytest.mark.parametrize(
    ("text", "inverse"),
    [
        ("head,relation\na,r\n", [False]),
        ("\ufeffHead;Relation;Direction\r\na;r;tail\r\n\r\nb;r;HEAD\r\n", [False, True]),
        ("relation,inverse,head\nr,,a\nr,true,b\nr,False,c\nr,1,d\n", [False, True, False, True]),
    ],
)
def test_ways_to_write_questions(tmp_path: Path, text: str, inverse: list[bool]) -> None:
    frame = pl.concat(read_queries(written(tmp_path / "q.csv", text)))
    assert frame["inverse"].to_list() == inverse
    assert frame["head"].to_list() == list("abcd")[: len(inverse)]


def test_values_of_json_keep_their_types(reasoner: Reasoner, tmp_path: Path) -> None:
    lines = [
        {"subject": "child0", "predicate": "mother", "weight": 1.5, "n": 2**60, "mixed": 1},
        {"subject": "child1", "predicate": "mother", "weight": 2, "ok": True, "mixed": "b", "list": [1, "x"]},
        {"subject": "child2", "predicate": "mother", "weight": None, "none": None, "mixed": 0.5},
    ]
    file = written(tmp_path / "q.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    frame = pl.concat(read_queries(file, rows=1))
    assert frame.schema == {
        **{"query": pl.Int64, "head": pl.String, "relation": pl.String, "inverse": pl.Boolean},
        **{"weight": pl.Float64, "n": pl.Int64, "mixed": pl.String},
        **{"ok": pl.Boolean, "list": pl.String, "none": pl.String},
    }
    assert frame["weight"].to_list() == [1.5, 2.0, None] and frame["n"].to_list() == [2**60, None, None]
    assert frame["mixed"].to_list() == ["1", "b", "0.5"]
    assert frame["ok"].to_list() == [None, True, None] and frame["list"].to_list()[1] == '[1, "x"]'
    answer_queries(reasoner, file, tmp_path / "a.jsonl", top=1)
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert (first["head"], first["weight"], first["n"]) == ("child0", 1.5, 2**60)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_head_and_relation_may_have_their_other_names(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"Subject": ["a"], "predicate": ["r"], "type": ["x"]})
    getattr(frame, f"write_{suffix}")(tmp_path / f"q.{suffix}")
    (read,) = read_queries(tmp_path / f"q.{suffix}")
    assert read.rows() == [(1, "a", "r", False, "x")]
    assert read.columns == ["query", "head", "relation", "inverse", "type"]
    both = written(tmp_path / "both.csv", "source,head,relation\nfile1,a,r\n")
    assert next(read_queries(both)).rows() == [
        (1, "a", "r", False, "file1")
    ]  # a name of its own is left alone


def test_values_of_json_are_kept_as_text(tmp_path: Path) -> None:
    lines = '{"head": 7, "relation": "r", "id": {"x": 1}}\n{"relation": "r", "head": "b"}\n'
    frame = pl.concat(read_queries(written(tmp_path / "q.jsonl", lines)))
    assert frame.select("head", "id").rows() == [("7", '{"x": 1}'), ("b", None)]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("q.csv", "", "is empty"),
        ("q.csv", "head,relation\n", "no questions"),
        ("q.csv", "who,relation\na,r\n", "no column 'head' among 'who, relation'"),
        ("q.csv", "subject,source,relation\na,b,r\n", "no column 'head' among 'subject, source, relation'"),
        ("q.csv", "head,relation\na,r\nb\n", r"line 3: 1 columns instead of 2 in 'b'"),
        ("q.csv", "head,relation\na,r\n,r\n", "line 3: the head is empty"),
        ("q.csv", 'head,relation\n"a,r\n', "line 2: .*close quotes"),
        (
            "q.csv",
            "head,relation,inverse\na,r,perhaps\n",
            "line 2: inverse is 'perhaps'; write true or false",
        ),
        ("q.csv", "head,relation,direction,inverse\na,r,,\n", "say the same"),
        ("q.csv", "head,relation,rank\na,r,1\n", "'rank' would clash"),
        ("q.csv", "head,relation,score\na,r,1\n", "'score' would clash"),
        ("q.csv", "head,relation,cases\na,r,1\n", "'cases' would clash"),
        ("q.csv", "head,relation,x,X\na,r,1,2\n", "two columns 'x'"),
        ("q.jsonl", '{"head": "a", "relation": "r"}\n{"head"\n', "line 2: is not JSON"),
        ("q.jsonl", '["a", "r"]\n', "line 1: .* is not a question"),
        ("q.jsonl", '{"head": ["a"], "relation": "r"}\n', "line 1: 'head' is .*, not a name"),
        ("q.jsonl", '{"head": "\\ud800", "relation": "r"}\n', "line 1: .*not text"),
        (
            "q.jsonl",
            '{"head": "a", "relation": "r"}\n{"head": "a", "rel": "r"}\n',
            "line 2: the relation is empty",
        ),
        ("q.parquet", "PAR1 no", "cannot be read"),
        ("q.xlsx", "head,relation\na,r\n", "questions are read from .csv"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        list(read_queries(written(tmp_path / name, text)))


def test_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes(b"head,relation\na,r\nM\xfcller,r\n")
    with pytest.raises(DataError, match="line 3: byte 0xfc"):
        list(read_queries(tmp_path / "q.csv"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("chld0,mother", "unknown entity 'chld0'; did you mean 'child0'.*row 31"),
        ("child0,mothr", "unknown relation 'mothr'; did you mean 'mother'.*row 31"),
    ],
)
def test_unknown_names_are_said_before_anything_is_asked(
    reasoner: Reasoner, tmp_path: Path, monkeypatch, row: str, says: str
) -> None:
    monkeypatch.setattr(answer_files, "PART", 4)
    file = written(tmp_path / "q.csv", "head,relation\n" + "child0,mother\n" * 30 + row + "\n")
    with pytest.raises(UnknownName, match=says):
        answer_queries(
            reasoner, file, tmp_path / "a.csv", progress=lambda *_: pytest.fail("something was asked")
        )
    assert sorted(tmp_path.iterdir()) == [file]


def test_unknown_names_can_be_skipped(reasoner: Reasoner, tmp_path: Path) -> None:
    file = written(
        tmp_path / "q.csv", "id,head,relation\na,chld0,mother\nb,child0,mother\nc,child0,aunt\nd,x,y\n"
    )
    report = answer_queries(reasoner, file, tmp_path / "a.csv", top=1, skip_unknown=True)
    answers = pl.read_csv(tmp_path / "a.csv")
    assert answers["id"].to_list() == ["a", "b", "c", "d"]
    assert answers["rank"].to_list() == [None, 1, None, None]
    assert answers["problem"].to_list() == [
        *("unknown entity 'chld0'", None, "unknown relation 'aunt'", "unknown entity 'x'"),
    ]
    assert (report.answered, report.unknown, report.without_answers) == (1, 3, 0)


def test_progress_counts_up_to_the_number_of_questions(
    reasoner: Reasoner, questions: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(answer_files, "PART", 7)
    seen: list[tuple[int, int]] = []
    answer_queries(
        reasoner, questions, tmp_path / "a.csv", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (len(QUESTIONS), len(QUESTIONS))
    assert len(seen) >= len(QUESTIONS) / 7


def test_what_differs_from_the_broken_off_run_is_said(
    reasoner: Reasoner, questions: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(answer_files, "PART", 7)

    def stop(done: int, total: int) -> None:
        if done > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_queries(reasoner, questions, tmp_path / "a.csv", progress=stop)
    with pytest.raises(RunError, match="top was 10, is 2"):
        answer_queries(reasoner, questions, tmp_path / "a.csv", top=2)
    with pytest.raises(RunError, match="any_role was false, is true"):
        answer_queries(reasoner, questions, tmp_path / "a.csv", any_role=True)
    with questions.open("a") as file:
        file.write("child0,mother,true\n")
    with pytest.raises(RunError, match="the queries changed"):
        answer_queries(reasoner, questions, tmp_path / "a.csv")


def test_top_must_be_a_count(reasoner: Reasoner, questions: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        answer_queries(reasoner, questions, tmp_path / "a.csv", top=0)


KILLED = """
import os, signal, sys
from dpmpn.ask import answer_files
from dpmpn.reasoner.reasoner import Reasoner

answer_files.PART = 4
run, questions, out, moment = sys.argv[1:]
left, replace = int(moment), os.replace

def counted(*names):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(*names)

os.replace = counted
answer_files.answer_queries(Reasoner.load(run), questions, out)
"""


@pytest.mark.parametrize(
    ("suffix", "moment", "resumed"),
    [
        ("csv", 4, 8),  # request.json and two parts are there
        ("parquet", 9, 27),  # and all seven parts, but not the table
    ],
)
def test_a_killed_run_goes_on_and_gives_the_same_bytes(
    run: Path, questions: Path, tmp_path: Path, monkeypatch, suffix: str, moment: int, resumed: int
) -> None:
    monkeypatch.setattr(answer_files, "PART", 4)
    whole, killed = tmp_path / f"whole.{suffix}", tmp_path / f"killed.{suffix}"
    answer_queries(Reasoner.load(run), questions, whole)
    command = [sys.executable, "-c", KILLED, str(run), str(questions), str(killed), str(moment)]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    assert not killed.exists()
    assert answer_queries(Reasoner.load(run), questions, killed).resumed == resumed
    assert killed.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [killed.name, "questions.csv", whole.name]


def test_questions_as_excel_writes_them(tmp_path):
    path = tmp_path / "q.csv"
    path.write_bytes("sep=;\r\nhead;relation\r\n'=a;likes\r\n".encode("utf-16"))
    (frame,) = read_queries(path)
    assert frame.select("head", "relation").rows() == [("=a", "likes")]
    path.write_text("sep=|\nhead|relation\na|likes\nb\n")
    with pytest.raises(DataError, match="line 4: 1 columns"):
        list(read_queries(path))


@pytest.mark.parametrize("asked", ["Caf\u00e9", "Cafe\u0301", "cafe\u0301 "])
def test_names_in_questions_are_found_in_either_spelling(asked, tmp_path):
    graph = dataset_from_tuples([("Cafe\u0301", "a\u0300", "b")]).graph
    (tmp_path / "q.csv").write_text(f"head,relation\n{asked},\u00e0\n", "utf-8")
    names = answer_files.look_up_names(tmp_path / "q.csv", graph, skip_unknown=False)
    assert names.heads["head_id"].to_list() == [graph.entities.id("Caf\u00e9")]
    assert names.relations["relation_id"].to_list() == [0]
