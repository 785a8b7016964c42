"""What to call entities and relations where people read: labels, on one line, and told apart where two share one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import category

from dpmpn.data.graph import KnowledgeGraph

_BREAKING = ("Cc", "Zl", "Zp")  # control characters, separators of lines and of paragraphs


class ShownNames:
    """The names of all that is shown together: labels, with the identifier where two of a kind share one."""

    def __init__(self, entities: Mapping[str, str], relations: Mapping[str, str] | None = None) -> None:
        # Both map identifiers to labels.
        self._entities, self._relations = entities, relations or {}
        self._uses = [Counter(map(one_line, labels.values())) for labels in (entities, self._relations)]

    @classmethod
    def of_facts(cls, graph: KnowledgeGraph, facts: Iterable[Sequence[str]]) -> "ShownNames":
        """The names of the entities and the relations of some facts."""
        facts = list(facts)
        entities = dict.fromkeys(end for head, _, tail in facts for end in (head, tail))
        relations = dict.fromkeys(relation for _, relation, _ in facts)
        return cls(
            {name: entity_label(graph, name) for name in entities},
            {name: relation_label(graph, name) for name in relations},
        )

    def entity(self, name: str) -> str:
        """An entity in a sentence."""
        return _told_apart(self._entities[name], name, self._uses[0])

    def relation(self, name: str) -> str:
        """A relation in a sentence."""
        return _told_apart(self._relations[name], name, self._uses[1])

    def exact(self, entity: str) -> str:
        """An entity with its identifier where it has a label."""
        return _both(self._entities[entity], entity)

    def exactly(self, fact: Sequence[str]) -> tuple[str, str, str]:
        """A fact with the identifiers of all that has a label."""
        head, relation, tail = fact
        return self.exact(head), _both(self._relations[relation], relation), self.exact(tail)


def entity_label(graph: KnowledgeGraph, name: str) -> str:
    """What to show for an entity: its label, or its name where it has none."""
    return graph.entities.label(graph.entities.id(name)) if graph.entities.has_labels else name


def relation_label(graph: KnowledgeGraph, name: str) -> str:
    """What to show for a relation: its label, or its name where it has none."""
    names = graph.relation_names
    return names.label(names.id(name, "relation")) if names.has_labels else name


def one_line(text: str) -> str:
    """A name with its control characters spelled out: it may come from anywhere, and stays in its line."""
    return "".join(c.encode("unicode_escape").decode() if category(c) in _BREAKING else c for c in text)


def _told_apart(label: str, name: str, uses: Counter[str]) -> str:
    shown = one_line(label)
    return shown if uses[shown] < 2 else _both(label, name)


def _both(label: str, name: str) -> str:
    return one_line(label if label == name else f"{label} ({name})")
