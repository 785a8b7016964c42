"""Changes that might make the model for any graph better: weights trained on for equal questions, with and without.

python benchmarks/any_graph_trials.py DATA WEIGHTS start unspared unspared-bent-loss as-it-is --out FILE

DATA is the folder of datasets, WEIGHTS a folder of weights (`start`) that each change continues. All are measured on 20
splits of graphs that are not among those of benchmarks/any_graph.py, cut to be like them: in size, in the share of
facts that is hidden, and in that what is asked for leaves its entities other facts. WN18RR and those of `wd-*` are
graphs that the weights were trained on, in other splits.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.leakage import pair_keys
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Gradients
from dpmpn.engine.model import Model
from dpmpn.evaluate.evaluator import rank_queries
from dpmpn.models import build_model
from dpmpn.models.strong import read_out
from dpmpn.pretrain import lanes, splits
from dpmpn.pretrain.graphs import read_graphs
from dpmpn.pretrain.settings import PretrainingSettings, default_config
from dpmpn.pretrain.splits import Facts, Split, neighbourhood, renumbered, split_of
from dpmpn.train.optimiser import Adam, learning_rate_factor
from dpmpn.train.pretrained import load_pretrained

ASKED = 250  # facts of each split, in both directions
LEARNING_RATE, SEED, LANES = 0.001, 1, 2
BEND = 0.25  # of the loss (1 - p^BEND) / BEND, which cares less for what is hopeless


class Cut(NamedTuple):
    """How a split is cut from a graph."""

    folder: str
    facts: int | None  # of a part of it; None: all
    hidden: float
    relations: float = 1.0  # share of them that is kept
    apart: bool = False  # with all other facts between the entities of a hidden one


CUTS = {
    "fb-40a": Cut("FB15K-237", 16_000, 0.4, 0.5, True),
    "fb-40b": Cut("FB15K-237", 16_000, 0.4, 0.5, True),
    "fb-17a": Cut("FB15K-237", 5_000, 0.17, apart=True),
    "fb-17b": Cut("FB15K-237", 5_000, 0.17, apart=True),
    "nell-40a": Cut("NELL-995", 4_300, 0.4),
    "nell-40b": Cut("NELL-995", 4_300, 0.4, 0.6),
    "nell-17a": Cut("NELL-995", 9_700, 0.17),
    "nell-17b": Cut("NELL-995", 9_700, 0.17, 0.7),
    "wn-17a": Cut("WN18RR", 4_900, 0.17),
    "wn-17b": Cut("WN18RR", 4_900, 0.17),
    "wd-people-40": Cut("any-graph/wikitopics-people", 5_600, 0.4),
    "wd-people-21": Cut("any-graph/wikitopics-people", 20_000, 0.21),
    "wd-org-40": Cut("any-graph/wikitopics-org", 5_600, 0.4),
    "wd-art-21": Cut("any-graph/wikitopics-art", 20_000, 0.21),
    "wd-sport-40": Cut("any-graph/wikitopics-sport", 8_000, 0.4),
    "wd-wd2db-40": Cut("any-graph/pedia-wd2db", 6_000, 0.4),
    "wd-en2fr-21": Cut("any-graph/pedia-en2fr", None, 0.21),
    "small-umls": Cut("UMLS", None, 0.2),
    "small-kinship": Cut("Kinship", None, 0.2),
    "small-family": Cut("Family", None, 0.2),
}
# As many of each kind as there are judge graphs.
WEIGHTS = {"fb": 2 / 7, "nell": 2 / 7, "wn": 1 / 7, "wd": 2 / 7}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("changes", nargs="+", choices=["start", *CHANGES])
    parser.add_argument("--questions", type=int, default=40_000)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    asked = {name: cut_split(arguments.data, cut, i) for i, (name, cut) in enumerate(CUTS.items())}
    graphs, _ = read_graphs(trained_on(arguments.data), [])
    found: dict[str, dict[str, np.ndarray]] = {}
    rows = []
    for change in arguments.changes:
        began = time.process_time()
        start = load_pretrained(arguments.weights)
        model = start.model
        if change != "start":
            with ExitStack() as changed:
                for patched in CHANGES[change]():
                    changed.enter_context(patched)
                model = continued(start.model, [graph.facts for graph in graphs], arguments.questions)
        found[change] = {name: ranks_of(model, start.config, split) for name, split in asked.items()}
        row = {"change": change, **scores(found[change])}
        row |= {f"against {other}": gain(found[other], found[change]) for other in found if other != change}
        row["cpu_seconds"] = round(time.process_time() - began)
        print(json.dumps(row), file=sys.stderr)
        rows.append(row)
    command = f"python benchmarks/any_graph_trials.py DATA WEIGHTS {' '.join(arguments.changes)}"
    result = {"command": command, "questions": arguments.questions, "trials": rows}
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")


def trained_on(data: Path) -> list[str]:
    """The graphs that the weights were made of, in their order."""
    whole = [data / name for name in ("FB15K", "WN18RR", "YAGO3-10-quarter")]
    return [str(path) for path in (*whole, *sorted((data / "any-graph").iterdir()))]


def cut_split(data: Path, cut: Cut, number: int) -> Split:
    """The split, the same each time."""
    draw = np.random.default_rng([12, number])
    (graph,), _ = read_graphs([str(data / cut.folder)], [])
    facts = graph.facts
    if cut.relations < 1:
        kept = draw.random(facts.n_relations) < cut.relations
        facts = renumbered(facts.triples[kept[facts.triples[:, 1]]])
    if cut.facts is not None:
        whole = KnowledgeGraph.from_ids(*facts[:3])
        size = min(cut.facts, len(facts.triples))
        facts = renumbered(facts.triples[neighbourhood(facts, whole, size, draw)])
    n_facts = len(facts.triples)
    order, count = draw.permutation(n_facts), int(cut.hidden * n_facts)
    hidden = np.sort(splits._sparing(facts.triples, facts.n_entities, order, count))
    is_gone = np.zeros(n_facts, bool)
    is_gone[hidden] = True
    if cut.apart:
        pairs = pair_keys(facts.triples, facts.n_entities)
        is_gone |= np.isin(pairs, pairs[hidden])
        left = np.isin(np.arange(facts.n_entities), facts.triples[~is_gone][:, [0, 2]])
        hidden = hidden[left[facts.triples[hidden, 0]] & left[facts.triples[hidden, 2]]]
    return split_of(facts, draw.permutation(hidden)[:ASKED], is_gone)


def continued(start: Model, graphs: list[Facts], questions: int) -> Model:
    """The average of the weights after so many more questions, as a pre-training asks them."""
    config = default_config().replace(learning_rate=LEARNING_RATE, seed=SEED, threads=1)
    settings = PretrainingSettings(questions=questions, batches_per_update=LANES)
    model = build_model(0, 0, config.model, 0)
    model.load_state_dict(start.state_dict())
    optimiser, training = Adam(model, config.training), config.training
    streams = [lanes.Lane(model, graphs, config, settings, i, [[0, 0] for _ in graphs]) for i in range(LANES)]
    position = step = 0
    while position < questions:
        results = [stream.gradients(step) for stream in streams]
        shared = torch.stack([result.gradients.shared for result in results]).mean(0)
        if training.grad_clipnorm is not None:
            shared *= min(1.0, training.grad_clipnorm / float(shared.norm()))
        first = results[0].gradients
        factor = learning_rate_factor(training.schedule, position, questions, training.batch_size * LANES)
        optimiser.step(Gradients(first.loss, first.reached, shared, first.entities, first.rows), factor)
        position, step = position + sum(result.queries for result in results), step + 1
    with optimiser.averaged():
        kept = {name: x.clone() for name, x in model.state_dict().items()}
    model.load_state_dict(kept)
    return model


def ranks_of(model: Model, config: Config, split: Split) -> np.ndarray:
    """Realistic filtered ranks of what is hidden, in both directions."""
    graph = split.graph
    engine = Engine(model, graph, config.replace(threads=1))
    return rank_queries(engine, split.known, graph.either_way(split.hidden)).realistic


def scores(ranks: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Of each kind of graphs, of all splits, and weighed as the kinds are among the judge graphs."""
    kinds = defaultdict(list)
    for name, of_split in ranks.items():
        kinds[name.split("-")[0]].append(((1 / of_split).mean(), (of_split <= 10).mean()))
    means = {kind: np.mean(rows, 0) for kind, rows in kinds.items()}
    means["all"] = np.mean([row for rows in kinds.values() for row in rows], 0)
    means["weighed"] = sum(weight * means[kind] for kind, weight in WEIGHTS.items())
    return {
        kind: {"mrr": round(float(mrr), 4), "hits_at_10": round(float(hits), 4)}
        for kind, (mrr, hits) in means.items()
    }


