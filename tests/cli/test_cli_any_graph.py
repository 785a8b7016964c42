"""Questions without training: `dpmpn ask`, and the name any-graph wherever a run is expected."""

import json
from pathlib import Path

import pytest
from tiny_family import FACTS, Call

import dpmpn.serve.run

ASKING = [
    ("evaluate",),
    ("predict", "child0", "mother"),
    ("explain", "child0", "mother"),
    ("complete",),
    ("serve",),
    ("explain-eval",),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of facts, and nothing beside it."""
    path = tmp_path / "facts.csv"
    path.write_text("".join(",".join(fact) + "\n" for fact in FACTS))
    return path


def test_a_question_to_a_file(call: Call, file: Path) -> None:
    result = call("ask", file, "child7", "father", "--why", "--threads", 1)
    assert result.code == 0 and result.err == ""
    first, question, *_ = result.out.splitlines()
    assert first == f"asking about facts.csv: 24 entities, {len(FACTS)} facts"
    assert question == "<child7, father, ?>" and "Why " in result.out and "too few" not in result.out
    asked = ("child7", "father", "--any-role", "--why", "--json", "-", "--threads", 1)
    plain = json.loads(call("ask", file, *asked).out)
    assert (
        plain[0].keys() >= {"answer", "score", "probability", "rank", "known", "why"}
        and "note" not in plain[0]
    )
    assert plain == json.loads(call(*("predict", "any-graph", *asked, "--on", file)).out)


def test_the_other_end_and_facts_more_and_fewer(call: Call, file: Path, tmp_path: Path) -> None:
    assert "<?, mother, mother7>" in call("ask", file, "mother7", "mother", "--inverse").out
    (tmp_path / "more.csv").write_text("child7,pet,Rex\nchild6,pet,Rex\n")
    result = call("ask", file, "child7", "pet", "--add", tmp_path / "more.csv")
    assert result.code == 0 and "1 new relation: pet" in result.out
    assert "'pet' has 2 facts in this graph" in result.out
    (tmp_path / "labels.csv").write_text("id,name\nchild7,Ann\n")
    assert "asking about" in call("ask", file, "Ann", "father", "--labels", tmp_path / "labels.csv").out


def test_where_little_is_known_a_note_says_so(call: Call, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("a,likes,b\nc,likes,d\n")
    result = call("ask", tmp_path / "few.csv", "a", "likes")
    assert result.code == 0 and result.out.count("Note: ") == 3
    raw = call("ask", tmp_path / "few.csv", "a", "likes", "--json", "-")
    assert raw.err.count("Note: ") == 3
    assert all("treat the answers as guesses" in answer["note"] for answer in json.loads(raw.out))


@pytest.mark.parametrize(
    "words, told",
    [
        (("nowhere.csv", "a", "r"), "nowhere.csv: no such file"),
        (("nowhere", "a", "r"), "there is no file or folder of this name"),
        (("countries", "Atlantis", "in_subregion"), "unknown entity 'Atlantis'"),
        (("countries", "Serbia", "in_subregon"), "did you mean 'in_subregion'"),
        (("countries", "Serbia", "qqq"), "unknown relation 'qqq'; there are 'also_speaks', "),
        (("countries", "Serbia"), "see `dpmpn ask --help`"),
        (("countries", "Serbia", "in_subregion", "--top", "0"), "--top"),
    ],
)
def test_mistakes_are_one_line(call: Call, words: tuple[str, ...], told: str) -> None:
    result = call("ask", *words)
    assert result.code == 2 and result.err.count("\n") == 1 and told in result.err


@pytest.mark.parametrize("command", ASKING)
def test_without_a_graph_it_is_said_how_to_name_one(call: Call, command: tuple[str, ...]) -> None:
    name, *rest = command
    result = call(name, "any-graph", *rest)
    assert result.code == 2 and "--on FACTS" in result.err and result.err.count("\n") == 1


def test_a_folder_of_that_name_is_told_from_it(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("any-graph").symlink_to(trained)
    assert call("predict", "any-graph", "child0", "mother").code == 2
    assert call("predict", "./any-graph", "child0", "mother").code == 0


def test_evaluation_of_a_folder(call: Call, tmp_path: Path) -> None:
    """Without validation facts, and with an entity and a relation that only test facts have."""
    (tmp_path / "train.txt").write_text("".join("\t".join(fact) + "\n" for fact in FACTS))
    (tmp_path / "test.txt").write_text("child7\tfather\tfather7\nnobody\taunt\tmother0\n")
    out = tmp_path / "report.json"
    result = call("evaluate", "any-graph", "--on", tmp_path, "--json", out, "--threads", 1)
    assert result.code == 0, result.err
    report = json.loads(out.read_text())
    assert report["on"] == tmp_path.name and report["split"] == "test"
    assert report["triples"] == 2 and report["queries"] == 4 and report["unseen"] == 1
    assert 0 < report["both"]["realistic"]["mrr"] < 1


def test_a_file_without_test_facts(call: Call, file: Path) -> None:
    result = call("evaluate", "any-graph", "--on", file)
    assert result.code == 2 and "no test triples" in result.err
    assert call("evaluate", "any-graph", "--on", file, "--split", "train", "--threads", 1).code == 0


def test_explanations_and_files_of_questions(call: Call, file: Path, tmp_path: Path) -> None:
    why = call("explain", "any-graph", "child7", "father", "--on", file, "--out", tmp_path / "why")
    assert why.code == 0 and (tmp_path / "why" / "explanation.html").is_file()
    (tmp_path / "asked.csv").write_text("head,relation\nchild7,father\nchild6,father\n")
    queries = ["--queries", tmp_path / "asked.csv", "--out", tmp_path / "answers.csv", "--on", file]
    assert call("predict", "any-graph", *queries).code == 0
    assert "father7" in (tmp_path / "answers.csv").read_text()


def test_whether_explanations_are_true(call: Call, file: Path) -> None:
    result = call("explain-eval", "any-graph", "--on", file, "--split", "train", "--sample", 2, "--json", "-")
    assert result.code == 0 and json.loads(result.out)["asked"] == 2


def test_missing_facts_with_measured_probabilities(call: Call, tmp_path: Path) -> None:
    rows = [f"{h}{i},{r},{t}{i}\n" for i in range(40) for h, r, t in [("c", "m", "x"), ("x", "h", "y")]]
    rows += [f"c{i},f,y{i}\n" for i in range(36)]
    (tmp_path / "facts.csv").write_text("".join(rows))
    result = call("complete", "any-graph", "--on", tmp_path / "facts.csv", "--top", 3, "--threads", 1)
    assert result.code == 0, result.err
    assert "95 % interval" in result.out
    assert "lacks a tenth of its facts" in result.out
    assert {path.name for path in tmp_path.iterdir()} == {"facts.csv"}  # and nothing is left anywhere


def test_the_explorer_opens_on_a_file(call: Call, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr(
        dpmpn.serve.run, "run", lambda guard, taken, stop, started: (started(), served.append(guard))
    )
    result = call("serve", "any-graph", "--on", file, "--port", 0)
    assert result.code == 0 and f"serving any-graph with {file} on http://" in result.out and len(served) == 1
