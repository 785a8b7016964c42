"""`dpmpn datasets stats`: what a dataset looks like, and how much of what it asks stands in train already."""

from typing import Annotated, Any

import typer
from rich.markup import escape

from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.data.importer import load_dataset
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.wording import percentage

_MARKS = {
    "duplicate": "stand in train as they are",
    "symmetric": "stand in train reversed",
    "inverse": "stand in train under an inverse relation",
    "same": "stand in train under a relation that says the same",
    "leaked": "any of these",
    "joined": "have ends that train joins in some way (PME)",
    "unseen": "have an entity or a relation without a training fact",
}
_SHOWN_PAIRS = 10


def command(
    dataset: Annotated[
        str, typer.Argument(metavar="NAME_OR_FOLDER", help="a name of `dpmpn datasets`, or a folder")
    ],
    json: JsonTarget = None,
) -> None:
    """Describe a dataset: sizes, multi-edges, shortest paths, and how much of valid and test stands in train."""
    output = Output(json)
    data = load_dataset(dataset)

    from dpmpn.data.leakage import leakage
    from dpmpn.data.statistics import statistics

    with Meter(output, "pairs measured") as meter:
        report = statistics(data, progress=meter.show)
    report["leakage"] = leakage(data)
    output.result(report, lambda: _show(output, report, data.graph.relation_names))


def _show(output: Output, report: dict[str, Any], relations: Vocabulary) -> None:
    output.say(report["name"])
    shown = table("measure", "value", right=("value",))
    for key in ("entities", "relations", "train", "valid", "test"):
        shown.add_row(key, f"{report[key]:,}")
    shown.add_row("multi-edge facts of train (PME), %", percentage(report["pme_train"]))
    shown.add_row("multi-edge facts of valid (PME), %", percentage(report["pme_valid"]))
    shown.add_row("average shortest path of valid pairs", _average(report))
    degree = report["degree"]
    shown.add_row("facts of an entity, on average", f"{degree['mean'] or 0:.1f}")
    shown.add_row("facts of an entity, at most", f"{degree['max'] or 0:,}")
    shown.add_row("entities without a training fact", f"{degree['entities_without_facts']:,}")
    output.show(shown)
    path = report["shortest_path"]
    if path["unreachable"]:
        output.say(
            f"{path['unreachable']:,} of {path['pairs']:,} pairs have no path and are left out of the average."
        )
    if path["is_sample"]:
        output.say(
            f"Paths were measured for {path['pairs']:,} of {report['valid']:,} valid pairs, drawn at random."
        )
    _show_leakage(output, report["leakage"])
    _show_relations(output, report["leakage"]["relation_pairs"], relations)


def _show_leakage(output: Output, leaks: dict[str, Any]) -> None:
    splits = [split for split in ("valid", "test") if leaks[split] is not None]
    if splits:
        output.say()
        columns = [name for split in splits for name in (split, f"% of {split}")]
        shown = table("held-out facts that", *columns, right=tuple(columns))
        for mark, label in _MARKS.items():
            cells = [
                (f"{leaks[split][mark]:,}", percentage(leaks[split]["shares"][mark])) for split in splits
            ]
            shown.add_row(label, *(cell for pair in cells for cell in pair))
        output.show(shown)


def _show_relations(output: Output, pairs: list[dict[str, Any]], relations: Vocabulary) -> None:
    if not pairs:
        return
    output.say()
    shown = table("relation", "repeats", "as", "facts", "%", right=("facts", "%"))
    for pair in pairs[:_SHOWN_PAIRS]:
        names = [relations.label(relations.id(pair[key], "relation")) for key in ("relation", "other")]
        shown.add_row(*map(escape, names), pair["kind"], f"{pair['shared']:,}", percentage(pair["share"]))
    output.show(shown)
    if len(pairs) > _SHOWN_PAIRS:
        output.say(f"and {len(pairs) - _SHOWN_PAIRS:,} more pairs of relations; --json lists them all")


def _average(report: dict[str, Any]) -> str:
    if report["average_shortest_path_valid"] is None:
        return "-"
    error = report["shortest_path"]["standard_error"]
    return f"{report['average_shortest_path_valid']:.2f}" + (f" ± {error:.3f}" if error is not None else "")
