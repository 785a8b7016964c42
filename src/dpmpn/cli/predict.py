"""`dpmpn predict`: asks a trained model a question, or all questions of a file."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.ask.reasoner import Reasoner
from dpmpn.ask.results import Predictions
from dpmpn.cli.changed_facts import Added, OtherGraph, Removed, RunName, changed, opened, say_expectations
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.errors import ConfigError
from dpmpn.wording import counted, duration, percent

if TYPE_CHECKING:
    from dpmpn.ask.answer_files import FileReport
    from dpmpn.data.graph import KnowledgeGraph

Top = Annotated[int, number(int, "--top", "how many answers", at_least=1)]
Inverse = Annotated[
    bool, typer.Option("--inverse", help="ask <?, RELATION, HEAD> instead of <HEAD, RELATION, ?>")
]
New = Annotated[bool, typer.Option("--new", help="leave out answers that are known or held out")]
Why = Annotated[
    bool, typer.Option("--why", help="show the facts that carried the attention to the first answer")
]


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    head: Annotated[
        str | None, typer.Argument(metavar="[HEAD]", help="the entity the question is about")
    ] = None,
    relation: Annotated[
        str | None, typer.Argument(metavar="[RELATION]", help="the relation that is asked")
    ] = None,
    top: Top = 10,
    inverse: Inverse = False,
    new: New = False,
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
            help="where the answers to --queries go: .csv, .tsv, .jsonl or .parquet; a killed run goes on from there",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option(
            "--skip-unknown",
            help="leave out those of --queries whose names the graph does not have, or several have",
        ),
    ] = False,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Ask a trained model: ranked answers with their probabilities.

    Known ones are those the graph states, held-out ones those that only validation or test facts state.

    With --on, HEAD and the answers are entities of another graph, which the model reasons on instead of its own.
    """
    output = Output(json)
    _check_request(head, relation, inverse, queries, out, skip_unknown)
    reasoner = changed(output, opened(output, run_dir, on, settings), add, remove)
    if queries is not None and out is not None:
        say_expectations(output, reasoner)
        _ask_file(output, reasoner, queries, out, top=top, new=new, why=why, skip_unknown=skip_unknown)
    elif head is not None and relation is not None:
        ask_one(output, reasoner, head, relation, top, inverse, new, why)


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
    why: bool,
) -> None:
    """Ask a question and show its answers, with what can be expected of them."""
    predictions = reasoner.predict(head, relation, top, inverse, new)
    plain: list[dict[str, Any]] = [asdict(prediction) for prediction in predictions]
    if why:
        for answer in plain:
            answer["why"] = [asdict(path) for path in predictions.why(answer["answer"])]
    for note in predictions.notes:
        output.say(f"Note: {note}")
    for answer in plain if predictions.notes else ():
        answer["note"] = "; ".join(predictions.notes)
    question = f"<?, {relation}, {head}>" if inverse else f"<{head}, {relation}, ?>"
    output.result(plain, lambda: _show_answers(output, question, predictions, reasoner.graph, why))


def _ask_file(output: Output, reasoner: Reasoner, queries: Path, out: Path, **options: Any) -> None:
    from dpmpn.ask.answer_files import answer_queries

    with Meter(output, "asked") as meter:
        report = answer_queries(reasoner, queries, out, **options, progress=meter.show_speed)
    output.result({"out": str(out), **asdict(report)}, lambda: _show_report(output, report, out))


def _show_answers(
    output: Output, question: str, predictions: Predictions, graph: "KnowledgeGraph", why: bool
) -> None:
    from dpmpn.explain.paths import fact_labels

    output.say(question, style="bold")
    if not predictions:
        output.say("  no answers: the model's attention reached none")
        return
    # Columns that would be empty, or say the same twice, are not shown.
    labelled = ("identifier",) if graph.entities.has_labels else ()
    through = ("through new",) if any(p.through_unseen > 0 for p in predictions) else ()
    numbers = ("rank", "probability", *through)
    shown = table("rank", "answer", *labelled, "probability", "", *through, right=numbers)
    for p in predictions:
        identifier = [p.answer] if labelled else []
        part = [percent(p.through_unseen)] if through else []
        known = "known" if p.known else "held out" if p.held_out else ""
        shown.add_row(str(p.rank), p.label, *identifier, f"{p.probability:.3f}", known, *part)
    output.show(shown)
    if through:
        output.say(
            "through new: part of the attention that came through entities the model was not trained on"
        )
    if why:
        output.say(f"Why {predictions[0].label}:")
        for path in predictions.why():
            facts = "; ".join(" ".join(fact) for fact in fact_labels(graph, path))
            output.say(f"  {path.share:4.0%}  {facts or 'attention stayed at the head'}")


def _show_report(output: Output, report: "FileReport", out: Path) -> None:
    earlier = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    output.say(f"{report.answered:,} of {counted(report.questions, 'question')} answered{earlier}")
    left_out = counted(report.unknown, "was", "were") + " left out: what they name is unknown or not clear"
    without = counted(report.without_answers, "has", "have") + " no answers"
    for count, problem in ((report.unknown, left_out), (report.without_answers, without)):
        if count:
            output.say(f"{problem}; the column 'problem' says which")
    output.say(f"{counted(report.rows, 'row')} in {out}")
    if asked := report.questions - report.resumed:
        output.say(f"{duration(report.seconds)}, {asked / report.seconds:.0f} questions/s")
