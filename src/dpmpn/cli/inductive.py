"""`dpmpn inductive`: makes two datasets of one, to train on the one and ask about the other."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.data.importer import load_dataset

REPORT = "inductive.json"
_PARTS = {"whole": "all of it", "train": "to train on", "ask": "to ask about"}
_SIZES = ("entities", "relations", "facts", "train", "valid", "test")


def command(
    dataset: Annotated[
        str, typer.Argument(metavar="NAME_OR_FOLDER", help="a name of `dpmpn datasets`, or a folder")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="folder to make, with the datasets train and ask in it"),
    ],
    share: Annotated[
        float,
        typer.Option(
            "--share", metavar="NUMBER", help="of the entities to train on; the others are asked about"
        ),
    ] = 0.5,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="INT", help="key of all that is drawn")] = 0,
    json: JsonTarget = None,
) -> None:
    """Part a dataset in two with the same relations and no common entity, to train on one and ask about the other.

    Parts grow from many entities at once, so that most neighbourhoods stay whole; facts between the parts are left
    out. Each part has a tenth of its facts held out for validation and a tenth for testing. What became of the facts
    is printed, and kept in DIR/inductive.json.

    For example: dpmpn inductive WN18RR --out graphs/parted
    """
    output = Output(json)
    from dpmpn.data.dataset import write_dataset
    from dpmpn.data.inductive import inductive_split
    from dpmpn.files import whole_folder, write_json

    with whole_folder(out) as folder:
        parted = inductive_split(load_dataset(dataset), share, seed)
        for name, part in (("train", parted.train), ("ask", parted.ask)):
            (folder / name).mkdir()
            write_dataset(part, folder / name)
        write_json(folder / REPORT, parted.report)
    output.result(parted.report, lambda: _show(output, parted.report, out))


def _show(output: Output, report: dict[str, Any], out: Path) -> None:
    columns = (*_SIZES, "facts of an entity")
    shown = table(report["dataset"], *columns, right=columns)
    for part, label in _PARTS.items():
        sizes = report[part]
        counts = [f"{sizes[size]:,}" if size in sizes else "" for size in _SIZES]
        shown.add_row(label, *counts, f"{sizes['mean_degree']:.1f}")
    output.show(shown)
    output.say()
    output.say(f"{report['facts_between']:,} facts between the parts were left out.")
    if others := report["other_relations"]:
        output.say(
            f"{report['facts_of_other_relations']:,} facts to ask about were left out, too: no fact to train on has "
            f"their {len(others):,} relations."
        )
    output.say(f"Train with:  dpmpn train {shlex.quote(str(out / 'train'))} --model strong --out RUN_DIR")
    output.say(f"Then ask:    dpmpn evaluate RUN_DIR --on {shlex.quote(str(out / 'ask'))}")
