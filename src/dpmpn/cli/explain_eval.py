"""`dpmpn explain-eval`: measures whether explanations are true, by asking again on changed graphs."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened
from dpmpn.cli.in_parts import RayOption, ReportFile, ShardOption, Sharing, do_report
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.errors import ConfigError
from dpmpn.settings import MOST_SEED
from dpmpn.wording import counted, duration, percent, score_shown

if TYPE_CHECKING:
    from dpmpn.explain_eval.fidelity import Measurement
    from dpmpn.explain_eval.work import ExplanationWork

_GROUPS = {
    "all": "All answers",
    "right": "Correct ones: training, validation or test facts",
    "right_and_new": "Correct, and not in the graph",
    "sure": "Those with a probability above 0.5",
}
_LEFT_OUT = {
    "head_without_facts": "entity has no facts",
    "not_reached": "answer was not reached by attention",
    "head_was_the_answer": "answer is the entity asked about",
}
_NEEDED = ("Fidelity+", "lost", "rank worse")
_ENOUGH = ("Fidelity-", "rank kept")
_PATHS = ("HΔR@5", "facts@5")
_SETS = ("lost", "rank worse", "rank kept")  # of the sets that decide
_MOST_LOST = ("lost@20", "Fid+@20", "HΔR@20", "HΔR@5f")
_CHOICES = {
    "decisive": "asking again",
    "single": "each alone",
    "attention": "attention",
    "shortest": "shortest paths",
    "random": "random",
}
_LEGEND = {
    "explanation": "the facts of the explanation, {explained}",
    "random": "the same number of facts, drawn from the full subgraph: everything the model attended from",
    "shortest": "the same number of facts, from the shortest paths between the entity asked about and the answer",
    "facts": "their mean number; shortest paths may have fewer",
    "sparsity": "1 - facts / facts of the full subgraph: the higher, the shorter the explanation",
    "Fidelity+": "probability that the answer loses without these facts: the higher, the more they were needed",
    "lost": "the same as a fraction of the probability before",
    "rank worse": "share of answers whose rank is worse without these facts",
    "Fidelity-": "probability that it loses with only these facts: the lower, the more they suffice (below 0 it gains)",
    "rank kept": "share of answers whose rank is no worse with only these facts",
    "HΔR@5": "share of answers whose rank is worse without five paths: the strongest, the shortest, or as many random "
    "facts as there are in the strongest",
    "facts@5": "mean number of facts in these paths",
    "asking again": "facts found by asking again without the ones found before; each alone: by what the answer loses "
    "without each of them; attention: by how much came along them, which in the stronger model follows the gradient",
    "lost@20": "probability lost without the facts, 20 at most, that the answer loses most by; beside it Fidelity+ and "
    "the share of worse ranks (HΔR@20), and the same for five of these facts (HΔR@5f)",
    "±": "the farther end of a 95 % interval: Wilson's for a share, from a bootstrap elsewhere; there is none for "
    "fewer than 10 answers, or where all are equal",
}


@with_settings("asking")
def command(
    context: typer.Context,
    run_dir: RunName,
    split: Annotated[
        str, typer.Option("--split", metavar="valid|test|train", help="which questions to ask")
    ] = "test",
    sample: Annotated[
        int,
        number(int, "--sample", "how many questions; all if there are fewer", at_least=1),
    ] = 200,
    seed: Annotated[
        int,
        number(int, "--seed", "seed for drawing questions and random facts", at_least=0, at_most=MOST_SEED),
    ] = 0,
    answers: Annotated[
        str,
        typer.Option(
            "--answers",
            metavar="first|stated",
            help="explain the model's first answer, or the correct one according to the split, whatever its rank",
        ),
    ] = "first",
    kept_paths: Annotated[
        int | None,
        number(
            int, "--kept-paths", "explain with at most this many paths, unlike `dpmpn explain`", at_least=1
        ),
    ] = None,
    kept_share: Annotated[
        float | None,
        number(
            float,
            "--kept-share",
            "explain with paths that carried this part of the attention, unlike `dpmpn explain`",
            above=0,
            at_most=1,
        ),
    ] = None,
    on: OtherGraph = None,
    out: ReportFile = None,
    shard: ShardOption = None,
    on_ray: RayOption = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure whether explanations are true: are their facts needed for the answer, and are they enough?

    Draws questions of a split, in all directions that are asked, and explains the first answer to each; with
    --answers stated, the answer that is a fact of the split, whatever its rank.

    Needed: the same model is asked again on the graph without the facts of the explanation.

    Enough: it is asked on a graph that has only these facts.

    For comparison, the same number of random facts from what it attended from, and facts of shortest paths, are tested
    in the same way.

    The work can be shared between machines: see --shard, and `dpmpn merge --help`.
    """
    output = Output(json)
    from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE
    from dpmpn.explain_eval.fidelity import ANSWERS, Measurement

    if answers not in ANSWERS:
        raise ConfigError(f"--answers {answers}: give {' or '.join(ANSWERS)}")
    plan = Measurement(split, sample, seed, answers, kept_paths or KEPT_PATHS, kept_share or KEPT_SHARE)
    sharing = Sharing.of(context, settings, shard, on_ray, out)
    make = partial(_work, run_dir, on, sharing.settings, plan)

    def show(_: "ExplanationWork", report: dict[str, Any]) -> None:
        _show_measures(output, report)

    do_report(output, make, out, sharing, "measured", lambda work, frames: work.report(frames), show)


