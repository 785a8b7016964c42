"""`dpmpn explain-eval`: measures whether explanations are true, by asking again on changed graphs."""

from typing import Annotated, Any

import typer
from rich.table import Table

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.errors import ConfigError
from dpmpn.settings import MOST_SEED
from dpmpn.wording import counted, duration, percent, probability_shown

_GROUPS = {
    "all": "All answers",
    "right": "Those that are right: training, validation or test facts",
    "right_and_new": "Right, and not stated by the graph",
    "sure": "Those with a probability above 0.5",
}
_LEFT_OUT = {
    "head_without_facts": "entity has no facts",
    "not_reached": "answer no attention reached",
    "head_was_the_answer": "answer is the entity asked about",
}
_NEEDED = ("Fidelity+", "lost", "rank worse")
_ENOUGH = ("Fidelity-", "rank kept")
_PATHS = ("HΔR@5", "facts@5")
_LEGEND = {
    "explanation": "the facts of the explanation, {explained}",
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
    "±": "how far the farther end of a 95 % interval is: Wilson's of a share, of a bootstrap elsewhere; there is none "
    "for fewer than 10 answers, or where all are alike",
}


@with_settings("asking")
def command(
    run_dir: RunName,
    split: Annotated[
        str, typer.Option("--split", metavar="valid|test|train", help="whose questions to ask")
    ] = "test",
    sample: Annotated[
        int,
        number(int, "--sample", "how many questions; all where there are fewer", at_least=1),
    ] = 200,
    seed: Annotated[
        int,
        number(int, "--seed", "what questions and random facts are drawn by", at_least=0, at_most=MOST_SEED),
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
        number(
            int, "--kept-paths", "explain with at most so many paths, not as `dpmpn explain` does", at_least=1
        ),
    ] = None,
    kept_share: Annotated[
        float | None,
        number(
            float,
            "--kept-share",
            "explain with paths that brought this part of the attention, not as `dpmpn explain` does",
            above=0,
            at_most=1,
        ),
    ] = None,
    on: OtherGraph = None,
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
    from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE
    from dpmpn.explain_eval.fidelity import ANSWERS, Measurement
    from dpmpn.explain_eval.report import measure_explanations

    if answers not in ANSWERS:
        raise ConfigError(f"--answers {answers}: give {' or '.join(ANSWERS)}")
    plan = Measurement(split, sample, seed, answers, kept_paths or KEPT_PATHS, kept_share or KEPT_SHARE)
    reasoner = opened(output, run_dir, on, settings)
    with Meter(output, "measured") as meter:
        report = measure_explanations(reasoner, plan, meter.show_speed)
    output.result(report, lambda: _show_measures(output, report))


def _show_measures(output: Output, report: dict[str, Any]) -> None:
    output.wrap(
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
        output.wrap(f"{word:<13}{meaning.format(explained=_explained(report))}", indent=13)
    output.say()
    output.say(f"{duration(report['seconds'])} for all this.")


def _left_out(report: dict[str, Any]) -> str:
    reasons = [f"{report[key]:,} whose {why}" for key, why in _LEFT_OUT.items() if report[key]]
    return f"; left out: {', '.join(reasons)}" if reasons else ""


def _explained(report: dict[str, Any]) -> str:
    """What the explanations are that were tested."""
    from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE

    paths, share = report["kept_paths"], report["kept_share"]
    if (paths, share) == (KEPT_PATHS, KEPT_SHARE):
        return "as `dpmpn explain` shows them"
    return f"here of {counted(paths, 'path')} at most, fewer where they bring {share:.4g} of the attention"


def _show_group(output: Output, title: str, group: dict[str, Any]) -> None:
    from dpmpn.explain_eval.fidelity import KINDS

    output.say()
    output.wrap(f"{title}: {group['predictions']:,}, {_described(group)}")
    rows = {}
    for kind in KINDS:
        measures = group["evidence"][kind]
        rows[kind] = {
            **_cells(measures),
            "HΔR@5": _value(measures["hdr_at_5"]),
            "facts@5": f"{measures['hdr_at_5_facts']['mean']:.1f}",
        }
    _show_rows(output, "evidence", rows, _PATHS)
    isolated = group["isolated"]
    output.wrap(
        f"Without any fact of the entities asked about: lost {_value(isolated['probability_lost'])}, rank worse "
        f"{_value(isolated['rank_worse'])}. What is left then is a prior, and no path."
    )


def _described(group: dict[str, Any]) -> str:
    """How probable some answers were, and what they were reached by."""
    paths, facts = (round(group[key]["mean"]) for key in ("paths", "full_facts"))
    probability = probability_shown(group["probability"]["mean"])
    brought = f"{counted(paths, 'path')} brought {percent(group['kept_share']['mean'])}"
    if group["predictions"] == 1:
        start, attention, subgraph = "with a probability of", "its attention", "the full subgraph has"
    else:
        start, attention, subgraph = "with a mean probability of", "their attention", "full subgraphs have"
    return f"{start} {probability}; {brought} of {attention}, {subgraph} {counted(facts, 'fact')}"


def _show_curve(output: Output, curve: list[dict[str, Any]]) -> None:
    output.say()
    output.wrap("Shorter explanations of all answers: the facts of the strongest paths alone")
    rows = {"all kept" if point["paths"] == "all" else str(point["paths"]): _cells(point) for point in curve}
    _show_rows(output, "paths", rows)


def _show_rows(
    output: Output, what: str, rows: dict[str, dict[str, str]], more: tuple[str, ...] = ()
) -> None:
    """Show one table, or where it is too wide two: whether facts are needed, and whether they are enough."""
    whole = _table(what, rows, ("facts", "sparsity", *_NEEDED, *_ENOUGH, *more))
    if output.fits(whole):
        output.show(whole)
        return
    output.say("Are they needed?")
    output.show(_table(what, rows, ("facts", *_NEEDED, *more)))
    output.say("Are they enough?")
    output.show(_table(what, rows, ("facts", "sparsity", *_ENOUGH)))


def _table(what: str, rows: dict[str, dict[str, str]], columns: tuple[str, ...]) -> Table:
    made = table(what, *columns, right=columns if what == "evidence" else (what, *columns), whole=True)
    for name, cells in rows.items():
        made.add_row(name, *(cells[column] for column in columns))
    return made


def _cells(measures: dict[str, Any]) -> dict[str, str]:
    needed, enough = measures["necessity"], measures["sufficiency"]
    return {
        "facts": f"{measures['facts']['mean']:.1f}",
        "sparsity": f"{measures['sparsity']['mean']:.2f}",
        "Fidelity+": _value(needed["fidelity_plus"]),
        "lost": _value(needed["probability_lost"]),
        "rank worse": _value(needed["rank_worse"]),
        "Fidelity-": _value(enough["fidelity_minus"]),
        "rank kept": _value(enough["rank_kept"]),
    }


def _value(estimate: dict[str, Any]) -> str:
    """A mean, and how far the farther end of its interval is if it has one."""
    mean, low, high = (estimate[key] for key in ("mean", "low", "high"))
    if low is None:
        return f"{mean:.2f}"
    reach = max(mean - low, high - mean)
    return f"{mean:.2f}±{reach:.2f}" if reach >= 0.005 else f"{mean:.2f}±<.01"
