"""Why a candidate is not the first answer: where its attention was lost, read from the trace and the graph alone."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.distance import NOT_CONNECTED, Levels, facts_between, tails_of
from dpmpn.explain.flow import QueryFlow
from dpmpn.explain.rivals import Fork, Peak, Rival, Rivals, Way, rival
from dpmpn.model.frontier import ATTENTION_FLOOR, STRATEGIES
from dpmpn.predictions import Asked

SHOWN_RIVALS = 3

Reason = Literal[
    "unreachable",  # no chain of at most T facts leads from the head to it
    "not_sampled",  # never scanned: the edges towards it were not among those drawn from an attended-from node
    "not_attended_from",  # it, or the node before it, was scanned, but was not among the N1 of the next step
    "not_attended_to",  # it was scanned, but was not among the N3 that get messages
    "out_competed",  # it has attention at the end, and others have more
    "first_answer",
]


@dataclass(frozen=True)
class Near:
    """A node from which attention could still have come to the candidate in time; steps are counted from 1."""

    name: str
    label: str
    distance: int  # facts from here to the candidate, 0 for the candidate itself
    step: int  # its attention is that after this step; 0 for the head before the first one
    attention: float
    rank: int  # by attention, among all that the step scanned
    scanned: int  # how many these were
    facts: int  # that the node has
    leading: int  # of these, how many lead on towards the candidate


@dataclass(frozen=True)
class WhyNot:
    """Where the attention of a candidate was lost; steps are counted from 1, and fields that say nothing are empty."""

    candidate: str
    label: str
    head: str
    head_label: str
    reason: Reason
    n_steps: int
    distance: int | None  # facts from the head; None where not connected, or farther than is looked for
    connected: bool
    facts: int  # that the candidate has
    head_facts: int
    attention: tuple[float, ...]  # a^0 ... a^T of the candidate
    step: int | None = None  # in which it, or what should have led there, was left out
    rank: int | None = None  # among the answers
    probability: float = 0.0
    near: tuple[Near, ...] = ()  # where the attention that should have come to it was left out
    late: Near | None = None  # what came nearer, but with too few steps left
    limit: int | None = None  # N1, N2 or N3, whichever left it out
    chosen_by: str = "attention"  # how the limit chooses: by attention or at random
    by: tuple[Rival, ...] = ()  # what was preferred, strongest first
    weakest_kept: Rival | None = None  # the last that the limit kept
    settings: tuple[tuple[str, int], ...] = ()  # to try: keys of the configuration and values
    way: Way | None = None  # strongest path to the candidate
    first_way: Way | None = None  # strongest path to the first answer
    parted: Fork | None = None  # where these two part
    narrowest: Fork | None = None  # where the candidate's was lost, if not there
    peak: Peak | None = None

    def text(self) -> str:
        """The reason in a few sentences."""
        from dpmpn.explain.why_not_text import sentences

        return " ".join(sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON holds it."""
        return {
            **{key: _listed(value) for key, value in asdict(self).items()},
            "settings": dict(self.settings),
            "text": self.text(),
        }

    def __str__(self) -> str:
        return self.text()


