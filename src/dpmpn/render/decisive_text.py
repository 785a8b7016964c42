"""The facts that decide about an answer, in sentences."""

from dpmpn.explain.decisive import DecisiveSet, Outcome
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.paths import named_fact
from dpmpn.render.names import DisplayNames
from dpmpn.wording import score_shown, sentence


def decisive_lines(explanation: ExplanationData) -> list[str]:
    """What decides about the answer: nothing where nobody asked for it."""
    found = explanation.decisive
    if found is None:
        return []
    names = _Names(explanation)
    before = found.before
    return [
        "",
        "What decides, found by asking again on changed graphs:",
        *_set_lines(found.necessary, names, f"Necessary: without {_these(found.necessary)}", before),
        *_set_lines(found.sufficient, names, f"Sufficient: with {_these(found.sufficient)} alone", before),
    ]


def decisive_text(explanation: ExplanationData) -> str:
    """All of it, for where nothing else is said."""
    return "\n".join([*prior_lines(explanation), *decisive_lines(explanation)]).strip()


def prior_lines(explanation: ExplanationData) -> list[str]:
    """The first thing to say where the facts of the head do not decide: nothing where they do, or nobody asked."""
    found = explanation.decisive
    if found is None or not found.is_prior:
        return []
    names = _Names(explanation)
    what = (
        "decides here, and not the facts" if found.necessary.facts is None else "alone would decide the same"
    )
    return [
        f"The prior {what}: without any fact of {names.head}, the model would rank {names.answer} no lower "
        f"(score {score_shown(found.isolated.score)}, before {score_shown(found.before.score)}).",
        "",
    ]


class _Names:
    """What entities and relations are called in these sentences."""

    def __init__(self, explanation: ExplanationData) -> None:
        self.graph, found = explanation.graph, explanation.decisive
        assert found is not None
        sets = (found.necessary, found.sufficient)
        facts = [fact for each in sets for fact in each.facts or ()]
        first = [each.outcome.first for each in sets if each.outcome and each.outcome.first is not None]
        query = explanation.flow.query
        head, answer = (int(query.nodes[at]) for at in (query.head, explanation.flow.answer))
        entities, relations = self.graph.entities, self.graph.relation_names
        ids = {head, answer, *first, *(end for h, _, t in facts for end in (h, t))}
        self._shown = DisplayNames(
            {entities.name(entity): entities.label(entity) for entity in ids},
            {relations.name(r): relations.label(r) for r in {relation for _, relation, _ in facts}},
        )
        self.head_id, self.answer_id = head, answer
        self.head, self.answer = self.entity(head), self.entity(answer)

    def entity(self, entity: int) -> str:
        return self._shown.entity(self.graph.entities.name(entity))

    def fact(self, fact: tuple[int, int, int]) -> str:
        return ", ".join(self._shown.exact_fact(named_fact(self.graph, fact)))


def _these(found: DecisiveSet) -> str:
    count = len(found.facts or ())
    return "this fact" if count == 1 else f"these {count:,} facts"


def _set_lines(found: DecisiveSet, names: _Names, beginning: str, before: Outcome) -> list[str]:
    kind = beginning.partition(":")[0]
    if found.facts is None or found.outcome is None:
        return [f"  {kind}: no such set was found: {sentence(found.reason)}"]
    more = "" if found.is_smallest else " Some of them may not be needed: there were no questions left."
    lines = [f"  {beginning}, {_became(found.outcome, names, before)}.{more}"]
    return [*lines, *(f"    {names.fact(fact)}" for fact in found.facts)]


def _became(outcome: Outcome, names: _Names, before: Outcome) -> str:
    """What an answer became."""
    score = f"(score {score_shown(outcome.score)}, before {score_shown(before.score)})"
    if outcome.rank is None:
        what = f"no attention reaches {names.answer}"
        return (
            f"{what}; the first answer would be {names.entity(outcome.first)}"
            if outcome.first is not None
            else what
        )
    if outcome.keeps_rank(before):
        place = "the first answer" if outcome.rank == 1 else f"answer number {outcome.rank:,}"
        return f"{names.answer} is {'still ' * (outcome.rank == before.rank)}{place} {score}"
    first = "" if outcome.first is None else f", and {names.entity(outcome.first)} the first"
    return f"{names.answer} would be answer number {outcome.rank:,}{first} {score}"
