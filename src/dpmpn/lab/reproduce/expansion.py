"""How large subgraphs grow from a node: expanded fully, by the sampling strategies of Section 2, and by attention."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.statistics import both_directions
from dpmpn.engine.batch import NO_EDGES, QueryBatch, query_keys
from dpmpn.engine.frontier import Frontier, Visited, attending_from, attending_to, expand_frontier
from dpmpn.engine.settings import Horizon
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.explain.distance import facts_between
from dpmpn.kernels import Ints, kernel
from dpmpn.lab.reproduce.workshop import LIMITS, Request, Result, Workshop, config_for, training_record
from dpmpn.train.validation import training_queries

Attended = tuple[np.ndarray, np.ndarray]
"""Nodes that joined the subgraphs of a batch in one step: their queries, and the entities."""
Sampling = Literal["boundary", "nodes", "nodes_and_boundary", "three_times"]
SAMPLING: tuple[Sampling, ...] = get_args(Sampling)
"""Strategies 1 to 4 of Section 2."""
_EPOCHS = 0.05  # enough for attention to choose better than chance
QUERIES = 300
"""Test questions that are drawn."""
_BATCH = 10  # queries: without a limit a step of one may scan the whole graph
_STARTS = 500  # nodes to expand fully from before the user can end it
_DEGREES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The graph as the proposition sees it: each node's neighbours once, in both directions, itself excluded."""

    offsets: np.ndarray
    nodes: np.ndarray

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Neighbours":
        """Leave out what is parallel."""
        offsets, tails = both_directions(graph)
        n_entities = graph.n_entities
        heads = np.repeat(np.arange(n_entities), np.diff(offsets))
        pairs = np.unique((heads * n_entities + tails)[heads != tails])
        heads, tails = np.divmod(pairs, n_entities)
        counts = np.bincount(heads, minlength=n_entities)
        return cls(np.concatenate([[0], np.cumsum(counts)]), tails.astype(np.int32))

    @property
    def degrees(self) -> np.ndarray:
        """deg(v) of every node."""
        return np.diff(self.offsets)

    def sizes_around(self, starts: np.ndarray, n_steps: int) -> np.ndarray:
        """|V_{G^t}| of full consecutive expansion from some nodes, for t from 0: nodes x (steps + 1)."""
        return _ball_sizes(self.offsets, self.nodes, starts, n_steps)


@kernel
def _ball_sizes(offsets: Ints, nodes: Ints, starts: Ints, n_steps: int) -> Ints:
    n = len(offsets) - 1
    sizes = np.empty((len(starts), n_steps + 1), np.int64)
    met, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for row in range(len(starts)):
        met[starts[row]], queue[0] = row, starts[row]
        first, last = 0, 1
        sizes[row, 0] = 1
        for step in range(1, n_steps + 1):
            found = last
            for at in range(first, last):
                for edge in range(offsets[queue[at]], offsets[queue[at] + 1]):
                    node = nodes[edge]
                    if met[node] != row:
                        met[node] = row
                        queue[found] = node
                        found += 1
            first, last = last, found
            sizes[row, step] = found
    return sizes


def expansion_bound(d: int, step: int) -> int:
    """(d (d-1)^t - 2) / (d - 2), as the sum it is: 1 + d + d(d-1) + ... + d(d-1)^{t-1}, which d = 2 has, too."""
    return 1 + d * sum(int((d - 1) ** i) for i in range(step))


def expansion_probability(p: float, d: int, step: int) -> float:
    """p to the bound of the step before: no node until then may have more than d neighbours."""
    return float(p ** float(expansion_bound(d, step - 1)))


def sampled_steps(
    graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon, n_steps: int
) -> Iterator[Attended]:
    """What each step of a sampling strategy adds: the model's own steps without the model, which chooses nothing."""
    visited, frontier = Visited.at_heads(batch.heads), Frontier.at_heads(batch.heads)
    for step in range(n_steps):
        scan = expand_frontier(graph, batch, horizon, frontier, visited, step)
        attended = attending_to(scan, batch, horizon, np.ones(scan.n_slots), step)
        yield scan.slot_query[attended], scan.slot_node[attended]
        visited = visited.after(scan, attended, np.zeros(scan.n_slots, np.int64), step)
        frontier = attending_from(visited, batch, horizon, np.ones(len(visited.node)), step + 1)


