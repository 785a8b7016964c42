"""How many of the most probable missing facts are right: python benchmarks/complete.py RUN_DIR --json FILE"""

import argparse
import json
import time
from pathlib import Path

import polars as pl

import dpmpn
from dpmpn.complete import Asking, calibration_of, complete
from dpmpn.complete.calibration import save_plot


def precision(facts: pl.DataFrame, top: int) -> dict[str, float]:
    """Share of the first facts that a held-out split states; of test facts alone, validation ones left out."""
    held_out = facts.head(top)["held_out"]
    unseen = facts.filter(pl.col("held_out").is_null() | (pl.col("held_out") == "test")).head(top)["held_out"]
    return {
        "facts": len(held_out),
        "valid_or_test": held_out.is_not_null().mean(),
        "test_alone": unseen.is_not_null().mean(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--both-directions", action="store_true")
    parser.add_argument("--max-questions", type=int)
    options = parser.parse_args()
    reasoner = dpmpn.Reasoner.load(options.run_dir)
    asking = Asking(both_directions=options.both_directions)
    _ = reasoner.engine
    started = time.perf_counter()
    calibration = calibration_of(reasoner, asking)
    assert calibration is not None, "precision needs a run with validation facts"
    measured = time.perf_counter()
    # Twice as many as are judged, as validation facts are left out of one of the figures.
    facts = complete(
        reasoner,
        top=400,
        asking=asking,
        held_out=True,
        calibration=calibration,
        max_questions=options.max_questions,
    )
    ended = time.perf_counter()
    report = {
        "dataset": reasoner.dataset.name,
        "both_directions": options.both_directions,
        "questions": calibration.questions,
        "max_questions": options.max_questions,
        "calibration_questions": calibration.asked,
        "calibration_facts": calibration.facts,
        "calibration_seconds": measured - started,
        "completion_seconds": ended - measured,  # of 400 facts with their reasons
        "precision": {f"top_{top}": precision(facts, top) for top in (20, 50, 100)},
        "expected_calibration_error": {
            "before": calibration.before.error,
            "after": calibration.after.error,
            "of_first_answers_before": calibration.before.error_of_first,
            "of_first_answers_after": calibration.after.error_of_first,
        },
    }
    options.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    if options.plot:
        save_plot(calibration, options.plot, reasoner.dataset.name)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
