"""`dpmpn patterns`: what a model has learnt about relations, as the rules it follows and how often each holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened
from dpmpn.cli.explain import Labels
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table, write_output
from dpmpn.cli.settings import with_settings
from dpmpn.wording import percent

if TYPE_CHECKING:
    from dpmpn.explain.learnt import LearntRelation

Relations = Annotated[
    list[str] | None,
    typer.Option("--relation", metavar="NAME", help="only this relation; may be repeated; all if left out"),
]
Sample = Annotated[int, number(int, "--sample", "how many facts of each relation to ask for", at_least=1)]
Top = Annotated[
    int | None,
    number(int, "--top", "how many patterns of each relation; 20, or 3 where all are shown", at_least=1),
]
Inverse = Annotated[
    bool, typer.Option("--inverse", help="ask <?, RELATION, TAIL> instead of <HEAD, RELATION, ?>")
]
Drawing = Annotated[
    Path | None, typer.Option("--draw", metavar="FILE", help="draw the patterns as chains, to an SVG file")
]
_FEW = 3  # patterns of a relation, where all relations are shown


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    relation: Relations = None,
    sample: Sample = 100,
    top: Top = None,
    inverse: Inverse = False,
    on: OtherGraph = None,
    labels: Labels = None,
    draw: Drawing = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Show what a model has learnt about a relation: the patterns that lead it to right answers.

    dpmpn patterns demo --relation in_subregion

    Facts of the relation are drawn and hidden, and the model is asked for them. Paths to the right answers that go
    along the same relations are one pattern. Its weight is the mean part of the attention that came along it. Its
    record says how often what it leads to is stated in the graph, and in the validation facts: whether the pattern
    is a good rule, or only what the model follows.
    """
    output = Output(json)
    from dpmpn.learnt import TOP, learnt_relations
    from dpmpn.render.learnt import LearntPatterns

    reasoner = opened(output, run_dir, on, settings)
    reasoner = reasoner if labels is None else reasoner.with_labels(labels)
    most = top or (TOP if relation else _FEW)
    with output.meter("asked") as meter:
        found = list(learnt_relations(reasoner, relation or None, sample, most, inverse, meter.show_speed))
    learnt = LearntPatterns(found)
    if draw is not None:
        write_output(draw, learnt.svg())
    output.result(learnt.to_dict(), lambda: _show(output, found))
    if draw is not None:
        output.say(f"drawn in {draw}")


def _show(output: Output, relations: "list[LearntRelation]") -> None:
    from dpmpn.render.learnt import example, heading, named

    for relation in relations:
        output.say(heading(relation), style="bold")
        shown = table(
            *("weight", "pattern", "from", "answers", "stated", "confidence", "validation"),
            right=("weight", "from", "answers", "stated", "confidence", "validation"),
        )
        for _, pattern in named(relation):
            record = pattern.record
            graph, held = (None, None) if record is None else (record.graph, record.validation)
            counts = (
                ["-"] * 3
                if graph is None
                else [f"{n:,}" for n in (graph.heads, graph.answers, graph.support)]
            )
            confidences = [
                "-" if tally is None or tally.confidence is None else percent(tally.confidence)
                for tally in (graph, held)
            ]
            shown.add_row(percent(pattern.share), pattern.sentence, *counts, *confidences)
            shown.add_row("", f"  e.g. {example(pattern)}", *[""] * 5)
        if relation.patterns:
            output.show(shown)
        output.say()