def traced_steps(trace: ReasoningTrace) -> Iterator[Attended]:
    """What each step of a trace adds."""
    for step in trace.steps:
        query = np.repeat(np.arange(len(trace.heads)), np.diff(step.slot_offsets))
        yield query[step.attended_to], step.slot_node[step.attended_to]


def subgraph_sizes(
    heads: np.ndarray, targets: np.ndarray, steps: Iterable[Attended], n_entities: int
) -> tuple[np.ndarray, np.ndarray]:
    """|V_{G^t}| of each query for t from 0, (steps + 1) x queries, and whether G^T holds each target."""
    starts = np.arange(len(heads)) * n_entities  # (query, node) as one number
    members = starts + heads
    sizes = [np.ones(len(heads), np.int64)]
    for query, node in steps:
        members = np.union1d(members, starts[query] + node)
        sizes.append(np.bincount(members // n_entities, minlength=len(heads)))
    return np.array(sizes), np.isin(starts + targets, members)


def horizons(config: Config) -> dict[str, Horizon]:
    """The preset's N1, N2 and N3, and a quarter of each."""
    preset = config.horizon
    quarter = {name: max(1, getattr(preset, name) // 4) for name in LIMITS}
    return {"preset": preset, "quarter": replace(preset, **quarter)}


def increment_bound(horizon: Horizon, d: int | None = None) -> int | None:
    """The most nodes a step may add; with `d`, where no node attended from has more neighbours. None: no bound."""
    n1, n2, n3 = (int(getattr(horizon, name)) for name in LIMITS)
    if horizon.strategy == "boundary":
        return None
    if horizon.strategy == "nodes":
        return None if d is None else n1 * (d - 1)
    if horizon.strategy == "nodes_and_boundary":
        return n1 * n2 if d is None else n1 * min(d - 1, n2)
    return min(n1 * n2, n3)


def growth_config(request: Request, dataset: Dataset, seed: int) -> Config:
    """Settings of a short training."""
    short: dict[str, Any] = {} if request.quick or request.epochs is not None else {"n_epochs": _EPOCHS}
    return config_for(request, dataset, seed, **short)


def expanded(request: Request, dataset: Dataset, workshop: Workshop) -> Result:
    """Sizes of full expansion from every node, against the proposition's bounds, and of that from drawn questions."""
    workshop.watch.say(f"expanding fully from every node of {dataset.name}")
    neighbours = Neighbours.of(dataset.graph)
    n_steps = growth_config(request, dataset, request.seeds[0]).model.n_steps_in_agnn
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


def _sizes_around_all(neighbours: Neighbours, n_steps: int, workshop: Workshop) -> np.ndarray:
    """Sizes of full expansion from every node, so many at a time: it takes a minute, and can be ended."""
    every, sizes = np.arange(len(neighbours.degrees)), []
    for start in range(0, len(every), _STARTS):
        sizes.append(neighbours.sizes_around(every[start : start + _STARTS], n_steps))
        workshop.progress(min(start + _STARTS, len(every)), len(every))
    return np.concatenate(sizes)


def _degrees(degrees: np.ndarray) -> list[int]:
    """Values of d to look at: those below the largest degree, and that."""
    largest = int(degrees.max())
    return [*(d for d in _DEGREES if d < largest), largest]


def _against_bound(degrees: np.ndarray, sizes: np.ndarray, d: int) -> dict[str, Any]:
    """For one d: P(deg <= d), and of each step the bound, its probability and how many nodes keep within it."""
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


def sampled(request: Request, dataset: Dataset, seed: int, workshop: Workshop) -> Result:
    """Subgraphs of drawn questions by the sampling strategies, which need no model."""
    config, queries = growth_config(request, dataset, seed), _drawn(dataset)
    keys = query_keys(seed, queries[:, 0], queries[:, 1])

    def steps(rows: slice, horizon: Horizon) -> Iterator[Attended]:
        heads, relations, _ = queries[rows].T
        batch = QueryBatch(heads, relations.astype(np.int64), keys[rows], NO_EDGES, ())
        return sampled_steps(dataset.graph, batch, horizon, config.model.n_steps_in_agnn)

    degrees, grown = Neighbours.of(dataset.graph).degrees, []
    chosen = [(setting, strategy) for setting in horizons(config) for strategy in SAMPLING]
    for at, (setting, strategy) in enumerate(chosen):
        horizon = replace(horizons(config)[setting], strategy=strategy)
        grown.append(_grown(setting, horizon, queries, steps, dataset, workshop, degrees))
        workshop.watch.say(f"{at + 1} of {len(chosen)} sampling strategies and horizons measured")
    return {"seed": seed, "queries": len(queries), "grown": grown}


def attended(request: Request, dataset: Dataset, seed: int, workshop: Workshop) -> Result:
    """Subgraphs of the same questions by the attention of a model that was trained shortly."""
    config, queries = growth_config(request, dataset, seed), _drawn(dataset)
    run = workshop.trained(f"{dataset.name.lower()}-seed{seed}", dataset, config)
    with workshop.asking(run, dataset) as engine:

        def steps(rows: slice, horizon: Horizon) -> Iterator[Attended]:
            heads, relations, _ = queries[rows].T
            return traced_steps(engine.trace(engine.asking_batch(heads, relations), horizon)[1])

        grown = [
            _grown(setting, horizon, queries, steps, dataset, workshop)
            for setting, horizon in horizons(run.config).items()
        ]
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
    count = min(QUERIES, len(queries))
    return queries[np.sort(np.random.default_rng(0).choice(len(queries), count, replace=False))]


def _grown(
    setting: str,
    horizon: Horizon,
    queries: np.ndarray,
    steps: Callable[[slice, Horizon], Iterator[Attended]],
    dataset: Dataset,
    workshop: Workshop,
    degrees: np.ndarray | None = None,
) -> dict[str, Any]:
    """How large the subgraphs of a strategy are, what its bounds say of that, and how many hold their answer."""
    sizes_of, hits = [], []
    for start in range(0, len(queries), _BATCH):
        rows = slice(start, start + _BATCH)
        heads, _, targets = queries[rows].T
        of_batch, hit = subgraph_sizes(heads, targets, steps(rows, horizon), dataset.graph.n_entities)
        sizes_of.append(of_batch)
        hits.append(hit)
        workshop.progress(min(rows.stop, len(queries)), len(queries))
    sizes = np.concatenate(sizes_of, axis=1)  # steps + 1 x queries
    added = np.diff(sizes, axis=0)
    return {
        "setting": setting,
        "horizon": asdict(horizon),
        "sizes": _summary(sizes),
        "most_added": int(added.max()),
        "bound_added": increment_bound(horizon),
        "bound": horizon.bound(len(added)),
        "by_degree": [] if degrees is None else _against_increments(horizon, added, degrees),
        "coverage": float(np.concatenate(hits).mean()),
    }


def _against_increments(horizon: Horizon, added: np.ndarray, degrees: np.ndarray) -> list[dict[str, Any]]:
    """Bounds on what a step adds that hold with a probability, p^N1, and how many steps keep within them."""
    if horizon.strategy not in ("nodes", "nodes_and_boundary"):
        return []
    found = []
    for d in _degrees(degrees)[1:]:  # d = 1 leaves no room for the only neighbour of a head
        p, bound = float((degrees <= d).mean()), increment_bound(horizon, d)
        promised, kept = p**horizon.max_attending_from_per_step, float((added <= bound).mean())
        found.append({"d": d, "p": p, "bound": bound, "probability": promised, "within": kept})
    return found


def _summary(sizes: np.ndarray) -> dict[str, list[float]]:
    """Mean, 95th percentile and largest size after each step; sizes are (steps + 1) x subgraphs."""
    return {
        "mean": sizes.mean(axis=1).tolist(),
        "p95": np.percentile(sizes, 95, axis=1).tolist(),
        "max": sizes.max(axis=1).tolist(),
    }
