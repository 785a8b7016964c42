"""`dpmpn ask`: a question to facts of any kind, at once."""

from typing import Annotated

import typer

from dpmpn.cli.changed_facts import ANY_GRAPH, Added, Removed, changed, opened
from dpmpn.cli.explain import Labels
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.cli.predict import AnyRole, Inverse, New, Top, Why, ask_one
from dpmpn.cli.settings import with_settings

Facts = Annotated[
    str,
    typer.Argument(
        metavar="FACTS",
        help="a file of heads, relations and tails, as `dpmpn import` reads them (CSV, TSV, Parquet, JSON lines, RDF); "
        "a folder with a file train.*; or a name listed by `dpmpn datasets`",
    ),
]


@with_settings("asking", "run")
def command(
    facts: Facts,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="the entity the question is about")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="the relation that is asked for")],
    top: Top = 10,
    inverse: Inverse = False,
    new: New = False,
    any_role: AnyRole = False,
    why: Why = False,
    add: Added = None,
    remove: Removed = None,
    labels: Labels = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Answer a question from facts at once, without training: ranked answers and, with --why, the facts behind them.

    The facts may be about anything. Suppose family.csv has lines such as `Ann,mother,Eve`. Who could Ann's father be?

    dpmpn ask family.csv Ann father --why

    And whose mother is Eve?

    dpmpn ask family.csv Eve mother --inverse

    To try it on the graph that comes with the package:

    dpmpn ask countries Serbia in_subregion --why

    The model that answers is called any-graph. It learned on other graphs how relations occur together, and reads
    from yours which of them do. If your graph is too small for that, a note says so. The same model can also answer
    many questions, list missing facts, explain in pictures, be measured, and open in a browser:

    dpmpn predict any-graph --on family.csv --queries questions.csv --out answers.csv

    dpmpn complete any-graph --on family.csv

    dpmpn explain any-graph Ann father --on family.csv --out why

    dpmpn evaluate any-graph --on FOLDER

    dpmpn serve any-graph --on family.csv

    Training a model on the graph (`dpmpn train`) takes minutes, and gives better answers where there are many facts.
    """
    output = Output(json)
    reasoner = opened(output, ANY_GRAPH, facts, settings)
    reasoner = changed(output, reasoner if labels is None else reasoner.with_labels(labels), add, remove)
    _, asked, _ = reasoner.question_ids(head, relation, inverse)
    with output.meter("measured") as meter:
        reasoner.calibrate(relation=asked, progress=meter.show_speed)
    ask_one(output, reasoner, head, relation, top, inverse, new, any_role, why)
