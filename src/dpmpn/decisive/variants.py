"""One question asked again on changed graphs, many of them in a batch."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.ask.core import KNOWN, Answers
from dpmpn.ask.new_answers import fitting
from dpmpn.data.changed_graph import only_edges
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.engine import Engine
from dpmpn.explain.decisive import Outcome
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import EdgeIds

if TYPE_CHECKING:
    from dpmpn.reasoner.asked_model import AskedModel

Facts = tuple[EdgeIds, ...]
_TOGETHER = 64  # variants in a batch: more are no quicker, and each has profiles and states of its own

_MOST_VALUES = 1 << 24  # probabilities of all entities, over the variants of a batch


class Spent(Exception):
    """As many questions were asked as were allowed."""


class Variants:
    """A question and one of its answers, on the graph with some facts fewer or with some alone.

    Where the graph states the answer, that fact is hidden throughout. Who competes with the answer is decided on the
    graph as it is: entities that fit, and are not stated themselves.
    """

    def __init__(self, asked: "AskedModel", head: int, relation: int, answer: int, most: int) -> None:
        self.asked, self.graph, self.engine = asked, asked.graph, asked.engine_beside
        self.head, self.relation, self.answer = head, relation, answer
        self.questions, self.most = 0, most
        stated = self.graph.find_edges(*np.array([[head], [relation], [answer]])) >= 0
        self.itself = facts_among(self.graph, np.array([[head, relation, answer]])[stated])
        self._rivals = np.full(
            self.graph.n_entities, -1, np.int8
        )  # whether each is one, -1 where nobody looked yet
        self._edges: dict[EdgeIds, np.ndarray] = {}
        self._fits = bool(self._are_fitting(np.array([answer]))[0])
        self._rivals[answer] = 1

    def without(self, sets: Sequence[Facts]) -> list[Outcome]:
        """What becomes of the answer without each set of facts."""
        return self._on(self.engine, [self._hidden(facts) for facts in sets])

    def alone(self, sets: Sequence[Facts]) -> list[Outcome]:
        """What becomes of it on a graph of each set alone: that of all of them, without what a set does not have."""
        pool = self._edges_of({fact for facts in sets for fact in facts})
        hidden = [np.flatnonzero(~np.isin(pool, self._edges_of(facts))) for facts in sets]
        return self._on(self.engine.beside(only_edges(self.graph, pool)), hidden)

    def flow_without(self, facts: Facts) -> AnswerFlow:
        """How attention came to the answer without some facts."""
        self._count(1)
        batch = self.engine.without_each(self.head, self.relation, [self._hidden(facts)])
        _, trace = self.engine.trace(batch)
        return AnswerFlow.to(QueryFlow.of(trace), self.answer)

    def on_changed_graph(self, facts: Facts) -> Outcome:
        """The same as `without`, of a single set, by the way that any change of the graph takes."""
        graph, removed = self.graph, [*facts, *self.itself]
        entity, relation = graph.entities.name, graph.relation_names.name
        other = self.asked.with_facts(remove=[(entity(h), relation(r), entity(t)) for h, r, t in removed])
        return self._once(other.engine)

    def on_facts_alone(self, facts: Facts) -> Outcome:
        """The same as `alone`, of a single set, on a graph of nothing else."""
        engine = self.engine.beside(only_edges(self.graph, self._edges_of(facts)))
        return self._once(engine)

    def _once(self, engine: Engine) -> Outcome:
        self.questions += 1  # whatever is left: what was found is tried
        (outcome,) = self._outcomes(
            engine.answer(engine.asking_batch(np.array([self.head]), np.array([self.relation])))
        )
        return outcome

    def _on(self, engine: Engine, hidden: Sequence[np.ndarray]) -> list[Outcome]:
        found: list[Outcome] = []
        together = max(1, min(_TOGETHER, _MOST_VALUES // self.graph.n_entities))
        for start in range(0, len(hidden), together):
            some = hidden[start : start + together]
            self._count(len(some))
            found += self._outcomes(engine.answer(engine.without_each(self.head, self.relation, some)))
        return found

    def _count(self, questions: int) -> None:
        if self.questions + questions > self.most:
            raise Spent
        self.questions += questions

    def _hidden(self, facts: Iterable[EdgeIds]) -> np.ndarray:
        return self._edges_of({*facts, *self.itself})

    def _edges_of(self, facts: Iterable[EdgeIds]) -> np.ndarray:
        """Ids of the edges of facts, ascending."""
        facts = list(facts)
        for fact in facts:
            if fact not in self._edges:
                self._edges[fact] = edges_of(self.graph, [fact])
        return np.unique(np.concatenate([np.empty(0, np.int64), *(self._edges[fact] for fact in facts)]))

    def _outcomes(self, answer: Answer) -> list[Outcome]:
        attention, every = answer.attention.detach().cpu().numpy(), answer.of_all(self.graph.n_entities)
        found = []
        for query in range(len(every)):
            part = slice(*answer.offsets[query : query + 2])
            nodes, scores, own = answer.nodes[part], attention[part], every[query, self.answer]
            counts = self._is_rival(nodes) & (scores > 0)
            order = np.lexsort((nodes[counts], -scores[counts]))  # as answers are listed
            listed = nodes[counts][order]
            at = np.flatnonzero(listed == self.answer)
            better = np.flatnonzero(every[query] > own) if own > 0 else None
            found.append(
                Outcome(
                    float(own),
                    int(at[0]) + 1 if len(at) else None,
                    None if better is None else 1 + int(self._is_rival(better).sum()),
                    int(listed[0]) if len(listed) else None,
                )
            )
        return found

    def _is_rival(self, entities: np.ndarray) -> np.ndarray:
        """Whether each entity competes with the answer."""
        new = np.unique(entities[self._rivals[entities] < 0])
        if len(new):
            stated = self.asked.known.stated_of(self._as_answers(new)) == KNOWN
            self._rivals[new] = ~stated & (self._are_fitting(new) if self._fits else True)
        return np.asarray(self._rivals[entities] == 1)

    def _are_fitting(self, entities: np.ndarray) -> np.ndarray:
        return fitting(self._as_answers(entities), self.graph, self.asked.known)

    def _as_answers(self, entities: np.ndarray) -> Answers:
        none = np.zeros(len(entities))
        heads, relations = np.array([self.head]), np.array([self.relation])
        return Answers(heads, relations, none.astype(np.int64), entities, none, none, None, None)


def edges_of(graph: KnowledgeGraph, facts: Iterable[EdgeIds]) -> np.ndarray:
    """Ids of the edges of facts, those of the inverse relations too, ascending."""
    edges = graph.either_way(np.array(list(facts), np.int64).reshape(-1, 3))
    found = graph.find_edges(*edges.T) if len(edges) else np.empty(0, np.int64)
    return np.unique(found[found >= 0])


def facts_of(graph: KnowledgeGraph, entity: int) -> Facts:
    """All facts of an entity."""
    away = np.arange(*graph.offsets[entity : entity + 2])
    edges = np.union1d(away, np.flatnonzero(graph.tails == entity))
    return facts_among(
        graph, np.stack([graph.edge_heads(edges), graph.relations[edges], graph.tails[edges]], 1)
    )


def facts_among(graph: KnowledgeGraph, edges: np.ndarray) -> Facts:
    """The facts that edges of the graph stand for (n x 3), each once, in the order of the edges."""
    edges = np.asarray(edges, np.int64).reshape(-1, 3)
    relation = edges[:, 1]
    flipped = np.stack([edges[:, 2], graph.inverse[relation], edges[:, 0]], 1)
    facts = np.where(graph.is_inverse[relation][:, None], flipped, edges)
    return tuple(dict.fromkeys(zip(*(column.tolist() for column in facts.T), strict=True)))


def carriers(flow: AnswerFlow, graph: KnowledgeGraph) -> Facts:
    """The facts along which attention came to the answer, those that brought most of it first."""
    if not flow.is_reached:
        return ()
    chosen = [
        np.flatnonzero((share > 0) & (step.relation != graph.self_loop))
        for share, step in zip(flow.shares, flow.query.steps, strict=True)
    ]
    edges, nodes = flow.edges(chosen), flow.query.nodes
    order = np.argsort(-edges.share.sum(1), kind="stable")
    triples = np.stack([nodes[edges.head], edges.relation, nodes[edges.tail]], 1)
    return facts_among(graph, triples[order])
