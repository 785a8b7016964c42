"""The knowledge graph: facts as immutable CSR arrays, out-edges sorted by head, relation and tail."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from dpmpn.arguments import typed
from dpmpn.data.fact_provenance import Provenance
from dpmpn.data.names import normal
from dpmpn.data.storage import GraphParts, open_parts, write_parts
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, shown
from dpmpn.files import whole_folder
from dpmpn.kernels import Bools, Floats, Ints, kernel

INVERSE_SUFFIX = "_inv"
_JUDGED = 1000  # edges of a relation by which it is judged


class Runs(NamedTuple):
    """The edges of each (entity, relation), which stand next to each other: one run per pair, in the edges' order."""

    offsets: np.ndarray  # int64, n_entities + 1: the runs of v are offsets[v]:offsets[v+1]
    relations: np.ndarray  # like the graph's, n_runs; ascending within an entity
    starts: np.ndarray  # int64, n_runs + 1: the edges of run i are starts[i]:starts[i+1]

    @property
    def lengths(self) -> np.ndarray:
        """Number of edges of each run."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Facts, their inverses and the names; self-loops are a relation id, never stored edges."""

    offsets: np.ndarray  # int64, n_entities + 1: out-edges of v are offsets[v]:offsets[v+1]
    relations: np.ndarray  # int16 where it fits, else int32; n_edges
    tails: np.ndarray  # int32, n_edges; edges sorted by (head, relation, tail), unique
    inverse: np.ndarray  # int32, n_relations: id of the inverse relation, -1 if the graph has none
    entities: Vocabulary
    relation_names: Vocabulary  # n_relations names, without the self-loop
    provenance: Provenance | None = None  # what was said of facts, also of those that are held out

    def __post_init__(self) -> None:
        for array in (self.offsets, self.relations, self.tails, self.inverse):
            array.flags.writeable = False  # as of a saved graph, which is mapped

    @classmethod
    def from_ids(
        cls,
        triples: np.ndarray,  # n x 3 (head, relation, tail)
        entities: int | Sequence[str] | Vocabulary,
        relations: int | Sequence[str] | Vocabulary,
        add_inverses: bool = True,
    ) -> "KnowledgeGraph":
        """Build a graph from ids; with `add_inverses` the inverse of relation r is r + n_forward."""
        entities, relations = _vocabulary(entities), _vocabulary(relations)
        triples = _checked_triples(triples, len(entities), len(relations))
        if add_inverses:
            triples = _with_inverses(triples, len(relations))
            relations, inverse = _doubled(relations)
        else:
            inverse = _inverse_by_name(relations)
        heads, edge_relations, tails = sorted_unique(triples, len(entities), len(relations))
        offsets = np.zeros(len(entities) + 1, np.int64)
        np.cumsum(np.bincount(heads, minlength=len(entities)), out=offsets[1:])
        relation_type = np.int16 if len(relations) <= np.iinfo(np.int16).max else np.int32
        edges = edge_relations.astype(relation_type), tails.astype(np.int32)
        return cls(offsets, *edges, inverse, entities, relations)

    @classmethod
    @typed
    def from_tuples(
        cls, triples: Iterable[tuple[str, str, str]], add_inverses: bool = True
    ) -> "KnowledgeGraph":
        """Build a graph from (head, relation, tail) names; ids follow the sorted names."""
        named = named_triples("triples", triples)
        facts = [(normal(head), normal(relation), normal(tail)) for head, relation, tail in named]
        entities = Vocabulary(sorted({h for h, _, _ in facts} | {t for _, _, t in facts}))
        relations = Vocabulary(sorted({r for _, r, _ in facts}))
        ids = [(entities.id(h), relations.id(r, "relation"), entities.id(t)) for h, r, t in facts]
        return cls.from_ids(np.array(ids, np.int64).reshape(-1, 3), entities, relations, add_inverses)

    @classmethod
    @typed
    def open(cls, folder: str | Path) -> "KnowledgeGraph":
        """Open a saved graph, memory-mapped."""
        return cls(*open_parts(Path(folder)))

    def in_memory(self) -> "KnowledgeGraph":
        """The same graph without its files, which may then be changed or go."""
        arrays = {name: getattr(self, name).copy() for name in ("offsets", "relations", "tails", "inverse")}
        names = self.entities.in_memory(), self.relation_names.in_memory()
        said = None if self.provenance is None else self.provenance.in_memory()
        return replace(self, **arrays, entities=names[0], relation_names=names[1], provenance=said)

    @typed
    def save(self, folder: str | Path) -> None:
        """Save the graph into a new folder, whole or not at all."""
        with whole_folder(Path(folder)) as temporary:
            self.write(temporary)

    def write(self, folder: Path) -> None:
        """Write the files of the graph into a folder that is there."""
        write_parts(GraphParts(*(getattr(self, part) for part in GraphParts._fields)), folder)

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = (np.array(x) for x in (self.offsets, self.relations, self.tails, self.inverse))
        said = None if self.provenance is None else self.provenance.in_memory()
        return KnowledgeGraph, (*arrays, self.entities, self.relation_names, said)

    @typed
    def labelled(self, frame: pl.DataFrame) -> "KnowledgeGraph":
        """The graph with the labels of its entities and relations, from a frame of all (columns of LABELS)."""
        names = self.entities.labelled(frame), self.relation_names.labelled(frame)
        return replace(self, entities=names[0], relation_names=names[1])

    @property
    def n_entities(self) -> int:
        """Number of entities, those without edges included."""
        return len(self.offsets) - 1

    @property
    def n_relations(self) -> int:
        """Number of relations, inverses included, self-loop excluded."""
        return len(self.inverse)

    @property
    def n_edges(self) -> int:
        """Number of stored edges, inverses included."""
        return len(self.tails)

    @property
    def self_loop(self) -> int:
        """Id of the self-loop relation, which is not stored as edges."""
        return self.n_relations

    @cached_property
    def n_forward(self) -> int:
        """Number of relations of the file; those from this id on are their added inverses, in order."""
        half = self.n_relations // 2
        doubled = 2 * half == self.n_relations and np.array_equal(self.inverse, _doubled_inverse(half))
        return half if doubled else self.n_relations

    @cached_property
    def is_inverse(self) -> np.ndarray:
        """For each relation whether it is an inverse, added here or, by its name, in the file."""
        if self.n_forward < self.n_relations:
            return np.arange(self.n_relations) >= self.n_forward
        names = list(self.relation_names)
        return np.array(
            [
                other >= 0 and name == names[other] + INVERSE_SUFFIX
                for name, other in zip(names, self.inverse.tolist(), strict=True)
            ],
            bool,
        )

    @cached_property
    def runs(self) -> Runs:
        """The edges grouped by (entity, relation); collected at the first call, in 0.35 s for 10^7 edges."""
        is_first = np.ones(self.n_edges, bool)  # of its run
        np.not_equal(self.relations[1:], self.relations[:-1], out=is_first[1:])
        is_first[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
        first = np.flatnonzero(is_first)
        offsets = np.searchsorted(first, self.offsets)
        runs = Runs(offsets, self.relations[first], np.append(first, self.n_edges))
        for array in runs:
            array.flags.writeable = False
        return runs

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.n_entities} entities, {self.n_relations} relations, {self.n_edges} edges)"
        )

    def degree(self, entity: int | np.ndarray) -> int | np.ndarray:
        """Number of out-edges of an entity, or of each of an array of entities."""
        degrees: int | np.ndarray = self.offsets[np.add(entity, 1)] - self.offsets[entity]
        return degrees

    def all_heads(self) -> np.ndarray:
        """Head of every edge, in their order: int32, n_edges."""
        return np.repeat(np.arange(self.n_entities, dtype=np.int32), np.diff(self.offsets))

    def edge_heads(self, edge_ids: np.ndarray) -> np.ndarray:
        """Head of each edge."""
        return np.searchsorted(self.offsets, edge_ids, side="right") - 1

    def are_swapped(self, head: str, relation: str) -> bool:
        """Whether what is given as the head of a question is a relation alone, and as its relation an entity alone."""
        entities, relations = self.entities, self.relation_names
        if entities.find(head) >= 0 or relations.find(relation) >= 0:
            return False
        return relations.find(head) >= 0 and entities.find(relation) >= 0

    def has_edge(self, head: int, relation: int, tail: int) -> bool:
        """Whether the graph holds this edge."""
        return bool(self.find_edges(np.array([head]), np.array([relation]), np.array([tail]))[0] >= 0)

    def find_edges(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Edge id of each (head, relation, tail), -1 where there is none; bisects the head's edges."""
        heads, relations, tails = np.broadcast_arrays(*(np.asarray(a) for a in (heads, relations, tails)))
        low = self.edge_positions(heads, relations, tails)
        in_range = low < self.offsets[np.add(heads, 1)]
        at = np.where(in_range, low, 0)
        if not in_range.any():
            return np.full(low.shape, -1, np.int64)
        found = in_range & (self.relations[at] == relations) & (self.tails[at] == tails)
        return np.where(found, low, -1)

    def have(self, entities: np.ndarray, relations: np.ndarray | int) -> np.ndarray:
        """Whether each entity has an edge of each relation: bools."""
        return np.asarray(self.n_edges_of(entities, relations) > 0)

    def n_edges_of(self, entities: np.ndarray, relations: np.ndarray | int) -> np.ndarray:
        """How many edges of each relation each entity has: int64."""
        entities, relations = np.broadcast_arrays(np.asarray(entities), np.asarray(relations, np.int64))
        before_any_tail = np.full(entities.shape, -1)
        first, after = (self.edge_positions(entities, r, before_any_tail) for r in (relations, relations + 1))
        return np.asarray(after - first)

    def heads_of(self, relations: np.ndarray) -> np.ndarray:
        """The entities with an edge of one of these relations, ascending."""
        edges = np.flatnonzero(np.logical_or.reduce([self.relations == relation for relation in relations]))
        heads = self.edge_heads(edges)
        return np.asarray(heads[np.flatnonzero(np.diff(heads, prepend=-1))])

    @cached_property
    def both_ways(self) -> np.ndarray:
        """Of each relation, the part of its edges whose ends are joined by one the other way round: float64.

        It is judged by the first thousand of its edges: 10^7 of all relations take 0.1 s.
        """
        found = _reversed(self.offsets, self.relations, self.tails, self.n_relations, _JUDGED)
        found.flags.writeable = False
        return found

    def joined(self, entities: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Whether an edge joins each entity to the one beside it, among those of the one that has fewer: bools."""
        return _joined(entities, others, self.offsets, self.tails)

    def edge_positions(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Where each (head, relation, tail) stands or would stand among the head's edges."""
        low: np.ndarray = self.offsets[heads]
        high = self.offsets[np.add(heads, 1)]
        while (open_ := low < high).any():
            middle = np.where(open_, (low + high) // 2, 0)
            before = open_ & self._precedes(middle, relations, tails)
            low = np.where(before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)
        return low

    def either_way(self, triples: np.ndarray) -> np.ndarray:
        """The triples (n x 3), and their inverses where the relation has one."""
        backward = np.stack([triples[:, 2], self.inverse[triples[:, 1]], triples[:, 0]], 1)
        return np.concatenate([triples, backward[backward[:, 1] >= 0]])

    def _precedes(self, edge_ids: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        edge_relations = self.relations[edge_ids]
        smaller_tail = self.tails[edge_ids] < tails
        before: np.ndarray = (edge_relations < relations) | ((edge_relations == relations) & smaller_tail)
        return before


@kernel
def _reversed(offsets: Ints, relations: Ints, tails: Ints, n_relations: int, most: int) -> Floats:
    """Of each relation, the part of its first edges that are there in the other direction as well."""
    looked, found = np.zeros(n_relations), np.zeros(n_relations)
    for head in range(len(offsets) - 1):
        for edge in range(offsets[head], offsets[head + 1]):
            relation, tail = relations[edge], tails[edge]
            if looked[relation] == most:
                continue
            looked[relation] += 1
            low, high = offsets[tail], offsets[tail + 1]
            while low < high:
                middle = (low + high) // 2
                is_before = relations[middle] < relation or (
                    relations[middle] == relation and tails[middle] < head
                )
                if is_before:
                    low = middle + 1
                else:
                    high = middle
            if low < offsets[tail + 1] and relations[low] == relation and tails[low] == head:
                found[relation] += 1
    return found / np.maximum(looked, 1)


@kernel
def _joined(entities: Ints, others: Ints, offsets: Ints, tails: Ints) -> Bools:
    found = np.zeros(len(entities), np.bool_)
    for i in range(len(entities)):
        few, many = entities[i], others[i]
        if offsets[many + 1] - offsets[many] < offsets[few + 1] - offsets[few]:
            few, many = many, few
        for at in range(offsets[few], offsets[few + 1]):
            if tails[at] == many:
                found[i] = True
                break
    return found


def named_triples(what: str, triples: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Triples of names, if they are."""
    rows = list(triples)
    for i, row in enumerate(rows):
        try:
            names = list(row)
        except TypeError:
            names = []
        if len(names) != 3 or not all(isinstance(name, str) and name for name in names):
            raise DataError(
                f"{what}, triple {i}: {shown(row)} is not (head, relation, tail) of non-empty names"
            )
    return rows


def _vocabulary(names: int | Sequence[str] | Vocabulary) -> Vocabulary:
    if isinstance(names, Vocabulary):
        return names
    return Vocabulary.numbered(names) if isinstance(names, int) else Vocabulary(names)


def _checked_triples(triples: np.ndarray, n_entities: int, n_relations: int) -> np.ndarray:
    triples = np.asarray(triples)
    if triples.ndim != 2 or triples.shape[1] != 3 or not np.issubdtype(triples.dtype, np.integer):
        raise DataError(f"triples must be integers, n x 3; got {triples.dtype} of shape {triples.shape}")
    if n_entities > np.iinfo(np.int32).max:
        raise DataError(f"{n_entities} entities are more than a graph can hold (2,147,483,647)")
    limits = (("head", 0, n_entities), ("relation", 1, n_relations), ("tail", 2, n_entities))
    for what, column, limit in limits:
        wrong = np.flatnonzero((triples[:, column] < 0) | (triples[:, column] >= limit))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(f"triple {row}: {what} id {triples[row, column]} is outside 0..{limit - 1}")
    return triples


def _with_inverses(triples: np.ndarray, n_forward: int) -> np.ndarray:
    backward = triples[:, ::-1].astype(np.int64)  # (tail, relation, head)
    backward[:, 1] += n_forward
    return np.concatenate([triples, backward])  # 2n x 3


def _doubled(relations: Vocabulary) -> tuple[Vocabulary, np.ndarray]:
    """The relations followed by their inverses, and who is whose inverse."""
    taken, inverses = set(relations.names), []
    for name in relations:
        inverse = name + INVERSE_SUFFIX
        while inverse in taken:  # a relation of the user's own has this name
            inverse += " (inverse)"
        taken.add(inverse)
        inverses.append(inverse)
    return Vocabulary([*relations.names, *inverses]), _doubled_inverse(len(relations))


def _doubled_inverse(n_forward: int) -> np.ndarray:
    forward = np.arange(n_forward, dtype=np.int32)
    return np.concatenate([forward + n_forward, forward]).astype(np.int32)


def _inverse_by_name(relations: Vocabulary) -> np.ndarray:
    inverse = np.full(len(relations), -1, np.int32)
    for relation, name in enumerate(relations):
        if name + INVERSE_SUFFIX in relations:
            other = relations.id(name + INVERSE_SUFFIX, "relation")
            inverse[relation], inverse[other] = other, relation
    return inverse


def sorted_unique(
    triples: np.ndarray, n_entities: int, n_relations: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heads, relations and tails sorted by (head, relation, tail), each triple once."""
    if n_entities * n_relations * n_entities > np.iinfo(np.int64).max:
        return _sorted_unique_wide(triples)
    # One int64 key a triple: 5 million sort in 0.5 s, by lexsort on three columns in 3.7 s.
    key = _keys(triples, n_entities, n_relations)
    key.sort()
    key = key[np.diff(key, prepend=-1) != 0]
    pair, tail = np.divmod(key, max(n_entities, 1))
    head, relation = np.divmod(pair, max(n_relations, 1))
    return head, relation, tail


def first_of_each(triples: np.ndarray, n_entities: int, n_relations: int) -> np.ndarray:
    """The triples (n x 3), each once, where it stands first."""
    if n_entities * n_relations * n_entities > np.iinfo(np.int64).max:
        return np.ascontiguousarray(
            pl.DataFrame(triples, orient="row").unique(maintain_order=True).to_numpy()
        )
    # By keys 5 million take 0.8 s, as rows of a frame 4 s.
    first = pl.Series(_keys(triples, n_entities, n_relations)).arg_unique().to_numpy()
    return triples if len(first) == len(triples) else triples[np.sort(first)]


def _keys(triples: np.ndarray, n_entities: int, n_relations: int) -> np.ndarray:
    head, relation, tail = (triples[:, i].astype(np.int64) for i in range(3))
    return (head * n_relations + relation) * n_entities + tail


def _sorted_unique_wide(triples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0]))
    triples = triples[order]
    first = np.ones(len(triples), bool)
    first[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return triples[first, 0], triples[first, 1], triples[first, 2]
