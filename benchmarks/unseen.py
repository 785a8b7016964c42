"""Which state suits an entity the network was not trained on: each candidate, asked about such entities.

    python benchmarks/unseen.py countries --run runs/countries --left-out runs/countries-left-out --json FILE

Two ways to make entities unseen. "replaced": the embeddings of some entities of a trained run are replaced. "left out":
a network is trained anew without any fact of these entities, which are then added to the graph, as `with_facts` does.
Questions are the held-out facts (valid and test) of these entities, with such an entity as the head that is asked
about or as the answer. No state looks at a held-out fact.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
import torch

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import load_dataset
from dpmpn.engine.engine import Engine
from dpmpn.evaluate.evaluator import known_answers, rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import summarise
from dpmpn.models.paper.network import PaperNetwork
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train

State = Callable[[np.ndarray, KnowledgeGraph, np.ndarray], np.ndarray]
"""Rows of the entity table, the graph and who is unseen; gives a row for each unseen entity, ascending."""


def edges_of(graph: KnowledgeGraph, entities: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position among the entities, relation and tail of each out-edge."""
    counts = graph.degree(entities)
    edges = np.concatenate([np.arange(graph.offsets[v], graph.offsets[v + 1]) for v in entities])
    return np.repeat(np.arange(len(entities)), counts), graph.relations[edges], graph.tails[edges]


def averaged(owner: np.ndarray, rows: np.ndarray, usable: np.ndarray, fallback: np.ndarray) -> np.ndarray:
    """Mean of each owner's usable rows; the fallback where there is none."""
    counts = np.bincount(owner[usable], minlength=len(fallback))
    total = np.zeros_like(fallback, np.float64)
    np.add.at(total, owner[usable], rows[usable])
    return np.where(counts[:, None] > 0, total / np.maximum(counts, 1)[:, None], fallback)


def initial(rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.05, 0.05, (int(unseen.sum()), rows.shape[1]))


def zero(rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray) -> np.ndarray:
    return np.zeros((int(unseen.sum()), rows.shape[1]))


def mean_of_all(rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray) -> np.ndarray:
    return np.tile(rows[~unseen].mean(0, dtype=np.float64), (int(unseen.sum()), 1))


def mean_of_neighbours(rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray) -> np.ndarray:
    owner, _, tails = edges_of(graph, np.flatnonzero(unseen))
    return averaged(owner, rows[tails], ~unseen[tails], mean_of_all(rows, graph, unseen))


def relation_mean(
    rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray, distinct: bool = False
) -> np.ndarray:
    owner, relations, _ = edges_of(graph, np.flatnonzero(unseen))
    if distinct:
        owner, relations = np.unique(np.stack([owner, relations]), axis=1)
    heads = graph.edge_heads(np.arange(graph.n_edges))
    has = sparse.csr_array(
        (np.ones(len(heads)), (graph.relations, heads)), (graph.n_relations, graph.n_entities)
    )
    has.sum_duplicates()
    has.data[:] = 1
    has = has @ sparse.diags_array((~unseen).astype(float))
    counts = has.sum(1)
    means = (has @ rows) / np.maximum(counts, 1)[:, None]
    return averaged(owner, means[relations], counts[relations] > 0, mean_of_all(rows, graph, unseen))


def distinct_relation_mean(rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray) -> np.ndarray:
    return relation_mean(rows, graph, unseen, distinct=True)


def fact_mean(rows: np.ndarray, graph: KnowledgeGraph, unseen: np.ndarray) -> np.ndarray:
    """For each edge (r, u): the mean of the other entities with that edge; else the relation mean."""
    owner, relations, tails = edges_of(graph, np.flatnonzero(unseen))
    heads = graph.edge_heads(np.arange(graph.n_edges))
    keys = graph.relations.astype(np.int64) * graph.n_entities + graph.tails
    pairs, at = np.unique(keys, return_inverse=True)
    has = sparse.csr_array((~unseen[heads] * 1.0, (at, heads)), (len(pairs), graph.n_entities))
    counts = has.sum(1)
    wanted = np.searchsorted(pairs, relations.astype(np.int64) * graph.n_entities + tails)
    means = (has[wanted] @ rows) / np.maximum(counts[wanted], 1)[:, None]
    return averaged(owner, means, counts[wanted] > 0, relation_mean(rows, graph, unseen))


STATES: dict[str, State] = {
    "initial noise": initial,
    "zero": zero,
    "mean of all": mean_of_all,
    "mean of neighbours": mean_of_neighbours,
    "relation mean": relation_mean,
    "relation mean, each relation once": distinct_relation_mean,
    "fact mean": fact_mean,
}


