"""Are probabilities true? First answers and listed missing facts of a run, judged by test facts.

    python benchmarks/probability.py RUN_DIR ... --json FILE [--plots FOLDER] [--threads 1]

What scores are worth was learnt from validation facts; here everything is judged by test facts, which had no part:

- first answers of test questions whose answer the graph does not state, by `probability_if_missing`, as such questions
  are known to have one (3,000 of them, where there are more);
- first answers of all questions that missing facts are looked for with, by `probability`; of those without a test fact
  a sample stands for all;
- the list of missing facts (`dpmpn complete --held-out`): its first 100, 300 and 1,000.

Answers that validation facts state are left out everywhere, as they taught the probabilities. What is left to find are
the test facts, and not the validation and test facts together; `more` says so to the calibration. The score, taken for
a probability, stands beside it.

Nothing learnt from validation facts holds for test facts of another sort, so both are compared: `sorts` says of the
questions that they answer how many have no other answer, how many of those are looked for, and how often the first new
answer is right. With --redeal both splits are shuffled and dealt out anew, in the same numbers, so that they are of one
sort.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpmpn.ask import measure
from dpmpn.calibrate.calibration import Calibration, Cases
from dpmpn.calibrate.reliability import Reliability, reliability, save_plot
from dpmpn.complete import complete
from dpmpn.data.dataset import Dataset
from dpmpn.provenance import versions
from dpmpn.reasoner.reasoner import Reasoner

LISTS = (100, 300, 1000)
QUESTIONS = 3000  # that test facts answer, at most; about twice as many others are asked


def main() -> None:
    """Judge each run and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run_dirs", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--plots", type=Path, help="folder for a drawing of each run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--redeal", action="store_true", help="deal validation and test facts out anew")
    parser.add_argument("--max-questions", type=int, default=100_000, help="for the list, the best ones")
    options = parser.parse_args()
    found = []
    for run_dir in options.run_dirs:
        found.append(judged(run_dir, options))
        print(json.dumps(found[-1], indent=2), flush=True)
        words = [
            "python benchmarks/probability.py",
            "RUN_DIR ...",
            f"--max-questions {options.max_questions}",
            *(["--redeal"] if options.redeal else []),
        ]
        report = {"command": " ".join(words), "versions": versions(), "graphs": found}
        options.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")


