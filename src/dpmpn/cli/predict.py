"""`dpmpn predict`: asks a trained model a question."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.reasoner import Predictions, Reasoner

if TYPE_CHECKING:
    from dpmpn.explain_path import Path as FactPath


@with_settings("asking", "run")
def command(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="folder of a trained run")],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="the entity the question is about")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="the relation that is asked")],
    top: Annotated[int, typer.Option("--top", min=1, metavar="INT", help="how many answers")] = 10,
    inverse: Annotated[
        bool, typer.Option("--inverse", help="ask <?, RELATION, HEAD> instead of <HEAD, RELATION, ?>")
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="leave out answers the graph states already")] = False,
    why: Annotated[
        bool, typer.Option("--why", help="show the facts that carried the attention to the first answer")
    ] = False,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Ask a trained model: ranked answers with their probabilities; known ones are those the graph states."""
    output = Output(json)
    predictions = Reasoner.load(run_dir, **settings).predict(head, relation, top, inverse, new)
    plain: list[dict[str, Any]] = [asdict(prediction) for prediction in predictions]
    if why:
        for answer in plain:
            answer["why"] = [asdict(path) for path in predictions.why(answer["answer"])]
    question = f"<?, {relation}, {head}>" if inverse else f"<{head}, {relation}, ?>"
    output.result(plain, lambda: _show(output, question, predictions, why))


def _show(output: Output, question: str, predictions: Predictions, why: bool) -> None:
    output.say(question, style="bold")
    if not predictions:
        output.say("  no answers: the model's attention reached none")
        return
    shown = table("rank", "answer", "probability", "", right=("rank", "probability"))
    for p in predictions:
        shown.add_row(str(p.rank), escape(p.answer), f"{p.probability:.3f}", "known" if p.known else "")
    output.show(shown)
    if why:
        output.say(f"Why {predictions[0].answer}:")
        for path in predictions.why():
            _show_path(output, path)


def _show_path(output: Output, path: "FactPath") -> None:
    facts = "; ".join(" ".join(fact) for fact in path.facts) or "attention stayed at the head"
    output.say(f"  {path.share:4.0%}  {facts}")
