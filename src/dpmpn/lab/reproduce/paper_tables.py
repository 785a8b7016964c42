"""The paper's tables of whole datasets: Table 1, their statistics measured anew; Tables 2, 4 and 5, filtered ranks."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from dpmpn.config import Config, load_preset, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.registry import known_dataset
from dpmpn.lab.figures import PublishedRow, mean_std, published_rows, table
from dpmpn.lab.reproduce.exhibit import (
    METRICS,
    Exhibit,
    Piece,
    mean_of,
    row_of,
    score_cells,
    seeds_note,
    training_note,
    value_of,
)
from dpmpn.lab.reproduce.workshop import (
    LIMITS,
    QUICK_DATASET,
    SCALE_DATASET,
    Request,
    Result,
    Workshop,
    config_for,
    dataset_named,
    training_seconds,
)
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
_STATISTICS = {key: key for key in _COUNTS} | dict(
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
_NOT_COMPARABLE = (
    f"**{SCALE_DATASET} is not YAGO3-10**: it has a quarter of the training facts, and entities are tested that have "
    "none. Its scores must not be put beside published ones.\n"
)
_LATER = (
    "Not in the paper: newer systems, and what older ones say of themselves. They do not all place ties as we do; "
    "NBFNet and ComplEx-N3 count them against the answer.\n"
)
_SCORE_COLUMNS = ["system", *METRICS.values(), "source"]
_EFFORT = ("queries", "epochs", "training_seconds", "queries_per_s", "cpu_seconds")

Asked = dict[str, list[Result]]
"""Results by the horizon they were asked with, named by its limits; the one to use first."""
_SECONDS = {"FB15K": 10.0, "YAGO3-10": 10.0}
_USUAL_SECONDS = 3.0
_VALIDATED = 1_500  # validation facts that horizons are compared on


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
        for key in _STATISTICS
        if _figure(results[name], key) != _figure(_printed(name), key)
    ]


def _notes(results: dict[str, Result]) -> list[str]:
    """Where figures differ from the paper's and why, and what could not be compared."""
    notes = ["All figures measured here are the paper's.\n"]
    if lines := [_difference_line(name, key, results[name]) for name, key in differences(results)]:
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


def _difference_line(name: str, key: str, result: Result) -> str:
    ours, theirs = _figure(result, key), _figure(_printed(name), key)
    why = _WHY.get((name, key), "We do not know why.")
    return f"- {name}, {_STATISTICS[key]}: {ours} here, {theirs} in the paper. {why}"


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
                rows.append({"dataset": name, "by": "ours", **row_of(ours[name], tuple(_STATISTICS))})
            if name in PAPER:
                rows.append({"dataset": name, "by": "paper", **_printed(name)})
        return rows

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """The table, and where and why figures differ."""
        lines = [
            [
                row["dataset"] + ", the paper" * (row["by"] == "paper"),
                *(_figure(row, key) for key in _STATISTICS),
            ]
            for row in self.rows(request, results)
        ]
        notes = [] if request.quick else _notes({result["name"]: result for result in results})
        return [table(["dataset", *_STATISTICS.values()], lines), _MEANING, *notes]


