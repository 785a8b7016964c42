"""`dpmpn predict`: asks a trained model a question, or all questions of a file."""

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.ask.results import LEFT_OUT, Predictions
from dpmpn.cli.changed_facts import Added, OtherGraph, Removed, RunName, changed, opened, say_expectations
from dpmpn.cli.in_parts import RayOption, ShardOption, Sharing, do_in_parts
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.errors import ConfigError
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.wording import counted, duration, interval_shown, percent, probability_shown, score_shown

if TYPE_CHECKING:
    from dpmpn.ask.answer_files import AnswerWork, FileReport
    from dpmpn.bulk.work import Kept
    from dpmpn.data.graph import KnowledgeGraph
    from dpmpn.explain.explanation import Prediction
    from dpmpn.explain.paths import Path as ReasoningPath

_DIFFERS = 0.02  # between probabilities
_MEASURED = ("probability", "95 % interval", "if missing")
Top = Annotated[int, number(int, "--top", "how many answers", at_least=1)]
Inverse = Annotated[
    bool, typer.Option("--inverse", help="ask <?, RELATION, HEAD> instead of <HEAD, RELATION, ?>")
]
New = Annotated[bool, typer.Option("--new", help="leave out answers that are known or held out")]
AnyRole = Annotated[
    bool, typer.Option("--any-role", help="also show answers that do not fit what the relation asks for")
]
Why = Annotated[
    bool, typer.Option("--why", help="show the facts that carried the attention to the first answer")
]


