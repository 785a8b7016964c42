"""Where two answers to one question parted: their strongest paths, and what a step sent along each of them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import Fact, Walk, named_paths, strongest_walks

_LOOKED_AT = 20  # paths, of which those along the same entities are put together,
_ENOUGH = 0.9  # or fewer that brought so much of the attention


@dataclass(frozen=True)
class Rival:
    """An entity and its attention: all of it, or the part that a node sent there."""

    name: str
    label: str
    attention: float


@dataclass(frozen=True)
class Way:
    """The strongest path to an entity, and the share of the entity's attention that came along it."""

    facts: tuple[Fact, ...]  # of facts between the same two entities, the strongest; the share is that of all
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
        ways = {entity: _strongest_way(parts) for entity, parts in self._parts.items()}
        self._walks = {entity: way for entity, way in ways.items() if way is not None}
        self._chains = {entity: _chain(flow, walk) for entity, walk in self._walks.items()}

    def way(self, entity: int) -> Way | None:
        """The strongest path to one of them; None where all of them are too weak to follow."""
        if entity not in self._walks:
            return None
        (path,) = named_paths(self._graph, [self._walks[entity]])
        chain, names = self._chains[entity], self._graph.entities
        return Way(path.facts, tuple(map(names.name, chain)), tuple(map(names.label, chain)), path.share)

    def parted(self) -> Fork | None:
        """What was sent each way where the two strongest paths part, in the step that matters most there."""
        if len(self._chains) < 2:
            return None
        at, ours, theirs = self._parting()
        # Where the first answer only waits, what counts is when the candidate's part left it.
        shares = (
            self._shares(self._candidate, at, ours) if at == theirs else self._shares(self._first, at, theirs)
        )
        sent = [self._sent(at, t) for t in range(len(shares))]
        drawn = [t for t in range(len(shares)) if ours in sent[t]]
        t = max(drawn or range(len(shares)), key=lambda t: shares[t])
        return self._fork(at, t, (ours, sent[t].get(ours, 0.0)), (theirs, sent[t].get(theirs, 0.0)))

    def narrowest(self) -> Fork | None:
        """Where the least went on along the candidate's strongest path after it parted, if more went elsewhere."""
        if len(self._chains) < 2:
            return None
        chain = self._chains[self._candidate]
        after = chain.index(self._parting()[0]) + 1
        forks = []
        for at, onwards in pairwise([*chain[after:], *chain[-1:]]):
            shares = self._shares(self._candidate, at, onwards)
            sent = self._sent(at, t := int(np.argmax(shares)))
            went_on = sent.pop(onwards, 0.0)
            if sent:
                best = min(sent, key=lambda entity: (-sent[entity], entity))
                forks.append(self._fork(at, t, (onwards, went_on), (best, sent[best])))
        narrow = min(forks, key=lambda fork: fork.towards.attention, default=None)
        return narrow if narrow and narrow.towards.attention < narrow.other.attention else None

    def _parting(self) -> tuple[int, int, int]:
        """Where the two chains part, and how each goes on; where one ends, attention goes on by waiting there."""
        ours, theirs = self._chains[self._candidate], self._chains[self._first]
        same = 0
        while ours[same + 1 : same + 2] == theirs[same + 1 : same + 2]:
            same += 1
        return ours[same], [*ours, ours[-1]][same + 1], [*theirs, theirs[-1]][same + 1]

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


def _chain(flow: QueryFlow, walk: Walk) -> list[int]:
    """The entities along a walk, the head first."""
    return [int(flow.nodes[flow.head]), *(tail for _, _, tail in walk.edges)]


def _strongest_way(flow: AnswerFlow) -> Walk | None:
    """The strongest walk, where walks along the same entities are one: parallel facts lead the same way."""
    strongest: dict[tuple[int, ...], Walk] = {}
    for walk in strongest_walks(flow, _LOOKED_AT, _ENOUGH):
        along = tuple(_chain(flow.query, walk))
        before = strongest.get(along)
        strongest[along] = Walk(before.edges, before.share + walk.share) if before else walk
    return max(strongest.values(), key=lambda walk: walk.share, default=None)


def rival(graph: KnowledgeGraph, entity: int, attention: float) -> Rival:
    """An entity with its names."""
    return Rival(graph.entities.name(entity), graph.entities.label(entity), float(attention))
