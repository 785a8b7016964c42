"""An explanation in sentences: the answer, the paths that carried it, and the selected key edges as in the paper."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import category

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.explanation import Explanation
from dpmpn.explain.paths import Fact, Path

SHOWN_WAYS = 5
SHOWN_KEY_FACTS = 20
_SHOWN_RELATIONS = 3  # between the same two entities
_NEGLIGIBLE = 0.0005  # parts that no percentage shows


@dataclass
class Way:
    """Paths along the same entities: parallel facts, such as a fact and its reverse, make otherwise equal ones."""

    entities: tuple[str, ...]  # from head to answer
    hops: list[dict[Fact, None]]  # the facts of each, those of stronger paths first
    share: float = 0.0


def told(explanation: Explanation) -> str:
    """The explanation as sentences a domain expert can follow, and the query with its selected key edges."""
    names = ShownNames(explanation)
    question, answer = explanation.question, explanation.answer
    query = (question.head, question.relation, answer.answer)
    asked = (names.exact(question.head), names.relation(question.relation), "?")
    lines = [
        f"Question: <{', '.join(asked[::-1] if question.inverse else asked)}>",
        *_answer(explanation, names),
        "",
        *_carried(explanation, names),
        "",
        f"Query: ({', '.join(names.exactly(query[::-1] if question.inverse else query))})",
        "",
        "Selected key edges:",
        *_key_edges(explanation, names),
    ]
    return "\n".join(lines)


def ways_of(explanation: Explanation) -> list[Way]:
    """The explanation's paths, those along the same entities together, strongest first."""
    ways: dict[tuple[str, ...], Way] = {}
    for path in explanation.paths:
        entities = entities_along(explanation.question.head, path)
        way = ways.setdefault(entities, Way(entities, [{} for _ in path.facts]))
        way.share += path.share
        for hop, fact in zip(way.hops, path.facts, strict=True):
            hop[fact] = None
    return sorted(ways.values(), key=lambda way: -way.share)


def entities_along(head: str, path: Path) -> tuple[str, ...]:
    """The entities that a path visits from a head on: at each fact it goes to the fact's other end."""
    entities = [head]
    for start, _, end in path.facts:
        entities.append(end if entities[-1] == start else start)
    return tuple(entities)


class ShownNames:
    """What to call entities and relations: by label, with the identifier where two of an explanation share one."""

    def __init__(self, explanation: Explanation) -> None:
        self._graph = explanation.graph
        named = {explanation.question.head, explanation.answer.answer}
        named.update(end for key in explanation.key_facts for end in (key.fact[0], key.fact[2]))
        self._uses = Counter(entity_label(self._graph, name) for name in named)

    def entity(self, name: str) -> str:
        """An entity in a sentence."""
        label = entity_label(self._graph, name)
        return one_line(label) if self._uses[label] < 2 else _both(label, name)

    def relation(self, name: str) -> str:
        """A relation in a sentence."""
        return one_line(relation_label(self._graph, name))

    def exact(self, entity: str) -> str:
        """An entity with its identifier where it has a label."""
        return _both(entity_label(self._graph, entity), entity)

    def exactly(self, fact: Sequence[str]) -> tuple[str, str, str]:
        """A fact with the identifiers of all that has a label."""
        head, relation, tail = fact
        return self.exact(head), _both(relation_label(self._graph, relation), relation), self.exact(tail)


def entity_label(graph: KnowledgeGraph, name: str) -> str:
    """What to show for an entity: its label, or its name where it has none."""
    return graph.entities.label(graph.entities.id(name)) if graph.entities.has_labels else name


def relation_label(graph: KnowledgeGraph, name: str) -> str:
    """What to show for a relation: its label, or its name where it has none."""
    names = graph.relation_names
    return names.label(names.id(name, "relation")) if names.has_labels else name


def one_line(text: str) -> str:
    """A name with its control characters spelled out: it may come from anywhere, and stays in its line."""
    return "".join(c.encode("unicode_escape").decode() if category(c) == "Cc" else c for c in text)


