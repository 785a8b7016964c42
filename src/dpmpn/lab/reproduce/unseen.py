"""The stronger model asked about entities that it never saw: trained on one graph, asked on another one."""

from functools import lru_cache, partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.figures import mean_std, table
from dpmpn.lab.reproduce.analysis import DATASETS, scores_of
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.planning import (
    length_told,
    piece_seconds,
    planned,
    planned_queries,
    queries_of_an_epoch,
    runs_told,
)
from dpmpn.lab.reproduce.settings import QUICK_DATASET, config_for, dataset_named
from dpmpn.lab.reproduce.strong import model_label

if TYPE_CHECKING:
    from dpmpn.data.inductive import InductiveSplit
    from dpmpn.lab.reproduce.workshop import Workshop

_PARTS = {"train": "trained on", "ask": "never seen"}
_SIZES = ("entities", "relations", "facts", "mean_degree", "train", "test")
_NOT_COMPARABLE = (
    "Published inductive scores, such as those of NBFNet and AdaProp, are of other splits, and not all of them rank "
    "the answer among all entities: they do not compare one to one with these.\n"
)


@lru_cache(maxsize=1)
def _parted(name: str) -> "InductiveSplit":
    """The two graphs of a dataset; the same for all seeds of the trainings."""
    from dpmpn.data.inductive import inductive_split

    return inductive_split(dataset_named(name))


def _pieces(request: Request) -> list[Piece]:
    dataset = dataset_named(QUICK_DATASET if request.quick else request.dataset or DATASETS[0])
    pieces = []
    for seed in request.seeds:
        config = config_for(request, dataset, seed, kind="strong")  # those of the whole graph suit its parts
        seconds = piece_seconds(request, dataset, config, len(dataset.queries("test")))
        name = f"{dataset.name.lower()}-seed{seed}"
        pieces.append(Piece(name, seconds, partial(_measured, dataset, config)))
    return pieces


def _measured(dataset: Dataset, config: Config, workshop: "Workshop") -> Result:
    from dpmpn.data.inductive import with_relations_of

    parted = _parted(dataset.name)
    label = model_label(parted.train, config.run.seed, "strong")
    run = workshop.trained(label, parted.train, planned(workshop, label, parted.train, config))
    other = with_relations_of(parted.ask, parted.train.graph)
    asked = {"train": workshop.evaluated(run, parted.train), "ask": workshop.evaluated(run, other)}
    return {
        "dataset": dataset.name,
        "seed": config.run.seed,
        "split": parted.report,
        "queries_of_an_epoch": queries_of_an_epoch(parted.train, run.config),
        "planned_queries": planned_queries(run, parted.train),
        "training": asked["train"]["training"],
        "asked": {part: found["scores"] for part, found in asked.items()},
    }


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    found = list(results.values())
    split, rows = found[0]["split"], [row for result in found for row in _rows(result)]
    columns = ["graph asked about", "entities", "relations", "facts", "facts of an entity"]
    columns += ["to reason on", "test", *TITLES.values(), "reached"]
    cells = []
    for part, label in _PARTS.items():
        sizes = split[part]
        counts = [f"{sizes[size]:.1f}" if size == "mean_degree" else f"{sizes[size]:,}" for size in _SIZES]
        scores = [
            mean_std([row[key] for row in rows if row["graph"] == part]) for key in (*TITLES, "coverage")
        ]
        cells.append([label, *counts, *scores])
    minutes = mean(result["training"]["training_seconds"] for result in found) / 60
    text = "\n".join(
        [
            table(columns, cells),
            f"Both graphs are parts of {found[0]['dataset']}, with the same relations and no common entity. "
            f"{split['facts_between']:,} of its {split['whole']['facts']:,} facts are between the parts, and in "
            f"neither{_others_told(split)}. The model learnt relations alone: it was trained on the facts of the first "
            "graph, and asked about held-out facts of that one and of the second, in both directions, with the "
            "facts to reason on as its graph.\n",
            "Scores in percent, filtered, among all entities of the graph asked about; entities that tie share the "
            "mean of their places. The graphs differ in size and in their facts, so that equal scores are not "
            f"to be expected. {length_told(request, found)} Training took {minutes:.1f} minutes without validations. "
            f"{runs_told(request)} {_NOT_COMPARABLE}",
        ]
    )
    return Exhibited(rows, text)


def _others_told(split: dict[str, Any]) -> str:
    left_out = split["facts_of_other_relations"]
    return f"; {left_out:,} to ask about have a relation that no fact to train on has" if left_out else ""


def _rows(result: Result) -> list[dict[str, Any]]:
    training = result["training"]
    return [
        {
            "dataset": result["dataset"],
            "seed": result["seed"],
            "graph": part,
            **{size: result["split"][part][size] for size in _SIZES},
            **{metric: scores_of({"scores": scores})[metric] for metric in TITLES},
            "coverage": scores["both"]["coverage"],
            "queries": training["queries"],
            "training_seconds": training["training_seconds"],
            "cpu_seconds": training["cpu_seconds"],
        }
        for part, scores in result["asked"].items()
    ]


UNSEEN = Exhibit(
    name="unseen",
    title="Asked about entities never seen",
    place="Not in the paper",
    claim="The stronger model trained on one graph, asked on another one without a common entity.",
    pieces=_pieces,
    show=_show,
    datasets=DATASETS,
    in_paper=False,
)
