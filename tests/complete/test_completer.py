"""Missing facts of a graph with a planted rule: found, filtered, explained, and found again after a kill."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from families import HELD_OUT, LEFT_OUT, SETTINGS, STATED, VALID, fact_tuples, families, stated
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.ask.questions import Asking, Questions
from dpmpn.complete import complete, completer
from dpmpn.complete.completer import FACTS, best_facts
from dpmpn.errors import ConfigError, DataError, DpmpnError, RunError, UnknownName
from dpmpn.wording import probability_shown

SCRIPT = Path(__file__).with_name("killed_completion.py")
SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def facts(reasoner: dpmpn.Reasoner) -> pl.DataFrame:
    return complete(reasoner, top=1000)


def test_the_facts_of_a_rule_that_are_stated_nowhere_are_on_top(facts: pl.DataFrame) -> None:
    assert set(fact_tuples(facts.head(len(LEFT_OUT)))) == LEFT_OUT
    assert facts["rank"].to_list() == list(range(1, len(facts) + 1))
    first = facts.row(0, named=True)
    number = first["head"][-2:]
    assert (
        first["support"][0]
        .partition(" ")[2]
        .startswith(
            f"Child {int(number)} mother Mother {int(number)}; Mother {int(number)} husband Father {int(number)}"
        )
    )
    assert 0.5 < first["probability"] <= first["probability_if_missing"]
    assert first["probability_low"] < first["probability"] < first["probability_high"]
    assert first["cases"] == VALID - STATED
    assert (first["head_label"], first["tail_label"]) == (f"Child {int(number)}", f"Father {int(number)}")


def test_the_order_is_by_probability_then_score(facts: pl.DataFrame) -> None:
    ordered = facts.sort(["probability", "score"], descending=True, maintain_order=True)
    assert ordered["rank"].to_list() == facts["rank"].to_list()


def test_stated_facts_never_appear(facts: pl.DataFrame, reasoner: dpmpn.Reasoner) -> None:
    found = fact_tuples(facts)
    assert len(found) > 100
    assert not set(found) & stated(reasoner.dataset, *SPLITS)
    assert len(set(found)) == len(found)
    assert all(head != tail for head, _, tail in found)


def test_held_out_facts_count_as_missing_when_asked(reasoner: dpmpn.Reasoner) -> None:
    found = complete(reasoner, top=30, held_out=True)
    marked = found.filter(pl.col("held_out").is_not_null())
    assert set(fact_tuples(marked)) == HELD_OUT
    assert set(fact_tuples(marked.filter(held_out="test"))) == stated(reasoner.dataset, "test")
    assert set(fact_tuples(found)) >= LEFT_OUT
    assert not set(fact_tuples(found)) & stated(reasoner.dataset, "train")


def test_both_directions_give_each_fact_once_through_the_better_question(reasoner: dpmpn.Reasoner) -> None:
    found = complete(reasoner, top=1000, asking=Asking(both_directions=True))
    names = fact_tuples(found)
    assert len(set(names)) == len(names)
    assert set(names) >= LEFT_OUT
    assert not set(names) & stated(reasoner.dataset, *SPLITS)
    assert set(found["through"]) == {"<head, relation, ?>", "<?, relation, tail>"}
    assert set(found["relation"]) <= {"father", "mother", "husband", "brother", "sister"}  # no inverse ones


def test_what_is_wanted(reasoner: dpmpn.Reasoner, facts: pl.DataFrame) -> None:
    some = complete(reasoner, ["husband", "mother"], top=1000)
    assert set(some["relation"]) == {"husband", "mother"}
    typed = complete(reasoner, head_type="Mother", top=1000)
    assert set(typed["head"].str.head(-2)) == {"mother"}
    both = complete(reasoner, head_type="Mother", top=1000, asking=Asking("all", both_directions=True))
    assert set(both["head"].str.head(-2)) == {"mother"}
    assert set(both["through"]) == {"<head, relation, ?>", "<?, relation, tail>"}
    probable = complete(reasoner, min_probability=0.05, top=1000)
    assert probable["probability"].min() >= 0.05
    assert len(probable) == facts.filter(pl.col("probability") >= 0.05).height
    assert fact_tuples(complete(reasoner, top=3)) == fact_tuples(facts.head(3))


def test_mistakes_are_told(reasoner: dpmpn.Reasoner) -> None:
    for wrong in ({"top": 0}, {"min_probability": 1.5}, {"max_questions": 0}):
        with pytest.raises(ConfigError, match="must be"):
            complete(reasoner, **wrong)
    with pytest.raises(UnknownName):
        complete(reasoner, ["fathr"])


def test_mistakes_are_told_before_anything_is_measured(
    reasoner: dpmpn.Reasoner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(reasoner), "calibrate", lambda *_, **__: pytest.fail("measured"))
    for wrong in (
        {"relations": ["fathr"]},
        {"relations": ["father_inv"]},
        {"head_type": "nope"},
        {"top": 0},
        {"min_probability": 2},
        {"max_questions": 0},
    ):
        with pytest.raises(DpmpnError):
            complete(reasoner, out=tmp_path / "facts.csv", **wrong)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UnknownName, match="most frequent types are 'child', 'father', 'mother'"):
        complete(reasoner, head_type="nope")
    with pytest.raises(UnknownName, match="did you mean 'mother'") as error:
        complete(reasoner, ["mothr"])
    assert not any(name.endswith("_inv") for name in error.value.near)


def test_a_budget_says_what_it_leaves_out(reasoner: dpmpn.Reasoner) -> None:
    said: list[str] = []
    complete(reasoner, top=5, max_questions=10, say=said.append)
    left_out = Questions(reasoner.dataset, max_questions=10).left_out
    assert left_out >= Questions(reasoner.dataset).total - 10
    assert [line.split(" ")[0] for line in said] == [str(left_out)]


def test_without_validation_facts_scores_rank() -> None:
    reasoner = dpmpn.Reasoner(**{**SETTINGS, "n_epochs": 0.5}).fit(families(with_valid=False))
    found = complete(reasoner, top=10)
    assert found["probability"].null_count() == found["cases"].null_count() == len(found) == 10
    assert found["score"].is_sorted(descending=True)
    with pytest.raises(DataError, match="none were measured"):
        complete(reasoner, min_probability=0.5)


def test_where_no_fact_is_probable_enough_the_best_is_told(
    reasoner: dpmpn.Reasoner, facts: pl.DataFrame
) -> None:
    said: list[str] = []
    assert complete(reasoner, min_probability=0.999, say=said.append).is_empty()
    best = facts["probability"].max()
    assert said == [f"no missing fact is as probable as 0.999; the best has {probability_shown(best)}"]


def test_chains_stay_apart_whatever_names_hold(tmp_path: Path) -> None:
    train = [
        *((f"child | {i}", "mother", f"mother{i}") for i in range(8)),
        *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
        *((f"child | {i}", "father", f"father{i}") for i in range(6)),
    ]
    reasoner = dpmpn.Reasoner(**{**SETTINGS, "n_epochs": 1}).fit(dpmpn.dataset_from_tuples(train))
    found = complete(reasoner, top=5)
    chains = [chain for row in found["support"].to_list() for chain in row]
    assert any("child | " in chain for chain in chains)
    assert all(chain.partition(" ")[0].endswith("%") for chain in chains)
    for suffix in ("csv", "jsonl"):
        complete(reasoner, top=5, out=tmp_path / f"facts.{suffix}")
    assert pl.read_ndjson(tmp_path / "facts.jsonl")["support"].to_list() == found["support"].to_list()
    assert pl.read_csv(tmp_path / "facts.csv")["support"].to_list() == [
        " | ".join(row) for row in found["support"].to_list()
    ]


def test_no_facts_make_an_empty_table_with_its_columns(reasoner: dpmpn.Reasoner, tmp_path: Path) -> None:
    found = complete(reasoner, min_probability=1.0, out=tmp_path / "none.csv")
    assert found.is_empty()
    assert (tmp_path / "none.csv").read_text().startswith("rank,head,relation,tail,")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_the_file_holds_what_is_returned(reasoner: dpmpn.Reasoner, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"facts{suffix}"
    found = complete(reasoner, top=7, out=out)
    read = {
        ".csv": pl.read_csv,
        ".tsv": lambda path: pl.read_csv(path, separator="\t"),
        ".jsonl": pl.read_ndjson,
        ".parquet": pl.read_parquet,
    }[suffix]
    assert fact_tuples(read(out)) == fact_tuples(found)
    assert list(tmp_path.iterdir()) == [out]
    with pytest.raises(RunError, match="already exists"):
        complete(reasoner, top=7, out=out)


def test_small_parts_change_nothing_and_only_the_best_are_kept(
    reasoner: dpmpn.Reasoner, facts: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completer, "PART", 25)
    monkeypatch.setattr(completer, "_EXPLAINED", 2)
    kept: list[int] = []
    write = completer.Parts.write
    monkeypatch.setattr(
        completer.Parts, "write", lambda self, i, frame: kept.append(len(frame)) or write(self, i, frame)
    )
    found = complete(reasoner, top=5, out=tmp_path / "facts.parquet")
    assert fact_tuples(found) == fact_tuples(facts.head(5))
    assert len(kept) > 6
    assert max(kept) <= 5  # of up to 250 answers a part


rows = st.lists(
    st.tuples(
        *(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2), st.floats(0, 1)),
        *(st.just(0.0), st.just(1.0), st.just(1.0), st.just(9), st.floats(0, 1), st.just(0)),
    ),
    max_size=12,
)


@given(st.lists(rows, min_size=1, max_size=5), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_best_of_parts_are_the_best_of_all(parts: list, top: int) -> None:
    frames = [pl.DataFrame(part, schema=FACTS, orient="row") for part in parts]
    best = pl.DataFrame(schema=FACTS)
    for frame in frames:
        best = best_facts(best, frame, top)
    whole = best_facts(pl.DataFrame(schema=FACTS), pl.concat(frames), top)
    assert best.equals(whole)
    scores: dict = {}
    for part in parts:
        for *fact, probability, _, _, _, _, score, _ in part:
            scores[tuple(fact)] = max(scores.get(tuple(fact), (-1, -1)), (probability, score))
    expected = sorted(scores.values(), reverse=True)[:top]
    assert best.select("probability", "score").rows() == expected


def completed(run_dir: Path, out: Path, moments: list) -> list[int]:
    """Run the script; how each session ended."""
    command = [sys.executable, str(SCRIPT), str(run_dir), str(out), json.dumps(moments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_at_any_moment_it_goes_on_to_the_same_table(
    reasoner: dpmpn.Reasoner, run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each session counts anew: the request, 8 parts of answers, 4 of reasons, the table, its description, its name.
    moments = [(5, "before"), (7, "after"), (5, "after")]
    assert completed(run_dir, tmp_path / "broken.csv", moments) == [signal.SIGKILL] * 3 + [0]
    monkeypatch.setattr(completer, "PART", 16)
    complete(reasoner, top=30, out=tmp_path / "whole.csv")
    assert (tmp_path / "broken.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "whole.csv"]