def percent(part: float) -> str:
    """A part in whole per cent; what is not nothing, or not all, does not look like it."""
    if 0 < part < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= part < 1 - _NEGLIGIBLE else f"{part:.0%}"


def _answer(explanation: Explanation, names: ShownNames) -> list[str]:
    answer = explanation.answer
    place = "the first answer" if answer.rank == 1 else f"answer number {answer.rank:,}"
    lines = [
        f"Answer: {names.exact(answer.answer)}, {place}, with probability {_probability(answer.probability)}"
        " (the part of the model's attention that ended there).",
        _stated(answer.known, answer.held_out),
    ]
    if answer.through_unseen > 0:
        part = percent(answer.through_unseen)
        lines.append(
            f"Of its attention {part} came through entities the model was not trained on: trust it less."
        )
    return lines


def _probability(probability: float) -> str:
    return f"{probability:.3f}" if probability >= _NEGLIGIBLE else f"{probability:.1g}"


def _stated(known: bool, held_out: str) -> str:
    if known:
        return "The graph states this fact already."
    if held_out:
        split = "validation" if held_out == "valid" else held_out
        return f"The graph does not state this fact; it is one of the {split} facts that were held out."
    return "Nothing states this fact: neither the graph nor the facts held out from it."


def _carried(explanation: Explanation, names: ShownNames) -> list[str]:
    """The strongest ways as sentences, and what they brought together."""
    head, answer = explanation.question.head, explanation.answer.answer
    steps = "1 step" if explanation.n_steps == 1 else f"{explanation.n_steps} steps"
    if head == answer:  # what left and came back counts as having stayed
        return [
            f"In {steps} this attention stayed at {names.entity(head)}, where it began: no facts carried it."
        ]
    ways = ways_of(explanation)[:SHOWN_WAYS]
    lines = [
        f"In {steps} attention went from {names.entity(head)} to {names.entity(answer)}. Of what arrived there"
    ]
    for way in ways:
        facts = ", then ".join(_hop(hop, names) for hop in way.hops)
        lines.append(f"  {percent(way.share):>4} came along: {facts}.")
    together = sum(way.share for way in ways)
    these = f"These {len(ways)} ways" if len(ways) > 1 else "This way"
    if together > 1 - _NEGLIGIBLE:
        return [*lines, f"{these} brought all of it."]
    brought = f"{these} brought {percent(together)} of it"
    return [*lines, f"{brought}; the other {percent(1 - together)} came along weaker ones."]


def _hop(facts: Iterable[Fact], names: ShownNames) -> str:
    """The facts between two entities: relations of one direction together, and those that go both ways said once."""
    stated = list(facts)
    clauses: dict[tuple[str, str, bool], list[str]] = {}
    for head, relation, tail in stated:
        both_ways = (tail, relation, head) in stated
        if not (both_ways and relation in clauses.get((tail, head, True), ())):
            clauses.setdefault((head, tail, both_ways), []).append(relation)
    return " and ".join(
        f"{names.entity(head)} {_listed([names.relation(relation) for relation in relations])} "
        f"{names.entity(tail)}{' (both ways)' if both_ways else ''}"
        for (head, tail, both_ways), relations in clauses.items()
    )


def _listed(texts: list[str]) -> str:
    """Some texts in a row, the first few where they are many."""
    shown, more = texts[:_SHOWN_RELATIONS], len(texts) - _SHOWN_RELATIONS
    last = f"{more} more" if more > 0 else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last


def _key_edges(explanation: Explanation, names: ShownNames) -> list[str]:
    key_facts = explanation.key_facts
    if not key_facts:
        return ["  none: attention stayed at the head"]
    lines = [
        f"  {percent(key.share):>4} {', '.join(names.exactly(key.fact))}"
        for key in key_facts[:SHOWN_KEY_FACTS]
    ]
    more = len(key_facts) - len(lines)
    return [*lines, f"  and {more} more"] if more else lines


def _both(label: str, name: str) -> str:
    return one_line(label if label == name else f"{label} ({name})")
