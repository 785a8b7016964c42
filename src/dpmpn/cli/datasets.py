"""`dpmpn datasets`: lists the datasets known by name, fetches one, or describes one; `dpmpn inductive` splits one."""

import shlex
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import DASHES
from dpmpn.data.dataset import write_dataset
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
from dpmpn.files import new_folder, whole_folder, write_json
from dpmpn.settings import MOST_SEED
from dpmpn.wording import duration, megabytes, percentage

_MARKS = {
    "duplicate": "are in train as they are",
    "symmetric": "are in train reversed",
    "inverse": "are in train under an inverse relation",
    "same": "are in train under a relation with the same meaning",
    "leaked": "any of these",
    "joined": "have ends that a training fact joins (PME)",
    "unseen": "have an entity or a relation without a training fact",
}
_SHOWN_PAIRS = 10
_PARTS_REPORT = "inductive.json"
_PARTS = {"whole": "all of it", "train": "to train on", "ask": "to ask about"}
_SIZES = ("entities", "relations", "facts", "train", "valid", "test")
DatasetArgument = Annotated[
    str, typer.Argument(metavar="NAME_OR_FOLDER", help="a name listed by `dpmpn datasets`, or a folder")
]

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
        advice = f" (dpmpn datasets fetch {row.name})" if row.can_be_fetched else ""
        shown.add_row(row.name, row.kind, row.preset or "-", str(row.folder or f"not found{advice}"))
    output.show(shown)
    if any(row.folder is None for row in rows):
        output.say()
        looked_in = f"the folder ${ROOT_VARIABLE} names, and below {default_root()}"
        output.say(f"Datasets are looked for below {looked_in}.")


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a name that `dpmpn datasets` lists")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help=f"folder of datasets to put it into; without it ${ROOT_VARIABLE}, "
            "or else your own folder, which is always searched",
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
    """Download a dataset; after an interruption, run the command again to continue."""
    output = Output(json)
    with output.meter("bytes") as meter:
        fetched = fetch_dataset(name, to, mirror, _with_rate(meter.show))
    values = asdict(fetched) | {"folder": str(fetched.folder)}
    output.result(values, lambda: _show_fetched(output, fetched))


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


def _show_fetched(output: Output, fetched: Fetched) -> None:
    if not fetched.bytes:
        output.say(f"{fetched.name} comes with the package: nothing to fetch.")
        return
    if fetched.is_new:
        output.say(f"{fetched.name}: {fetched.bytes:,} bytes fetched and checked, in {fetched.folder}")
    else:
        output.say(f"{fetched.name} is already complete in {fetched.folder}: nothing to fetch.")
    output.say(f"Licence: {fetched.licence}.")
    entry = find_dataset(fetched.name)
    by_name = entry.folder() if entry is not None else None
    if by_name is None or by_name.resolve() != fetched.folder.resolve():
        where = f"{fetched.folder}; by name only if ${ROOT_VARIABLE} names the folder that contains it"
        output.say(f"It is found as {where}.")


@app.command("stats")
def stats(dataset: DatasetArgument, json: JsonTarget = None) -> None:
    """Describe a dataset: sizes, multi-edges, shortest paths, and how many validation and test facts are in train."""
    output = Output(json)
    data = load_dataset(dataset)

    from dpmpn.data.leakage import leakage
    from dpmpn.data.statistics import statistics

    with output.meter("pairs measured") as meter:
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
        shown.add_row(*names, pair["kind"], f"{pair['shared']:,}", percentage(pair["share"]))
    output.show(shown)
    if len(pairs) > _SHOWN_PAIRS:
        output.say(f"and {len(pairs) - _SHOWN_PAIRS:,} more pairs of relations; --json lists them all")


def _average(report: dict[str, Any]) -> str:
    if report["average_shortest_path_valid"] is None:
        return "-"
    error = report["shortest_path"]["standard_error"]
    return f"{report['average_shortest_path_valid']:.2f}" + (f" ± {error:.3f}" if error is not None else "")


def inductive(
    dataset: DatasetArgument,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="folder to make; it gets the datasets train and ask"),
    ],
    share: Annotated[
        float,
        number(
            float,
            "--share",
            "share of the entities to train on; the others are for asking",
            above=0,
            at_most=1,
        ),
    ] = 0.5,
    seed: Annotated[
        int, number(int, "--seed", "seed of the random draws", at_least=0, at_most=MOST_SEED)
    ] = 0,
    json: JsonTarget = None,
) -> None:
    """Split a dataset into two graphs with the same relations and no common entity: one to train on, one to ask about.

    Both graphs grow from many entities at once, so that most neighbourhoods stay whole; facts between them are left
    out. In each graph a tenth of the facts is held out for validation and a tenth for testing. The numbers of facts are
    printed, and kept in DIR/inductive.json.

    For example: dpmpn inductive WN18RR --out graphs/two
    """
    output = Output(json)

    from dpmpn.data.inductive import inductive_split

    with whole_folder(out) as folder:
        parted = inductive_split(load_dataset(dataset), share, seed)
        for name, part in (("train", parted.train), ("ask", parted.ask)):
            write_dataset(part, new_folder(folder / name))
        write_json(folder / _PARTS_REPORT, parted.report)
    output.result(parted.report, lambda: _show_parts(output, parted.report, out))


def _show_parts(output: Output, report: dict[str, Any], out: Path) -> None:
    columns = (*_SIZES, "facts of an entity")
    shown = table(report["dataset"], *columns, right=columns)
    for part, label in _PARTS.items():
        sizes = report[part]
        counts = [f"{sizes[size]:,}" if size in sizes else "" for size in _SIZES]
        shown.add_row(label, *counts, f"{sizes['mean_degree']:.1f}")
    output.show(shown)
    output.say()
    output.say(f"{report['facts_between']:,} facts between the two graphs were left out.")
    if others := report["other_relations"]:
        output.say(
            f"{report['facts_of_other_relations']:,} facts to ask about were left out as well: no training fact has "
            f"their {len(others):,} relations."
        )
    output.say(f"Train with:  dpmpn train {shlex.quote(str(out / 'train'))} --out RUN_DIR")
    output.say(f"Then ask:    dpmpn evaluate RUN_DIR --on {shlex.quote(str(out / 'ask'))}")