def _work(
    run_dir: str, on: str | None, settings: dict[str, str], plan: "Measurement", output: Output
) -> "ExplanationWork":
    from dpmpn.explain_eval.work import ExplanationWork

    return ExplanationWork(opened(output, run_dir, on, settings), plan)


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
    output.say(f"{duration(report['seconds'])} in total.")


def _left_out(report: dict[str, Any]) -> str:
    reasons = [f"{report[key]:,} whose {why}" for key, why in _LEFT_OUT.items() if report[key]]
    return f"; left out: {', '.join(reasons)}" if reasons else ""


def _explained(report: dict[str, Any]) -> str:
    """What the explanations are that were tested."""
    from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE

    paths, share = report["kept_paths"], report["kept_share"]
    if (paths, share) == (KEPT_PATHS, KEPT_SHARE):
        return "as `dpmpn explain` shows them"
    return f"here of {counted(paths, 'path')} at most, fewer if they carry {share:.4g} of the attention"


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
    _show_decisive(output, group["decisive"], group["decisive_without_prior"])
    isolated = group["isolated"]
    output.wrap(
        f"Without any fact of the entities asked about: lost {_value(isolated['probability_lost'])}, rank worse "
        f"{_value(isolated['rank_worse'])}. What remains then is the prior, and no path."
    )


def _show_decisive(output: Output, group: dict[str, Any], without_prior: dict[str, Any]) -> None:
    """Show what sets of facts decide, beside as many facts that were chosen in other ways."""
    if not group["predictions"]:
        return
    output.wrap(
        f"Facts that decide, found with {group['questions']['mean']:.0f} questions an answer: for "
        f"{_value(group['necessary_found'])} there is a set without which the answer loses its rank, of "
        f"{_mean(group['necessary']['facts'])} facts, and for {_value(group['sufficient_found'])} one with which alone "
        f"it keeps it, of {_mean(group['sufficient']['facts'])}. For {_value(group['prior_decides'])} the prior "
        "decides: without any fact of the entity asked about the answer would be ranked no lower."
    )
    parts = {"all": group}
    if without_prior["predictions"] not in (0, group["predictions"]):
        parts["where the prior does not decide"] = without_prior
    for name, part in parts.items():
        output.say(f"As many facts chosen in other ways, {name}: {part['predictions']:,}")
        rows = {title: _decisive_cells(part, choice) for choice, title in _CHOICES.items()}
        whole = _table("chosen by", rows, (*_SETS, *_MOST_LOST))
        for made in (
            [whole] if output.fits(whole) else [_table("chosen by", rows, c) for c in (_SETS, _MOST_LOST)]
        ):
            output.show(made)


def _decisive_cells(part: dict[str, Any], choice: str) -> dict[str, str]:
    necessary, alone, lost, few = (
        part[name]["by_choice"][choice] for name in ("necessary", "sufficient", "most_lost", "most_lost_few")
    )
    return {
        "lost": _value(necessary["probability_lost"]),
        "rank worse": _value(necessary["rank_worse"]),
        "rank kept": _value(alone["rank_kept"]),
        "lost@20": _value(lost["probability_lost"]),
        "Fid+@20": _value(lost["fidelity_plus"]),
        "HΔR@20": _value(lost["rank_worse"]),
        "HΔR@5f": _value(few["rank_worse"]),
    }


def _mean(estimate: dict[str, Any] | None) -> str:
    return "-" if estimate is None else f"{estimate['mean']:.1f}"


def _described(group: dict[str, Any]) -> str:
    """How probable some answers were, and what they were reached by."""
    paths, facts = (round(group[key]["mean"]) for key in ("paths", "full_facts"))
    probability = score_shown(group["probability"]["mean"])
    brought = f"{counted(paths, 'path')} carried {percent(group['kept_share']['mean'])}"
    if group["predictions"] == 1:
        start, attention, subgraph = "with a probability of", "its attention", "the full subgraph has"
    else:
        start, attention, subgraph = "with a mean probability of", "their attention", "full subgraphs have"
    return f"{start} {probability}; {brought} of {attention}, {subgraph} {counted(facts, 'fact')}"


def _show_curve(output: Output, curve: list[dict[str, Any]]) -> None:
    output.say()
    output.wrap("Shorter explanations of all answers: only the facts of the strongest paths")
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
    made = table(what, *columns, right=(what, *columns) if what == "paths" else columns, whole=True)
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


def _value(estimate: dict[str, Any] | None) -> str:
    """A mean, and how far the farther end of its interval is if it has one; a dash where there is none."""
    if estimate is None:
        return "-"
    mean, low, high = (estimate[key] for key in ("mean", "low", "high"))
    if low is None:
        return f"{mean:.2f}"
    reach = max(mean - low, high - mean)
    return f"{mean:.2f}±{reach:.2f}" if reach >= 0.005 else f"{mean:.2f}±<.01"
