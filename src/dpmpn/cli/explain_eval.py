"""`dpmpn explain-eval`: measures whether explanations are true, by asking again on changed graphs."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.progress import Meter, duration
from dpmpn.cli.settings import with_settings
from dpmpn.errors import ConfigError
from dpmpn.reasoner import Reasoner
from dpmpn.words import counted

_GROUPS = {
    "all": "All answers",
    "right": "Those that are right: training, validation or test facts",
    "right_and_new": "Right, and not stated by the graph",
    "sure": "Those with a probability above 0.5",
}
_EVIDENCE = {"explanation": "explanation", "random": "random", "shortest": "shortest"}
_NUMBERS = ("facts", "sparsity", "Fidelity+", "lost", "rank worse", "Fidelity-", "rank kept")
_PATHS = ("HΔR@5", "facts@5")
_LEGEND = {
    "explanation": "the facts of the explanation, as `dpmpn explain` shows them",
    "random": "as many facts, drawn from the full subgraph: all that the model attended from",
    "shortest": "as many facts, of the shortest paths from the entity asked about to the answer",
    "facts": "their mean number; there may be fewer of shortest paths",
    "sparsity": "1 - facts / facts of the full subgraph: the higher, the shorter the explanation",
    "Fidelity+": "probability that the answer loses without these facts: the higher, the more they were needed",
    "lost": "the same as a part of the probability that they had",
    "rank worse": "share of answers whose rank is worse without these facts",
    "Fidelity-": "probability that it loses with them alone: the lower, the better they suffice (below 0 it gains)",
    "rank kept": "share of answers whose rank is no worse with these facts alone",
    "HΔR@5": "share of answers whose rank is worse without five paths: the strongest, the shortest, or as many random "
    "facts as the strongest have",
    "facts@5": "mean number of facts that went with these paths",
    "±": "half of a bootstrap 95 % interval of the mean",
}


@with_settings("asking")
def command(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="folder of a trained run")],
    split: Annotated[
        str, typer.Option("--split", metavar="valid|test|train", help="whose questions to ask")
    ] = "test",
    sample: Annotated[
        int,
        typer.Option("--sample", min=1, metavar="INT", help="how many questions; all where there are fewer"),
    ] = 200,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="INT", help="what questions and random facts are drawn by")
    ] = 0,
    answers: Annotated[
        str,
        typer.Option(
            "--answers",
            metavar="first|stated",
            help="explain what the model answers first, or what the split states, whatever its rank",
        ),
    ] = "first",
    kept_paths: Annotated[
        int | None,
        typer.Option(
            "--kept-paths",
            min=1,
            metavar="INT",
            help="explain with at most so many paths, not as `dpmpn explain` does",
        ),
    ] = None,
    kept_share: Annotated[
        float | None,
        typer.Option(
            "--kept-share",
            metavar="NUMBER",
            help="explain with paths that brought this part of the attention, not as `dpmpn explain` does",
        ),
    ] = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure whether explanations are true: are their facts needed for the answer, and are they enough?

    Draws questions of a split, in all directions that are asked, and explains the first answer to each; with
    --answers stated, the answer that the split states, whatever its rank.

    Needed: the same model, as it is, is asked again on the graph without the facts of the explanation.

    Enough: it is asked on a graph of nothing but these facts.

    As many random facts of what it attended from, and facts of shortest paths, are tested likewise, to compare.
    """
    output = Output(json)
    if kept_share is not None and not 0 < kept_share <= 1:
        raise ConfigError(f"--kept-share {kept_share:g}: give a part of the attention, above 0 and at most 1")
    from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE
    from dpmpn.explain.measure.predictions import ANSWERS
    from dpmpn.explain.measure.report import measure_explanations

    if answers not in ANSWERS:
        raise ConfigError(f"--answers {answers}: give {' or '.join(ANSWERS)}")

    reasoner = Reasoner.load(run_dir, **settings)
    with Meter(output, "measured") as meter:
        report = measure_explanations(
            reasoner,
            split,
            sample,
            seed,
            answers=answers,
            kept_paths=kept_paths or KEPT_PATHS,
            kept_share=kept_share or KEPT_SHARE,
            progress=_with_eta(meter),
        )
    output.result(report, lambda: _show(output, report))


def _with_eta(meter: Meter) -> Callable[[int, int], None]:
    started = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - started) / done * (total - done)
        meter.show(done, total, f"ETA {duration(left)}")

    return show


def _show(output: Output, report: dict[str, Any]) -> None:
    output.say(
        f"{report['dataset']}, {report['split']}: {report['asked']:,} of {counted(report['questions'], 'question')}"
        f"{_left_out(report)}"
    )
    shown = [name for name in _GROUPS if report["groups"][name]["predictions"]]
    if not shown:
        output.say("No question has an answer with facts to test.")
        return
    if report["groups"]["right"] == report["groups"]["right_and_new"] and "right_and_new" in shown:
        shown.remove("right_and_new")  # the same once more
    for name in shown:
        _show_group(output, _GROUPS[name], report["groups"][name])
    _show_curve(output, report["groups"]["all"]["curve"])
    output.say()
    for word, meaning in _LEGEND.items():
        output.say(f"{word:<13}{meaning}")
    output.say()
    output.say(f"{duration(report['seconds'])} for all this.")


def _left_out(report: dict[str, Any]) -> str:
    reasons = []
    if report["head_without_facts"]:
        reasons.append(f"{report['head_without_facts']:,} whose entity has no facts")
    if report["not_reached"]:
        reasons.append(f"{report['not_reached']:,} whose answer no attention reached")
    if report["head_was_the_answer"]:
        reasons.append(f"{report['head_was_the_answer']:,} whose answer is the entity asked about")
    return f"; left out: {', '.join(reasons)}" if reasons else ""


def _show_group(output: Output, title: str, group: dict[str, Any]) -> None:
    output.say()
    output.say(
        f"{title}: {group['predictions']:,}, with a mean probability of {group['probability']['mean']:.3f}; "
        f"{counted(round(group['paths']['mean']), 'path')} brought {group['kept_share']['mean']:.0%} "
        f"of their attention, full subgraphs have {group['full_facts']['mean']:.0f} facts",
    )
    rows = table("evidence", *_NUMBERS, *_PATHS, right=(*_NUMBERS, *_PATHS))
    for kind, label in _EVIDENCE.items():
        measures = group["evidence"][kind]
        removed = f"{measures['hdr_at_5_facts']['mean']:.1f}"
        rows.add_row(label, *_cells(measures), _value(measures["hdr_at_5"]), removed)
    output.show(rows)


def _show_curve(output: Output, curve: list[dict[str, Any]]) -> None:
    output.say()
    output.say("Shorter explanations of all answers: the facts of the strongest paths alone")
    rows = table("paths", *_NUMBERS, right=("paths", *_NUMBERS))
    for point in curve:
        rows.add_row("all kept" if point["paths"] == "all" else str(point["paths"]), *_cells(point))
    output.show(rows)


def _cells(measures: dict[str, Any]) -> list[str]:
    needed, enough = measures["necessity"], measures["sufficiency"]
    shares = (
        needed["fidelity_plus"],
        needed["probability_lost"],
        needed["rank_worse"],
        enough["fidelity_minus"],
        enough["rank_kept"],
    )
    sparsity = f"{measures['sparsity']['mean']:.2f}"
    return [f"{measures['facts']['mean']:.1f}", sparsity, *(_value(share) for share in shares)]


def _value(estimate: dict[str, float]) -> str:
    return f"{estimate['mean']:.2f}±{(estimate['high'] - estimate['low']) / 2:.2f}"
