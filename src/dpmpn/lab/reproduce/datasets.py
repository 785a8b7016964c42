"""Table 1: the statistics of the datasets, measured anew beside the paper's."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from dpmpn.data.registry import known_dataset
from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.exhibit import Exhibit, Piece, row_of
from dpmpn.lab.reproduce.settings import QUICK_DATASET, SCALE_DATASET, Request, dataset_named
from dpmpn.lab.reproduce.workshop import Result, Workshop
from dpmpn.wording import listed, percentage


class Connection(NamedTuple):
    """How closely a graph joins its pairs, by the paper's last three columns."""

    pme_train: float
    pme_valid: float
    average_shortest_path_valid: float


PAPER = {
    "FB15K": Connection(0.812, 0.806, 1.22),
    "FB15K-237": Connection(0.380, 0.0, 2.25),
    "WN18": Connection(0.931, 0.940, 1.18),
    "WN18RR": Connection(0.345, 0.355, 2.84),
    "NELL-995": Connection(1.0, 0.311, 2.00),
    "YAGO3-10": Connection(0.564, 0.560, 1.75),
}
"""As printed; the counts are in the registry of datasets."""
_COUNTS = ("entities", "relations", "train", "valid", "test")
_COLUMNS = {key: key for key in _COUNTS} | dict(
    zip(Connection._fields, ("PME train, %", "PME valid, %", "AL valid"), strict=True)
)
"""Their titles, by the keys of a measurement."""
_NELL_PME = (
    "The training file of the authors' program holds an inverse of every fact; counted over that file, every fact has "
    "another one between the same two entities. We count the facts themselves, whose number is the paper's own."
)
_WN18_PATHS = (
    "This is the average over all validation pairs. None of the readings we tried gives the paper's figure here and on "
    "the other datasets; test gives 1.18."
)
_WHY = {("NELL-995", "pme_train"): _NELL_PME, ("WN18", "average_shortest_path_valid"): _WN18_PATHS}
_MEANING = (
    "PME is the share of facts whose head and tail another training fact joins, AL the average length of the "
    "shortest paths between the heads and tails of valid.\n"
)
_SECONDS = {"FB15K": 10.0, "YAGO3-10": 10.0}
_USUAL_SECONDS = 3.0


def _is_here(name: str) -> bool:
    folder = known_dataset(name).folder()
    return folder is not None and folder.is_dir()


def _measure(name: str, workshop: Workshop) -> Result:
    from dpmpn.data.statistics import statistics

    workshop.watch.say(f"measuring {name}")
    return statistics(dataset_named(name), progress=workshop.progress)


def _printed(name: str) -> dict[str, Any]:
    counts = known_dataset(name).published
    assert counts is not None  # as all datasets of the paper have them
    return {**counts._asdict(), **PAPER[name]._asdict()}


def _figure(row: dict[str, Any], key: str) -> str:
    """A figure as the paper prints it."""
    if row[key] is None:
        return "-"
    if key in _COUNTS:
        return f"{row[key]:,}"
    return percentage(row[key]) if key.startswith("pme") else f"{row[key]:.2f}"


def differences(results: dict[str, Result]) -> list[tuple[str, str]]:
    """Dataset and measure of every figure that is not the paper's when both are printed."""
    return [
        (name, key)
        for name in PAPER
        if name in results
        for key in _COLUMNS
        if _figure(results[name], key) != _figure(_printed(name), key)
    ]


def _notes(results: dict[str, Result]) -> list[str]:
    """Where figures differ from the paper's and why, and what could not be compared."""
    notes = ["All figures measured here are the paper's.\n"]
    if lines := [_difference(name, key, results[name]) for name, key in differences(results)]:
        notes = ["All figures measured here are the paper's but these:\n\n" + "\n".join(lines) + "\n"]
    if missing := [name for name in PAPER if name not in results]:
        notes.append(
            f"Not found on this machine, so not measured: {listed(missing)}; `dpmpn datasets` says where it looks.\n"
        )
    if SCALE_DATASET in results:
        notes.append(
            f"{SCALE_DATASET} has a quarter of the training facts of YAGO3-10: its figures are not comparable.\n"
        )
    return notes


def _difference(name: str, key: str, result: Result) -> str:
    ours, theirs = _figure(result, key), _figure(_printed(name), key)
    why = _WHY.get((name, key), "We do not know why.")
    return f"- {name}, {_COLUMNS[key]}: {ours} here, {theirs} in the paper. {why}"


class Datasets(Exhibit):
    """A piece for each dataset that is on this machine."""

    name = "datasets"
    title = "Statistics of the datasets"
    place = "Table 1"
    claim = (
        "Most pairs asked about are joined by short paths, and, but for FB15K-237, many by a training fact."
    )
    trains = False
    takes_runs = False

    def pieces(self, request: Request) -> list[Piece]:
        """Statistics of each."""
        here = [QUICK_DATASET] if request.quick else list(filter(_is_here, (*PAPER, SCALE_DATASET)))
        return [Piece(name, _SECONDS.get(name, _USUAL_SECONDS), partial(_measure, name)) for name in here]

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """Ours and the paper's, dataset by dataset."""
        ours, rows = {result["name"]: result for result in results}, []
        for name in dict.fromkeys([*([] if request.quick else PAPER), *ours]):
            if name in ours:
                rows.append({"dataset": name, "by": "ours", **row_of(ours[name], tuple(_COLUMNS))})
            if name in PAPER:
                rows.append({"dataset": name, "by": "paper", **_printed(name)})
        return rows

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """The table, and where and why figures differ."""
        lines = [
            [
                row["dataset"] + ", the paper" * (row["by"] == "paper"),
                *(_figure(row, key) for key in _COLUMNS),
            ]
            for row in self.rows(request, results)
        ]
        notes = [] if request.quick else _notes({result["name"]: result for result in results})
        return [table(["dataset", *_COLUMNS.values()], lines), _MEANING, *notes]


DATASETS = Datasets()
