"""Finds the facts that decide about an answer: a small set it cannot do without, and a small set that is enough."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.decisive.search import enough_alone, removals, smaller
from dpmpn.decisive.variants import Facts, Spent, Variants, carriers, facts_among, facts_of
from dpmpn.explain.decisive import Decisive, DecisiveSet, Outcome
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE
from dpmpn.explain.paths import strongest_walks
from dpmpn.wording import counted, score_shown

if TYPE_CHECKING:
    from dpmpn.reasoner.asked_model import AskedModel

QUESTIONS = 600  # asked for each set at most
MOST_FACTS = 20  # of a necessary set: more are no reason that people read
_POOL = 256  # facts that a sufficient set is looked for among: those along which most attention came
_SPENT = "; then there were no questions left"
_ENLARGED = 3  # times a set that does not hold on the changed graph is made larger


def decisive(
    asked: "AskedModel",
    head: int,
    relation: int,
    answer: int,
    questions: int = QUESTIONS,
    most_facts: int = MOST_FACTS,
) -> Decisive:
    """What decides about an answer: the smallest sets that were found with so many questions for each."""
    variants = Variants(asked, head, relation, answer, questions + 2)
    before, isolated = variants.without([(), facts_of(variants.graph, head)])
    necessary = _necessary(variants, before, most_facts)
    variants.most = variants.questions + questions
    sufficient = _sufficient(variants, before)
    return Decisive(before, necessary, sufficient, isolated, bool(variants.itself), variants.questions)


def _necessary(variants: Variants, before: Outcome, most: int) -> DecisiveSet:
    """A small set of facts without which an answer loses its rank, tried on the graph that really lacks them."""

    def is_lost(outcome: Outcome) -> bool:
        return not outcome.keeps_rank(before)

    def test(sets: Sequence[Facts]) -> list[tuple[bool, float]]:
        return [(is_lost(outcome), -outcome.score) for outcome in variants.without(sets)]

    largest: Facts = ()

    def sets() -> Iterator[Facts]:
        nonlocal largest
        for facts, outcome in removals(variants, most, is_lost):
            largest = facts
            if is_lost(outcome):
                yield facts
                yield from smaller(facts, test)

    found, is_finished = _last(sets())
    if found is not None:
        return _confirmed(variants, found, is_finished, is_lost)
    if not largest:
        return DecisiveSet(
            None, None, "no fact was found that carries attention to it" + _SPENT * (not is_finished)
        )
    outcome = variants.on_changed_graph(largest)
    facts = f"without the {counted(len(largest), 'fact')} it depends on most"
    still = f"{facts}, it keeps its rank with a score of {score_shown(outcome.score)}"
    return DecisiveSet(None, outcome, still + _SPENT * (not is_finished))


def _confirmed(
    variants: Variants, found: Facts, is_finished: bool, is_lost: Callable[[Outcome], bool]
) -> DecisiveSet:
    """The set as it is on the changed graph, of which something else may be drawn or counted."""
    facts = found
    for _ in range(_ENLARGED):
        outcome = variants.on_changed_graph(facts)
        if is_lost(outcome):
            return DecisiveSet(facts, outcome, "", is_finished and facts is found)
        variants.most = max(variants.most, variants.questions + 1)
        others = [f for f in carriers(variants.flow_without(facts), variants.graph) if f not in facts]
        facts = (*facts, *others[: len(facts)])
    reason = f"a set of {counted(len(found), 'fact')} was found that does not hold on the graph without them"
    return DecisiveSet(None, outcome, reason)


def _sufficient(variants: Variants, before: Outcome) -> DecisiveSet:
    """A small set of facts with which alone an answer keeps its rank, tried on the graph of these and no others."""

    def is_kept(outcome: Outcome) -> bool:
        return outcome.keeps_rank(before) and outcome.keeps_overall(before)

    def test(sets: Sequence[Facts]) -> list[tuple[bool, float]]:
        return [(is_kept(outcome), outcome.score) for outcome in variants.alone(sets)]

    flow, graph = variants.flow_without(()), variants.graph
    walks = strongest_walks(flow, KEPT_PATHS, KEPT_SHARE)
    pools = [
        facts_among(graph, np.array([edge for walk in walks for edge in walk.edges])),
        carriers(flow, graph)[:_POOL],
    ]

    def sets() -> Iterator[Facts]:
        if facts := enough_alone(pools, test):
            yield facts
            yield from smaller(facts, test)

    found, is_finished = _last(sets())
    if found is not None:
        outcome = variants.on_facts_alone(found)
        if is_kept(outcome):
            return DecisiveSet(found, outcome, "", is_finished)
    largest = max(pools, key=len)
    if not largest:
        return DecisiveSet(None, None, "no fact carries attention to it")
    outcome = variants.on_facts_alone(largest)
    if is_kept(outcome):
        return DecisiveSet(largest, outcome, "")
    facts = f"with the {counted(len(largest), 'fact')} along which most attention came to it, and no others"
    rank = "no attention reaches it" if outcome.rank is None else f"it is number {outcome.rank:,}"
    if outcome.keeps_rank(before):
        rank = "it would be less likely than entities that attention does not reach"
    return DecisiveSet(None, outcome, f"{facts}, {rank}{_SPENT * (not is_finished)}")


def _last(sets: Iterator[Facts]) -> tuple[Facts | None, bool]:
    """The last of ever better sets, and whether their search came to its end before the questions did."""
    best = None
    try:
        for found in sets:
            best = found
    except Spent:
        return best, False
    return best, True
