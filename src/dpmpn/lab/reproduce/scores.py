"""Filtered ranks on the five datasets that the paper compares systems on: ours beside what was published."""

from collections.abc import Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, load_preset, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import table
from dpmpn.lab.published import PublishedRow, published_rows
from dpmpn.lab.reproduce.analysis import (
    METRICS,
    score_cells,
    scores_of,
    seeds_told,
    training_rate,
    training_told,
)
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.settings import (
    LIMITS,
    QUICK_DATASET,
    SCALE_DATASET,
    config_for,
    dataset_named,
    training_seconds,
)
from dpmpn.wording import percentage

if TYPE_CHECKING:
    from dpmpn.lab.reproduce.workshop import Workshop

_DATASETS = {
    "fb15k-237": ("FB15K-237",),
    "wn18rr": ("WN18RR",),
    "fb15k": ("FB15K",),
    "wn18": ("WN18",),
    "yago3-10": ("YAGO3-10", SCALE_DATASET),
}
_NOT_COMPARABLE = (
    f"**{SCALE_DATASET} is not YAGO3-10**: it has a quarter of the training facts, and entities are tested that have "
    "none. Its scores must not be put beside published ones.\n"
)
_LATER = (
    "Not in the paper: newer systems, and what older ones say of themselves. They do not all place ties as we do; "
    "NBFNet and ComplEx-N3 count them against the answer.\n"
)
_COLUMNS = ["system", *METRICS.values(), "source"]


def _pieces(name: str, request: Request) -> list[Piece]:
    dataset = dataset_named(_dataset_name(name, request))
    pieces = []
    for seed in request.seeds:
        config = _config(name, request, dataset, seed)
        n_queries = config.training.n_epochs * len(dataset.queries("train"))
        n_test = len(dataset.queries("test")) * (1 if _asks_as_trained(config) else 2)
        rate_of = QUICK_DATASET if request.quick else _DATASETS[name][0]
        seconds = training_seconds(request, rate_of, n_queries, n_test)
        label = f"{name}-seed{seed}"
        pieces.append(Piece(label, seconds, partial(train_and_ask, label, dataset, config)))
    return pieces


def _dataset_name(name: str, request: Request) -> str:
    return QUICK_DATASET if request.quick else request.dataset or _DATASETS[name][0]


def _config(name: str, request: Request, dataset: Dataset, seed: int) -> Config:
    if dataset.name == SCALE_DATASET:  # has no preset of its own
        epochs = {} if request.epochs is None else {"n_epochs": request.epochs}
        return with_overrides(load_preset(name), {"seed": seed, **epochs})
    return config_for(request, dataset, seed)


def _asks_as_trained(config: Config) -> bool:
    return config.asking_horizon() == config.horizon


def train_and_ask(label: str, dataset: Dataset, config: Config, workshop: "Workshop") -> Result:
    """Train a run; ask its best weights with the horizon chosen on validation, and with that of the training."""
    run = workshop.trained(label, dataset, config)
    as_trained = None
    if not _asks_as_trained(config):
        as_trained = workshop.evaluated(run, dataset, horizon=config.horizon)["scores"]
    return {
        "dataset": dataset.name,
        "seed": config.run.seed,
        "queries_of_an_epoch": len(dataset.queries("train")),
        **workshop.evaluated(run, dataset, horizon=config.asking_horizon()),
        "scores_as_trained": as_trained,
    }


def _show(claimed: Sequence[str], request: Request, results: dict[str, Result]) -> Exhibited:
    found = list(results.values())
    dataset = found[0]["dataset"]
    ways = _ways(found)
    published = published_rows(dataset)
    paper = [row for row in published if not row.later]
    later = [row for row in published if row.later]
    ours = [[f"**ours**, {way}", *score_cells(asked), "this run"] for way, asked in ways.items()]
    parts = [
        table(_COLUMNS, [*(_published_cells(row) for row in paper), *ours], words=("source",)),
        *([_compared(paper, ways), *_ahead_told(paper, claimed)] if paper else []),
        f"Scores in percent. {_horizons_told(ways)} {_ranks_told(found)}\n",
        *([_NOT_COMPARABLE] if dataset == SCALE_DATASET else []),
        f"{training_told(request, found)} {seeds_told(request)}\n",
        _effort(ways),
    ]
    if later:
        parts += [_LATER, table(_COLUMNS, [_published_cells(row) for row in later], words=("source",))]
    return Exhibited([_row(way, result) for way, asked in ways.items() for result in asked], "\n".join(parts))


def _ways(found: Sequence[Result]) -> dict[str, list[Result]]:
    """The results by the horizon they were asked with, named by its limits; the one to use first."""
    ways = {_limits(found[0]): list(found)}
    if found[0]["scores_as_trained"] is not None:
        as_trained = [{**result, "scores": result["scores_as_trained"]} for result in found]
        ways[_limits(as_trained[0])] = as_trained
    return ways


def _limits(result: Result) -> str:
    horizon = result["scores"]["horizon"]
    return ", ".join(f"{short} = {horizon[key]}" for key, short in LIMITS.items())


