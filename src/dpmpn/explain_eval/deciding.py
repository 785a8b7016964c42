"""Tests the facts that decide about an answer beside as many facts that were chosen in other ways."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmpn.decisive.deciding import MOST_FACTS, QUESTIONS, decisive
from dpmpn.decisive.search import removals
from dpmpn.decisive.variants import Facts, Spent, Variants, carriers
from dpmpn.explain_eval.outcome import Outcome

if TYPE_CHECKING:
    from dpmpn.explain.explanation import ExplanationData
    from dpmpn.explain_eval.fidelity import ChangedGraphs, Evidence
    from dpmpn.reasoner.reasoner import Reasoner

CHOICES = ("decisive", "single", "attention", "shortest", "random")  # ways to choose so many facts
FEW_FACTS = 5
_WIDTH = 48  # facts that are tried one by one, those along which most attention came
_NOTHING_LEFT = 0.01  # of the probability: there is no more to lose


@dataclass(frozen=True)
class ChosenFacts:
    """What became of an answer by facts of each choice, all with as many facts as the decisive ones."""

    n_facts: int
    outcomes: dict[str, Outcome]  # by CHOICES


@dataclass(frozen=True)
class DecidingTest:
    """The facts that decide about one answer."""

    is_prior: bool  # without any fact of the head it would be ranked no lower
    necessary: ChosenFacts | None  # without them; None where no set was found
    sufficient: ChosenFacts | None  # with them alone
    most_lost: ChosenFacts  # without the facts, 20 at most, that it loses most by
    most_lost_few: ChosenFacts  # without the first five of these
    questions: int  # asked to find all of them


def deciding_test(
    reasoner: "Reasoner", explanation: "ExplanationData", evidence: "Evidence", graphs: "ChangedGraphs"
) -> DecidingTest:
    """Look for the facts that decide, and ask without them, with them alone, and with others in their place."""
    question = graphs.head, graphs.relation, graphs.answer
    found = decisive(reasoner, *question)
    variants = Variants(reasoner, *question, QUESTIONS)
    lost: Facts = ()
    with suppress(Spent):
        for facts in _most_lost(variants, found.before.score):
            lost = facts
    others = _other_choices(explanation, evidence, variants)
    necessary, sufficient = found.necessary.facts, found.sufficient.facts

    def without(facts: Facts) -> ChosenFacts:
        chosen = [facts, *(others[choice][: len(facts)] for choice in CHOICES[1:])]
        return ChosenFacts(len(facts), dict(zip(CHOICES, graphs.without(chosen), strict=True)))

    def alone(facts: Facts) -> ChosenFacts:
        chosen = [facts, *(others[choice][: len(facts)] for choice in CHOICES[1:])]
        return ChosenFacts(len(facts), dict(zip(CHOICES, map(graphs.alone, chosen), strict=True)))

    return DecidingTest(
        found.is_prior,
        None if necessary is None else without(necessary),
        None if sufficient is None else alone(sufficient),
        without(lost),
        without(lost[:FEW_FACTS]),
        found.questions + variants.questions,
    )


def _most_lost(variants: Variants, before: float) -> Iterator[Facts]:
    """Ever more facts that the answer loses by, until there are as many as people read, or nothing is left."""
    least = _NOTHING_LEFT * before
    for facts, _ in removals(variants, MOST_FACTS, lambda outcome: outcome.score < least):
        yield facts


def _other_choices(
    explanation: "ExplanationData", evidence: "Evidence", variants: Variants
) -> dict[str, Facts]:
    """Facts in the order of the other ways to choose them.

    By what the answer loses without each of them alone; by the part of its attention that came along them as it was
    answered, which in the stronger model follows the gradient; of the shortest paths; at random.
    """
    flowing = tuple(f for f in carriers(explanation.flow, explanation.graph) if f not in variants.itself)
    tried = flowing[:_WIDTH]
    variants.most += len(tried)
    scores = [outcome.score for outcome in variants.without([(fact,) for fact in tried])]
    single = tuple(tried[at] for at in sorted(range(len(tried)), key=lambda at: scores[at]))
    most = max(MOST_FACTS, len(evidence.facts("explanation")))
    return {
        "single": single,
        "attention": flowing,
        "shortest": evidence.chosen("shortest", most),
        "random": evidence.chosen("random", most),
    }
