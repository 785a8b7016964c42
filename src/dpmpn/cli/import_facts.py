"""`dpmpn import`: makes a dataset from files, an endpoint or a database."""

import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.data.dataset import SPLITS
from dpmpn.data.importer import SplitChoice, import_dataset, without_train
from dpmpn.data.labels import read_labels
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.formats import FORMATS, open_sources, split_files
from dpmpn.errors import ConfigError, DataError
from dpmpn.progress import Meter
from dpmpn.settings import MOST_SEED
from dpmpn.wording import counted, duration, listed, percent

_MEGABYTE = 1_000_000
_SHOWN_PAIRS = 3


_Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help=f"files ({' '.join(f'.{suffix}' for suffix in FORMATS)}, also .gz .zst .zip), "
        "a folder with train, valid and test files, a SPARQL endpoint (https://...), or a database "
        "(sqlite:///..., postgresql://...)",
    ),
]
_Out = Annotated[Path, typer.Option(metavar="GRAPH_DIR", help="folder to make")]
_Valid = Annotated[
    list[str] | None, typer.Option(metavar="SOURCE", help="validation facts, read like SOURCE")
]
_Test = Annotated[list[str] | None, typer.Option(metavar="SOURCE", help="test facts, read like SOURCE")]
_Columns = Annotated[
    str | None,
    typer.Option(
        metavar="HEAD,RELATION,TAIL",
        help="names of the columns, or positions from 1; for a wide table, the column of items and then those to use",
    ),
]
_Wide = Annotated[
    bool | None,
    typer.Option(
        help="whether each row is an item and the other columns describe it: their names are relations, their cells "
        "tails; detected if not given",
    ),
]
_CellSeparator = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR|none",
        help="separator of several values in one cell of a wide table; detected if not given",
    ),
]
_Separator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="separator of columns; detected if not given")
]
_Header = Annotated[bool | None, typer.Option(help="whether the first line names the columns")]
_Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="sheet of an Excel workbook; the first if not given")
]
_Format = Annotated[
    str | None, typer.Option(metavar="NAME", help="format of files whose name does not show it, such as csv")
]
_Query = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT|@FILE", help="query for an endpoint or a database; it must return three columns"
    ),
]
_Literals = Annotated[
    str,
    typer.Option(
        metavar="drop|keep", help="values in RDF, such as numbers: leave them out, or make them nodes"
    ),
]
_SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="skip lines that cannot be read, and count them, instead of stopping"),
]
_Labels = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="names for identifiers: id, name, description, type (tsv csv json)"),
]
_Split = Annotated[
    str,
    typer.Option(
        metavar="random|time|none", help="how to hold out facts if --valid and --test are not given"
    ),
]
_ValidShare = Annotated[
    float, number(float, "--valid-share", "share of facts held out for validation", at_least=0, at_most=1)
]
_TestShare = Annotated[
    float, number(float, "--test-share", "share of facts held out for testing", at_least=0, at_most=1)
]
_TimeColumn = Annotated[str | None, typer.Option(metavar="NAME", help="column of times, for --split time")]
_Seed = Annotated[int, number(int, "--seed", "seed of the random split", at_least=0, at_most=MOST_SEED)]
_Inductive = Annotated[
    bool, typer.Option("--inductive", help="also hold out facts of entities without any training fact")
]
_Name = Annotated[
    str | None, typer.Option(metavar="TEXT", help="name of the dataset; default: that of the folder")
]


def command(
    sources: _Sources,
    out: _Out,
    valid: _Valid = None,
    test: _Test = None,
    columns: _Columns = None,
    wide: _Wide = None,
    cell_separator: _CellSeparator = None,
    separator: _Separator = None,
    header: _Header = None,
    sheet: _Sheet = None,
    format: _Format = None,
    query: _Query = None,
    literals: _Literals = "drop",
    skip_bad: _SkipBad = False,
    labels: _Labels = None,
    split: _Split = "random",
    valid_share: _ValidShare = 0.05,
    test_share: _TestShare = 0.05,
    time_column: _TimeColumn = None,
    seed: _Seed = 0,
    inductive: _Inductive = False,
    name: _Name = None,
    json: JsonTarget = None,
) -> None:
    """Make a dataset from files, a SPARQL endpoint or a database: read, split, checked for leaks, ready for training.

    For example: dpmpn import facts.csv --labels names.tsv --out graphs/mine, then dpmpn train graphs/mine --out
    runs/mine. A report says what was read, what was left out and why; it is kept in GRAPH_DIR/import.json.
    """
    output = Output(json)
    _check_choice("--literals", literals, ("drop", "keep"))
    _check_split(split, time_column, bool(valid or test), valid_share + test_share)
    options = ReadOptions(
        format=format,
        columns=_column_names(columns, bool(wide)),
        wide=wide,
        cell_separator=cell_separator,
        separator=separator,
        header=header,
        sheet=sheet,
        time_column=time_column,
        query=_query_text(query),
        literals=literals,  # type: ignore[arg-type]
        on_error="skip" if skip_bad else "stop",
    )
    given = _by_split(sources, valid or [], test or [])
    opened = {which: open_sources(group, options) for which, group in given.items() if group}

    import polars as pl

    named = pl.concat([read_labels(path) for path in labels]) if labels else None
    choice = SplitChoice(split, valid_share, test_share, seed, transductive=not inductive)  # type: ignore[arg-type]
    with output.meter("read") as meter:
        report = import_dataset(opened, out, name=name, labels=named, split=choice, progress=_tick(meter))
    output.result(report, lambda: _show(output, report, out))


