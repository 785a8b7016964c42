"""The facts that decide about an answer, as data: what it cannot do without, and what alone would be enough."""

from dataclasses import dataclass
from typing import NamedTuple

from dpmpn.explain.paths import EdgeIds


class Outcome(NamedTuple):
    """What became of an answer when the question was asked again on a changed graph."""

    score: float
    rank: int  # from 1, among answers that fit; those that the graph states do not count
    first: int | None  # id of the answer that then comes first, its own where that is the one; None without any


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
    isolated: Outcome  # without any fact of the head
    as_unknown: bool  # whether the fact asked for is stated, and was hidden throughout: a fact never explains itself
    questions: int  # how many were asked

    @property
    def is_prior(self) -> bool:
        """Whether no fact of the head is needed: what the model gives such entities without looking decides."""
        return self.isolated.rank <= self.before.rank