def chosen_entities(dataset: Dataset, count: int, seed: int) -> np.ndarray:
    """Entities with at least three training facts and a held-out one, drawn by the seed."""
    ends = np.concatenate([dataset.train[:, 0], dataset.train[:, 2]])
    held_out = np.unique(np.concatenate([split[:, [0, 2]] for split in (dataset.valid, dataset.test)]))
    fitting = held_out[np.bincount(ends, minlength=dataset.graph.n_entities)[held_out] >= 3]
    return np.sort(np.random.default_rng(seed).choice(fitting, min(count, len(fitting) // 2), replace=False))


def without(dataset: Dataset, entities: np.ndarray) -> Dataset:
    """The dataset without any fact of these entities."""

    def rest(triples: np.ndarray) -> np.ndarray:
        return triples[~np.isin(triples[:, [0, 2]], entities).any(1)]

    names = dataset.graph.relation_names.names[: dataset.graph.n_forward]
    train = rest(dataset.train)
    graph = KnowledgeGraph.from_ids(train, dataset.graph.entities, list(names))
    return replace(dataset, graph=graph, train=train, valid=rest(dataset.valid), test=rest(dataset.test))


def scores(
    network: PaperNetwork, reasoner: Reasoner, graph: KnowledgeGraph, known: KnownAnswers, asked: dict
) -> dict:
    """MRR and hits of each kind of question."""
    engine = Engine(network, graph, reasoner.config.replace(device="cpu"))
    found = {kind: summarise(rank_queries(engine, known, queries)) for kind, queries in asked.items()}
    engine.close()
    return {
        kind: {
            "mrr": s["realistic"]["mrr"],
            "hits_at_10": s["realistic"]["hits_at_10"],
            "queries": s["queries"],
        }
        for kind, s in found.items()
    }


def compare(reasoner: Reasoner, dataset: Dataset, unseen: np.ndarray, asked: dict, trained: bool) -> dict:
    """Scores of every state, and of the trained embeddings where there are any."""
    network, known = reasoner.engine.model, known_answers(dataset)
    original = network.entities.detach().clone()
    report = {"trained": scores(network, reasoner, dataset.graph, known, asked)} if trained else {}
    for name, state in STATES.items():
        rows = state(original.numpy(), dataset.graph, unseen)
        network.entities.data = original.clone()
        network.entities.data[torch.from_numpy(unseen)] = torch.from_numpy(rows).float()
        report[name] = scores(network, reasoner, dataset.graph, known, asked)
        print(name, report[name], flush=True)
    network.entities.data = original
    return report


def questions(dataset: Dataset, unseen: np.ndarray) -> dict[str, np.ndarray]:
    """Held-out questions about unseen heads, and those an unseen entity answers."""
    queries = np.concatenate([dataset.queries(split) for split in ("valid", "test")])
    return {"head": queries[unseen[queries[:, 0]]], "answer": queries[unseen[queries[:, 2]]]}


def left_out(
    dataset: Dataset, entities: np.ndarray, run: Reasoner, folder: Path, minutes: float | None
) -> Reasoner:
    """A model trained without the entities, read from the folder if it is there already."""
    if not RunFolder(folder).exists():
        rest, config = without(dataset, entities), run.config
        train(RunFolder.create(folder, rest, config), rest, config, max_minutes=minutes, progress=print)
    return Reasoner.load(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--run", type=Path, required=True, help="a run trained on the whole dataset")
    parser.add_argument(
        "--left-out", type=Path, help="folder of the run without the entities; made if not there"
    )
    parser.add_argument("--max-minutes", type=float, help="for that training")
    parser.add_argument("--entities", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="added to this file, by dataset and seed")
    arguments = parser.parse_args()

    dataset, run = load_dataset(arguments.dataset), Reasoner.load(arguments.run)
    entities = chosen_entities(dataset, arguments.entities, arguments.seed)
    unseen = np.zeros(dataset.graph.n_entities, bool)
    unseen[entities] = True
    asked = questions(dataset, unseen)
    report = {"entities": len(entities), "replaced": compare(run, dataset, unseen, asked, trained=True)}
    if arguments.left_out:
        model = left_out(dataset, entities, run, arguments.left_out, arguments.max_minutes)
        report["left out"] = compare(model, dataset, unseen, asked, trained=False)
    if arguments.json:
        before = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
        after = before | {f"{dataset.name}, seed {arguments.seed}": report}
        arguments.json.write_text(json.dumps(after, indent=2) + "\n")


if __name__ == "__main__":
    main()
