"""`dpmpn evaluate`: measures a trained model on held-out facts."""

from typing import Annotated, Any

import typer

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened, say_expectations
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.cli.settings import with_settings
from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.report import Report


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    split: Annotated[
        str, typer.Option("--split", metavar="valid|test|train", help="which facts to ask for")
    ] = "test",
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="also measure each relation separately")
    ] = False,
    ties: Annotated[
        bool,
        typer.Option(
            "--ties", help="also show scores with ties placed first and last, even where it hardly matters"
        ),
    ] = False,
    limit: Annotated[
        int | None, number(int, "--limit", "ask about this many triples only", at_least=1)
    ] = None,
    on: OtherGraph = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure a trained model: filtered MRR and hits in both directions, and how many answers it reached.

    With --on, the model is asked for the held-out facts of another dataset and reasons on its training facts, without
    being trained any further. For example, about entities it has never seen:

    dpmpn inductive WN18RR --out graphs/two

    dpmpn train graphs/two/train --out runs/two

    dpmpn evaluate runs/two --on graphs/two/ask

    How good are answers without any training, for a folder with the files train.* and test.*?

    dpmpn evaluate any-graph --on FOLDER
    """
    output = Output(json)
    reasoner = opened(output, run_dir, on, settings)
    say_expectations(output, reasoner)
    with output.meter("asked") as meter:
        report = reasoner.evaluate(split, per_relation=per_relation, limit=limit, progress=meter.show)
    report = report if on is None else {"on": reasoner.dataset.name, **report}
    output.result(report, lambda: _show(output, report, reasoner.dataset, ties, per_relation))


def _show(output: Output, scores: dict[str, Any], dataset: Dataset, all_ties: bool, relations: bool) -> None:
    output.say(Report.of(scores, dataset).text(all_ties, relations))
    output.say()
    output.say(f"{scores['queries_per_s']:.0f} questions/s. Coverage: share of answers the model reached.")