def _published_cells(row: PublishedRow) -> list[str]:
    return [row.system, *(row.shown(metric) for metric in METRICS), row.source]


def _compared(paper: Sequence[PublishedRow], ways: dict[str, list[Result]]) -> str:
    """By how many points ours differs from the paper's own row, at the precision of the tables."""
    theirs = next(row for row in paper if row.system == "DPMPN")
    sentences = []
    for way, asked in ways.items():
        differences = [
            f"{label} {_difference(mean(scores_of(result)[metric] for result in asked), theirs.score(metric, 0))}"
            for metric, label in METRICS.items()
        ]
        sentences.append(f"with {way}: {', '.join(differences)}")
    return f"Ours less the paper's DPMPN, in points: {'; '.join(sentences)}.\n"


def _ahead_told(paper: Sequence[PublishedRow], claimed: Sequence[str]) -> list[str]:
    """Which rows of the paper's own table are ahead of DPMPN where the paper says that none is."""
    theirs = next(row for row in paper if row.system == "DPMPN")
    ahead = [
        f"{row.system} ahead of DPMPN at {METRICS[metric]}, {row.shown(metric)} against {theirs.shown(metric)}"
        for metric in claimed
        for row in paper
        if row.score(metric, 0) > theirs.score(metric, 0)
    ]
    return [f"Yet the paper's own table has {'; '.join(ahead)}.\n"] if ahead else []


def _difference(ours: float, theirs: float) -> str:
    points = round(round(100 * ours, 1) - theirs, 1)
    return f"{points:+.1f}" if points else "0.0"


def _horizons_told(ways: dict[str, list[Result]]) -> str:
    if len(ways) == 1:
        return "Questions were asked with the horizon of the training."
    return "The first horizon was chosen on validation; the second is that of the training, as in the paper."


def _ranks_told(found: Sequence[Result]) -> str:
    scores = found[0]["scores"]
    return (
        "Entities that tie share the mean of their places, and the weights are the best on validation. "
        f"All {scores['queries']:,} test questions count, {scores['unseen']:,} of the {scores['triples']:,} facts "
        "with an entity that has no training fact."
    )


def _effort(ways: dict[str, list[Result]]) -> str:
    """A table of what each training took, and of how often the answer was among the visited entities."""
    coverage = [[result["scores"]["both"]["coverage"] for result in asked] for asked in ways.values()]
    rows = []
    for result, *reached in zip(next(iter(ways.values())), *coverage, strict=True):
        row = _row("", result)
        rows.append(
            [
                str(row["seed"]),
                f"{row['queries']:,}",
                f"{row['epochs']:.2f}",
                f"{row['training_seconds'] / 60:.1f}",
                f"{row['queries_per_s']:.0f}",
                *(percentage(share) for share in reached),
            ]
        )
    columns = ["seed", "queries", "epochs", "minutes", "queries/s", *(f"reached with {way}" for way in ways)]
    return "What the trainings took, and the percentage of answers that were reached:\n\n" + table(
        columns, rows
    )


def _row(way: str, result: Result) -> dict[str, Any]:
    both, training = result["scores"]["both"], result["training"]
    return {
        "dataset": result["dataset"],
        "seed": result["seed"],
        "asked_with": way,
        **scores_of(result),
        "mrr_optimistic": both["optimistic"]["mrr"],
        "mrr_pessimistic": both["pessimistic"]["mrr"],
        "coverage": both["coverage"],
        "queries": training["queries"],
        "epochs": training["queries"] / result["queries_of_an_epoch"],
        "training_seconds": training["training_seconds"],
        "queries_per_s": training_rate(result),
        "cpu_seconds": training["cpu_seconds"],
    }


_AHEAD = (
    "DPMPN is ahead of all systems compared at H@1, H@3 and MRR, and a few points behind the best at H@10."
)
_AHEAD_AT = ("hits_at_1", "hits_at_3", "mrr")
_CLOSE = "DPMPN comes close to the best systems of its time."


def _exhibit(name: str, place: str, claim: str, claimed: Sequence[str] = ()) -> Exhibit:
    """`claimed` are the metrics where the paper says that DPMPN is ahead of all others."""
    datasets = _DATASETS[name]
    return Exhibit(
        name=name,
        title=f"Scores on {datasets[0]}",
        place=place,
        claim=claim,
        pieces=partial(_pieces, name),
        show=partial(_show, claimed),
        datasets=datasets,
        places={other: f"Not in the paper, which has {datasets[0]} in {place}" for other in datasets[1:]},
    )


SCORES = (
    _exhibit("fb15k-237", "Table 2", _AHEAD, _AHEAD_AT),
    _exhibit("wn18rr", "Table 2", _AHEAD, _AHEAD_AT),
    _exhibit("fb15k", "Table 4", _CLOSE),
    _exhibit("wn18", "Table 4", _CLOSE),
    _exhibit("yago3-10", "Table 5", _CLOSE),
)
