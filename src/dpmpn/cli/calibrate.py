"""`dpmpn calibrate`: measures what scores are worth as probabilities, and how good those are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened, say_expectations
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.errors import DataError
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.wording import counted

if TYPE_CHECKING:
    from dpmpn.calibrate.calibration import Calibration
    from dpmpn.calibrate.reliability import Reliability

_PANELS = {
    "of_first": "first answers of questions that lack one",
    "of_all": "first answers of all questions",
}
Plot = Annotated[
    Path | None,
    typer.Option("--reliability", metavar="FILE", help="draw how reliable probabilities are: .svg or .png"),
]
Sample = Annotated[
    int | None,
    number(
        int,
        "--questions",
        "questions of held-out facts to ask at most (default 3000, of hidden facts 300); about twice as many others "
        "are asked as well",
        at_least=1,
    ),
]


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    sample: Sample = None,
    reliability: Plot = None,
    on: OtherGraph = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure how probable answers are, by asking for the validation facts, and how good these probabilities are.

    `dpmpn train` does so at its end. Do it again to ask with another horizon, or with more questions. The run keeps it.
    """
    output = Output(json)
    from dpmpn.calibrate.reliability import check_plot, save_plot

    if reliability is not None:
        check_plot(reliability)
    reasoner = opened(output, run_dir, on, settings)
    say_expectations(output, reasoner)
    calibration = calibrated(output, reasoner, sample, again=True)
    if calibration is None:
        raise DataError(
            "too few facts are held out to measure with; hold out more for validation (dpmpn import --valid-share)"
        )
    if reliability is not None:
        panels = {title: _pair(calibration, name) for name, title in _PANELS.items()}
        save_plot(panels, reliability, f"{reasoner.dataset.name}: how often answers are right")
        output.say(f"reliability drawn in {reliability}")
    output.result(summary(calibration), lambda: _show(output, calibration))


def calibrated(
    output: Output, reasoner: Reasoner, sample: int | None = None, again: bool = False
) -> "Calibration | None":
    """What scores of a reasoner are worth, measured now if that is not known; it says so where it cannot be."""
    with output.meter("measured") as meter:
        calibration = reasoner.calibrate(sample, again, progress=meter.show_speed)
    if calibration is None:
        output.say(
            "Probabilities are unknown: too few facts are held out to measure them. Answers have scores only."
        )
    return calibration


def summary(calibration: "Calibration | None") -> dict[str, Any] | None:
    """What was measured, and how good it is, as plain values."""
    if calibration is None:
        return None
    errors = {
        name: {when: _pair(calibration, name)[at].error for at, when in enumerate(("score", "probability"))}
        for name in _PANELS
    }
    return {
        "questions": calibration.questions,
        "asked": calibration.asked,
        "cases": sum(calibration.cases),
        "expected_calibration_error": errors,
    }


def _pair(calibration: "Calibration", name: str) -> "tuple[Reliability, Reliability]":
    pair = getattr(calibration, name)
    return pair.before, pair.after


def _show(output: Output, calibration: "Calibration") -> None:
    lacking = counted(sum(calibration.cases), "question")
    output.say(f"asked {counted(calibration.asked, 'question')}; {lacking} of held-out facts")
    numbers = ("answers", "right", "mean score", "error", "mean probability", "error ")
    shown = table("", *numbers, right=numbers)
    for name, title in _PANELS.items():
        before, after = _pair(calibration, name)
        answers = sum(bin.predictions for bin in after.bins)
        cells = (before.predicted, before.error, after.predicted, after.error)
        shown.add_row(title, f"{answers:,.0f}", f"{after.right:.3f}", *(f"{x:.3f}" for x in cells))
    output.show(shown)
    output.say(
        "error: expected calibration error, the mean gap between what is said and how often it is right"
    )
