"""`dpmpn complete`: the most probable missing facts of the graph a model reasons on."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.calibrate import calibrated, summary
from dpmpn.cli.changed_facts import OtherGraph, RunName, opened, say_expectations
from dpmpn.cli.in_parts import RayOption, ShardOption, Sharing, do_in_parts
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.wording import counted, interval_shown, probability_shown

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.bulk.work import Kept
    from dpmpn.complete import CompletionWork

_SHOWN = 20  # facts that are printed where a file holds them all


Relations = Annotated[
    list[str] | None,
    typer.Option("--relation", metavar="NAME", help="only facts of this relation; may be repeated"),
]
HeadType = Annotated[str | None, typer.Option(metavar="TYPE", help="only facts whose head is of this type")]
Top = Annotated[int, number(int, "--top", "how many facts", at_least=1)]
MinProbability = Annotated[
    float | None,
    number(
        float,
        "--min-probability",
        "only facts that are at least this probable, from 0 to 1",
        at_least=0,
        at_most=1,
        metavar="P",
    ),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="write them to a .csv, .tsv, .jsonl or .parquet file; an interrupted run continues from there",
    ),
]
HeadsAsked = Annotated[
    str,
    typer.Option(
        metavar="like|stated|all",
        help="which heads to ask about: entities that have the relation and similar ones, only those that "
        "have it, or all",
    ),
]
BothDirections = Annotated[
    bool, typer.Option("--both-directions", help="also ask for heads; takes twice as long")
]
HeldOut = Annotated[
    bool, typer.Option("--held-out", help="treat validation and test facts as missing, and mark them")
]
MaxQuestions = Annotated[
    int | None,
    number(int, "--max-questions", "ask at most this many questions, the most promising ones", at_least=1),
]
Why = Annotated[
    bool, typer.Option("--why", help="show all chains of facts that support each, not only the strongest")
]


@with_settings("asking", "run")
def command(
    context: typer.Context,
    run_dir: RunName,
    relation: Relations = None,
    head_type: HeadType = None,
    top: Top = 100,
    min_probability: MinProbability = None,
    out: Table = None,
    heads: HeadsAsked = "like",
    both_directions: BothDirections = False,
    held_out: HeldOut = False,
    max_questions: MaxQuestions = None,
    why: Why = False,
    on: OtherGraph = None,
    shard: ShardOption = None,
    on_ray: RayOption = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """List the most probable missing facts, each with the facts that support it.

    The probabilities are the same as in `dpmpn predict`: they were measured by asking for the validation facts.

    For a file of facts, without training: dpmpn complete any-graph --on facts.csv. If there are no validation facts, a
    tenth of the facts is hidden and asked for.

    The work can be shared between machines: see --shard, and `dpmpn merge --help`.
    """
    output = Output(json)
    from dpmpn.ask.measure import hides_facts
    from dpmpn.ask.questions import Asking
    from dpmpn.ask.tables import check_table
    from dpmpn.complete import finished

    sharing = Sharing.of(context, settings, shard, on_ray, out)
    asking = Asking(heads, both_directions)  # type: ignore[arg-type]
    which = relation or None, head_type, top, min_probability
    rest = {"asking": asking, "held_out": held_out, "max_questions": max_questions}
    make = partial(_work, run_dir, on, sharing.settings, which, rest)

    def finish(work: "CompletionWork", kept: "Kept", _: int) -> None:
        with output.meter("explained") as meter:
            facts = finished(work, kept, meter.show_speed)
        report = {"facts": facts.to_dicts(), "calibration": summary(work.reasoner.calibration)}
        output.result(report, lambda: _show_result(output, facts, out, why, hides_facts(work.reasoner)))

    if out is not None:
        check_table(out)  # measuring may take minutes
    do_in_parts(output, make, out, sharing, "asked", finish)


def _work(
    run_dir: str,
    on: str | None,
    settings: dict[str, str],
    which: tuple[Any, Any, Any, Any],
    rest: dict[str, Any],
    output: Output,
) -> "CompletionWork":
    from dpmpn.complete import CompletionWork, checked_request

    reasoner = opened(output, run_dir, on, settings)
    say_expectations(output, reasoner)
    checked_request(reasoner, *which, rest["asking"], rest["max_questions"])
    calibrated(output, reasoner)
    return CompletionWork(reasoner, *which, **rest, say=output.say)


def _show_result(output: Output, facts: "pl.DataFrame", out: Path | None, why: bool, hidden: bool) -> None:
    shown = facts if out is None else facts.head(_SHOWN)
    if not facts.is_empty():
        _show_facts(output, shown, why)
        if facts["probability"].null_count() == len(facts):
            pass  # which was said before
        elif hidden:
            output.say(
                "These probabilities hold for a graph that lacks a tenth of its facts. If yours lacks fewer, expect "
                "fewer of these answers to be right."
            )
        elif "held_out" not in facts.columns:
            output.say(
                "These probabilities hold if the graph lacks as many facts as were held out. This list leaves out the "
                "validation and test facts, so expect fewer of these to be right; --held-out includes and marks them."
            )
    if out is not None:
        rest = f"; the first {len(shown)} are shown" if len(shown) < len(facts) else ""
        output.say(f"{counted(len(facts), 'fact')} in {out}{rest}")


def _show_facts(output: Output, facts: "pl.DataFrame", why: bool) -> None:
    calibrated = facts["probability"].null_count() < len(facts)
    measured = ("probability", "95 % interval", "cases") if calibrated else ("score",)
    marked = ("held out",) if "held_out" in facts.columns else ()
    because = () if why else ("because",)
    shown = table("rank", "head", "relation", "tail", *measured, *marked, *because, right=("rank", *measured))
    for row in facts.iter_rows(named=True):
        names = _names(row)
        first = row["support"][0].partition(" ")[2] if row["support"] else ""
        held = [row["held_out"] or ""] if marked else []
        reason = [] if why else [first]
        shown.add_row(str(row["rank"]), *names, *_measured(row, calibrated), *held, *reason)
    output.show(shown)
    if why:
        for row in facts.iter_rows(named=True):
            output.say(f"Why {row['rank']}, {' '.join(_names(row))}:")
            for chain in row["support"]:
                output.say(f"  {chain}")


def _names(row: dict[str, Any]) -> list[str]:
    return [row.get(f"{part}_label") or row[part] for part in ("head", "relation", "tail")]


def _measured(row: dict[str, Any], calibrated: bool) -> list[str]:
    if not calibrated:
        return [f"{row['score']:.3f}"]
    if row["probability"] is None:
        return ["-", "-", "-"]
    between = interval_shown(row["probability_low"], row["probability_high"])
    return [probability_shown(row["probability"]), between, f"{row['cases']:,}"]
