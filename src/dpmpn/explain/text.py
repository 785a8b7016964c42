"""An explanation in sentences: the answer, the paths that carried it, and the selected key edges as in the paper."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
    share: float = 0.0
    hops: list[dict[Fact, None]] = field(default_factory=list)  # the facts of each hop, those of strong paths first
    paths: int = 0


def told(explanation: Explanation) -> str:
    """The explanation as sentences a domain expert can follow, and the query with its selected key edges."""
    names = ShownNames(explanation)
    question, answer = explanation.question, explanation.answer
    query = (question.head, question.relation, answer.answer)
    lines = [
        f"Question: {question}",
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
        way = ways.setdefault(entities, Way(entities, hops=[{} for _ in path.facts]))
        way.share += path.share
        way.paths += 1
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
        return label if self._uses[label] < 2 else _both(label, name)

    def relation(self, name: str) -> str:
        """A relation in a sentence."""
        return relation_label(self._graph, name)

    def exact(self, entity: str) -> str:
        """An entity with its identifier where it has a label."""
        return _both(entity_label(self._graph, entity), entity)

    def exactly(self, fact: Sequence[str]) -> tuple[str, str, str]:
        """A fact with the identifiers of all that has a label."""
        head, relation, tail = fact
        return self.exact(head), _both(self.relation(relation), relation), self.exact(tail)


def entity_label(graph: KnowledgeGraph, name: str) -> str:
    """What to show for an entity: its label, or its name where it has none."""
    return graph.entities.label(graph.entities.id(name)) if graph.entities.has_labels else name


def relation_label(graph: KnowledgeGraph, name: str) -> str:
    """What to show for a relation: its label, or its name where it has none."""
    names = graph.relation_names
    return names.label(names.id(name, "relation")) if names.has_labels else name


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
    return "No one stated this fact: neither the graph nor the facts held out from it."


def _carried(explanation: Explanation, names: ShownNames) -> list[str]:
    """The strongest ways as sentences, and what the others brought."""
    head, end = (
        names.entity(name) for name in (explanation.question.head, explanation.answer.answer)
    )
    steps = "1 step" if explanation.n_steps == 1 else f"{explanation.n_steps} steps"
    ways = ways_of(explanation)
    shown = ways[:SHOWN_WAYS]
    if explanation.question.head == explanation.answer.answer:
        introduction = f"Of the attention at {end} after {steps}, these parts stayed at the head of the question:"
    else:
        introduction = f"In {steps} attention went from {head} to {end}; of what arrived there"
    lines = [introduction, *(f"  {percent(way.share):>4} {_sentence(way, names)}" for way in shown)]
    return [*lines, *_rest(explanation.kept_share, ways, shown)]


def _rest(kept: float, ways: list[Way], shown: list[Way]) -> list[str]:
    """How much the shown ways brought together, and what came along others."""
    together, weaker = sum(way.share for way in shown), len(ways) - len(shown)
    rest = 1 - together
    these = f"These {len(shown)} ways" if len(shown) > 1 else "This way"
    if rest < _NEGLIGIBLE:
        return [f"{these} brought all of it."]
    others = f", {weaker} of which brought {percent(kept - together)}" if weaker else ""
    return [f"{these} brought {percent(together)} of it; the other {percent(rest)} came along weaker ones{others}."]


def _sentence(way: Way, names: ShownNames) -> str:
    if not way.hops:
        return f"stayed at {names.entity(way.entities[0])}."
    return "came along: " + ", then ".join(_hop(hop, names) for hop in way.hops) + "."


def _hop(facts: Iterable[Fact], names: ShownNames) -> str:
    """The facts between two entities: those of one direction together, and once where they go both ways."""
    stated = list(facts)
    both = {fact for fact in stated if fact[::-1] in stated}
    directions: dict[tuple[str, str], list[str]] = {}
    for head, relation, tail in stated:
        turned = (head, relation, tail) in both
        if turned and relation in directions.get((tail, head), ()):
            continue  # said with its reverse
        directions.setdefault((head, tail), []).append(relation)
    return " and ".join(
        f"{names.entity(head)} {_listed([_said(names.relation(r), (head, r, tail) in both) for r in relations])}"
        f" {names.entity(tail)}"
        for (head, tail), relations in directions.items()
    )
