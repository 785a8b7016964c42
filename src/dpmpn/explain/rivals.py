"""Where two answers to one question parted: their strongest paths, and what a step sent along each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import PathGroup, grouped_walks, named_group, strongest_walks

_LOOKED_AT = 20  # paths, of which those along the same entities are put together,
_ENOUGH = 0.9  # or fewer that brought so much of the attention
_MOST = 0.5


@dataclass(frozen=True)
class Rival:
    """An entity and its attention: all of it, or the part that a node sent there."""

    name: str
    label: str
    attention: float


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
        head = int(flow.nodes[flow.head])
        self._groups = {
            entity: grouped_walks(head, strongest_walks(parts, _LOOKED_AT, _ENOUGH))[:1]
            for entity, parts in self._parts.items()
        }
        self._chains = {entity: groups[0][0] for entity, groups in self._groups.items() if groups}

    def strongest_path(self, entity: int) -> PathGroup | None:
        """The strongest path to one of them; None where all of them are too weak to follow."""
        return next((named_group(self._graph, *group) for group in self._groups[entity]), None)

    @cached_property
    def _steps(self) -> tuple[int, ...] | None:
        """For each fact of the candidate's strongest path, the step in which attention that came to it passed there.

        Where the two paths part, it is one that also brought the first answer attention, if there is one.
        """
        chain = self._chains[self._candidate]
        shares = [self._shares(self._candidate, *ends) for ends in pairwise(chain)]
        fork, _, theirs = self._parting()
        if fork == len(shares):
            return _ascending(shares)
        both = shares[fork] * self._shares(self._first, chain[fork], theirs)
        return _ascending([*shares[:fork], both, *shares[fork + 1 :]]) or _ascending(shares)

    def parted(self) -> Fork | None:
        """What was sent each way where the two strongest paths part, in the step that matters for the candidate."""
        if len(self._chains) < 2 or self._steps is None:
            return None
        fork, ours, theirs = self._parting()
        at = self._chains[self._candidate][fork]
        # Where the candidate is on the way to the first answer, what counts is when it sent that on.
        on_the_way = fork == len(self._steps)
        t = int(np.argmax(self._shares(self._first, at, theirs))) if on_the_way else self._steps[fork]
        sent = self._sent(at, t)
        return self._fork(at, t, (ours, sent.get(ours, 0.0)), (theirs, sent.get(theirs, 0.0)))

    def narrowest(self) -> Fork | None:
        """Where the least went on along the candidate's strongest path after it parted, if most went elsewhere."""
        if len(self._chains) < 2 or self._steps is None:
            return None
        chain, after = self._chains[self._candidate], self._parting()[0] + 1
        onwards = [*zip(chain[after:-1], chain[after + 1 :], self._steps[after:], strict=True)]
        if after < len(chain) and (waited := self._waited()) is not None:
            onwards.append((chain[-1], chain[-1], waited))
        forks = []
        for at, to, t in onwards:
            sent = self._sent(at, t)
            went_on = sent.pop(to, 0.0)
            if sent:
                best = min(sent, key=lambda entity: (-sent[entity], entity))
                forks.append(self._fork(at, t, (to, went_on), (best, sent[best])))
        narrow = min(forks, key=lambda fork: fork.towards.attention, default=None)
        return narrow if narrow and narrow.towards.attention < _MOST else None

    def _waited(self) -> int | None:
        """The step in which most of the candidate's attention waited there after it came along its strongest path."""
        shares = self._shares(self._candidate, self._candidate, self._candidate)
        shares[: self._steps[-1] + 1 if self._steps else 0] = 0
        return int(np.argmax(shares)) if shares.any() else None

    def _parting(self) -> tuple[int, int, int]:
        """The index at which the two chains part, and how each goes on: where one ends, by waiting there."""
        ours, theirs = self._chains[self._candidate], self._chains[self._first]
        same = 0
        while ours[same + 1 : same + 2] == theirs[same + 1 : same + 2]:
            same += 1
        return same, [*ours, ours[-1]][same + 1], [*theirs, theirs[-1]][same + 1]

    def peak(self, most: int) -> Peak | None:
        """When after a step the candidate had more attention than after the last one, and where it went from there."""
        flow = self._flow
        candidate = flow.index(self._candidate)
        attention = flow.attention[1:, candidate]
        t = int(np.argmax(attention)) + 1
        if t == len(flow.steps) or attention[t - 1] <= attention[-1]:
            return None
        sent = self._sent(self._candidate, t)
        sent.pop(self._candidate, None)
        strongest = sorted(sent, key=lambda entity: (-sent[entity], entity))[:most]
        return Peak(
            t,
            float(attention[t - 1]),
            bool(flow.attended_from[t, candidate]),
            tuple(rival(self._graph, entity, sent[entity]) for entity in strongest if sent[entity] > 0),
        )

    def _shares(self, entity: int, source: int, target: int) -> np.ndarray:
        """For each step, the part of an entity's attention that went from source to target."""
        at, to = self._flow.index(source), self._flow.index(target)
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
        edges = step.head == self._flow.index(source)
        targets, index = np.unique(step.tail[edges], return_inverse=True)
        sent = np.bincount(index.ravel(), step.flow[edges], len(targets))
        if not sent.sum() > 0:
            return {}
        return dict(zip(self._flow.nodes[targets].tolist(), (sent / sent.sum()).tolist(), strict=True))

    def _fork(self, at: int, t: int, towards: tuple[int, float], other: tuple[int, float]) -> Fork:
        names = self._graph.entities
        return Fork(
            names.name(at), names.label(at), t + 1, rival(self._graph, *towards), rival(self._graph, *other)
        )


def _ascending(shares: Sequence[np.ndarray]) -> tuple[int, ...] | None:
    """For each edge of a path one step, later and later, so that the product of its parts there is largest."""
    best: dict[int, tuple[float, tuple[int, ...]]] = {-1: (1.0, ())}  # by the last step
    for share in shares:
        longer: dict[int, tuple[float, tuple[int, ...]]] = {}
        for t in np.flatnonzero(share).tolist():
            earlier = [
                (part * float(share[t]), (*steps, t)) for last, (part, steps) in best.items() if last < t
            ]
            if earlier:
                longer[t] = max(earlier)
        best = longer
    return max(best.values())[1] if best else None


def rival(graph: KnowledgeGraph, entity: int, attention: float) -> Rival:
    """An entity with its names."""
    return Rival(graph.entities.name(entity), graph.entities.label(entity), float(attention))