class Scores(Exhibit):
    """Ours and what was published, on one dataset."""

    fields = (
        *("dataset", "seed", "asked_with", *METRICS, "mrr_optimistic", "mrr_pessimistic", "coverage"),
        *_EFFORT,
    )

    def __init__(
        self, datasets: tuple[str, ...], place: str, claim: str, claimed: Sequence[str] = ()
    ) -> None:
        self.datasets, self.place, self.claim = datasets, place, claim
        self.name, self.title = datasets[0].lower(), f"Scores on {datasets[0]}"
        self.places = tuple(
            (other, f"Not in the paper, which has {datasets[0]} in {place}") for other in datasets[1:]
        )
        self.claimed = claimed  # metrics where the paper says that DPMPN is ahead of all others

    def pieces(self, request: Request) -> list[Piece]:
        """A training for each seed."""
        dataset, pieces = self.dataset(request), []
        for seed in request.seeds:
            config = self._config(request, dataset, seed)
            n_queries = config.training.n_epochs * len(dataset.queries("train"))
            n_asked = len(dataset.queries("test"))
            if not _asks_as_trained(config):
                n_asked = 2 * (n_asked + min(2 * _VALIDATED, len(dataset.queries("valid"))))
            rate_of = QUICK_DATASET if request.quick else self.datasets[0]
            seconds = training_seconds(request, rate_of, n_queries, n_asked)
            label = f"{self.name}-seed{seed}"
            pieces.append(Piece(label, seconds, partial(train_and_ask, label, dataset, config)))
        return pieces

    def _config(self, request: Request, dataset: Dataset, seed: int) -> Config:
        if dataset.name == SCALE_DATASET:  # has no preset of its own
            epochs = {} if request.epochs is None else {"n_epochs": request.epochs}
            return with_overrides(load_preset(self.name), {"seed": seed, **epochs})
        return config_for(request, dataset, seed)

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """A row for each seed and horizon."""
        rows = []
        for horizon, asked in _by_horizon(results).items():
            for result in asked:
                both = result["scores"]["both"]
                ties = {f"mrr_{ties}": both[ties]["mrr"] for ties in ("optimistic", "pessimistic")}
                rows.append(row_of({**result, "asked_with": horizon, **ties}, self.fields))
        return rows

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """The table with its sources, and what the trainings took."""
        dataset, by_horizon = results[0]["dataset"], _by_horizon(results)
        published = published_rows(dataset)
        paper, later = ([row for row in published if row.later == is_later] for is_later in (False, True))
        ours = [
            [f"**ours**, {horizon}", *score_cells(asked), "this run"] for horizon, asked in by_horizon.items()
        ]
        return [
            _system_table(paper, ours),
            *([_difference_note(paper, by_horizon), *_ahead_note(paper, self.claimed)] if paper else []),
            f"Scores in percent. {_horizons_note(results)} {_ranks_note(results)}\n",
            *([_NOT_COMPARABLE] if dataset == SCALE_DATASET else []),
            f"{training_note(request, results)} {seeds_note(request)}\n",
            _effort(by_horizon),
            *([_LATER, _system_table(later)] if later else []),
        ]


def train_and_ask(label: str, dataset: Dataset, config: Config, workshop: Workshop) -> Result:
    """Train a run; ask its best weights with the preset's horizon for asking, and with that of the training.

    Where these differ, both are also asked validation questions: which is better must not be seen on test alone.
    """
    run = workshop.trained(label, dataset, config)
    as_trained, on_validation = None, None
    if not _asks_as_trained(config):
        as_trained = workshop.evaluated(run, dataset, horizon=config.horizon)["scores"]
        on_validation = [
            workshop.evaluated(run, dataset, split="valid", horizon=horizon, limit=_VALIDATED)["scores"]
            for horizon in (config.asking_horizon(), config.horizon)
        ]
    return {
        "dataset": dataset.name,
        "seed": config.run.seed,
        "queries_of_an_epoch": len(dataset.queries("train")),
        **workshop.evaluated(run, dataset, horizon=config.asking_horizon()),
        "scores_as_trained": as_trained,
        "on_validation": on_validation,
    }


def _asks_as_trained(config: Config) -> bool:
    return config.asking_horizon() == config.horizon


def _by_horizon(results: Sequence[Result]) -> Asked:
    asked = {_limits(results[0]): list(results)}
    if results[0]["scores_as_trained"] is not None:
        as_trained = [{**result, "scores": result["scores_as_trained"]} for result in results]
        asked[_limits(as_trained[0])] = as_trained
    return asked


def _limits(result: Result) -> str:
    horizon = result["scores"]["horizon"]
    return ", ".join(f"{short} = {horizon[key]}" for key, short in LIMITS.items())


def _system_table(published: Sequence[PublishedRow], ours: Sequence[list[str]] = ()) -> str:
    rows = [[row.system, *(row.shown(metric) for metric in METRICS), row.source] for row in published]
    return table(_SCORE_COLUMNS, [*rows, *ours], words=("source",))