def gain(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, float]:
    """The difference of the weighed MRR, question by question, and its standard error."""
    n_of = defaultdict(int)
    for name in before:
        n_of[name.split("-")[0]] += 1
    total = variance = 0.0
    for name, ranks in before.items():
        kind = name.split("-")[0]
        weight, more = WEIGHTS.get(kind, 0.0) / n_of[kind], 1 / after[name] - 1 / ranks
        total += weight * float(more.mean())
        variance += weight**2 * float(more.var()) / len(more)
    return {"mrr": round(total, 4), "standard_error": round(variance**0.5, 4)}


def _unspared() -> list:
    """Facts are hidden whether their entities keep others or not."""
    return [patch.object(splits, "_sparing", lambda triples, n_entities, order, count: order[:count])]


def _bent_loss() -> list:
    """(1 - p^b) / b instead of -log p, which it becomes as b goes to 0."""

    class Bent:
        @staticmethod
        def softplus(x: Tensor) -> Tensor:
            return (1 - torch.exp(-BEND * functional.softplus(x))) / BEND

    return [patch.object(read_out, "functional", Bent)]


CHANGES: dict[str, Callable[[], list]] = {
    "as-it-is": list,
    "unspared": _unspared,
    "unspared-bent-loss": lambda: [*_unspared(), *_bent_loss()],
}

if __name__ == "__main__":
    main()
