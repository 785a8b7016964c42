"""Section 2: how fast subgraphs grow, what the bounds promise, and whether the answer is in what is left."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.engine.settings import Horizon
from dpmpn.lab.reproduce.exhibit import Exhibit, Piece, Request, Result
from dpmpn.lab.reproduce.growth_shown import growth_plot, growth_rows, growth_text
from dpmpn.lab.reproduce.settings import LIMITS, config_for, training_seconds
from dpmpn.lab.reproduce.workshop import training_record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.expansion import Attended, Neighbours
    from dpmpn.lab.reproduce.workshop import Workshop

Sampling = Literal["boundary", "nodes", "nodes_and_boundary", "three_times"]
SAMPLING: tuple[Sampling, ...] = get_args(Sampling)
"""Strategies 1 to 4 of Section 2."""
_EPOCHS = 0.05  # enough for attention to choose better than chance
_QUERIES = 300
_BATCH = 10  # queries: without a limit a step of one may scan the whole graph
_STARTS = 500  # nodes to expand fully from before the user can end it
_DEGREES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)


def horizons(config: Config) -> dict[str, Horizon]:
    """The preset's N1, N2 and N3, and a quarter of each."""
    preset = config.horizon
    quarter = {name: max(1, getattr(preset, name) // 4) for name in LIMITS}
    return {"preset": preset, "quarter": replace(preset, **quarter)}


def increment_bound(horizon: Horizon, d: int | None = None) -> int | None:
    """The most nodes a step may add; with `d`, where no node attended from has more neighbours. None: no bound."""
    n1, n2, n3 = (
        horizon.max_attending_from_per_step,
        horizon.max_sampling_per_node,
        horizon.max_attending_to_per_step,
    )
    if horizon.strategy == "boundary":
        return None
    if horizon.strategy == "nodes":
        return None if d is None else n1 * (d - 1)
    if horizon.strategy == "nodes_and_boundary":
        return n1 * n2 if d is None else n1 * min(d - 1, n2)
    return min(n1 * n2, n3)


class Growth(Exhibit):
    """Sizes of subgraphs by full expansion, by sampling and by attention, held against their bounds."""

    name = "growth"
    title = "Growth of subgraphs"
    place = "Section 2"
    claim = (
        "Sampling bounds how far subgraphs grow, but smaller samples have less chance to hit the target; "
        "attention is to select more efficiently than random sampling. The paper argues this without measuring it."
    )
    datasets = ("FB15K-237", "WN18RR")

    def pieces(self, request: Request) -> list[Piece]:
        """Full expansion once, sampling and attention for each seed."""
        dataset = self.dataset(request)
        pieces = [Piece("expansion", 2e-3 * dataset.graph.n_entities, partial(_expanded, request, dataset))]
        for seed in request.seeds:
            config = _config(request, dataset, seed)
            n_queries = config.training.n_epochs * len(dataset.queries("train"))
            n_asked = 2 * _QUERIES + config.training.validation_queries
            seconds = training_seconds(request, dataset.name, n_queries, n_asked)
            slow = 3 if request.quick else 80  # strategy 1 scans most of the graph for every query
            pieces += [
                Piece(f"sampling-seed{seed}", slow, partial(_sampled, request, dataset, seed)),
                Piece(f"attention-seed{seed}", seconds, partial(_attended, request, dataset, seed)),
            ]
        return pieces

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """Sizes and bounds, step by step."""
        return growth_rows(results)

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Tables and what they say of the bounds."""
        return growth_text(request, results)

    def plot(self, results: Sequence[Result]) -> "Figure":
        """Promises, sizes with both horizons, and answers reached."""
        return growth_plot(results)


def _config(request: Request, dataset: Dataset, seed: int) -> Config:
    short: dict[str, Any] = {} if request.quick or request.epochs is not None else {"n_epochs": _EPOCHS}
    return config_for(request, dataset, seed, **short)


def _expanded(request: Request, dataset: Dataset, workshop: "Workshop") -> Result:
    """Sizes of full expansion from every node, against the proposition's bounds, and of that from drawn questions."""
    from dpmpn.explain.distance import facts_between
    from dpmpn.lab.reproduce.expansion import Neighbours

    workshop.watch.say(f"expanding fully from every node of {dataset.name}")
    neighbours = Neighbours.of(dataset.graph)
    n_steps = _config(request, dataset, request.seeds[0]).model.n_steps_in_agnn
    sizes = _sizes_around_all(neighbours, n_steps, workshop)
    heads, _, targets = _drawn(dataset).T
    apart = [facts_between(dataset.graph, head, target) for head, target in zip(heads, targets, strict=True)]
    return {
        "dataset": dataset.name,
        "n_entities": dataset.graph.n_entities,
        "mean_degree": float(neighbours.degrees.mean()),
        "max_degree": int(neighbours.degrees.max()),
        "sizes": _summary(sizes[heads].T),
        "coverage": float(np.mean([facts is not None and 0 <= facts <= n_steps for facts in apart])),
        "bounds": [_against_bound(neighbours.degrees, sizes, d) for d in _degrees(neighbours.degrees)],
    }


def _sizes_around_all(neighbours: "Neighbours", n_steps: int, workshop: "Workshop") -> np.ndarray:
    """Sizes of full expansion from every node, so many at a time: it takes a minute, and can be ended."""
    every, sizes = np.arange(len(neighbours.degrees)), []
    for start in range(0, len(every), _STARTS):
        sizes.append(neighbours.sizes_around(every[start : start + _STARTS], n_steps))
        workshop.tell(min(start + _STARTS, len(every)), len(every))
    return np.concatenate(sizes)


def _degrees(degrees: np.ndarray) -> list[int]:
    """Values of d to look at: those below the largest degree, and that."""
    largest = int(degrees.max())
    return [*(d for d in _DEGREES if d < largest), largest]


def _against_bound(degrees: np.ndarray, sizes: np.ndarray, d: int) -> dict[str, Any]:
    """For one d: P(deg <= d), and of each step the bound, its probability and how many nodes keep within it."""
    from dpmpn.lab.reproduce.expansion import expansion_bound, expansion_probability

    p = float((degrees <= d).mean())
    return {
        "d": d,
        "p": p,
        "p_along_edges": float(degrees[degrees <= d].sum() / degrees.sum()),
        "steps": [
            {
                "step": step,
                "bound": expansion_bound(d, step),
                "probability": expansion_probability(p, d, step),
                "within": float((sizes[:, step] <= expansion_bound(d, step)).mean()),
            }
            for step in range(1, sizes.shape[1])
        ],
    }


def _sampled(request: Request, dataset: Dataset, seed: int, workshop: "Workshop") -> Result:
    """Subgraphs of drawn questions by the sampling strategies, which need no model."""
    from dpmpn.engine.batch import NO_EDGES, QueryBatch, query_keys
    from dpmpn.lab.reproduce.expansion import Neighbours, sampled_steps

    config = _config(request, dataset, seed)
    degrees = Neighbours.of(dataset.graph).degrees
    queries, grown = _drawn(dataset), []
    keys = query_keys(seed, queries[:, 0], queries[:, 1])
    chosen = [
        (setting, replace(horizon, strategy=strategy))
        for setting, horizon in horizons(config).items()
        for strategy in SAMPLING
    ]
    for at, (setting, horizon) in enumerate(chosen):

        def steps(rows: slice, horizon: Horizon = horizon) -> "Iterator[Attended]":
            heads, relations, _ = queries[rows].T
            batch = QueryBatch(heads, relations.astype(np.int64), keys[rows], NO_EDGES, ())
            return sampled_steps(dataset.graph, batch, horizon, config.model.n_steps_in_agnn)

        sizes, hit = _grown(queries, steps, dataset.graph.n_entities, workshop)
        grown.append(_described(setting, horizon, sizes, hit, degrees))
        workshop.watch.say(f"{at + 1} of {len(chosen)} sampling strategies and horizons measured")
    return {"seed": seed, "queries": len(queries), "grown": grown}


def _attended(request: Request, dataset: Dataset, seed: int, workshop: "Workshop") -> Result:
    """Subgraphs of the same questions by the attention of a model that was trained shortly."""
    from dpmpn.lab.reproduce.expansion import traced_steps
    from dpmpn.train.validation import training_queries

    run = workshop.trained(f"{dataset.name.lower()}-seed{seed}", dataset, _config(request, dataset, seed))
    queries, grown = _drawn(dataset), []
    with workshop.asking(run, dataset) as engine:
        for setting, horizon in horizons(run.config).items():

            def steps(rows: slice, horizon: Horizon = horizon) -> "Iterator[Attended]":
                heads, relations, _ = queries[rows].T
                return traced_steps(engine.trace(engine.asking_batch(heads, relations), horizon)[1])

            sizes, hit = _grown(queries, steps, dataset.graph.n_entities, workshop)
            grown.append(_described(setting, horizon, sizes, hit))
    return {
        "seed": seed,
        "queries": len(queries),
        "grown": grown,
        "training": training_record(run),
        "queries_of_an_epoch": len(training_queries(dataset, run.config)),
    }


def _drawn(dataset: Dataset) -> np.ndarray:
    """Test questions with their answers; the same for every strategy and seed."""
    queries = dataset.queries("test")
    count = min(_QUERIES, len(queries))
    return queries[np.sort(np.random.default_rng(0).choice(len(queries), count, replace=False))]


def _grown(
    queries: np.ndarray,
    steps: "Callable[[slice], Iterator[Attended]]",
    n_entities: int,
    workshop: "Workshop",
) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of all subgraphs, (steps + 1) x queries, and whether they hold the answers."""
    from dpmpn.lab.reproduce.expansion import subgraph_sizes

    sizes, hits = [], []
    for start in range(0, len(queries), _BATCH):
        rows = slice(start, start + _BATCH)
        heads, _, targets = queries[rows].T
        of_batch, hit = subgraph_sizes(heads, targets, steps(rows), n_entities)
        sizes.append(of_batch)
        hits.append(hit)
        workshop.tell(min(rows.stop, len(queries)), len(queries))
    return np.concatenate(sizes, axis=1), np.concatenate(hits)


def _described(
    setting: str, horizon: Horizon, sizes: np.ndarray, hit: np.ndarray, degrees: np.ndarray | None = None
) -> dict[str, Any]:
    """How large the subgraphs of a strategy are, what its bounds say of that, and how many hold their answer."""
    added = np.diff(sizes, axis=0)
    return {
        "setting": setting,
        "horizon": asdict(horizon),
        "sizes": _summary(sizes),
        "most_added": int(added.max()),
        "bound_added": increment_bound(horizon),
        "bound": horizon.bound(len(added)),
        "by_degree": [] if degrees is None else _against_increments(horizon, added, degrees),
        "coverage": float(hit.mean()),
    }


def _against_increments(horizon: Horizon, added: np.ndarray, degrees: np.ndarray) -> list[dict[str, Any]]:
    """Bounds on what a step adds that hold with a probability, p^N1, and how many steps keep within them."""
    if horizon.strategy not in ("nodes", "nodes_and_boundary"):
        return []
    found = []
    for d in _degrees(degrees)[1:]:  # d = 1 leaves no room for the only neighbour of a head
        p, bound = float((degrees <= d).mean()), increment_bound(horizon, d)
        found.append(
            {
                "d": d,
                "p": p,
                "bound": bound,
                "probability": p**horizon.max_attending_from_per_step,
                "within": float((added <= bound).mean()),
            }
        )
    return found


def _summary(sizes: np.ndarray) -> dict[str, list[float]]:
    """Mean, 95th percentile and largest size after each step; sizes are (steps + 1) x subgraphs."""
    return {
        "mean": sizes.mean(axis=1).tolist(),
        "p95": np.percentile(sizes, 95, axis=1).tolist(),
        "max": sizes.max(axis=1).tolist(),
    }


GROWTH = Growth()
