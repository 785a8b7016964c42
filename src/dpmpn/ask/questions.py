"""Which <head, relation, ?> questions are worth asking: a long list that is never made, only looked into."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.errors import ConfigError, DataError

Heads = Literal["like", "stated", "all"]
GROUPS = (
    "<head, relation, ?> without a stated answer",
    "<head, relation, ?> with a stated answer",
    "<?, relation, tail> without a stated answer",
    "<?, relation, tail> with a stated answer",
)
"""What calibration tells apart: a relation that has its answer often has no other."""
FIRST_HEAD_GROUP = 2  # from here on, heads are asked for
_STEPS = 1000  # strengths are told apart in thousandths


@dataclass(frozen=True)
class Asking:
    """How the graph is asked; calibration is measured for one way of asking and holds for it alone."""

    heads: Heads = "like"
    both_directions: bool = False  # <?, relation, tail> questions, too
    least_share: float = 0.2  # how many of the entities with a relation must have the asked one
    answers: int = 10  # new answers looked at for each question

    def __post_init__(self) -> None:
        if self.heads not in get_args(Heads):
            raise ConfigError(f"'heads' must be 'like', 'stated' or 'all', not '{self.heads}'")
        if self.answers < 1:
            raise ConfigError(f"'answers' must be at least 1, not {self.answers}")


@dataclass(frozen=True, eq=False)
class QuestionList:
    """Some questions: an entity, a relation (an inverse one asks for heads) and an index in `GROUPS` each."""

    heads: np.ndarray  # int32
    relations: np.ndarray  # int32
    groups: np.ndarray  # int8

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, rows: slice | np.ndarray) -> "QuestionList":
        return QuestionList(self.heads[rows], self.relations[rows], self.groups[rows])

    @classmethod
    def joined(cls, pieces: "Sequence[QuestionList]") -> "QuestionList":
        """The questions of several lists, one after the other."""
        empty = cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8))
        columns = ([getattr(piece, field.name) for piece in (empty, *pieces)] for field in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))


class Questions:
    """All questions in the order of relation and entity, counted when made and found by their number.

    Only one relation's entities are in memory at a time, whatever the number of questions.
    """

    def __init__(
        self,
        dataset: Dataset,
        asking: Asking = Asking(),  # noqa: B008 (frozen)
        relations: Sequence[int] | None = None,  # forward ids; all of them if None
        head_type: str | None = None,
        max_questions: int | None = None,
        known: Sequence[str] = SPLITS,  # whose facts count as stated, with those of the graph
    ) -> None:
        self.asking = asking
        self._graph = dataset.graph
        self._having = EntityRelations.of(dataset, known)
        self._relations = _asked_relations(dataset, asking, relations)
        # Which entities are of the type, None if it does not matter.
        self.of_type = None if head_type is None else _type_mask(dataset, head_type)
        self._last: tuple[int, QuestionList] | None = None
        self._cut: tuple[int, float] | None = None  # strength step, and the part of it that is asked
        self._count()
        self.left_out = 0
        if max_questions is not None and self.total > max_questions:
            found = self.total
            self._cut = self._budget(max_questions)
            self._count()
            self.left_out = found - self.total

    @property
    def total(self) -> int:
        """Number of questions."""
        return int(self._offsets[-1])

    def part(self, start: int, stop: int) -> QuestionList:
        """The questions with the numbers start to stop."""
        first, last = np.searchsorted(self._offsets, [start, max(stop - 1, start)], side="right") - 1
        pieces = []
        for index in range(first, min(last + 1, len(self._relations))):
            offset = self._offsets[index]
            pieces.append(self._of_relation(index)[max(start - offset, 0) : max(stop - offset, 0)])
        return QuestionList.joined(pieces)

    def each_relation(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Of each relation the entities it is asked of, ascending, and whether an answer is stated for each."""
        for index, relation in enumerate(self._relations.tolist()):
            questions = self._of_relation(index)
            yield relation, questions.heads, questions.groups % FIRST_HEAD_GROUP > 0

    def _of_relation(self, index: int) -> QuestionList:
        """All questions of one relation; the last one's are kept, as parts follow each other."""
        if self._last is None or self._last[0] != index:
            self._last = index, self._made(index)
        return self._last[1]

    def _made(self, index: int) -> QuestionList:
        relation = int(self._relations[index])
        entities, strength = self._entities(index)
        if self._cut is not None:
            entities = entities[self._within_budget(strength)]
        stated = np.isin(entities, self._having.having(relation))
        groups = stated.astype(np.int8) + np.int8(FIRST_HEAD_GROUP * self._asks_for_heads(index))
        return QuestionList(entities.astype(np.int32), np.full(len(entities), relation, np.int32), groups)

    def _entities(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """The entities to ask a relation of, ascending, and for each how much speaks for an answer.

        An entity with a stated fact counts as likely to have another as the relation's entities are to have
        several; any other as its relations go together with the asked one.
        """
        having, relation = self._having, int(self._relations[index])
        strength = np.full(self._graph.n_entities, -1.0, np.float32)
        if self.asking.heads == "all":
            strength[:] = 0
        if self.asking.heads != "stated":
            shares = having.shares(relation)
            like = np.flatnonzero(shares >= self.asking.least_share)
            for other in like[np.argsort(shares[like], kind="stable")]:  # the strongest is written last
                strength[having.having(other)] = shares[other]
        strength[having.having(relation)] = having.share_with_several(relation)
        if self.of_type is not None and not self._asks_for_heads(index):
            strength[~self.of_type] = -1
        strength[np.diff(self._graph.offsets) == 0] = -1  # attention cannot leave such an entity
        entities = np.flatnonzero(strength >= 0)
        return entities, strength[entities]

    def _asks_for_heads(self, index: int) -> bool:
        return self.asking.both_directions and int(self._relations[index]) >= self._graph.n_forward

    def _count(self) -> None:
        """Count the questions of each relation and group."""
        self._last = None
        counts = [
            np.bincount(made.groups, minlength=len(GROUPS))
            for made in map(self._of_relation, range(len(self._relations)))
        ]
        self._counts = np.array(counts, np.int64).reshape(-1, len(GROUPS))
        self._offsets = np.concatenate([[0], np.cumsum(self._counts.sum(axis=1))])  # relations + 1

    def _budget(self, max_questions: int) -> tuple[int, float]:
        """The strength step down to which all questions fit, and the part of that step that fits, too."""
        steps = np.zeros(_STEPS + 1, np.int64)
        for index in range(len(self._relations)):
            steps += np.bincount(_step(self._entities(index)[1]), minlength=_STEPS + 1)
        stronger = np.cumsum(steps[::-1])[::-1]  # questions of a step and above
        step = int(np.flatnonzero(stronger > max_questions)[-1])
        above = stronger[step] - steps[step]
        return step, float((max_questions - above) / steps[step])

    def _within_budget(self, strength: np.ndarray) -> np.ndarray:
        """Rows of the entities that are asked: the stronger ones, and evenly some of the last step."""
        step, fraction = self._cut  # type: ignore[misc]
        at = np.flatnonzero(_step(strength) == step)
        n_taken = int(len(at) * fraction)
        taken = at[np.arange(n_taken) * len(at) // max(n_taken, 1)]
        return np.sort(np.concatenate([np.flatnonzero(_step(strength) > step), taken]))


def _step(strength: np.ndarray) -> np.ndarray:
    return (strength * _STEPS).astype(np.int64)


def check_questions(
    dataset: Dataset, asking: Asking, relations: Sequence[int] | None, head_type: str | None
) -> None:
    """Refuse at once what `Questions` would refuse."""
    _asked_relations(dataset, asking, relations)
    if head_type is not None:
        dataset.graph.entities.of_type(head_type)


def _asked_relations(dataset: Dataset, asking: Asking, relations: Sequence[int] | None) -> np.ndarray:
    """Ids of the relations to ask, ascending; of a task only the one its model was trained on."""
    graph = dataset.graph
    if dataset.both_directions:
        asked = np.arange(graph.n_forward) if relations is None else np.unique(relations)
        if len(asked) and asked[-1] >= graph.n_forward:
            name = graph.relation_names.name(int(asked[-1]))
            raise DataError(f"'{name}' is an inverse relation; name the relation itself")
        return np.concatenate([asked, graph.inverse[asked]]) if asking.both_directions else asked
    if asking.both_directions:
        raise ConfigError("this model was trained to ask for tails only; leave out --both-directions")
    trained = np.unique(dataset.train[:, 1])
    strange = np.setdiff1d([] if relations is None else list(relations), trained)
    if len(strange):
        name = graph.relation_names.name(int(strange[0]))
        raise DataError(f"this model was not trained to answer '{name}'; leave out --relation {name}")
    return trained if relations is None else np.unique(relations)


def _type_mask(dataset: Dataset, head_type: str) -> np.ndarray:
    mask = np.zeros(dataset.graph.n_entities, bool)
    mask[dataset.graph.entities.of_type(head_type)] = True
    return mask


@dataclass(frozen=True, eq=False)
class EntityRelations:
    """The distinct (entity, relation) pairs of known facts, inverse ones included, in both orders."""

    offsets: np.ndarray  # int64, entities + 1: those of entity v are relations[offsets[v]:offsets[v+1]]
    relations: np.ndarray  # int32, pairs, ascending within an entity
    entity_offsets: np.ndarray  # int64, relations + 1: where the entities of a relation are
    entities: np.ndarray  # int32, pairs, ascending within a relation
    n_several: np.ndarray  # int64, relations: how many entities have more than one fact of it

    @classmethod
    def of(cls, dataset: Dataset, known: Sequence[str]) -> "EntityRelations":
        """Collect the pairs of the graph and of the facts of some splits, in one pass over the sorted edges."""
        graph = dataset.graph
        n_entities, n_relations = graph.n_entities, graph.n_relations
        heads = np.repeat(np.arange(n_entities), np.diff(graph.offsets))
        keys = [_pair_keys(np.stack([heads, graph.relations], 1), n_relations)]  # ascending, as edges are
        for triples in map(dataset.queries, known):
            keys.append(_pair_keys(triples[graph.find_edges(*triples.T) < 0], n_relations))
        joined = np.sort(np.concatenate(keys), kind="stable")  # nearly sorted already
        first = np.flatnonzero(np.diff(joined, prepend=-1))
        several = np.diff(first, append=len(joined)) > 1
        owner, relation = np.divmod(joined[first], max(n_relations, 1))
        by_relation = np.argsort(relation, kind="stable")
        return cls(
            _offsets(owner, n_entities),
            relation.astype(np.int32),
            _offsets(relation, n_relations),
            owner[by_relation].astype(np.int32),
            np.bincount(relation[several], minlength=n_relations),
        )

    def having(self, relation: int) -> np.ndarray:
        """The entities that have a fact of a relation, ascending."""
        return self.entities[self.entity_offsets[relation] : self.entity_offsets[relation + 1]]

    def shares(self, relation: int) -> np.ndarray:
        """For each relation s, the share of the entities with s that have this relation, too."""
        having = self.having(relation)
        counts = self.offsets[having + 1] - self.offsets[having]
        starts = np.repeat(self.offsets[having] - np.cumsum(counts) + counts, counts)
        n_having = np.diff(self.entity_offsets)
        together = np.bincount(self.relations[starts + np.arange(counts.sum())], minlength=len(n_having))
        return together / np.maximum(n_having, 1)

    def share_with_several(self, relation: int) -> float:
        """The share of the entities with a relation that have more than one fact of it."""
        return float(self.n_several[relation] / max(len(self.having(relation)), 1))


def _pair_keys(pairs: np.ndarray, n_relations: int) -> np.ndarray:
    """(entity, relation) pairs as one number each, in the same order."""
    keys: np.ndarray = pairs[:, 0].astype(np.int64) * n_relations + pairs[:, 1]
    return keys


def _offsets(sorted_or_not: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_or_not, minlength=n))]).astype(np.int64)
