"""What the table says of how it was made."""

from typing import Any

import pytest

from dpmpn.lab.compare.report import at_mark, markdown

CONDITIONS = {"dataset": "families", "budget_minutes": 2, "test": 3, "threads": 2, "seed": 0}


def model(label: str, validations: int = 8, cores: float = 2.0) -> dict[str, Any]:
    scores = {"mrr": 0.5, "hits_at_1": 0.4, "hits_at_3": 0.5, "hits_at_10": 0.6}
    both = {ties: scores for ties in ("realistic", "optimistic", "pessimistic")}
    result = {
        "seconds": 120.0,
        "cpu_seconds": 120 * cores,
        "curve": [{}] * validations,
        "test": {"both": both},
    }
    result |= {"parameters": 7, "epochs": 1.0, "queries_per_s": 9.0}
    return {"label": label, "is_own": False, "result": result}


@pytest.mark.parametrize(
    ("counts", "told"), [((8, 8), "best of 8 validations is"), ((3, 8), "best of 3 to 8 validations is")]
)
def test_validations_are_counted(counts, told):
    assert told in markdown(CONDITIONS, [model("A", counts[0]), model("B", counts[1])], [])


def test_numbers_stand_to_the_right_and_words_to_the_left():
    columns, bars = markdown(CONDITIONS, [model("A")], []).splitlines()[-3:-1]
    aligned = dict(zip(columns.strip("| ").split(" | "), bars.strip("| ").split(" | "), strict=True))
    assert [column for column, bar in aligned.items() if bar == "---"] == ["model", "figures"]


def test_busy_cores_are_shown_and_told_where_they_differ():
    alike = markdown(CONDITIONS, [model("A", cores=1.9), model("B", cores=2.0)], [])
    assert "| 2.0 | 1.90 | trained here |" in alike and "Busy cores differ" not in alike
    unlike = markdown(CONDITIONS, [model("A", cores=1.2), model("B", cores=2.0)], [])
    assert "**Busy cores differ**, from 1.20 (A) to 2.00 (B)" in unlike


def test_marks_that_the_run_was_long_enough_for_are_columns():
    one = model("A")
    one["result"]["curve"] = [{"seconds": 301.0, "mrr": 0.25}, {"seconds": 900.0, "mrr": 0.5}]
    told = markdown({**CONDITIONS, "budget_minutes": 20}, [one], [])
    columns, _, cells = (line.strip("| ").split(" | ") for line in told.splitlines()[-3:])
    shown = dict(zip(columns, cells, strict=True))
    assert (shown["validation MRR, 5 min"], shown["validation MRR, 15 min"]) == ("25.0", "50.0")
    assert "validation MRR, 60 min" not in shown
    one["result"]["curve"][0]["seconds"] = 400.0  # too late to be called 5 minutes
    assert at_mark(one, 5) is None
