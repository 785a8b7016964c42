"""`dpmpn explain-eval`: measures whether explanations are true, by asking again on changed graphs."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.progress import Meter, duration
from dpmpn.cli.settings import with_settings
from dpmpn.cli.words import counted
from dpmpn.errors import ConfigError
from dpmpn.reasoner import Reasoner

_GROUPS = {
    "all": "All first answers",
    "right": "First answers that are right: training, validation or test facts",
    "right_and_new": "Right, and not stated by the graph",
}
_EVIDENCE = {"explanation": "explanation", "random": "random facts", "shortest": "shortest paths"}
_NUMBERS = ("facts", "sparsity", "Fidelity+", "lost", "changed", "Fidelity-", "cut at 0", "same alone")
_LAST = "HΔR@5"
_COLUMNS = {
    "facts": "mean number of facts; all three kinds get as many as the explanation, where there are so many",
    "sparsity": "1 - facts / facts of the full subgraph, which is all that was attended from; higher is shorter",
    "Fidelity+": "how much of its probability the answer loses when the facts are removed; higher: they were needed",
    "lost": "the same as a part of the probability it had",
    "changed": "share of questions that get another first answer without the facts",
    "Fidelity-": "what it loses when there is nothing but these facts; lower: they suffice. Below 0 it is surer of it",
    "cut at 0": "Fidelity- where a gain counts as no loss",
    "same alone": "share of questions that get the same first answer from these facts alone",
    "HΔR@5": "share of answers whose rank is worse without the facts of five paths: the strongest or the shortest "
    "ones, or as many random facts as the strongest have",
}


@with_settings("asking")
def command(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="folder of a trained run")],
    split: Annotated[
        str, typer.Option("--split", metavar="valid|test|train", help="whose questions to ask")
    ] = "test",
    sample: Annotated[
        int, typer.Option("--sample", min=1, metavar="INT", help="how many questions, drawn at random")
    ] = 200,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="INT", help="what questions and random facts are drawn by")
    ] = 0,
    kept_paths: Annotated[
        int | None,
        typer.Option(
            "--kept-paths", min=1, metavar="INT", help="explain with at most so many paths (default: as shown)"
        ),
    ] = None,
    kept_share: Annotated[
        float | None,
        typer.Option(
            "--kept-share",
            metavar="NUMBER",
            help="explain with paths that brought so much of the answer's attention (default: as shown)",
        ),
    ] = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure whether explanations are true: are their facts needed for the answer, and are they enough?

    Takes a sample of questions, in all directions that are asked, and explains the first answer to each. Then the
    same model, without training, is asked again: on the graph without the facts of the explanation (needed?) and on
    a graph of nothing but these facts (enough?). Random facts of what the model looked at, and the facts of shortest
    paths, are tested likewise: an explanation that is no better than those explains nothing.
    """
    output = Output(json)
    if kept_share is not None and not 0 < kept_share <= 1:
        raise ConfigError(f"--kept-share {kept_share:g}: give a part of the attention, above 0 and at most 1")
    from dpmpn.explain.measure.report import measure_explanations

    reasoner = Reasoner.load(run_dir, **settings)
    chosen = {"kept_paths": kept_paths, "kept_share": kept_share}
    given = {key: value for key, value in chosen.items() if value is not None}
    with Meter(output, "measured") as meter:
        report = measure_explanations(reasoner, split, sample, seed, **given, progress=_with_eta(meter))
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
    for column, meaning in _COLUMNS.items():
        output.say(f"{column:<11}{meaning}")
    output.say(f"{'±':<11}half of a bootstrap 95 % interval of the mean")
    output.say()
    output.say(f"{duration(report['seconds'])} for all this.")


def _left_out(report: dict[str, Any]) -> str:
    reasons = []
    if report["head_without_facts"]:
        reasons.append(f"{report['head_without_facts']:,} whose entity has no facts")
    if report["head_was_first_answer"]:
        reasons.append(f"{report['head_was_first_answer']:,} whose first answer is the entity asked about")
    return f"; left out: {' and '.join(reasons)}" if reasons else ""


def _show_group(output: Output, title: str, group: dict[str, Any]) -> None:
    output.say()
    output.say(
        f"{title}: {group['predictions']:,}, with a mean probability of {group['probability']['mean']:.3f}; "
        f"{counted(round(group['paths']['mean']), 'path')} brought {group['kept_share']['mean']:.0%} "
        f"of their attention, full subgraphs have {group['full_facts']['mean']:.0f} facts",
    )
    rows = table("evidence", *_NUMBERS, _LAST, right=(*_NUMBERS, _LAST))
    for kind, label in _EVIDENCE.items():
        measures = group["evidence"][kind]
        rows.add_row(label, *_cells(measures), _value(measures["hdr_at_5"]))
    output.show(rows)


def _show_curve(output: Output, curve: list[dict[str, Any]]) -> None:
    output.say()
    output.say("Shorter explanations of all first answers: the facts of the strongest paths alone")
    rows = table("paths", *_NUMBERS, right=("paths", *_NUMBERS))
    for point in curve:
        rows.add_row("all kept" if point["paths"] == "all" else str(point["paths"]), *_cells(point))
    output.show(rows)


def _cells(measures: dict[str, Any]) -> list[str]:
    needed, enough = measures["necessity"], measures["sufficiency"]
    shares = (
        measures["sparsity"],
        needed["fidelity_plus"],
        needed["probability_lost"],
        needed["answer_changed"],
        enough["fidelity_minus"],
        enough["fidelity_minus_cut_at_0"],
        enough["same_answer"],
    )
    return [f"{measures['facts']['mean']:.1f}", *(_value(share) for share in shares)]


def _value(estimate: dict[str, float]) -> str:
    return f"{estimate['mean']:.2f} ±{(estimate['high'] - estimate['low']) / 2:.2f}"
