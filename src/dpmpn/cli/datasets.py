"""`dpmpn datasets`: which datasets are known by name, and where they were found."""

from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.data.registry import ROOT_VARIABLE, DatasetRow, default_root, list_datasets


def command(json: JsonTarget = None) -> None:
    """List the datasets known by name, their presets and where they were found."""
    rows = list_datasets()
    output = Output(json)
    output.result([_plain(row) for row in rows], lambda: _show(output, rows))


def _plain(row: DatasetRow) -> dict[str, str | None]:
    return {
        "name": row.name,
        "kind": row.kind,
        "preset": row.preset,
        "folder": str(row.folder) if row.folder else None,
    }


def _show(output: Output, rows: list[DatasetRow]) -> None:
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
