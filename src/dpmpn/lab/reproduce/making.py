"""All exhibits, and how one is made: what is not done yet is done, then its table or figure is written.

exhibit.json    what was asked; the command that began it, with its versions and machine; commands that followed
results/*.json  what each piece of work found, with the versions and the machine it was made by
runs/           the trained models
NAME.json, .csv the data; NAME.md and its figures the exhibit
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dpmpn.data.near_names import near_names
from dpmpn.errors import RunError, UnknownName
from dpmpn.evaluate.metrics import TITLES
from dpmpn.files import own_folder, read_json, write_json, write_text
from dpmpn.lab.figures import check_plotting, csv_text, save_plot
from dpmpn.lab.reproduce.ablation import ABLATION
from dpmpn.lab.reproduce.attention_flow import ATTENTION_FLOW
from dpmpn.lab.reproduce.convergence import CONVERGENCE
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece
from dpmpn.lab.reproduce.growth import GROWTH
from dpmpn.lab.reproduce.nell995 import NELL995
from dpmpn.lab.reproduce.paper_tables import DATASETS, SCORES
from dpmpn.lab.reproduce.strong import STRONG, UNSEEN
from dpmpn.lab.reproduce.subgraphs import SUBGRAPHS
from dpmpn.lab.reproduce.two_forms import IGNN, IGNN_DRAWS, LEAK_REMOVAL
from dpmpn.lab.reproduce.variations import HORIZONS, TIME_COST
from dpmpn.lab.reproduce.workshop import RUNS, Request, Result, Watch, Workshop
from dpmpn.provenance import machine, versions
from dpmpn.wording import about, listed

MANIFEST, RESULTS = "exhibit.json", "results"
_AGAIN = "remove it, and the same command makes it again"

EXHIBITS: dict[str, Exhibit] = {
    exhibit.name: exhibit
    for exhibit in (
        *(DATASETS, *SCORES, NELL995, CONVERGENCE, IGNN, HORIZONS, TIME_COST, ATTENTION_FLOW, SUBGRAPHS),
        *(GROWTH, LEAK_REMOVAL, IGNN_DRAWS, STRONG, ABLATION, UNSEEN),
    )
}
"""In the order of the paper; then those that go beyond it."""


def exhibit_named(name: str) -> Exhibit:
    """An exhibit by its name."""
    if name not in EXHIBITS:
        near = near_names(name, list(EXHIBITS))
        raise UnknownName("exhibit", name, near, "`dpmpn reproduce --list` shows them")
    return EXHIBITS[name]


def make(exhibit: Exhibit, request: Request, folder: Path, watch: Watch, command: str) -> list[Path]:
    """Make an exhibit in a folder, going on where an earlier command stopped; the files to look at."""
    exhibit.check(request)
    _check_runs(request)
    if exhibit.draws:
        check_plotting()
    pieces = exhibit.pieces(request)  # first: what they refuse leaves no folder behind
    _begin(exhibit, request, folder, command)
    results = _results(pieces, folder, Workshop(folder, request, watch))
    return _write(exhibit, request, folder, results, exhibit.show(request, results))


def _check_runs(request: Request) -> None:
    if request.runs is not None and not (request.runs / RUNS).is_dir():
        raise RunError(
            f"{request.runs} has no folder '{RUNS}'; --runs needs the folder of an exhibit with trained models"
        )


def _begin(exhibit: Exhibit, request: Request, folder: Path, command: str) -> None:
    """Take a new folder, or one that holds the same exhibit."""
    path = folder / MANIFEST
    asked = exhibit.remembered(request.as_dict())
    before: dict[str, Any] = {}
    if path.exists():
        before = read_json(path, "choose another --out")
        if before.get("name") != exhibit.name or exhibit.remembered(before.get("request") or {}) != asked:
            raise RunError(
                f"{folder} holds '{before.get('name')}' made with other options ({before.get('command')}); "
                "use those, or choose another --out"
            )
    elif folder.exists() and (not folder.is_dir() or any(p.name != "runs" for p in folder.iterdir())):
        raise RunError(f"{folder} holds something else; choose another --out")
    try:
        own_folder(folder / RESULTS)
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}; choose another --out") from error
    commands = list(dict.fromkeys([*_commands(before), command]))
    write_json(
        path,
        {
            "name": exhibit.name,
            "title": exhibit.title,
            "place": exhibit.place_of(request),
            "claim": exhibit.claim,
            "command": commands[0],
            **({"commands": commands[1:]} if commands[1:] else {}),
            "request": asked,
            "seeds": list(request.seeds),
            "versions": before.get("versions") or versions(),
            "machine": before.get("machine") or machine(),
        },
    )


def _commands(manifest: dict[str, Any]) -> list[str]:
    """The commands that made a folder, the first one first."""
    first = manifest.get("command")
    return [first, *manifest.get("commands", [])] if first else []


def _results(pieces: list[Piece], folder: Path, workshop: Workshop) -> dict[str, Result]:
    """Results of all pieces, in their order; each is written as soon as it is there."""
    paths = {piece.name: folder / RESULTS / f"{piece.name}.json" for piece in pieces}
    open_pieces = [piece for piece in pieces if not paths[piece.name].exists()]
    say = workshop.watch.say
    if done := len(pieces) - len(open_pieces):
        say(f"{done} of {len(pieces)} pieces of work are done already")
    if open_pieces:
        say(f"to do: {about(sum(piece.seconds for piece in open_pieces))} on two cores")
    spent = planned = 0.0
    for at, piece in enumerate(open_pieces):
        start = time.perf_counter()
        result = piece.work(workshop)
        seconds = time.perf_counter() - start
        made_by = {"versions": versions(), "machine": machine()}
        write_json(paths[piece.name], {**result, "wall_seconds": seconds, **made_by})
        spent, planned = spent + seconds, planned + piece.seconds
        left = sum(other.seconds for other in open_pieces[at + 1 :]) * spent / planned
        say(f"{piece.name} done" + (f"; {about(left)} left" if at + 1 < len(open_pieces) else ""))
    return {name: _result(path) for name, path in paths.items()}


def _result(path: Path) -> Result:
    result: Result = read_json(path, _AGAIN)
    scores = result["scores"]["both"]["realistic"] if "scores" in result else TITLES
    if missing := [TITLES[metric] for metric in TITLES if metric not in scores]:
        raise RunError(f"{path} was made before there was {listed(missing)}; {_AGAIN}")
    return result


def _write(
    exhibit: Exhibit, request: Request, folder: Path, results: Mapping[str, Result], shown: Exhibited
) -> list[Path]:
    name = exhibit.name
    write_json(folder / f"{name}.json", {"rows": shown.rows, "results": results})
    write_text(
        folder / f"{name}.csv", csv_text(shown.rows[0] if shown.rows else [], map(dict.values, shown.rows))
    )
    files = [folder / f"{name}.md"]
    if shown.figure is not None:
        files += save_plot(shown.figure, folder / name)
    commands = listed([f"`{command}`" for command in _commands(read_json(folder / MANIFEST, _AGAIN))])
    parts = [
        f"# {exhibit.title}\n",
        f"{exhibit.place_of(request)}. {'The paper: ' * exhibit.in_paper}{exhibit.claim}\n",
        *([] if shown.figure is None else [f"![{exhibit.title}]({name}.svg)\n"]),
        shown.text.rstrip() + "\n",
        f"Made by {commands}{', the quick form on the bundled graph' * request.quick}."
        f"{_makers_note(results.values())}\n",
    ]
    write_text(files[0], "\n".join(parts))
    return files


def _makers_note(results: Iterable[Result]) -> str:
    """What differed between the makings of the pieces; older versions did not note it."""
    note = ""
    noted = [result for result in results if "versions" in result]
    for what, part, key in (
        ("by different versions of dpmpn", "versions", "dpmpn"),
        ("on different processors", "machine", "processor"),
    ):
        makers = sorted({result[part][key] for result in noted})
        if len(makers) > 1:
            note += f" Its pieces were made {what}: {listed(makers)}."
    return note