def _difference_note(paper: Sequence[PublishedRow], by_horizon: Asked) -> str:
    """By how many points ours differs from the paper's own row, at the precision of the tables."""
    theirs = _own_row(paper)
    sentences = []
    for horizon, asked in by_horizon.items():
        differences = [
            f"{title} {_points_apart(mean_of(asked, metric), theirs.score(metric, 0))}"
            for metric, title in METRICS.items()
        ]
        sentences.append(f"with {horizon}: {', '.join(differences)}")
    return f"Ours less the paper's DPMPN, in points: {'; '.join(sentences)}.\n"


def _ahead_note(paper: Sequence[PublishedRow], claimed: Sequence[str]) -> list[str]:
    """Which rows of the paper's own table are ahead of DPMPN where the paper says that none is."""
    theirs = _own_row(paper)
    ahead = [
        f"{row.system} ahead of DPMPN at {METRICS[metric]}, {row.shown(metric)} against {theirs.shown(metric)}"
        for metric in claimed
        for row in paper
        if row.score(metric, 0) > theirs.score(metric, 0)
    ]
    return [f"Yet the paper's own table has {'; '.join(ahead)}.\n"] if ahead else []


def _own_row(paper: Sequence[PublishedRow]) -> PublishedRow:
    return next(row for row in paper if row.system == "DPMPN")


def _points_apart(ours: float, theirs: float) -> str:
    points = round(round(100 * ours, 1) - theirs, 1)
    return f"{points:+.1f}" if points else "0.0"


def _horizons_note(results: Sequence[Result]) -> str:
    """Which horizon is the paper's, and what is known of the other one but its test scores."""
    if results[0]["scores_as_trained"] is None:
        return "Questions were asked with the horizon of the training, as in the paper."
    which = "The second horizon is that of the training, as in the paper; the first is wider."
    found = [result["on_validation"] for result in results if result.get("on_validation")]
    if len(found) < len(results):  # older ones have none
        return f"{which} The two were not compared on validation questions."
    scores = ([each["both"]["realistic"]["mrr"] for each in asked] for asked in zip(*found, strict=True))
    wider, as_trained = map(mean_std, scores)
    questions = f"{found[0][0]['queries']:,} validation questions"
    return f"{which} On {questions} MRR is {wider} with the first and {as_trained} with the second."


def _ranks_note(results: Sequence[Result]) -> str:
    scores = results[0]["scores"]
    return (
        "Entities that tie share the mean of their places, and the weights are the best on validation. "
        f"All {scores['queries']:,} test questions count, {scores['unseen']:,} of the {scores['triples']:,} facts "
        "with an entity that has no training fact."
    )


def _effort(by_horizon: Asked) -> str:
    """A table of what each training took, and of how often the answer was among the visited entities."""
    rows = []
    for of_seed in zip(*by_horizon.values(), strict=True):
        seed, queries, epochs, seconds, rate, _ = row_of(of_seed[0], ("seed", *_EFFORT)).values()
        effort = [f"{seed}", f"{queries:,}", f"{epochs:.2f}", f"{seconds / 60:.1f}", f"{rate:.0f}"]
        rows.append([*effort, *(percentage(value_of(result, "coverage")) for result in of_seed)])
    reached = [f"reached with {horizon}" for horizon in by_horizon]
    return "What the trainings took, and the percentage of answers that were reached:\n\n" + table(
        ["seed", "queries", "epochs", "minutes", "queries/s", *reached], rows
    )


_AHEAD = (
    "DPMPN is ahead of all systems compared at H@1, H@3 and MRR, and a few points behind the best at H@10."
)
_AHEAD_AT = ("hits_at_1", "hits_at_3", "mrr")
_CLOSE = "DPMPN comes close to the best systems of its time."

DATASETS = Datasets()
SCORES = (
    Scores(("FB15K-237",), "Table 2", _AHEAD, _AHEAD_AT),
    Scores(("WN18RR",), "Table 2", _AHEAD, _AHEAD_AT),
    Scores(("FB15K",), "Table 4", _CLOSE),
    Scores(("WN18",), "Table 4", _CLOSE),
    Scores(("YAGO3-10", SCALE_DATASET), "Table 5", _CLOSE),
)
