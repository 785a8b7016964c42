"""`dpmpn ask`: a question to facts of any kind, at once."""

from typing import Annotated

import typer

from dpmpn.cli.changed_facts import ANY_GRAPH, Added, Removed, changed, opened
from dpmpn.cli.explain import Labels
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.cli.predict import Inverse, New, Top, Why, ask_one
from dpmpn.cli.settings import with_settings

Facts = Annotated[
    str,
    typer.Argument(
        metavar="FACTS",
        help="a file of heads, relations and tails, as `dpmpn import` reads them (CSV, TSV, Parquet, JSON lines, RDF); "
        "a folder with a file train.*; or a name of `dpmpn datasets`",
    ),
]


@with_settings("asking", "run")
def command(
    facts: Facts,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="the entity the question is about")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="the relation that is asked")],
    top: Top = 10,
    inverse: Inverse = False,
    new: New = False,
    why: Why = False,
    add: Added = None,
    remove: Removed = None,
    labels: Labels = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Ask facts a question at once, without training: ranked answers and, with --why, the facts that lead to them.

    The facts may be of anything. Say that family.csv has lines such as `Ann,mother,Eve`. Who may Ann's father be?

    dpmpn ask family.csv Ann father --why

    And whose mother is Eve?

    dpmpn ask family.csv Eve mother --inverse

    One comes with the package, to try it:

    dpmpn ask countries Serbia in_subregion --why

    The model that answers is called any-graph. It learnt on other graphs how relations go together, and reads from
    yours which of them do. Where that is too little to tell, a note says so. The same model takes many questions, lists
    missing facts with measured probabilities, explains in pictures, is measured, and opens in a browser:

    dpmpn predict any-graph --on family.csv --queries questions.csv --out answers.csv

    dpmpn complete any-graph --on family.csv

    dpmpn explain any-graph Ann father --on family.csv --out why

    dpmpn evaluate any-graph --on FOLDER

    dpmpn serve any-graph --on family.csv

    A model that is trained on the graph (`dpmpn train`) takes minutes, and is better where there is much to learn from.
    """
    output = Output(json)
    reasoner = opened(output, ANY_GRAPH, facts, settings)
    reasoner = changed(output, reasoner if labels is None else reasoner.with_labels(labels), add, remove)
    ask_one(output, reasoner, head, relation, top, inverse, new, why)
