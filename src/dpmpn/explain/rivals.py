"""Where two answers to one question parted: their strongest paths, and what a step sent along each of them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import Fact, path_of, strongest_walks


@dataclass(frozen=True)
class Rival:
    """An entity and its attention: all of it, or the part that a node sent there."""

    name: str
    label: str
    attention: float


@dataclass(frozen=True)
class Way:
    """The strongest path to an entity: its facts, the entities along it, and its share of the entity's attention."""

    facts: tuple[Fact, ...]
    entities: tuple[str, ...]
    labels: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Fork:
    """What a node sent to two others in one step, as parts of what it had; itself is one of them where it waited."""

    name: str
    label: str
    step: int  # counted from 1
    towards: Rival  # on the way to the candidate
    other: Rival


@dataclass(frozen=True)
class Peak:
    """When the candidate had more attention than in the end, and where that went."""

    step: int  # the attention it had after this step
    attention: float
    attended_from: bool  # whether the next step attended from it
    sent: tuple[Rival, ...]  # where that step sent most of it, as parts of it


class Rivals:
    """A candidate and the answer before it, as the flow of one query reached both."""

    def __init__(self, flow: QueryFlow, graph: KnowledgeGraph, candidate: int, first: int) -> None:
        self._flow, self._graph = flow, graph
        self._parts = {entity: AnswerFlow.to(flow, entity) for entity in (candidate, first)}
        self._candidate, self._first = candidate, first
        walks = {entity: strongest_walks(parts, graph.self_loop, 1) for entity, parts in self._parts.items()}
        head = int(flow.nodes[flow.head])
        self._walks = {entity: found[0] for entity, found in walks.items() if found}
        self._chains = {
            entity: [head, *(tail for _, _, tail in walk.edges)] for entity, walk in self._walks.items()
        }

    def way(self, entity: int) -> Way | None:
        """The strongest path to one of them; None where all of them are too weak to follow."""
        if entity not in self._walks:
            return None
        path, chain, names = path_of(self._graph, self._walks[entity]), self._chains[entity], self._graph.entities
        return Way(path.facts, tuple(map(names.name, chain)), tuple(map(names.label, chain)), path.share)

    def parted(self) -> Fork | None:
        """What was sent each way where the two strongest paths part, in the step that matters most for both."""
        if len(self._chains) < 2:
            return None
        ours, theirs = self._chains[self._candidate], self._chains[self._first]
        same = 0
        while ours[same + 1 : same + 2] == theirs[same + 1 : same + 2]:
            same += 1
        # Where a path ends, attention goes on by waiting there.
        at, our_next, their_next = ours[same], (ours + ours[-1:])[same + 1], (theirs + theirs[-1:])[same + 1]
        our_shares = self._shares(self._candidate, at, our_next)
        their_shares = self._shares(self._first, at, their_next)
        both = our_shares * their_shares
        t = int(np.argmax(both if both.any() else their_shares))
        sent = self._sent(at, t)
        return self._fork(at, t, (our_next, sent.get(our_next, 0.0)), (their_next, sent.get(their_next, 0.0)))

    def narrowest(self) -> Fork | None:
        """Where the least went on along the candidate's strongest path, if more went elsewhere."""
        chain = self._chains.get(self._candidate, [])
        forks = []
        for at, onwards in pairwise([*chain, *chain[-1:]]):
            shares = self._shares(self._candidate, at, onwards)
            if shares.any():
                t = int(np.argmax(shares))
                sent = self._sent(at, t)
                went_on = sent.pop(onwards, 0.0)
                if sent:
                    best = min(sent, key=lambda entity: (-sent[entity], entity))
                    forks.append(self._fork(at, t, (onwards, went_on), (best, sent[best])))
        narrow = min(forks, key=lambda fork: fork.towards.attention, default=None)
        return narrow if narrow and narrow.towards.attention < narrow.other.attention else None

    def peak(self, most: int) -> Peak | None:
        """When after a step the candidate had more attention than after the last one, and where it went from there."""
        flow = self._flow
        place = flow.place(self._candidate)
        attention = flow.attention[1:, place]
        t = int(np.argmax(attention)) + 1
        if t == len(flow.steps) or attention[t - 1] <= attention[-1]:
            return None
        sent = self._sent(self._candidate, t)
        sent.pop(self._candidate, None)
        strongest = sorted(sent, key=lambda entity: (-sent[entity], entity))[:most]
        return Peak(
            t,
            float(attention[t - 1]),
            bool(flow.attended_from[t, place]),
            tuple(rival(self._graph, entity, sent[entity]) for entity in strongest if sent[entity] > 0),
        )

    def _shares(self, entity: int, source: int, target: int) -> np.ndarray:
        """For each step, the part of an entity's attention that went from source to target."""
        at, to = self._flow.place(source), self._flow.place(target)
        parts = self._parts[entity].shares
        return np.array(
            [
                share[(step.head == at) & (step.tail == to)].sum()
                for step, share in zip(self._flow.steps, parts, strict=True)
            ]
        )

    def _sent(self, source: int, t: int) -> dict[int, float]:
        """Where a step sent the attention of a node, as parts of it."""
        step = self._flow.steps[t]
        edges = step.head == self._flow.place(source)
        targets, place = np.unique(step.tail[edges], return_inverse=True)
        sent = np.bincount(place.ravel(), step.flow[edges], len(targets))
        if not sent.sum() > 0:
            return {}
        return dict(zip(self._flow.nodes[targets].tolist(), (sent / sent.sum()).tolist(), strict=True))

    def _fork(self, at: int, t: int, towards: tuple[int, float], other: tuple[int, float]) -> Fork:
        names = self._graph.entities
        return Fork(
            names.name(at), names.label(at), t + 1, rival(self._graph, *towards), rival(self._graph, *other)
        )


def rival(graph: KnowledgeGraph, entity: int, attention: float) -> Rival:
    """An entity with its names."""
    return Rival(graph.entities.name(entity), graph.entities.label(entity), float(attention))
