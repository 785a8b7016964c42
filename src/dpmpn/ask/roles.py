"""Which entities fit a relation: those that have it, and those that are like them.

An entity is like those with a relation if it has some relation s, in either direction, and enough of the entities with
s have the other relation, too. It is the rule by which missing facts are looked for (`questions`), here for a few
entities.
"""

from functools import cached_property

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.kernels import Floats, Ints, kernel
from dpmpn.wording import one_line

LEAST_SHARE = 0.2  # of the entities with s: below, an answer does not fit
_HARDLY = 0.01  # below, a question may make no sense
_EDGES = 1_000_000  # looked through: of a larger graph those of evenly spaced entities
_MOST = 50  # relations s, those with the highest shares


class Roles:
    """Looks up which relations go together in a graph, once for each relation asked."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._shares: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def fit(self, entities: np.ndarray, relation: int, least_share: float = LEAST_SHARE) -> np.ndarray:
        """Whether each entity has a relation or is like those that do; all fit a relation without facts."""
        shares = self._shares_of(relation)
        if shares is None:
            return np.ones(len(entities), bool)
        highest = _highest_value(shares, least_share, entities, self._graph.offsets, self._graph.relations)
        return np.asarray(highest >= least_share)

    def likeness(self, entities: np.ndarray, relations: np.ndarray) -> np.ndarray:
        """The highest share of any relation that each entity has with the relation beside it; 1 if it has that one."""
        found = np.zeros(len(entities))
        for relation in np.unique(relations).tolist():
            own, shares = np.flatnonzero(relations == relation), self._shares_of(relation)
            if shares is not None:
                values = _highest_value(
                    shares, 1.0, entities[own], self._graph.offsets, self._graph.relations
                )
                found[own] = values
        return found

    def sensible(self, heads: np.ndarray, relations: np.ndarray) -> np.ndarray:
        """Whether anything like each head has the relation that it is asked for: bools, one a question."""
        found = np.asarray(self._graph.degree(heads) == 0)  # of such nothing is known
        for relation in np.unique(relations).tolist():
            own = np.flatnonzero(~found & (relations == relation))
            found[own] = self.fit(heads[own], relation, _HARDLY)
        return found

    def warning(self, head: int, relation: int) -> tuple[str, ...]:
        """A sentence where a question makes little sense."""
        graph = self._graph
        if self.sensible(np.array([head]), np.array([relation]))[0]:
            return ()
        backwards = bool(graph.is_inverse[relation])
        asked = int(graph.inverse[relation]) if backwards else relation
        name, label = graph.entities.label(head), graph.relation_names.label(asked)
        end = "tail" if backwards else "head"
        return (
            f"no entity similar to '{one_line(name)}' is the {end} of any '{one_line(label)}' fact in this graph, so "
            "the question may have no answer at all, and probabilities are unknown",
        )

    def _shares_of(self, relation: int) -> np.ndarray | None:
        """Of the entities with each relation, the share that has this one, too; None of one without facts."""
        relations, shares = self._going_together(relation)
        if not len(relations):
            return None
        of_all = np.zeros(self._graph.n_relations)
        of_all[relations] = shares
        of_all[relation] = 1
        return of_all

    def _going_together(self, relation: int) -> tuple[np.ndarray, np.ndarray]:
        """Relations s, and how many of the entities with each have this relation, too; the highest shares first."""
        if relation not in self._shares:
            entity, relations, n_entities = self._pairs
            own = np.zeros(int(entity.max(initial=-1)) + 1, bool)
            own[entity[relations == relation]] = True
            together = np.bincount(relations[own[entity]], minlength=len(n_entities))
            shares = together / np.maximum(n_entities, 1)
            best = np.argsort(-shares, kind="stable")[:_MOST]
            best = best[shares[best] > 0]
            self._shares[relation] = best, shares[best]
        return self._shares[relation]

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct pairs of an entity and a relation, and how many entities have each relation."""
        graph = self._graph
        step = max(-(-len(graph.relations) // _EDGES), 1)
        entities = np.arange(0, graph.n_entities, step)
        counts = np.asarray(graph.degree(entities))
        starts = np.repeat(graph.offsets[entities] - (np.cumsum(counts) - counts), counts)
        relations = graph.relations[starts + np.arange(counts.sum())]
        owner = np.repeat(np.arange(len(entities)), counts)
        first = (np.diff(relations, prepend=-1) != 0) | (np.diff(owner, prepend=-1) != 0)
        return owner[first], relations[first], np.bincount(relations[first], minlength=graph.n_relations)


@kernel
def _highest_value(values: Floats, enough: float, entities: Ints, offsets: Ints, relations: Ints) -> Floats:
    """The highest value of the relations that each entity has, 0 without any; no further once it is enough.

    Edges of an entity come by relation. Relation by relation with `KnowledgeGraph.have`, this took a third of the time
    of looking for missing facts.
    """
    found = np.zeros(len(entities))
    for i in range(len(entities)):
        at, stop = offsets[entities[i]], offsets[entities[i] + 1]
        while at < stop and found[i] < enough:
            relation, step = relations[at], 1
            found[i] = max(found[i], values[relation])
            # To the first edge of the next relation: hubs have thousands of edges and a few relations.
            while at + step < stop and relations[at + step] == relation:
                at, step = at + step, step * 2
            while step > 0:
                if at + step < stop and relations[at + step] == relation:
                    at += step
                step //= 2
            at += 1
    return found