def _tick(meter: Meter) -> Callable[[int, int | None, int], None]:
    """Show megabytes of files; of sources that do not know their size, how many facts came."""
    started = time.monotonic()

    def show(done: int, total: int | None, facts: int) -> None:
        if not total or not done:
            meter.show(facts, None, "facts")
            return
        left = (total - done) * (time.monotonic() - started) / done
        meter.show(done // _MEGABYTE, total // _MEGABYTE, f"MB, {facts:,} facts, ETA {duration(left)}")

    return show


def _check_split(split: str, time_column: str | None, given: bool, held_out: float) -> None:
    _check_choice("--split", split, ("random", "time", "none"))
    if split == "time" and time_column is None:
        raise ConfigError("--split time needs a column of times; name it with --time-column")
    if time_column is not None and split != "time":
        raise ConfigError("--time-column is for --split time; add that, or leave the column out")
    if given and split == "time":
        raise ConfigError("--split time is for facts without --valid and --test; leave it out")
    if held_out >= 1:
        raise ConfigError(
            f"--valid-share and --test-share are {held_out:g} together; leave facts to train on"
        )


def _by_split(sources: list[str], valid: list[str], test: list[str]) -> dict[str, list[str]]:
    """Sources of each split; a folder stands for its train, valid and test files."""
    folders = [source for source in sources if Path(source).is_dir()]
    if not folders:
        return {"train": sources, "valid": valid, "test": test}
    if len(sources) > 1 or valid or test:
        raise ConfigError(f"{folders[0]} is a folder: give only the folder, or name the files in it")
    found = split_files(Path(folders[0]))
    if not found["train"]:
        raise without_train(Path(folders[0]))
    return {which: found[which] for which in SPLITS}


def _column_names(columns: str | None, wide: bool) -> tuple[str, ...] | None:
    if columns is None:
        return None
    parts = [part.strip() for part in columns.split(",")]
    if not all(parts) or (len(parts) != 3 and not wide):
        raise ConfigError(
            f"--columns '{columns}' must name three columns, such as subject,predicate,object or 1,2,3"
        )
    return tuple(parts)


def _query_text(query: str | None) -> str | None:
    if query is None or not query.startswith("@"):
        return query
    path = Path(query[1:])
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the query cannot be read ({error})") from error


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{option} must be {listed(choices, 'or')}, not '{value}'")


def _show(output: Output, report: dict[str, Any], out: Path) -> None:
    for source in report["sources"]:
        output.say(f"{source['source']}: {source['read']:,} read")
        for reason, count in source["skipped"].items():
            example = source["examples"].get(reason)
            output.say(f"  {count:,} left out: {reason}" + (f", such as {example}" if example else ""))
        for note in source.get("notes", ()):
            output.say(f"  {note}")
    for kind, respelled in report["respelled"].items():
        if respelled["changed"]:
            _show_respelled(output, kind, **respelled)
    if report["duplicates"]:
        output.say(f"{counted(report['duplicates'], 'duplicate')} left out")
    output.say(
        f"{report['name']}: {counted(report['entities'], 'entity', 'entities')}, "
        f"{counted(report['relations'], 'relation')}; "
        f"triples: {report['train']:,} train, {report['valid']:,} valid, {report['test']:,} test"
    )
    for kind, named in report["labels"].items():
        if report["labels_given"]:
            output.say(f"labels: {named:,} of {report[kind]:,} {kind} have one")
    if report["labels_given"] and not any(report["labels"].values()):
        output.say(
            f"  none of the identifiers with a label, such as '{report['labels_given']}', is in the facts"
        )
    output.say(f"split: {report['split']}")
    for which in ("valid", "test"):
        if report["leakage"][which]:
            _show_leaks(output, which, report["leakage"][which])
    for pair in report["leakage"]["relation_pairs"][:_SHOWN_PAIRS]:
        output.say(
            f"  {percent(pair['share'])} of the facts of '{pair['relation']}' are also under '{pair['other']}' "
            f"({pair['kind']})"
        )
    output.say(f"Made {out} in {duration(report['seconds'])}. Train on it with:")
    output.say(f"  dpmpn train {shlex.quote(str(out))} --out {shlex.quote('runs/' + report['name'])}")


def _show_respelled(
    output: Output, kind: str, changed: int, merged: int, examples: Mapping[str, str]
) -> None:
    """Say which names were not in Unicode's composed form, or had white space around."""
    was, became = next(iter(examples.items()))
    same = f"; {counted(merged, 'of them is', 'of them are')} now the name of another one" if merged else ""
    names = counted(changed, f"name of {kind}", f"names of {kind}")
    output.say(f"{names} brought to one spelling (Unicode NFC), such as {was!a} to '{became}'{same}")


def _show_leaks(output: Output, which: str, leaks: dict[str, Any]) -> None:
    shares = leaks["shares"]
    output.say(
        f"{which}: {shares['leaked']:.1%} are already in train, as they are or inverted; "
        f"{shares['joined']:.1%} connect two entities that a training fact connects (PME)"
    )
    if leaks["unseen"]:
        output.say(
            f"  {counted(leaks['unseen'], 'fact')} of {which} with an entity or a relation that no training fact has: "
            "do not expect a correct answer there"
        )
