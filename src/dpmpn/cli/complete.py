"""`dpmpn complete`: the most probable missing facts of the graph a model reasons on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened, say_expectations
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.errors import DataError
from dpmpn.wording import counted, percent

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.complete import Calibration

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
        "only facts at least so probable, from 0 to 1",
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
        help="write them to a .csv, .tsv, .jsonl or .parquet file; a killed run goes on from there",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option("--reliability", metavar="FILE", help="draw how reliable probabilities are: .svg or .png"),
]
HeadsAsked = Annotated[
    str,
    typer.Option(
        metavar="like|stated|all",
        help="whom to ask: entities like those that have the relation, only those, or all",
    ),
]
BothDirections = Annotated[bool, typer.Option("--both-directions", help="ask for heads, too; twice the work")]
HeldOut = Annotated[
    bool, typer.Option("--held-out", help="count validation and test facts as missing, and mark them")
]
MaxQuestions = Annotated[
    int | None, number(int, "--max-questions", "ask so many questions, the best ones", at_least=1)
]
CalibrationQuestions = Annotated[
    int | None,
    number(
        int,
        "--calibration-questions",
        "questions of each kind to measure probabilities with (default 3000, with hidden facts 500)",
        at_least=1,
    ),
]
Recalibrate = Annotated[
    bool, typer.Option("--recalibrate", help="measure probabilities again, even if they are known")
]
Why = Annotated[
    bool, typer.Option("--why", help="show all the facts that support each, not only the strongest")
]


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    relation: Relations = None,
    head_type: HeadType = None,
    top: Top = 100,
    min_probability: MinProbability = None,
    out: Table = None,
    reliability: Plot = None,
    heads: HeadsAsked = "like",
    both_directions: BothDirections = False,
    held_out: HeldOut = False,
    max_questions: MaxQuestions = None,
    calibration_questions: CalibrationQuestions = None,
    recalibrate: Recalibrate = False,
    why: Why = False,
    on: OtherGraph = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """List the most probable facts that are stated nowhere, each with what supports it.

    Probabilities are measured on the validation facts: they say how often answers like this one were right there.

    Of a file of facts, at once: dpmpn complete any-graph --on facts.csv. Where there are no validation facts, a tenth
    of the facts is hidden and asked for.
    """
    output = Output(json)
    from dpmpn.ask.tables import check_out
    from dpmpn.complete.calibration import check_plot
    from dpmpn.complete.completer import checked_request, complete
    from dpmpn.complete.measure import calibration_of, hides_facts
    from dpmpn.complete.questions import Asking

    asking = Asking(heads, both_directions)  # type: ignore[arg-type]
    if out is not None:
        check_out(out)  # measuring may take minutes
    if reliability is not None:
        check_plot(reliability)
    reasoner = opened(output, run_dir, on, settings)
    say_expectations(output, reasoner)
    which = relation or None, head_type, top, min_probability
    checked_request(reasoner, *which, asking, max_questions)
    folder = Path(run_dir) if on is None else None  # what was measured on another graph is not kept
    measuring = "hidden" if hides_facts(reasoner) else "validation"
    with Meter(output, "measured") as meter:
        calibration = calibration_of(
            reasoner,
            asking,
            sample=calibration_questions,
            again=recalibrate,
            folder=folder,
            progress=meter.show_speed,
        )
    _say_calibration(output, calibration, measuring)
    if reliability is not None:
        _draw(output, calibration, reliability, reasoner.dataset.name)
    with Meter(output, "asked") as meter:
        facts = complete(
            reasoner,
            *which,
            out,
            asking=asking,
            held_out=held_out,
            max_questions=max_questions,
            calibration=calibration,
            progress=lambda stage, done, total: meter.show_speed(done, total, stage),
            say=output.say,
        )
    report = {"facts": facts.to_dicts(), "calibration": _plain(calibration)}
    output.result(report, lambda: _show_result(output, facts, out, why, measuring))


def _say_calibration(output: Output, calibration: "Calibration | None", measuring: str) -> None:
    if calibration is None:
        output.say(
            f"There are no {measuring} facts to measure probabilities with: "
            "facts are ranked by attention alone, which is not how probable they are."
        )
        return
    before, after = (100 * each.error_of_first for each in (calibration.before, calibration.after))
    output.say(
        f"probabilities measured with {calibration.asked:,} of {calibration.questions:,} questions and "
        f"{counted(calibration.facts, f'{measuring} fact')}; calibration error of first answers: "
        f"attention {before:.1f} %, calibrated {after:.1f} %"
    )


def _draw(output: Output, calibration: "Calibration | None", path: Path, title: str) -> None:
    from dpmpn.complete.calibration import save_plot

    if calibration is None:
        raise DataError("--reliability needs validation facts, and this run has none; leave it out")
    save_plot(calibration, path, title)
    output.say(f"reliability drawn in {path}")


def _plain(calibration: "Calibration | None") -> dict[str, Any] | None:
    if calibration is None:
        return None
    return {
        "questions": calibration.questions,
        "asked": calibration.asked,
        "facts": calibration.facts,
        **{
            f"expected_calibration_error{of}_{when}": getattr(getattr(calibration, when), f"error{of}")
            for of in ("", "_of_first")
            for when in ("before", "after")
        },
    }


def _show_result(output: Output, facts: "pl.DataFrame", out: Path | None, why: bool, measuring: str) -> None:
    shown = facts if out is None else facts.head(_SHOWN)
    if not facts.is_empty():
        _show_facts(output, shown, why, measuring)
        if facts["probability"].null_count() == len(facts):
            pass  # which was said before
        elif measuring == "hidden":
            output.say(
                "Probabilities are those of a graph that lacks a tenth of its facts; where less is missing, expect "
                "fewer to be right."
            )
        elif "held_out" not in facts.columns:
            output.say(
                "Probabilities are those of a graph that lacks as much as was held out. What validation and test "
                "state is taken out of this list, so expect fewer to be right; --held-out leaves it in, marked."
            )
    if out is not None:
        rest = f"; the first {len(shown)} are shown" if len(shown) < len(facts) else ""
        output.say(f"{counted(len(facts), 'fact')} in {out}{rest}")


def _show_facts(output: Output, facts: "pl.DataFrame", why: bool, measuring: str) -> None:
    calibrated = facts["probability"].null_count() < len(facts)
    right = "right when hidden" if measuring == "hidden" else "right on validation"
    measured = ("probability", right) if calibrated else ("attention",)
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
        return [f"{row['attention']:.3f}"]
    if row["probability"] is None:
        return ["-", "-"]
    return [f"{row['probability']:.3f}", f"{percent(row['right'] / max(row['of'], 1))} of {row['of']:,}"]
