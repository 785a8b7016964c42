"""Why a candidate is not the first answer: where its attention was lost, read from the trace and the graph alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.frontier import ATTENTION_FLOOR, STRATEGIES
from dpmpn.explain.distance import NOT_CONNECTED, Levels, facts_between, tails_of
from dpmpn.explain.flow import QueryFlow
from dpmpn.explain.reason import Fork, Near, Reason, WhyNotData
from dpmpn.explain.rivals import Rivals, rival

SHOWN_RIVALS = 3
_REASON_ENOUGH = 0.5  # a smaller part of what the first answer was sent explains why it is not the candidate


@dataclass(frozen=True, eq=False)
class Reached:
    """A query and everything its attention reached, the most probable first."""

    graph: KnowledgeGraph
    horizon: Horizon
    head: int
    flow: QueryFlow
    nodes: np.ndarray
    probabilities: np.ndarray


def why_not(reached: Reached, candidate: int) -> WhyNotData:
    """Where a candidate of a query lost its attention."""
    return _Search(reached, candidate).result()


class _Search:
    """What the trace of one query says about one candidate."""

    def __init__(self, reached: Reached, candidate: int) -> None:
        self.reached, self.candidate = reached, candidate
        self.graph, self.horizon, self.flow = reached.graph, reached.horizon, reached.flow
        self.n_steps = len(self.flow.steps)
        self.place = self.flow.place(candidate)
        # A node can be scanned and get no attention that a float can hold, so the edges tell, not the attention.
        self.scanned = np.zeros(self.flow.attention.shape, bool)  # (steps + 1) x nodes
        self.scanned[0, self.flow.head] = True
        for t, step in enumerate(self.flow.steps):
            self.scanned[t + 1, step.tail] = True
        self.distance = facts_between(reached.graph, reached.head, candidate)

    def result(self) -> WhyNotData:
        """The case that holds."""
        if not self.graph.degree(self.reached.head) or self._is_too_far():
            return self._because("unreachable")
        if self.place < 0:
            return self._never_scanned()
        last = int(np.flatnonzero(self.scanned[:, self.place])[-1])
        return self._answered() if last == self.n_steps else self._dropped(last)

    def _is_too_far(self) -> bool:
        return self.distance is None or self.distance == NOT_CONNECTED or self.distance > self.n_steps

    def _because(self, reason: Reason, **more: Any) -> WhyNotData:
        names, head, candidate = self.graph.entities, self.reached.head, self.candidate
        attention = self.flow.attention[:, self.place] if self.place >= 0 else np.zeros(self.n_steps + 1)
        return WhyNotData(
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

    def _answered(self) -> WhyNotData:
        """It was scanned in the last step, so it has a rank, unless its attention is too small for a number."""
        answers, at = self.reached.nodes, np.flatnonzero(self.reached.nodes == self.candidate)
        rivals = Rivals(self.flow, self.graph, self.candidate, int(answers[0]))
        above = answers[: at[0]] if len(at) else answers
        by = zip(above[:SHOWN_RIVALS].tolist(), self.reached.probabilities.tolist(), strict=False)
        parted = rivals.parted() if len(above) else None
        return self._because(
            "out_competed" if len(above) else "first_answer",
            rank=int(at[0]) + 1 if len(at) else None,
            probability=float(self.reached.probabilities[at[0]]) if len(at) else 0.0,
            by=tuple(rival(self.graph, entity, probability) for entity, probability in by),
            way=rivals.strongest_path(self.candidate),
            first_way=rivals.strongest_path(int(answers[0])) if len(above) else None,
            parted=parted,
            narrowest=_narrow(rivals, parted) if parted else None,
            peak=rivals.peak(SHOWN_RIVALS) if len(above) else None,
        )

    def _dropped(self, time: int) -> WhyNotData:
        """It was scanned, but the next step did not go on from it: from there its own edge would have led back."""
        near = (self._near(self.place, time, 0, np.empty(0, int)),)
        if not self.flow.attended_to[time - 1, self.place]:
            return self._cut("not_attended_to", near, self.flow.attended_to[time - 1])
        return self._cut("not_attended_from", near, self.flow.attended_from[time])

    def _never_scanned(self) -> WhyNotData:
        """Find the nodes nearest to it that had attention early enough: there it was lost.

        Had one of them been attended from, and an edge towards the candidate drawn, a nearer one would have been
        scanned, early enough as well.
        """
        levels, late = Levels(self.graph, self.candidate, towards=True), None
        nearer = np.empty(0, np.int64)
        for distance in range(1, self.n_steps + 1):
            nearest, nearer = nearer, levels.level
            here = np.isin(self.flow.nodes, levels.advance())
            times, places = np.nonzero(self.scanned[: self.n_steps - distance + 1] & here)
            if len(times):
                break
            if late is None and (self.scanned & here).any():
                time, place = (int(found[0]) for found in np.nonzero(self.scanned & here))
                late = self._near(place, time, distance, nearer)
        drawn = self.flow.attended_from[times, places]
        if drawn.any():
            if left_out := self._left_out(distance - 1, nearer, nearest, late):
                return left_out
            return self._not_drawn(times[drawn], places[drawn], distance, nearer, late)
        pairs = zip(places.tolist(), times.tolist(), strict=True)
        nodes = [self._near(place, time, distance, nearer) for place, time in pairs]
        best = min(nodes, key=lambda node: (node.rank, node.step))
        return self._cut("not_attended_from", (best,), self.flow.attended_from[best.step], late=late)

    def _left_out(
        self, distance: int, nodes: np.ndarray, nearer: np.ndarray, late: Near | None
    ) -> WhyNotData | None:
        """Edges led to one of these nodes early enough, and the attending-to horizon kept others."""
        found = []
        for time, choice in enumerate(self.flow.choices[: self.n_steps - distance], 1):
            if choice is not None:
                places = np.flatnonzero(np.isin(choice.node, nodes) & ~choice.is_kept)
                found += [(int(place), time, choice) for place in places[:1]]
        if not found:
            return None
        place, time, choice = min(found, key=lambda each: each[:2])
        kept = np.flatnonzero(choice.is_kept)
        rivals = [
            rival(self.graph, int(choice.node[at]), float(choice.score[at]))
            for at in (*kept[:SHOWN_RIVALS], *kept[-1:])
        ]
        now = self.horizon.max_attending_to_per_step
        chosen_by = STRATEGIES[self.horizon.strategy].attending_to
        score, entity = float(choice.score[place]), int(choice.node[place])
        return self._because(
            "not_attended_to",
            step=time,
            near=(self._described(entity, distance, time, score, (place + 1, len(choice.node)), nearer),),
            late=late,
            limit=now,
            chosen_by=chosen_by,
            by=tuple(rivals[:-1]),
            weakest_kept=rivals[-1] if rivals else None,
            settings=(("ask_attending_to_per_step", _raised(now, _enough(chosen_by, now, place + 1))),),
            settings_now=(("ask_attending_to_per_step", now),),
        )

    def _not_drawn(
        self, times: np.ndarray, places: np.ndarray, distance: int, nearer: np.ndarray, late: Near | None
    ) -> WhyNotData:
        """The edges towards it were not among those drawn; the nodes of which it would have taken fewest come first."""
        places, first = np.unique(places, return_index=True)  # times ascend, so the first time of each
        pairs = zip(places.tolist(), times[first].tolist(), strict=True)
        near = sorted((self._near(*pair, distance, nearer) for pair in pairs), key=lambda node: node.facts)
        limits = [("ask_sampling_per_node", self.horizon.max_sampling_per_node)]
        if self.horizon.max_sampling_per_relation is not None:
            limits.append(("ask_sampling_per_relation", self.horizon.max_sampling_per_relation))
        larger = [(key, now, _raised(now, near[0].facts)) for key, now in limits]
        larger = [limit for limit in larger if limit[2] > limit[1]] or larger[:1]
        return self._because(
            "not_sampled",
            step=near[0].step + 1,
            near=tuple(near),
            late=late,
            limit=limits[-1][1],
            chosen_by="random",
            settings=tuple((key, enough) for key, _, enough in larger),
            settings_now=tuple((key, now) for key, now, _ in larger),
        )

    def _cut(
        self, reason: Reason, near: tuple[Near, ...], kept: np.ndarray, late: Near | None = None
    ) -> WhyNotData:
        """A node was scanned, and a limit kept others."""
        (node,) = near
        how = STRATEGIES[self.horizon.strategy]
        n1, n3 = self.horizon.max_attending_from_per_step, self.horizon.max_attending_to_per_step
        chosen_by = how.attending_to if reason == "not_attended_to" else how.attending_from
        attention = self.flow.score[node.step]
        places = np.flatnonzero(kept)
        places = places[np.argsort(-attention[places], kind="stable")]
        rivals = [
            rival(self.graph, int(self.flow.nodes[place]), attention[place])
            for place in (*places[:SHOWN_RIVALS], *places[-1:])
        ]
        larger = self._larger(node) if node.attention > ATTENTION_FLOOR else []
        return self._because(
            reason,
            step=node.step if reason == "not_attended_to" else node.step + 1,
            near=near,
            late=late,
            limit=n3 if reason == "not_attended_to" else min(n1, n3),
            chosen_by=chosen_by,
            by=tuple(rivals[:-1]),
            weakest_kept=rivals[-1] if rivals else None,
            settings=tuple((key, value) for key, _, value in larger),
            settings_now=tuple((key, now) for key, now, _ in larger),
        )

    def _larger(self, node: Near) -> list[tuple[str, int, int]]:
        """The limits that would have to be larger to let a node pass: keys, what they are now and should be.

        Of what N3 keeps, N1 are attended from.
        """
        how, horizon = STRATEGIES[self.horizon.strategy], self.horizon
        n1, n3 = horizon.max_attending_from_per_step, horizon.max_attending_to_per_step
        to = n3 if how.attending_to == "all" else _raised(n3, _enough(how.attending_to, n3, node.rank))
        from_ = n1 if how.attending_from == "all" else _raised(n1, _enough(how.attending_from, n1, node.rank))
        if how.attending_to == "attention":
            from_ = max(n1, min(from_, to))
        limits = (("ask_attending_from_per_step", n1, from_), ("ask_attending_to_per_step", n3, to))
        return [limit for limit in limits if limit[2] > limit[1]]

    def _near(self, place: int, time: int, distance: int, nearer: np.ndarray) -> Near:
        entity, attention = int(self.flow.nodes[place]), self.flow.score[time]
        others = np.flatnonzero(self.scanned[time])
        # Among equals the lower id comes first, as where the horizons choose.
        before = (attention[others] > attention[place]) | (
            (attention[others] == attention[place]) & (others < place)
        )
        place_of_all = int(before.sum()) + 1, len(others)
        return self._described(entity, distance, time, float(attention[place]), place_of_all, nearer)

    def _described(
        self,
        entity: int,
        distance: int,
        time: int,
        attention: float,
        place_of_all: tuple[int, int],
        nearer: np.ndarray,
    ) -> Near:
        return Near(
            self.graph.entities.name(entity),
            self.graph.entities.label(entity),
            distance,
            time,
            attention,
            *place_of_all,
            self._facts(entity),
            int(np.isin(tails_of(self.graph, np.array([entity])), nearer).sum()) if distance else 0,
        )


def _narrow(rivals: Rivals, parted: Fork) -> Fork | None:
    """Where the candidate's path lost what it had, if where the two parted it still had about as much, or more."""
    ours, theirs = parted.towards.attention, parted.other.attention
    narrow = rivals.narrowest() if ours >= _REASON_ENOUGH * theirs else None
    return narrow if narrow and ours * narrow.towards.attention < _REASON_ENOUGH * theirs else None


def _enough(chosen_by: str, limit: int, rank: int) -> int:
    """How many must be chosen so that a node is among them; where chance chooses, twice as many are worth a try."""
    return 2 * limit if chosen_by == "random" else rank


def _raised(limit: int, enough: int) -> int:
    """The limit doubled until it is enough."""
    while limit < enough:
        limit *= 2
    return limit