def judged(run_dir: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What the probabilities of one run are worth."""
    reasoner = Reasoner.load(run_dir, threads=options.threads)
    dataset = redealt(reasoner.dataset) if options.redeal else reasoner.dataset
    reasoner = reasoner._asked_on(dataset, None, None)
    began = time.process_time()
    taught = reasoner._asked_on(dataset, None, None)
    calibration = taught.calibrate(again=True)
    assert calibration is not None, f"{run_dir}: too few validation facts"
    seconds = time.process_time() - began
    more = tuple(more - 1 for more in calibration.more)  # test facts for each validation fact
    calibration = replace(calibration, more=more)
    cases = test_cases(reasoner)
    first = of_questions(cases, calibration, only_lacking=True)
    every = of_questions(cases, calibration, only_lacking=False)
    lists = of_list(reasoner, calibration, options.max_questions)
    panels = {
        "first answers of test questions, if missing": first,
        "first answers of all questions": every,
        f"the {LISTS[-1]:,} most probable missing facts": lists[LISTS[-1]],
    }
    if options.plots is not None:
        options.plots.mkdir(parents=True, exist_ok=True)
        path = options.plots / f"reliability-{dataset.name.lower()}.svg"
        save_plot(panels, path, f"{dataset.name}: how often answers are right")
    best = json.loads((run_dir / "best.json").read_text())
    return {
        "dataset": dataset.name,
        "model": reasoner.config.model.name,
        "validation_mrr": best.get("validation", {}).get("mrr"),
        "facts": {split: len(dataset.split(split)) for split in ("train", "valid", "test")},
        "measuring_cpu_seconds": round(seconds, 1),
        "measuring_questions": calibration.asked,
        "sorts": {"valid": sort_of(test_cases(swapped(reasoner))), "test": sort_of(cases)},
        "first_answers_of_test_questions": plain(first),
        "first_answers_of_all_questions": plain(every),
        "listed": {str(n): plain(pair) for n, pair in lists.items()},
    }


Pair = tuple[Reliability, Reliability]


def plain(pair: Pair) -> dict[str, float]:
    """The errors before and after, and what they are of."""
    score, probability = pair
    return {
        "answers": round(sum(bin.predictions for bin in probability.bins)),
        "right": round(probability.right, 4),
        "mean_score": round(score.predicted, 4),
        "mean_probability": round(probability.predicted, 4),
        "error_of_score": round(score.error, 4),
        "error_of_probability": round(probability.error, 4),
    }


def redealt(dataset: Dataset) -> Dataset:
    """The same facts held out, shuffled and dealt out anew between validation and test."""
    facts = np.concatenate([dataset.valid, dataset.test])
    facts = facts[np.random.default_rng(0).permutation(len(facts))]
    return replace(dataset, valid=facts[: len(dataset.valid)], test=facts[len(dataset.valid) :])


def swapped(reasoner: Reasoner) -> Reasoner:
    """The same with validation and test facts in each other's place."""
    dataset = reasoner.dataset
    return reasoner._asked_on(replace(dataset, valid=dataset.test, test=dataset.valid), None, None)


def test_cases(reasoner: Reasoner) -> Cases:
    """Answers to questions, of which test facts are the right ones; those that validation facts state are left out."""
    asked = swapped(reasoner)
    return measure.Drawn.of(asked.dataset, QUESTIONS, few=5).asked_of(asked)


def sort_of(cases: Cases) -> dict[str, float]:
    """What sort of questions held-out facts answer."""
    evidence, lacks = cases.evidence, cases.lacks
    alone = lacks & (evidence.n_stated == 0)
    found = np.zeros(len(lacks), bool)
    found[evidence.question[evidence.is_first & cases.right]] = True
    shares = {
        "questions": float(lacks.sum()),
        "without_other_answer": float(alone.sum() / max(lacks.sum(), 1)),
        "of_these_looked_for": float(cases.listed[alone].mean()) if alone.any() else 0.0,
        "first_answer_right": float(found[lacks].mean()),
    }
    return {name: round(value, 3) for name, value in shares.items()}


def of_questions(cases: Cases, calibration: Calibration, only_lacking: bool) -> Pair:
    """First answers of questions that lack one, if they do; or of all questions."""
    evidence, question = cases.evidence, cases.evidence.question
    estimates = calibration.estimates(evidence)
    of = cases.lacks if only_lacking else cases.listed
    rows = evidence.is_first & of[question]
    said = estimates.if_missing if only_lacking else estimates.probability
    weight = np.ones(len(question)) if only_lacking else cases.weight[question]
    right = cases.right.astype(np.float64)
    before, after = (reliability(x[rows], right[rows], weight[rows]) for x in (evidence.score, said))
    return before, after


def of_list(reasoner: Reasoner, calibration: Calibration, most: int) -> dict[int, Pair]:
    """The most probable missing facts; validation facts, which taught the probabilities, are left out."""
    asked = reasoner._asked_on(reasoner.dataset, None, None)
    asked.__dict__["calibration"] = calibration
    facts = complete(asked, top=3 * LISTS[-1], held_out=True, max_questions=most)
    facts = facts.filter(pl.col("held_out").ne_missing("valid"))
    right = (facts["held_out"] == "test").fill_null(False).to_numpy().astype(np.float64)
    columns = [facts[name].cast(pl.Float64).to_numpy() for name in ("score", "probability")]
    found = {}
    for n in LISTS:
        before, after = (reliability(column[:n], right[:n]) for column in columns)
        found[n] = before, after
    return found


if __name__ == "__main__":
    main()
