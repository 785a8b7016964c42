"""Makes an exhibit: does what is not done yet, says how long it will take, and writes the table or figure.

exhibit.json    what was asked, the command, versions and the machine
results/*.json  what each piece of work found
runs/           the trained models
NAME.json, .csv the data; NAME.md and its figures the exhibit
"""

import csv
import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmpn.errors import RunError
from dpmpn.files import read_json, write_json, write_whole
from dpmpn.provenance import machine, versions
from dpmpn.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.reproduce.workshop import Watch, Workshop

MANIFEST, RESULTS = "exhibit.json", "results"
_AGAIN = "remove it, and the same command makes it again"


def make(exhibit: Exhibit, request: Request, folder: Path, watch: Watch, command: str) -> list[Path]:
    """Make an exhibit in a folder, going on where an earlier command stopped; the files to look at."""
    exhibit.check(request)
    if exhibit.draws:
        check_plotting()
    pieces = exhibit.pieces(request)  # first: what they refuse leaves no folder behind
    _begin(exhibit, request, folder, command)
    results = _results(pieces, folder, Workshop(folder, request, watch))
    return _write(exhibit, request, folder, results, exhibit.show(request, results))


def _begin(exhibit: Exhibit, request: Request, folder: Path, command: str) -> None:
    """Take a new folder, or one that holds the same exhibit."""
    path = folder / MANIFEST
    if path.exists():
        before = read_json(path, "choose another --out")
        asked = {"name": exhibit.name, "request": request.as_dict()}
        if {key: before.get(key) for key in asked} != asked:
            raise RunError(
                f"{folder} holds '{before.get('name')}' made with other options ({before.get('command')}); "
                "use those, or choose another --out"
            )
    elif folder.exists() and (not folder.is_dir() or any(p.name != "runs" for p in folder.iterdir())):
        raise RunError(f"{folder} holds something else; choose another --out")
    try:
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}; choose another --out") from error
    write_json(
        path,
        {
            "name": exhibit.name,
            "title": exhibit.title,
            "place": exhibit.place,
            "claim": exhibit.claim,
            "command": command,
            "request": request.as_dict(),
            "seeds": list(request.seeds),
            "versions": versions(),
            "machine": machine(),
        },
    )


def _results(pieces: list[Piece], folder: Path, workshop: Workshop) -> dict[str, Result]:
    """Results of all pieces, in their order; each is written as soon as it is there."""
    paths = {piece.name: folder / RESULTS / f"{piece.name}.json" for piece in pieces}
    open_pieces = [piece for piece in pieces if not paths[piece.name].exists()]
    say = workshop.watch.say
    if done := len(pieces) - len(open_pieces):
        say(f"{done} of {len(pieces)} pieces of work are done already")
    if open_pieces:
        say(f"to do: {_about(sum(piece.seconds for piece in open_pieces))} on two cores")
    spent = planned = 0.0
    for at, piece in enumerate(open_pieces):
        start = time.perf_counter()
        result = piece.work(workshop)
        seconds = time.perf_counter() - start
        write_json(paths[piece.name], {**result, "wall_seconds": seconds})
        spent, planned = spent + seconds, planned + piece.seconds
        left = sum(other.seconds for other in open_pieces[at + 1 :]) * spent / planned
        say(f"{piece.name} done" + (f"; {_about(left)} left" if at + 1 < len(open_pieces) else ""))
    return {name: read_json(path, _AGAIN) for name, path in paths.items()}


def _write(
    exhibit: Exhibit, request: Request, folder: Path, results: Mapping[str, Result], shown: Exhibited
) -> list[Path]:
    name = exhibit.name
    write_json(folder / f"{name}.json", {"rows": shown.rows, "results": results})
    write_text(folder / f"{name}.csv", _csv(shown.rows))
    files = [folder / f"{name}.md"]
    pictures = []
    for stem, figure in shown.figures.items():
        from dpmpn.reproduce.plots import save_plot

        files += save_plot(figure, folder / stem)
        pictures.append(f"![{exhibit.title}]({stem}.svg)\n")
    command = read_json(folder / MANIFEST, _AGAIN)["command"]
    parts = [
        f"# {exhibit.title}\n",
        f"{exhibit.place}. The paper: {exhibit.claim}\n",
        *pictures,
        shown.text.rstrip() + "\n",
        f"Made by `{command}`" + (", the quick form on the bundled graph" * request.quick) + ".\n",
    ]
    write_text(files[0], "\n".join(parts))
    return files


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_bytes(text.encode("utf-8")))


def check_plotting() -> None:
    """Refuse before any work what could not be drawn after it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise RunError("plots need the extra 'plot': pip install 'dpmpn[plot]'") from error


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _about(seconds: float) -> str:
    """A duration as a person would say it."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 90 else f"about {minutes // 60} h {minutes % 60:02} min"
