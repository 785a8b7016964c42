"""The facts that decide about an answer, as data: what it cannot do without, and what alone would be enough."""

from dataclasses import dataclass
from typing import NamedTuple

from dpmpn.explain.paths import EdgeIds


class Outcome(NamedTuple):
    """What became of an answer when the question was asked again on a changed graph."""

    score: float
    rank: int | None  # from 1, among answers that fit and are not stated; None where no attention reached it
    overall: int | None  # the same among all entities: a prior gives some to those that were not reached, too
    first: (
        int | None
    )  # id of the answer that then comes first, its own where that is the one; None without any

    def keeps_rank(self, before: "Outcome") -> bool:
        """Whether the answer is ranked no lower than it was."""
        return _is_no_lower(self.rank, before.rank)

    def keeps_overall(self, before: "Outcome") -> bool:
        """The same among all entities: where few were reached, to be the first of them says little."""
        return _is_no_lower(self.overall, before.overall)


def _is_no_lower(rank: int | None, before: int | None) -> bool:
    return rank is not None and (before is None or rank <= before)


@dataclass(frozen=True)
class DecisiveSet:
    """A set of facts that was found by asking again, or why none was."""

    facts: tuple[EdgeIds, ...] | None  # those found first come first; None where no set was found
    outcome: Outcome | None  # without them, or with them alone
    reason: str  # why there is none: a sentence; empty where there is one
    is_smallest: bool = False  # whether none of the facts can be left out


@dataclass(frozen=True)
class Decisive:
    """What decides about an answer: true of the model by construction, as each set was tried on the changed graph."""

    before: Outcome  # on the graph as it is, or without the fact asked for where the graph states that
    necessary: DecisiveSet  # without these facts the answer loses its rank
    sufficient: DecisiveSet  # with these facts alone it keeps it
    isolated: Outcome  # without any fact of the head: then only a prior is left
    as_unknown: (
        bool  # whether the fact asked for is stated, and was hidden throughout: a fact never explains itself
    )
    questions: int  # how many were asked

    @property
    def is_prior(self) -> bool:
        """Whether no fact of the head is needed: what the model gives such entities without looking decides."""
        return self.isolated.keeps_overall(self.before)
