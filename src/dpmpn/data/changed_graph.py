"""A graph with more or fewer facts: the same ids, entities that are new after them, edges merged in their order."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph, sorted_unique
from dpmpn.data.inductive import with_relations_of
from dpmpn.data.sources.formats import facts_of
from dpmpn.data.splits import TRAIN, VALID, random_split
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName

Facts = Any
"""Names of head, relation and tail: tuples, the paths of files that can be imported, a data frame, a graph."""

_NEEDS_TRAINING = "a relation the model does not know needs training"


@dataclass(frozen=True)
class Changes:
    """What became of facts that were to be added or removed; a fact and its inverse count as one."""

    added: int
    already_there: int  # were to be added, but the graph stated them
    removed: int
    absent: int  # were to be removed, but the graph did not state them
    new_entities: tuple[str, ...]  # in the order of their ids
    new_relations: tuple[str, ...] = ()  # likewise


def changed_graph(
    graph: KnowledgeGraph, add: Facts = (), remove: Facts = ()
) -> tuple[KnowledgeGraph, Changes]:
    """The graph without some facts and with others, and what was changed; first facts go, then others come."""
    added, removed, entities = _encoded(graph, facts_of(add), facts_of(remove))
    return _changed(graph, added, removed, entities)


def changed_dataset(
    dataset: Dataset, add: Facts = (), remove: Facts = (), relations_may_be_new: bool = False
) -> tuple[Dataset, Changes]:
    """The dataset whose graph and training triples lack some facts and have others.

    The training triples of a task are questions of one relation beside its graph: facts are only taken from them.
    Relations may be new to a model that learnt none; their ids come after those of the others, and before inverses.
    """
    facts, gone = facts_of(add), facts_of(remove)
    new = _new_relations(dataset.graph, facts["relation"]) if relations_may_be_new else ()
    dataset = _with_relations(dataset, new)
    added, removed, entities = _encoded(dataset.graph, facts, gone)
    graph, changes = _changed(dataset.graph, added, removed, entities)
    changes = replace(changes, new_relations=new)
    train = _without_rows(dataset.train, removed, graph)
    if dataset.candidates is None and len(added):
        train = np.concatenate([_without_rows(train, added, graph), added.astype(np.int32)])
    return replace(dataset, graph=graph, train=train), changes


def with_hidden(dataset: Dataset, share: float, seed: int = 0) -> Dataset:
    """The dataset with a share of its training facts hidden from the graph: they are its validation facts now.

    They are drawn at random; each entity and each relation keeps a fact.
    """
    graph = dataset.graph
    split = random_split(dataset.train, graph.n_entities, graph.n_relations, share, 0.0, seed)
    train, hidden = (dataset.train[split.assignment == part] for part in (TRAIN, VALID))
    return replace(dataset, graph=_without_edges(graph, graph.either_way(hidden)), train=train, valid=hidden)


def only_edges(graph: KnowledgeGraph, edges: np.ndarray) -> KnowledgeGraph:
    """The graph of some of the edges, whose ids ascend, with all its entities and relations."""
    per_head = np.bincount(graph.edge_heads(edges), minlength=graph.n_entities)
    return replace(
        graph,
        offsets=np.concatenate([[0], np.cumsum(per_head)]).astype(np.int64),
        relations=graph.relations[edges],
        tails=graph.tails[edges],
    )


def _new_relations(graph: KnowledgeGraph, given: pl.Series) -> tuple[str, ...]:
    """Names that are those of no relation of the graph, in ascending order."""
    known = graph.relation_names
    names = given.unique().sort().to_list()
    return tuple(name for name in names if known.find(name) < 0 and not known.is_ambiguous(name))


def _with_relations(dataset: Dataset, new: tuple[str, ...]) -> Dataset:
    """The dataset with relations more that have no facts yet."""
    if not new:
        return dataset
    graph, names, none = dataset.graph, dataset.graph.relation_names, np.empty((0, 3), np.int64)
    every = [*names.names[: graph.n_forward], *new]
    wider = KnowledgeGraph.from_ids(none, graph.entities, every, graph.n_forward < graph.n_relations)
    if names.labels is not None:
        labels = pl.DataFrame({"id": names.names}, {"id": pl.String}).hstack(names.labels)
        wider = replace(wider, relation_names=wider.relation_names.labelled(labels))
    return with_relations_of(dataset, wider)


def _encoded(
    graph: KnowledgeGraph, added: pl.DataFrame, removed: pl.DataFrame
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Facts to add and to remove as ids, and the names of new entities."""
    names = _entity_names(added)
    ids = _ids_or_new(graph.entities, names, added)
    new = tuple(names.filter(pl.Series(ids < 0)).to_list())
    ids[ids < 0] = graph.n_entities + np.arange(len(new))
    gone = _entity_names(removed)
    return (
        _facts(graph, added, names, ids, _NEEDS_TRAINING),
        _facts(graph, removed, gone, _known_ids(graph.entities, gone, "entity", removed)),
        new,
    )


def _entity_names(facts: pl.DataFrame) -> pl.Series:
    return pl.concat([facts["head"], facts["tail"]]).unique().sort()


def _ids_or_new(entities: Vocabulary, names: pl.Series, facts: pl.DataFrame) -> np.ndarray:
    """Id of each name or label in these facts, -1 where it is neither.

    Unlike a question, a fact is not matched by another spelling of its case: that may well be someone else.
    """
    ids = _exact_ids(entities, names)
    if entities.labels is not None:
        labels = set(entities.labels["name"].drop_nulls())
        for at in np.flatnonzero(ids < 0):
            if names[int(at)] in labels:
                ids[at] = _known_id(entities, names[int(at)], "entity", facts)
    return ids