def _listed(value: Any) -> Any:
    """The value with lists in the place of tuples."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple | list) else value


def why_not(asked: Asked, candidate: int, graph: KnowledgeGraph, horizon: Horizon) -> WhyNot:
    """Where a candidate of a question that was asked lost its attention."""
    return _Search(asked, candidate, graph, horizon).found()


class _Search:
    """What the trace of one question says about one candidate."""

    def __init__(self, asked: Asked, candidate: int, graph: KnowledgeGraph, horizon: Horizon) -> None:
        self.asked, self.candidate, self.graph, self.horizon = asked, candidate, graph, horizon
        self.flow: QueryFlow = asked.flow
        self.n_steps = len(self.flow.steps)
        self.place = self.flow.place(candidate)
        # A node can be scanned and get no attention that a float can hold, so the edges tell, not the attention.
        self.scanned = np.zeros(self.flow.attention.shape, bool)  # (steps + 1) x nodes
        self.scanned[0, self.flow.head] = True
        for t, step in enumerate(self.flow.steps):
            self.scanned[t + 1, step.tail] = True
        self.distance = facts_between(graph, asked.head, candidate)

    def found(self) -> WhyNot:
        """The case that holds."""
        if not self.graph.degree(self.asked.head) or self._is_too_far():
            return self._told("unreachable")
        if self.place < 0:
            return self._never_scanned()
        last = int(np.flatnonzero(self.scanned[:, self.place])[-1])
        return self._answered() if last == self.n_steps else self._dropped(last)

    def _is_too_far(self) -> bool:
        return self.distance is None or self.distance == NOT_CONNECTED or self.distance > self.n_steps

    def _told(self, reason: Reason, **more: Any) -> WhyNot:
        names, head, candidate = self.graph.entities, self.asked.head, self.candidate
        attention = self.flow.attention[:, self.place] if self.place >= 0 else np.zeros(self.n_steps + 1)
        return WhyNot(
            names.name(candidate),
            names.label(candidate),
            names.name(head),
            names.label(head),
            reason,
            self.n_steps,
            None if self.distance == NOT_CONNECTED else self.distance,
            self.distance != NOT_CONNECTED,
            self._facts(candidate),
            self._facts(head),
            tuple(attention.tolist()),
            **more,
        )

    def _facts(self, entity: int) -> int:
        """Edges of an entity; those that only lead to it count where the graph does not hold their inverses."""
        facts = int(self.graph.degree(entity))
        if not facts and entity == self.candidate and self.graph.n_forward == self.graph.n_relations:
            return int(np.count_nonzero(self.graph.tails == entity))
        return facts

    def _answered(self) -> WhyNot:
        """It was scanned in the last step, so it has a rank, unless its attention is too small for a number."""
        answers, at = self.asked.nodes, np.flatnonzero(self.asked.nodes == self.candidate)
        rivals = Rivals(self.flow, self.graph, self.candidate, int(answers[0]))
        above = answers[: at[0]] if len(at) else answers
        by = zip(above[:SHOWN_RIVALS].tolist(), self.asked.probabilities.tolist(), strict=False)
        parted = rivals.parted() if len(above) else None
        favoured = parted is not None and parted.towards.attention >= parted.other.attention
        return self._told(
            "out_competed" if len(above) else "first_answer",
            rank=int(at[0]) + 1 if len(at) else None,
            probability=float(self.asked.probabilities[at[0]]) if len(at) else 0.0,
            by=tuple(rival(self.graph, entity, probability) for entity, probability in by),
            way=rivals.way(self.candidate),
            first_way=rivals.way(int(answers[0])) if len(above) else None,
            parted=parted,
            narrowest=rivals.narrowest() if favoured else None,
            peak=rivals.peak(SHOWN_RIVALS) if len(above) else None,
        )

    def _dropped(self, time: int) -> WhyNot:
        """It was scanned, but the next step did not go on from it: from there its own edge would have led back."""
        near = (self._near(self.place, time, 0, np.empty(0, int)),)
        if not self.flow.attended_to[time - 1, self.place]:
            return self._cut("not_attended_to", near, self.flow.attended_to[time - 1])
        return self._cut("not_attended_from", near, self.flow.attended_from[time])

    def _never_scanned(self) -> WhyNot:
        """Find the nodes nearest to it that had attention early enough: there it was lost.

        Had one of them been attended from, and an edge towards the candidate drawn, a nearer one would have been
        scanned, early enough as well.
        """
        levels, late = Levels(self.graph, self.candidate, towards=True), None
        for distance in range(1, self.n_steps + 1):
            nearer = levels.level
            here = np.isin(self.flow.nodes, levels.advance())
            times, places = np.nonzero(self.scanned[: self.n_steps - distance + 1] & here)
            if len(times):
                break
            if late is None and (self.scanned & here).any():
                time, place = (int(found[0]) for found in np.nonzero(self.scanned & here))
                late = self._near(place, time, distance, nearer)
        drawn = self.flow.attended_from[times, places]
        if drawn.any():
            return self._not_drawn(times[drawn], places[drawn], distance, nearer, late)
        pairs = zip(places.tolist(), times.tolist(), strict=True)
        nodes = [self._near(place, time, distance, nearer) for place, time in pairs]
        best = min(nodes, key=lambda node: (node.rank, node.step))
        return self._cut("not_attended_from", (best,), self.flow.attended_from[best.step], late=late)

    def _not_drawn(self, times, places, distance: int, nearer: np.ndarray, late: Near | None) -> WhyNot:  # type: ignore[no-untyped-def]
        """The edges towards it were not among those drawn; the nodes of which it would have taken fewest come first."""
        places, first = np.unique(places, return_index=True)  # times ascend, so the first time of each
        pairs = zip(places.tolist(), times[first].tolist(), strict=True)
        near = sorted((self._near(*pair, distance, nearer) for pair in pairs), key=lambda node: node.facts)
        limit = self.horizon.max_sampling_per_node
        return self._told(
            "not_sampled",
            step=near[0].step + 1,
            near=tuple(near),
            late=late,
            limit=limit,
            chosen_by="random",
            settings=(("ask_sampling_per_node", _raised(limit, near[0].facts)),),
        )

    def _cut(
        self, reason: Reason, near: tuple[Near, ...], kept: np.ndarray, late: Near | None = None
    ) -> WhyNot:
        """A node was scanned, and a limit kept others."""
        (node,) = near
        how = STRATEGIES[self.horizon.strategy]
        n1, n3 = self.horizon.max_attending_from_per_step, self.horizon.max_attending_to_per_step
        chosen_by = how.attending_to if reason == "not_attended_to" else how.attending_from
        attention = self.flow.attention[node.step]
        places = np.flatnonzero(kept)
        places = places[np.argsort(-attention[places], kind="stable")]
        rivals = [
            rival(self.graph, int(self.flow.nodes[place]), attention[place])
            for place in (*places[:SHOWN_RIVALS], *places[-1:])
        ]
        return self._told(
            reason,
            step=node.step if reason == "not_attended_to" else node.step + 1,
            near=near,
            late=late,
            limit=n3 if reason == "not_attended_to" else min(n1, n3),
            chosen_by=chosen_by,
            by=tuple(rivals[:-1]),
            weakest_kept=rivals[-1] if rivals else None,
            settings=self._larger(node) if node.attention > ATTENTION_FLOOR else (),
        )

    def _larger(self, node: Near) -> tuple[tuple[str, int], ...]:
        """The limits that would have let a node pass: of what N3 keeps, N1 are attended from."""
        how, horizon = STRATEGIES[self.horizon.strategy], self.horizon
        limits = (
            ("ask_attending_from_per_step", horizon.max_attending_from_per_step, how.attending_from),
            ("ask_attending_to_per_step", horizon.max_attending_to_per_step, how.attending_to),
        )
        enough = [(key, n, 2 * n if by == "random" else node.rank) for key, n, by in limits if by != "all"]
        return tuple((key, _raised(n, rank)) for key, n, rank in enough if n < rank)

    def _near(self, place: int, time: int, distance: int, nearer: np.ndarray) -> Near:
        entity, attention = int(self.flow.nodes[place]), self.flow.attention[time]
        others = np.flatnonzero(self.scanned[time])
        # Among equals the lower id comes first, as where the horizons choose.
        before = (attention[others] > attention[place]) | (
            (attention[others] == attention[place]) & (others < place)
        )
        return Near(
            self.graph.entities.name(entity),
            self.graph.entities.label(entity),
            distance,
            time,
            float(attention[place]),
            int(before.sum()) + 1,
            len(others),
            self._facts(entity),
            int(np.isin(tails_of(self.graph, np.array([entity])), nearer).sum()) if distance else 0,
        )


def _raised(limit: int, enough: int) -> int:
    """The limit doubled until it is enough."""
    while limit < enough:
        limit *= 2
    return limit
