"""`dpmpn evaluate`: measures a trained model on held-out facts."""

from typing import Annotated, Any

import typer

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened, say_expectations
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.cli.settings import with_settings
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.evaluate.metrics import MAP_TITLES, TIES, TITLES
from dpmpn.wording import percentage

_DIRECTIONS = {"both": "both", "tail": "<head, relation, ?>", "head": "<?, relation, tail>"}


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    split: Annotated[str, typer.Option("--split", metavar="valid|test|train", help="what to ask")] = "test",
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="measure each relation alone, too")
    ] = False,
    limit: Annotated[int | None, number(int, "--limit", "ask about so many triples only", at_least=1)] = None,
    on: OtherGraph = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure a trained model: filtered MRR and hits in both directions, and how many answers it reached.

    With --on the held-out facts of another dataset are asked, and its training facts are what there is to reason on;
    the model is not trained any further. For example, on entities it has never met:

    dpmpn inductive WN18RR --out graphs/parted

    dpmpn train graphs/parted/train --model strong --out runs/parted

    dpmpn evaluate runs/parted --on graphs/parted/ask

    Of a folder with the files train.* and test.*, how good are answers without any training?

    dpmpn evaluate any-graph --on FOLDER
    """
    output = Output(json)
    reasoner = opened(output, run_dir, on, settings)
    say_expectations(output, reasoner)
    with Meter(output, "asked") as meter:
        report = reasoner.evaluate(split, per_relation=per_relation, limit=limit, progress=meter.show)
    report = report if on is None else {"on": reasoner.dataset.name, **report}
    output.result(report, lambda: _show_scores(output, report, reasoner.graph.relation_names))


def _show_scores(output: Output, report: dict[str, Any], names: Vocabulary) -> None:
    unseen = f"; {report['unseen']:,} with an entity that has no training fact" if report["unseen"] else ""
    output.say(f"{report['split']}: {report['triples']:,} triples, {report['queries']:,} questions{unseen}")
    output.say()
    numbers = ("questions", *TITLES.values(), "coverage")
    shown = table("direction", "ties", *numbers, right=numbers)
    for direction, label in _DIRECTIONS.items():
        if report[direction] is not None:
            _add_rows(shown, label, report[direction], TIES)
    output.show(shown)
    if "per_relation" in report:
        output.say()
        _show_relations(output, report["per_relation"], names)
    if "map" in report:
        output.say()
        _show_precision(output, report["map"])
    output.say()
    output.say(f"{report['queries_per_s']:.0f} questions/s. Coverage: share of answers the model reached.")


def _add_rows(shown: Any, label: str, summary: dict[str, Any], ties: tuple[str, ...]) -> None:
    for placed in ties:
        scores = [percentage(summary[placed][metric]) for metric in TITLES]
        once = placed == ties[0]
        count, coverage = (f"{summary['queries']:,}", percentage(summary["coverage"])) if once else ("", "")
        shown.add_row(label if once else "", placed, count, *scores, coverage)


def _show_relations(output: Output, relations: dict[str, Any], names: Vocabulary) -> None:
    numbers = ("questions", *TITLES.values(), "coverage")
    shown = table("relation", "ties", *numbers, right=numbers)
    for name, directions in relations.items():
        _add_rows(shown, names.label(names.id(name)), directions["both"], TIES[:1])
    output.show(shown)


def _show_precision(output: Output, precision: dict[str, Any]) -> None:
    titles = tuple(MAP_TITLES.values())
    shown = table("ties", *titles, right=titles)
    for placed in TIES:
        shown.add_row(placed, *(percentage(precision[placed][mean]) for mean in MAP_TITLES))
    output.show(shown)
