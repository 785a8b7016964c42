"""Commands in shards: what `dpmpn merge` writes is, byte for byte, what one run writes; mistakes say what to run."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_family import TINY, Call

from dpmpn.ask import answer_files
from dpmpn.complete import completer
from dpmpn.evaluate import evaluator
from dpmpn.explain_eval import work

QUESTIONS = [*((f"child{i}", "mother") for i in range(8)), *((f"mother{i}", "husband") for i in range(8))]
ONE_CORE = ("--threads", "1")
COMMANDS = {
    "predict": (
        ["predict", "run", "--queries", "questions.csv", "--any-role", "--top", "3", *ONE_CORE],
        "out.csv",
    ),
    "complete": (
        ["complete", "run", "--heads", "all", "--both-directions", "--top", "9", *ONE_CORE],
        "out.jsonl",
    ),
    "evaluate": (["evaluate", "run", "--split", "train", "--per-relation", *ONE_CORE], "out.json"),
    "explain-eval": (["explain-eval", "run", "--split", "train", "--sample", "5"], "out.json"),
}


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run and questions, in which small work has several parts."""
    for module, size in ((answer_files, 3), (completer, 8), (evaluator, 4), (work, 2)):
        monkeypatch.setattr(module, "PART", size)
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "questions.csv").write_text("head,relation\n" + "".join(f"{h},{r}\n" for h, r in QUESTIONS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_merged_shards_are_the_bytes_of_one_run(call: Call, here: Path, name: str) -> None:
    command, file = COMMANDS[name]
    whole, shared = f"whole-{file}", f"shared-{file}"
    once = call(*command, "--out", whole)
    assert once.code == 0, once.err
    for number in (3, 1, 2):
        done = call(*command, "--out", shared, "--shard", f"{number}/3")
        assert done.code == 0, done.err
        assert f"Shard {number}/3 is done" in done.out
        assert f"dpmpn merge {shared}" in done.out
        assert not Path(shared).exists()
    merged = call("merge", shared)
    assert merged.code == 0, merged.err
    assert Path(shared).read_bytes() == Path(whole).read_bytes()
    assert not Path(f"{shared}.parts").exists()


def test_a_report_is_that_of_json_but_for_the_times(call: Call, here: Path) -> None:
    command, out = COMMANDS["evaluate"]
    assert call(*command, "--out", out, "--json", "other.json").code == 0
    report = json.loads(Path("other.json").read_text())
    for time in ("seconds", "cpu_seconds", "queries_per_s"):
        assert report.pop(time) >= 0
    assert json.loads(Path(out).read_text()) == report


def test_json_is_given_to_merge(call: Call, here: Path) -> None:
    command, out = COMMANDS["predict"]
    shard = (*command, "--out", out, "--shard=1/1")
    assert "give it to `dpmpn merge`" in refused(call, *shard, "--json", "report.json")
    assert call(*shard).code == 0
    assert call("merge", out, "--json", "report.json").code == 0
    assert json.loads(Path("report.json").read_text())["questions"] == len(QUESTIONS)


def refused(call: Call, *words: object) -> str:
    result = call(*words)
    assert result.code == 2
    assert result.err.startswith("dpmpn: ") and result.err.count("\n") == 1
    return result.err


def test_a_missing_shard_is_named_with_its_command(call: Call, here: Path) -> None:
    command, out = COMMANDS["predict"]
    assert "no shard was run yet" in refused(call, "merge", out)
    assert call(*command, "--out", out, "--shard", "1/3").code == 0
    says = refused(call, "merge", out)
    assert "2/3 (0 of 2 parts done) and 3/3 (0 of 2 parts done)" in says
    missing = f"dpmpn {' '.join(command)} --out {out} --shard 2/3"
    assert missing in says
    assert call(*missing.split()[1:]).code == 0
    assert "1 shard of 3 is not done: 3/3" in refused(call, "merge", out)


def test_a_damaged_part_is_made_again_by_its_shard(call: Call, here: Path) -> None:
    command, out = COMMANDS["predict"]
    for number in (1, 2):
        assert call(*command, "--out", out, "--shard", f"{number}/2").code == 0
    part = sorted(Path(f"{out}.parts").glob("0*.parquet"))[0]
    part.write_bytes(part.read_bytes()[:-1])
    assert "--shard 1/2" in refused(call, "merge", out)
    again = call(*command, "--out", out, "--shard", "1/2")
    assert "6 of them by an earlier run" in again.out
    assert call("merge", out).code == 0


def test_another_run_another_file_and_another_number_are_refused(
    call: Call, here: Path, family: Path
) -> None:
    command, out = COMMANDS["predict"]
    shard = (*command, "--out", out, "--shard")
    assert call(*shard, "1/3").code == 0
    assert "was divided into 3 shards, not 4" in refused(call, *shard, "2/4")
    with Path("questions.csv").open("a") as file:
        file.write("child0,father\n")
    assert "other options (the queries changed)" in refused(call, *shard, "2/3")
    assert call("train", family, "--out", "other", *TINY, "--seed", 5).code == 0
    other = [word if word != "run" else "other" for word in shard]
    assert "the model changed" in refused(call, *other, "2/3")


def test_merging_where_the_shards_were_not_run_is_refused(
    call: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, out = COMMANDS["predict"]
    Path("results").mkdir()
    assert call(*command, "--out", f"results/{out}", "--shard", "1/1").code == 0
    monkeypatch.chdir(here / "results")
    assert f"cd {here} && dpmpn merge results/{out}" in refused(call, "merge", out)
    monkeypatch.chdir(here)
    assert call("merge", f"results/{out}").code == 0


@pytest.mark.parametrize("command", [["train", "family"], ["predict", "run", "--json=mine.txt"], []])
def test_a_folder_from_elsewhere_makes_no_other_command_run(
    call: Call, here: Path, command: list[str]
) -> None:
    Path("out.csv.parts").mkdir()
    described = {"shards": 1, "parts": 0, "command": command, "out": "out.csv", "folder": "/"}
    Path("out.csv.parts/shards.json").write_text(json.dumps(described))
    before = sorted(here.rglob("*"))
    assert "is no command of shards" in refused(call, "merge", "out.csv")
    assert sorted(here.rglob("*")) == before


def test_more_shards_than_parts(call: Call, here: Path) -> None:
    command, out = COMMANDS["predict"]
    assert (
        "Shard 1/99 has nothing to do: there are 6 parts."
        in call(*command, "--out", out, "--shard", "1/99").out
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evaluate", "run", "--shard", "1/2"], "--shard needs --out FILE"),
        (["complete", "run", "--on-ray"], "--on-ray needs --out FILE"),
        (["evaluate", "run", "--out", "a.json", "--shard", "3/2"], "from 1, so give 1/2 to 2/2"),
        (["evaluate", "run", "--out", "a.json", "--shard", "half"], "write --shard 3/8"),
        (["evaluate", "run", "--out", "a.json", "--shard", "1/2", "--on-ray"], "leave out one of them"),
        (["evaluate", "run", "--out", "a.csv"], "end its name in .json"),
        (["evaluate", "run", "--out", "no/a.json"], "no is not a folder"),
        (["predict", "run", "child0", "mother", "--shard", "1/2"], "--shard needs --out FILE"),
        (["merge"], "Missing argument"),
    ],
)
def test_mistakes_are_said_before_any_work(call: Call, here: Path, words: list[str], says: str) -> None:
    before = sorted(here.iterdir())
    assert says in refused(call, *words)
    assert sorted(here.iterdir()) == before
