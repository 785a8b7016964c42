"""`dpmpn datasets`: lists the datasets known by name, fetches one, or describes one and what of it leaks."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.cli.settings import DASHES
from dpmpn.data.importer import load_dataset
from dpmpn.data.registry import (
    MIRROR_VARIABLE,
    ROOT_VARIABLE,
    DatasetRow,
    Fetched,
    default_root,
    fetch_dataset,
    find_dataset,
    list_datasets,
)
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.wording import duration, megabytes, percentage

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

app = typer.Typer(name="datasets", context_settings=DASHES)


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context, json: JsonTarget = None) -> None:
    """List the datasets known by name, fetch one, or describe one."""
    if context.invoked_subcommand is None:
        rows, output = list_datasets(), Output(json)
        output.result([_row_values(row) for row in rows], lambda: _show_list(output, rows))


def _row_values(row: DatasetRow) -> dict[str, str | None]:
    return {
        "name": row.name,
        "kind": row.kind,
        "preset": row.preset,
        "folder": str(row.folder) if row.folder else None,
    }


def _show_list(output: Output, rows: list[DatasetRow]) -> None:
    shown = table("name", "kind", "preset", "folder")
    for row in rows:
        shown.add_row(row.name, row.kind, row.preset or "-", str(row.folder or _not_found(row)))
    output.show(shown)
    if any(row.folder is None for row in rows):
        output.say()
        looked_in = f"the folder ${ROOT_VARIABLE} names, and below {default_root()}"
        output.say(f"Datasets that are not found are looked for below {looked_in}.")


def _not_found(row: DatasetRow) -> str:
    return f"not found (dpmpn datasets fetch {row.name})" if row.can_be_fetched else "not found"


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a name that `dpmpn datasets` lists")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help=f"folder of datasets to put it into; without it ${ROOT_VARIABLE}, "
            "or else a folder of your own that is always looked in",
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            metavar="URL",
            help=f"address of a folder of datasets to get it from; without it ${MIRROR_VARIABLE}",
        ),
    ] = None,
    json: JsonTarget = None,
) -> None:
    """Download a dataset; run again after a break, it goes on where it stopped."""
    output = Output(json)
    with Meter(output, "bytes") as meter:
        fetched = fetch_dataset(name, to, mirror, _with_rate(meter.show))
    output.result(_fetched_values(fetched), lambda: _show_fetched(output, fetched))


def _with_rate(show: Callable[[int, int, str], None]) -> Callable[[int, int], None]:
    """Add the rate of this run and how long the rest will take."""
    began: tuple[float, int] | None = None

    def show_bytes(done: int, total: int) -> None:
        nonlocal began
        began = began or (time.monotonic(), done)  # what an earlier run brought does not count
        seconds, came = time.monotonic() - began[0], done - began[1]
        if seconds <= 0 or came <= 0:
            show(done, total, "")
            return
        rate = came / seconds
        show(done, total, f"{megabytes(rate, 1)}/s, ETA {duration((total - done) / rate)}")

    return show_bytes


def _fetched_values(fetched: Fetched) -> dict[str, Any]:
    return {
        "name": fetched.name,
        "folder": str(fetched.folder),
        "is_new": fetched.is_new,
        "bytes": fetched.bytes,
        "licence": fetched.licence,
    }


def _show_fetched(output: Output, fetched: Fetched) -> None:
    if not fetched.bytes:
        output.say(f"{fetched.name} comes with the package: nothing to fetch.")
        return
    if fetched.is_new:
        output.say(f"{fetched.name}: {fetched.bytes:,} bytes fetched and checked, in {fetched.folder}")
    else:
        output.say(f"{fetched.name} is there already and right, in {fetched.folder}: nothing to fetch.")
    output.say(f"Licence: {fetched.licence}.")
    entry = find_dataset(fetched.name)
    by_name = entry.folder() if entry is not None else None
    if by_name is None or by_name.resolve() != fetched.folder.resolve():
        where = f"{fetched.folder}; by name only where ${ROOT_VARIABLE} names the folder that holds it"
        output.say(f"It is found as {where}.")


@app.command("stats")
def stats(
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
    output.result(report, lambda: _show_stats(output, report, data.graph.relation_names))


def _show_stats(output: Output, report: dict[str, Any], relations: Vocabulary) -> None:
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