def _exact_ids(vocabulary: Vocabulary, names: pl.Series) -> np.ndarray:
    # Reading all names of 10^6 takes half a second: not for nothing.
    return vocabulary.ids(names).copy() if len(names) else np.empty(0, np.int64)


def _known_ids(
    vocabulary: Vocabulary,
    names: pl.Series,
    kind: str,
    facts: pl.DataFrame,
    hint: str = "",
    suggested: int | None = None,
) -> np.ndarray:
    """Id of each name, label or other spelling in these facts; others are refused."""
    ids = _exact_ids(vocabulary, names)
    for at in np.flatnonzero(ids < 0):
        ids[at] = _known_id(vocabulary, names[int(at)], kind, facts, hint, suggested)
    return ids


def _known_id(
    vocabulary: Vocabulary,
    name: str,
    kind: str,
    facts: pl.DataFrame,
    hint: str = "",
    suggested: int | None = None,
) -> int:
    """Id of a name in these facts; one that is not known is refused, with near ones among the first `suggested`."""
    try:
        return vocabulary.id(name, kind, suggested)
    except DataError as error:
        columns = ("relation",) if kind == "relation" else ("head", "tail")
        is_here = pl.any_horizontal(pl.col(column) == name for column in columns)
        place = facts.filter(is_here)["place"][0]
        if isinstance(error, UnknownName):
            raise UnknownName(kind, error.name, error.near, hint, place) from error
        raise DataError(f"{place}: {error}") from error


def _facts(
    graph: KnowledgeGraph, facts: pl.DataFrame, names: pl.Series, ids: np.ndarray, hint: str = ""
) -> np.ndarray:
    """Distinct facts as ids, each in the direction whose relation has the smaller id; `ids` are the names'."""
    table = pl.DataFrame({"name": names, "id": ids})
    head, tail = (
        facts.join(table, left_on=end, right_on="name", how="left", maintain_order="left")["id"].to_numpy()
        for end in ("head", "tail")
    )
    relation = _known_ids(graph.relation_names, facts["relation"], "relation", facts, hint, graph.n_forward)
    return _sorted(_canonical(np.stack([head, relation, tail], 1), graph), graph)


def _sorted(triples: np.ndarray, graph: KnowledgeGraph) -> np.ndarray:
    """Triples sorted by head, relation and tail, each once."""
    n_entities = max(graph.n_entities, int(triples[:, [0, 2]].max(initial=-1)) + 1)  # new ones come after
    return np.stack(sorted_unique(triples, n_entities, graph.n_relations), 1)  # n x 3


def _canonical(triples: np.ndarray, graph: KnowledgeGraph) -> np.ndarray:
    """Each triple in the direction whose relation has the smaller id; of added inverses that is the file's."""
    inverse = graph.inverse[triples[:, 1]]
    backward = (inverse >= 0) & (inverse < triples[:, 1])
    flipped = np.stack([triples[:, 2], inverse, triples[:, 0]], 1)
    return np.where(backward[:, None], flipped, triples)


def _changed(
    graph: KnowledgeGraph, added: np.ndarray, removed: np.ndarray, new: tuple[str, ...]
) -> tuple[KnowledgeGraph, Changes]:
    n_removed = int(_stated(graph, removed).sum())
    graph = _without_edges(graph, graph.either_way(removed))
    if new:
        offsets = np.concatenate([graph.offsets, np.full(len(new), graph.n_edges, np.int64)])
        graph = replace(graph, offsets=offsets, entities=graph.entities.extended(new))
    stated = int(_stated(graph, added).sum())
    graph = _with_edges(graph, graph.either_way(added))
    return graph, Changes(len(added) - stated, stated, n_removed, len(removed) - n_removed, new)


def _stated(graph: KnowledgeGraph, facts: np.ndarray) -> np.ndarray:
    return graph.find_edges(*facts.T) >= 0


def _without_edges(graph: KnowledgeGraph, edges: np.ndarray) -> KnowledgeGraph:
    ids = graph.find_edges(*edges.T)
    ids = np.unique(ids[ids >= 0])
    if not len(ids):
        return graph
    fewer = np.bincount(graph.edge_heads(ids), minlength=graph.n_entities)
    return replace(
        graph,
        offsets=graph.offsets - np.concatenate([[0], np.cumsum(fewer)]),
        relations=np.delete(graph.relations, ids),
        tails=np.delete(graph.tails, ids),
    )


def _with_edges(graph: KnowledgeGraph, edges: np.ndarray) -> KnowledgeGraph:
    edges = edges[graph.find_edges(*edges.T) < 0]
    if not len(edges):
        return graph
    edges = _sorted(edges, graph)
    positions = graph.edge_positions(*edges.T)
    more = np.bincount(edges[:, 0], minlength=graph.n_entities)
    return replace(
        graph,
        offsets=graph.offsets + np.concatenate([[0], np.cumsum(more)]),
        relations=np.insert(graph.relations, positions, edges[:, 1]),
        tails=np.insert(graph.tails, positions, edges[:, 2]),
    )


def _without_rows(triples: np.ndarray, facts: np.ndarray, graph: KnowledgeGraph) -> np.ndarray:
    """The triples that are none of the facts, in their order."""
    if not len(facts):
        return triples
    # Most triples are told apart by their head alone: one look each.
    ends = np.zeros(graph.n_entities, bool)
    ends[facts[:, [0, 2]]] = True
    suspects = np.flatnonzero(ends[triples[:, 0]])
    rows = _canonical(np.asarray(triples[suspects], np.int64), graph)
    columns = ["head", "relation", "tail"]
    frames = (pl.DataFrame(part, columns, orient="row") for part in (rows, facts))
    found = next(frames).with_row_index("at").join(next(frames), on=columns, how="semi")
    return np.delete(triples, suspects[found["at"].to_numpy()], axis=0)