@with_settings("asking", "run")
def command(
    context: typer.Context,
    run_dir: RunName,
    head: Annotated[
        str | None, typer.Argument(metavar="[HEAD]", help="the entity the question is about")
    ] = None,
    relation: Annotated[
        str | None, typer.Argument(metavar="[RELATION]", help="the relation to ask about")
    ] = None,
    top: Top = 10,
    inverse: Inverse = False,
    new: New = False,
    any_role: AnyRole = False,
    why: Why = False,
    on: OtherGraph = None,
    add: Added = None,
    remove: Removed = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="ask all questions of a .csv, .tsv, .jsonl or .parquet file with the columns head and relation "
            "(and inverse, true or false); other columns are kept",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="where the answers to --queries go: .csv, .tsv, .jsonl or .parquet; an interrupted run continues from "
            "there",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option(
            "--skip-unknown",
            help="skip questions of --queries that name something unknown or ambiguous",
        ),
    ] = False,
    shard: ShardOption = None,
    on_ray: RayOption = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Ask a trained model: ranked answers with their probabilities.

    An answer marked as known is a fact of the graph; one marked as held out is a validation or test fact.

    With --on, the question is asked on another graph instead of the run's own.

    Millions of questions of a file can be shared between machines: see --shard, and `dpmpn merge --help`.
    """
    output = Output(json)
    _check_request(head, relation, inverse, queries, out, skip_unknown)
    sharing = Sharing.of(context, settings, shard, on_ray, out)
    asked = partial(_reasoner, run_dir, on, sharing.settings, add, remove)
    if queries is not None and out is not None:
        options = {"top": top, "new": new, "any_role": any_role, "why": why, "skip_unknown": skip_unknown}
        _ask_file(output, partial(_work, asked, queries, options), out, sharing)
    elif head is not None and relation is not None:
        reasoner = asked(output)
        ask_one(output, reasoner, head, relation, top, inverse, new, any_role, why)


def _reasoner(
    run_dir: str,
    on: str | None,
    settings: dict[str, str],
    add: list[Path] | None,
    remove: list[Path] | None,
    output: Output,
) -> Reasoner:
    return changed(output, opened(output, run_dir, on, settings), add, remove)


def _work(
    asked: Callable[[Output], Reasoner], queries: Path, options: dict[str, Any], output: Output
) -> "AnswerWork":
    from dpmpn.ask.answer_files import AnswerWork

    reasoner = asked(output)
    say_expectations(output, reasoner)
    return AnswerWork(reasoner, queries, **options)


def _check_request(
    head: str | None,
    relation: str | None,
    inverse: bool,
    queries: Path | None,
    out: Path | None,
    skip_unknown: bool,
) -> None:
    """Refuse what is neither one question nor a file of them, before the model is loaded."""
    if queries is None:
        if head is None or relation is None:
            raise ConfigError("give HEAD and RELATION, or --queries FILE; see `dpmpn predict --help`")
        if out is not None or skip_unknown:
            option = "--out" if out is not None else "--skip-unknown"
            raise ConfigError(f"{option} goes with --queries FILE; one question is written with --json FILE")
    elif head is not None:
        raise ConfigError(f"give HEAD and RELATION or --queries FILE, not both; leave out '{head}'")
    elif out is None:
        raise ConfigError("--queries needs --out FILE for the answers, such as --out answers.csv")
    elif inverse:
        raise ConfigError(
            "--inverse is for one question; give the file of --queries a column 'inverse' with true or false"
        )


def ask_one(
    output: Output,
    reasoner: Reasoner,
    head: str,
    relation: str,
    top: int,
    inverse: bool,
    new: bool,
    any_role: bool,
    why: bool,
) -> None:
    """Ask a question and show its answers, with what can be expected of them."""
    with output.busy("asking"):  # a second, in which the libraries are loaded that compute
        predictions = reasoner.predict(head, relation, top, inverse, new, any_role)
    plain: list[dict[str, Any]] = [asdict(prediction) for prediction in predictions]
    if why:
        for answer in plain:
            answer["why"] = [_path_record(path) for path in predictions.why(answer["answer"])]
    left_out = [note for note in predictions.notes if note.startswith(LEFT_OUT)]
    notes = [note for note in predictions.notes if note not in left_out]
    for note in notes:
        output.say(f"Note: {note}")
    for answer in plain if notes else ():
        answer["note"] = "; ".join(notes)
    shown = output, predictions, reasoner.graph, why, reasoner.calibration is not None
    output.result(plain, lambda: _show_answers(*shown))
    for note in left_out:
        output.say(f"Note: {note}; --any-role shows them")


def _path_record(path: "ReasoningPath") -> dict[str, Any]:
    """A path as plain values, with labels and what tables say of its facts where there are such."""
    given = {"provenance": any(path.provenance), "labels": any(path.labels)}
    return {name: value for name, value in asdict(path).items() if given.get(name, True)}


def _ask_file(output: Output, make: "Callable[[Output], AnswerWork]", out: Path, sharing: Sharing) -> None:
    from dpmpn.ask.tables import check_table

    check_table(out)
    began = time.monotonic()

    def finish(work: "AnswerWork", kept: "Kept", before: int) -> None:
        report = work.finish(kept, before, began)
        output.result({"out": str(out), **asdict(report)}, lambda: _show_report(output, report, out))

    do_in_parts(output, make, out, sharing, "asked", finish)


def _show_answers(
    output: Output,
    predictions: Predictions,
    graph: "KnowledgeGraph",
    why: bool,
    is_measured: bool,
) -> None:
    from dpmpn.render.text import SHOWN_RECORDS, provenance_text

    output.say(str(predictions.question), style="bold")
    if not predictions:
        output.say("  no answers: attention reached no entity that fits")
        return
    # Columns that would be empty, or say the same twice, are not shown.
    labelled = ("identifier",) if graph.entities.has_labels else ()
    through = ("through new",) if any(p.through_unseen > 0 for p in predictions) else ()
    measured = _measured_columns(predictions)
    numbers = ("rank", *measured, "score", *through)
    shown = table("rank", "answer", *labelled, *measured, "score", "", *through, right=numbers)
    for p in predictions:
        identifier = [p.answer] if labelled else []
        part = [percent(p.through_unseen)] if through else []
        known = "known" if p.known else "held out" if p.held_out else ""
        cells = _measured(p)[: len(measured)]
        shown.add_row(str(p.rank), p.label, *identifier, *cells, score_shown(p.score), known, *part)
    output.show(shown)
    if measured:
        cases = next(p.cases for p in predictions if p.cases is not None)
        output.say(
            f"probability: how often such answers are right, measured on {counted(cases, 'held-out case')} of this "
            f"relation{'; if missing: the same, given that the graph lacks an answer' * (len(measured) > 2)}"
        )
    elif not is_measured:
        output.say(
            "Probabilities have not been measured (`dpmpn calibrate` does that), so answers have scores only."
        )
    if through:
        output.say(
            "through new: the share of the attention that came through entities the model was not trained on"
        )
    if why:
        output.say(f"Why {predictions[0].label}:")
        for path in predictions.why():
            output.say(f"  {path.share:4.0%}  {path.text}")
            for record in (record for said in path.provenance for record in said[:SHOWN_RECORDS]):
                output.say(f"           {provenance_text(record)}")


def _measured_columns(predictions: Predictions) -> tuple[str, ...]:
    """What was measured; the last column only where it says something else than the first."""
    worth = [
        (p.probability, p.probability_if_missing or 0.0) for p in predictions if p.probability is not None
    ]
    if not worth:
        return ()
    return _MEASURED if any(given - p > _DIFFERS for p, given in worth) else _MEASURED[:2]


def _measured(prediction: "Prediction") -> tuple[str, ...]:
    p = prediction
    if p.probability is None or p.probability_low is None or p.probability_high is None:
        return ("",) * len(_MEASURED)
    between = interval_shown(p.probability_low, p.probability_high)
    return probability_shown(p.probability), between, probability_shown(p.probability_if_missing or 0.0)


def _show_report(output: Output, report: "FileReport", out: Path) -> None:
    earlier = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    output.say(f"{report.answered:,} of {counted(report.questions, 'question')} answered{earlier}")
    left_out = counted(report.unknown, "was", "were") + " left out: they name something unknown or ambiguous"
    without = counted(report.without_answers, "has", "have") + " no answers"
    for count, problem in ((report.unknown, left_out), (report.without_answers, without)):
        if count:
            output.say(f"{problem}; the column 'problem' says which")
    output.say(f"{counted(report.rows, 'row')} in {out}")
    if asked := report.questions - report.resumed:
        output.say(f"{duration(report.seconds)}, {asked / report.seconds:.0f} questions/s")
