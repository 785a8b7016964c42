"""`dpmpn datasets fetch`: downloads a dataset of the registry."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.cli.output import JsonTarget, Meter, Output
from dpmpn.data.fetch import Fetched, fetch_dataset
from dpmpn.data.registry import MIRROR_VARIABLE, ROOT_VARIABLE, find_dataset
from dpmpn.wording import duration, megabytes


def command(
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
    output.result(_plain(fetched), lambda: _show(output, fetched))


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


def _plain(fetched: Fetched) -> dict[str, Any]:
    return {
        "name": fetched.name,
        "folder": str(fetched.folder),
        "is_new": fetched.is_new,
        "bytes": fetched.bytes,
        "licence": fetched.licence,
    }


def _show(output: Output, fetched: Fetched) -> None:
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
