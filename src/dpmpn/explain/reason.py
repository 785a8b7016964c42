"""Why a candidate is not the first answer, as data: where its attention was lost, and what was preferred."""

from dataclasses import dataclass
from typing import Literal

from dpmpn.explain.paths import PathGroup

Reason = Literal[
    "unreachable",  # no chain of at most T facts leads from the head to it
    "not_sampled",  # never scanned: the edges towards it were not among those drawn from an attended-from node
    "not_attended_from",  # it, or the node before it, was scanned, but was not among the N1 of the next step
    "not_attended_to",  # it, or a node before it, was scanned, but was not among the N3 that get messages
    "out_competed",  # it has attention at the end, and others have more
    "first_answer",
]


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
    rank: int | None = None  # among the answers
    probability: float = 0.0
    near: tuple[Near, ...] = ()  # where the attention that should have come to it was left out
    late: Near | None = None  # what came nearer, but with too few steps left
    limit: int | None = None  # N1, N2 or N3, whichever left it out
    chosen_by: str = "attention"  # how the limit chooses: by attention or at random
    by: tuple[Rival, ...] = ()  # what was preferred, strongest first
    weakest_kept: Rival | None = None  # the last that the limit kept
    settings: tuple[
        tuple[str, int], ...
    ] = ()  # keys and values of a configuration that would follow it further
    settings_now: tuple[tuple[str, int], ...] = ()  # the same keys, and the values that left it out
    way: PathGroup | None = None  # strongest path to the candidate
    first_way: PathGroup | None = None  # strongest path to the first answer
    parted: Fork | None = None  # where these two part
    narrowest: Fork | None = None  # where the candidate's lost most, if not there
    peak: Peak | None = None
