"""Why a candidate is not the first answer: where its attention was lost, read from the trace and the graph alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import Horizon
from dpmpn.explain.distance import NOT_CONNECTED, Levels, facts_between, tails_of
from dpmpn.explain.flow import QueryFlow
from dpmpn.explain.paths import PathGroup
from dpmpn.explain.rivals import Fork, Peak, Rival, Rivals, rival

SHOWN_RIVALS = 3
_REASON_ENOUGH = 0.5  # a smaller part of what the first answer was sent explains why it is not the candidate


Reason = Literal[
    "unreachable",  # no chain of at most T facts leads from the head to it
    "not_sampled",  # never scanned: the edges towards it were not among those drawn from an attended-from node
    "not_attended_from",  # it, or the node before it, was scanned, but was not among the N1 of the next step
    "not_attended_to",  # it, or a node before it, was scanned, but was not among the N3 that get messages
    "does_not_fit",  # it has attention at the end, but nothing like it is an answer to such questions
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
class WhyNotData:
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
    rank: int | None = None  # among the answers; among all that was reached, if it does not fit
    score: float = 0.0
    near: tuple[Near, ...] = ()  # where the attention that should have come to it was left out
    late: Near | None = None  # what came nearer, but with too few steps left
    limit: int | None = None  # N1, N2 or N3, whichever left it out
    chosen_by: str = "attention"  # how the limit chooses: by attention or at random
    by: tuple[Rival, ...] = ()  # what was preferred, strongest first
    weakest_kept: Rival | None = None  # the last that the limit kept
    settings: tuple[tuple[str, int], ...] = ()  # of a configuration that would follow it further
    settings_now: tuple[tuple[str, int], ...] = ()  # the same keys, and the values that left it out
    way: PathGroup | None = None  # strongest path to the candidate
    first_way: PathGroup | None = None  # strongest path to the first answer
    parted: Fork | None = None  # where these two part
    narrowest: Fork | None = None  # where the candidate's lost most, if not there
    peak: Peak | None = None


@dataclass(frozen=True, eq=False)
class ReachedNodes:
    """A query and everything its attention reached, the most probable first."""

    graph: KnowledgeGraph
    horizon: Horizon
    head: int
    flow: QueryFlow
    nodes: np.ndarray
    scores: np.ndarray
    fits: np.ndarray  # bools: lists of answers leave out the others


def why_not(reached: ReachedNodes, candidate: int) -> WhyNotData:
    """Where a candidate of a query lost its attention."""
    return _WhyNotSearch(reached, candidate).result()


_Limit = tuple[str, int, int]  # a key of the configuration, its value, and the value that would follow a node


class _WhyNotSearch:
    """What the trace of one query says about one candidate."""

    def __init__(self, reached: ReachedNodes, candidate: int) -> None:
        from dpmpn.engine.frontier import ATTENTION_FLOOR
        from dpmpn.engine.settings import STRATEGIES  # imports torch

        self.reached, self.candidate = reached, candidate
        self.graph, self.horizon, self.flow = reached.graph, reached.horizon, reached.flow
        self.strategy, self.floor = STRATEGIES[self.horizon.strategy], ATTENTION_FLOOR
        self.n_steps = len(self.flow.steps)
        self.index = self.flow.index(candidate)
        # A node can be scanned and get no attention that a float can hold, so the edges tell, not the attention.
        self.scanned = np.zeros(self.flow.attention.shape, bool)  # (steps + 1) x nodes
        self.scanned[0, self.flow.head] = True
        for t, step in enumerate(self.flow.steps):
            self.scanned[t + 1, step.tail] = True
        self.distance = facts_between(self.graph, reached.head, candidate)
        self.late: Near | None = None

    def result(self) -> WhyNotData:
        """The case that holds."""
        is_near = self.distance is not None and NOT_CONNECTED < self.distance <= self.n_steps
        if not self.graph.degree(self.reached.head) or not is_near:
            return self._because("unreachable")
        if self.index < 0:
            return self._never_scanned()
        last = int(np.flatnonzero(self.scanned[:, self.index])[-1])
        return self._answered() if last == self.n_steps else self._dropped(last)

    def _because(self, reason: Reason, larger: Iterable[_Limit] = (), **more: Any) -> WhyNotData:
        """The reason, with the limits that would have to be larger."""
        names, head, candidate, larger = self.graph.entities, self.reached.head, self.candidate, list(larger)
        attention = self.flow.attention[:, self.index] if self.index >= 0 else np.zeros(self.n_steps + 1)
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
            late=self.late,
            settings=tuple((key, enough) for key, _, enough in larger),
            settings_now=tuple((key, now) for key, now, _ in larger),
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
        nodes, scores, fits = self.reached.nodes, self.reached.scores, self.reached.fits
        first = int(nodes[fits.argmax()])
        own = nodes == self.candidate
        is_left_out = bool((own & ~fits).any())
        ranked = np.flatnonzero(fits | is_left_out)  # as `explain` ranks them
        at = np.flatnonzero(own[ranked])
        above = ranked[: at[0]] if len(at) else ranked
        by = zip(nodes[above[:SHOWN_RIVALS]].tolist(), scores[above[:SHOWN_RIVALS]].tolist(), strict=True)
        is_first = first == self.candidate
        rivals = Rivals(self.flow, self.graph, self.candidate, first)
        parted = None if is_first else rivals.parted()
        return self._because(
            "does_not_fit" if is_left_out else "first_answer" if is_first else "out_competed",
            rank=int(at[0]) + 1 if len(at) else None,
            score=float(scores[ranked[at[0]]]) if len(at) else 0.0,
            by=tuple(rival(self.graph, entity, score) for entity, score in by),
            way=rivals.strongest_path(self.candidate),
            first_way=None if is_first else rivals.strongest_path(first),
            parted=parted,
            narrowest=_narrow(rivals, parted) if parted else None,
            peak=None if is_first else rivals.peak(SHOWN_RIVALS),
        )

    def _dropped(self, time: int) -> WhyNotData:
        """It was scanned, but the next step did not continue from it: from there its own edge would have led back."""
        near = self._near(self.index, time, 0, np.empty(0, int))
        is_visited = self.index == self.flow.head or self.flow.attended_to[:time, self.index].any()
        if not is_visited:
            return self._cut("not_attended_to", near, self.flow.attended_to[time - 1])
        return self._cut("not_attended_from", near, self.flow.attended_from[time])

    def _never_scanned(self) -> WhyNotData:
        """Find the nodes nearest to it that had attention early enough: there it was lost.

        Had one of them been attended from, and an edge towards the candidate drawn, a nearer one would have been
        scanned, early enough as well.
        """
        levels = Levels(self.graph, self.candidate, towards=True)
        nearer = np.empty(0, np.int64)
        for distance in range(1, self.n_steps + 1):
            nearest, nearer = nearer, levels.level
            here = np.isin(self.flow.nodes, levels.advance())
            times, nodes = np.nonzero(self.scanned[: self.n_steps - distance + 1] & here)
            if len(times):
                break
            if self.late is None and (self.scanned & here).any():
                time, node = (int(indices[0]) for indices in np.nonzero(self.scanned & here))
                self.late = self._near(node, time, distance, nearer)
        drawn = self.flow.attended_from[times, nodes]
        if drawn.any():
            if left_out := self._left_out(distance - 1, nearer, nearest):
                return left_out
            return self._not_drawn(times[drawn], nodes[drawn], distance, nearer)
        pairs = zip(nodes.tolist(), times.tolist(), strict=True)
        near = (self._near(node, time, distance, nearer) for node, time in pairs)
        best = min(near, key=lambda node: (node.rank, node.step))
        return self._cut("not_attended_from", best, self.flow.attended_from[best.step])

    def _left_out(self, distance: int, nodes: np.ndarray, nearer: np.ndarray) -> WhyNotData | None:
        """Edges led to one of these nodes early enough, and the attending-to horizon kept others."""
        left_out = [
            (int(rank), time, choice)
            for time, choice in enumerate(self.flow.choices[: self.n_steps - distance], 1)
            if choice is not None
            for rank in np.flatnonzero(np.isin(choice.node, nodes) & ~choice.is_kept)[:1]
        ]
        if not left_out:
            return None
        rank, time, choice = min(left_out, key=lambda each: each[:2])
        now, chosen_by = self.horizon.max_attending_to_per_step, self.strategy.attending_to
        score, entity = float(choice.score[rank]), int(choice.node[rank])
        return self._because(
            "not_attended_to",
            [("ask_attending_to_per_step", now, _raised(now, _enough(chosen_by, now, rank + 1)))],
            step=time,
            near=(self._described(entity, distance, time, score, (rank + 1, len(choice.node)), nearer),),
            limit=now,
            chosen_by=chosen_by,
            **self._preferred(choice.node[choice.is_kept], choice.score[choice.is_kept]),
        )

    def _not_drawn(
        self, times: np.ndarray, nodes: np.ndarray, distance: int, nearer: np.ndarray
    ) -> WhyNotData:
        """The edges towards it were not among those drawn; the nodes of which it would have taken fewest come first."""
        nodes, first = np.unique(nodes, return_index=True)  # times ascend, so the first time of each
        pairs = zip(nodes.tolist(), times[first].tolist(), strict=True)
        near = sorted((self._near(*pair, distance, nearer) for pair in pairs), key=lambda node: node.facts)
        limits = [("ask_sampling_per_node", self.horizon.max_sampling_per_node)]
        if self.horizon.max_sampling_per_relation is not None:
            limits.append(("ask_sampling_per_relation", self.horizon.max_sampling_per_relation))
        larger = [(key, now, _raised(now, near[0].facts)) for key, now in limits]
        return self._because(
            "not_sampled",
            [limit for limit in larger if limit[2] > limit[1]] or larger[:1],
            step=near[0].step + 1,
            near=tuple(near),
            limit=limits[-1][1],
            chosen_by="random",
        )

    def _cut(self, reason: Reason, node: Near, kept: np.ndarray) -> WhyNotData:
        """A node was scanned, and a limit kept others."""
        n1, n3 = self.horizon.max_attending_from_per_step, self.horizon.max_attending_to_per_step
        is_n3, attention = reason == "not_attended_to", self.flow.score[node.step]
        nodes = np.flatnonzero(kept)
        nodes = nodes[np.argsort(-attention[nodes], kind="stable")]
        return self._because(
            reason,
            self._larger(node) if node.attention > self.floor else (),
            step=node.step if is_n3 else node.step + 1,
            near=(node,),
            limit=n3 if is_n3 else min(n1, n3),
            chosen_by=self.strategy.attending_to if is_n3 else self.strategy.attending_from,
            **self._preferred(self.flow.nodes[nodes], attention[nodes]),
        )

    def _preferred(self, entities: np.ndarray, attention: np.ndarray) -> dict[str, Any]:
        """The strongest and the weakest of what was kept, which is given strongest first."""
        chosen = [*range(min(SHOWN_RIVALS, len(entities))), -1] if len(entities) else []
        rivals = [rival(self.graph, int(entities[at]), float(attention[at])) for at in chosen]
        return {"by": tuple(rivals[:-1]), "weakest_kept": rivals[-1] if rivals else None}

    def _larger(self, node: Near) -> list[_Limit]:
        """The limits that would have to be larger to let a node pass: of what N3 ever kept, N1 are attended from."""
        how, horizon = self.strategy, self.horizon
        n1, n3 = horizon.max_attending_from_per_step, horizon.max_attending_to_per_step
        to = n3 if how.attending_to == "all" else _raised(n3, _enough(how.attending_to, n3, node.rank))
        from_ = n1 if how.attending_from == "all" else _raised(n1, _enough(how.attending_from, n1, node.rank))
        if how.attending_to == "attention":
            from_ = max(n1, min(from_, to))
        limits = (("ask_attending_from_per_step", n1, from_), ("ask_attending_to_per_step", n3, to))
        return [limit for limit in limits if limit[2] > limit[1]]

    def _near(self, node: int, time: int, distance: int, nearer: np.ndarray) -> Near:
        """A node, by its index, as it was after a step."""
        attention, others = self.flow.score[time], np.flatnonzero(self.scanned[time])
        # Among equals the lower id comes first, as where the horizons choose.
        is_equal = (attention[others] == attention[node]) & (others < node)
        rank = int(((attention[others] > attention[node]) | is_equal).sum()) + 1
        entity, score = int(self.flow.nodes[node]), float(attention[node])
        return self._described(entity, distance, time, score, (rank, len(others)), nearer)

    def _described(
        self,
        entity: int,
        distance: int,
        time: int,
        attention: float,
        rank_of: tuple[int, int],
        nearer: np.ndarray,
    ) -> Near:
        return Near(
            self.graph.entities.name(entity),
            self.graph.entities.label(entity),
            distance,
            time,
            attention,
            *rank_of,
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
