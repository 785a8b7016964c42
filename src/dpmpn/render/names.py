"""What to call entities and relations where people read: labels, with the identifier where two share one."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dpmpn.explain.explanation import ExplanationData, Node, Question, Subgraph
from dpmpn.explain.paths import PathGroup
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.markup import readable
from dpmpn.wording import one_line

_NAMED = (("name", "label"), ("candidate", "label"), ("head", "head_label"))  # fields that belong together
_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BEGIN, _END = "\u2068", "\u2069"  # what stands between has a direction of its own


class DisplayNames:
    """The names of all that is shown together: labels, with the identifier where two of a kind share one."""

    def __init__(self, entities: Mapping[str, str], relations: Mapping[str, str] | None = None) -> None:
        # Both map identifiers to labels.
        self._entities, self._relations = entities, relations or {}
        self._uses = [Counter(map(one_line, labels.values())) for labels in (entities, self._relations)]

    @classmethod
    def of(cls, subgraph: Subgraph, question: Question) -> "DisplayNames":
        """The names of all nodes and relations of a subgraph, and of the question."""
        relations = {edge.relation: edge.relation_label for edge in subgraph.edges}
        return cls(
            {node.name: node.label or node.name for node in subgraph.nodes},
            {question.relation: question.relation_label, **relations},
        )

    def entity(self, name: str) -> str:
        """An entity in a sentence."""
        return _unique(self._entities[name], name, self._uses[0])

    def relation(self, name: str) -> str:
        """A relation in a sentence."""
        return _unique(self._relations[name], name, self._uses[1])

    def question(self, question: Question) -> str:
        """The question with these names."""
        return question.rendered(self.entity(question.head), self.relation(question.relation))

    def exact(self, entity: str) -> str:
        """An entity with its identifier where it has a label."""
        return _both(self._entities[entity], entity)

    def exact_fact(self, fact: Sequence[str]) -> tuple[str, str, str]:
        """A fact with the identifiers of all that has a label."""
        head, relation, tail = fact
        return self.exact(head), _both(self._relations[relation], relation), self.exact(tail)


def _unique(label: str, name: str, uses: Counter[str]) -> str:
    shown = one_line(label)
    return shown if uses[shown] < 2 else _both(label, name)


def _both(label: str, name: str) -> str:
    return one_line(label if label == name else f"{label} ({name})")


def displayed(explanation: ExplanationData) -> ExplanationData:
    """The explanation with identifiers in all labels that two of its entities or two of its relations share."""
    question, answer = explanation.question, explanation.answer
    names = DisplayNames.of(explanation.full, question)
    head, relation = names.entity(question.head), names.relation(question.relation)
    full, pruned = _renamed(explanation.full, names), _renamed(explanation.pruned, names)
    shown = copy(explanation)  # with all that was computed already
    shown.__dict__.update(
        question=replace(question, head_label=head, relation_label=relation),
        answer=replace(answer, label=names.entity(answer.answer)),
        full=full,
        pruned=pruned,
    )
    return shown


def _renamed(subgraph: Subgraph, names: DisplayNames) -> Subgraph:
    """A subgraph with the names to show in the place of labels."""
    relations = {edge.relation for edge in subgraph.edges}
    shown = {relation: names.relation(relation) for relation in relations}  # each once: edges are many
    return Subgraph(
        tuple(node._replace(label=names.entity(node.name)) for node in subgraph.nodes),
        tuple(edge._replace(relation_label=shown[edge.relation]) for edge in subgraph.edges),
    )


def with_identifier(node: Node) -> str:
    """A node's label with its identifier, unless it is that or ends with it already."""
    shown, identifier = node.label or node.name, f"({node.name})"
    return shown if shown == node.name or shown.endswith(identifier) else f"{shown} {identifier}"


def plain(name: str) -> str:
    """A name for a sentence; one that is written from right to left does not turn its neighbours round."""
    text = readable(_DIRECTION_MARKS.sub("", name))
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        return f"{_BEGIN}{text}{_END}"
    return text


def with_display_names(why: WhyNotData) -> WhyNotData:
    """The same with every label as it is to be shown."""
    shown = _relabelled(why, DisplayNames(dict(_labels(why))))
    assert isinstance(shown, WhyNotData)
    return shown


def _labels(value: Any) -> Iterator[tuple[str, str]]:
    """The identifiers of all its entities, and their labels."""
    if isinstance(value, tuple):
        for each in value:
            yield from _labels(each)
    elif is_dataclass(value):
        for name, label in _NAMED:
            if hasattr(value, name):
                yield getattr(value, name), getattr(value, label)
        if isinstance(value, PathGroup):
            yield from zip(value.entities, value.labels, strict=True)
        for each in fields(value):
            yield from _labels(getattr(value, each.name))


def _relabelled(value: Any, names: DisplayNames) -> Any:
    """The value with the names to show in the place of labels."""
    if isinstance(value, tuple):
        return tuple(_relabelled(each, names) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {each.name: _relabelled(getattr(value, each.name), names) for each in fields(value)}
    for name, label in _NAMED:
        if hasattr(value, name):
            changes[label] = names.entity(getattr(value, name))
    if isinstance(value, PathGroup):
        changes["labels"] = tuple(map(names.entity, value.entities))
    return replace(value, **changes)
