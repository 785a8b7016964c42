"""Patterns by names, each with the sentence that says it and its record in words."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import TYPES_APART
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.patterns import Hop, HopPattern, Hops, Instance
from dpmpn.explain.record import PatternRecord, Tally
from dpmpn.render.names import DisplayNames
from dpmpn.render.relation_words import (
    article,
    readable_words,
    relation_words,
    several,
    type_words,
    verb_and_noun,
)
from dpmpn.wording import counted, listed, one_line, percent, plural, sentence

_SHOWN_VARYING = 3  # entities that are named of those that vary
_ANY = "entity"  # the word for what has no type
_SAYS_TYPE = frozenset({"type", "has type", "is a", "isa", "instance of"})  # relations
_NUMBERED = re.compile(r"([A-Za-z]{3,})[\s_-]*\d+")
Shown = Callable[[str], str]


@dataclass(frozen=True)
class PatternRelation:
    """A relation of a pattern, by the name that the facts have."""

    relation: str
    label: str
    inverse: bool  # whether attention went from the facts' tails to their heads
    either_way: bool  # whether it may have gone so or so: most facts of the relation are stated both ways


@dataclass(frozen=True)
class PatternInstance:
    """Entities along which a pattern led, from the head to the answer."""

    entities: tuple[str, ...]
    labels: tuple[str, ...]
    share: float  # of the answer's attention

    @classmethod
    def of(cls, graph: KnowledgeGraph, instance: Instance) -> "PatternInstance":
        """An instance by its names."""
        names, entities = graph.entities, instance.entities
        return cls(tuple(map(names.name, entities)), tuple(map(names.label, entities)), instance.share)


@dataclass(frozen=True)
class Varying:
    """What is not the same in all instances of a pattern."""

    place: int  # after so many facts
    count: int
    what: str  # products; entities, where they have no type in common


@dataclass(frozen=True)
class Pattern:
    """Paths with the same relations in the same order."""

    sentence: str
    share: float  # of the answer's attention
    relations: tuple[PatternRelation, ...]
    instances: tuple[PatternInstance, ...]  # strongest first
    varies: tuple[Varying, ...]
    record: PatternRecord | None  # None where it is the fact itself that was asked for, or no fact at all

    def __repr__(self) -> str:
        return f"Pattern({self.share:.0%}: {self.sentence})"


def named_patterns(explanation: ExplanationData, shown: Shown = str) -> tuple[Pattern, ...]:
    """The patterns of an explanation by names, strongest first; `shown` says names as they are to be seen."""
    graph, found = explanation.graph, explanation.hop_patterns
    relations = [explanation.asked, *(hop.relation for pattern in found for hop in pattern.hops)]
    sentences = Sentences.of(graph, found, relations, shown)
    return tuple(
        Pattern(
            sentences.explained(explanation.asked, pattern),
            pattern.share,
            relations_of(graph, pattern.hops),
            tuple(PatternInstance.of(graph, instance) for instance in pattern.instances),
            varying_of(pattern, sentences),
            record,
        )
        for pattern, record in zip(found, explanation.pattern_records, strict=True)
    )


def varying_of(pattern: HopPattern, sentences: "Sentences") -> tuple[Varying, ...]:
    """What is not the same in all instances of a pattern, in words."""
    return tuple(
        Varying(place, len(entities), several(sentences.kind(pattern.hops[place - 1], entities)))
        for place, entities in pattern.varying()
    )


def relations_of(graph: KnowledgeGraph, hops: Hops) -> tuple[PatternRelation, ...]:
    """The relations of a pattern by their names."""
    found = []
    for hop in hops:
        inverse = bool(graph.is_inverse[hop.relation])
        relation = int(graph.inverse[hop.relation]) if inverse else hop.relation
        names = graph.relation_names
        found.append(PatternRelation(names.name(relation), names.label(relation), inverse, hop.either_way))
    return tuple(found)


class _Kinds:
    """What entities are called for what they are: by their types, or else by their names."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph, self._types = graph, graph.entities.types
        names = enumerate(graph.relation_names.packed[: graph.n_forward])
        said = ((id, " ".join(readable_words(name)).lower()) for id, name in names)
        self._relations = [id for id, words in said if words in _SAYS_TYPE]  # whose facts say types

    def of(self, entities: Sequence[int]) -> str:
        """The first type that all of some entities have, or what all are named by, as product-12 is."""
        types = [self._types_of(entity) for entity in entities]
        common = [type for type in types[0] if all(type in others for others in types[1:])]
        if common:
            return type_words(common[0])
        found = [_NUMBERED.fullmatch(self._graph.entities.label(entity)) for entity in entities]
        words = {match[1].lower() if match else _ANY for match in found}
        return words.pop() if len(words) == 1 else _ANY

    def _types_of(self, entity: int) -> list[str]:
        if self._types is not None:
            return [type for type in (self._types[entity] or "").split(TYPES_APART) if type]
        graph, found = self._graph, []
        for relation in self._relations:
            around = np.array([relation, relation + 1])
            edges = graph.edge_positions(np.full(2, entity), around, np.full(2, -1))
            found += [graph.entities.label(tail) for tail in graph.tails[slice(*edges)].tolist()]
        return found


@dataclass(frozen=True)
class _Place:
    """An entity of a sentence: one that has a name, or any of a kind."""

    first: str  # what it is called when it is first said
    again: str
    is_any: bool = False

    @property
    def which(self) -> str:
        """What begins a clause about it."""
        return " that" if self.is_any else ", which"


class Sentences:
    """Makes sentences of patterns."""

    def __init__(self, graph: KnowledgeGraph, names: DisplayNames, shown: Shown = str) -> None:
        self._graph, self._names, self._shown = graph, names, shown
        self._kinds = _Kinds(graph)

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        patterns: Sequence[HopPattern],
        relations: Iterable[int],
        shown: Shown = str,
    ) -> "Sentences":
        """For some patterns and relations, whose names are told apart where they have the same label."""
        entities = {
            entity for each in patterns for instance in each.instances for entity in instance.entities
        }
        forward = {int(graph.inverse[id]) if graph.is_inverse[id] else id for id in relations}
        labels = (
            {names.name(id): names.label(id) for id in sorted(ids)}
            for names, ids in ((graph.entities, entities), (graph.relation_names, forward))
        )
        return cls(graph, DisplayNames(*labels), shown)

    def explained(self, asked: int, pattern: HopPattern) -> str:
        """What a pattern says of one answer: what is the same in all its instances has its name."""
        strongest, varying = pattern.instances[0].entities, dict(pattern.varying())
        if not pattern.hops:
            return sentence(f"The attention never left {self._entity(strongest[0])}")
        seen, places, which = [self._kinds.of(strongest[:1])], [self._named(strongest[0])], []
        for at, (hop, entity) in enumerate(zip(pattern.hops, strongest[1:], strict=True), 1):
            if at in varying:
                kind = self.kind(hop, varying[at])
                places.append(_any(kind, seen, verb_and_noun(self._words(hop).forward)[1]))
                seen.append(kind)
                which.append(self._some(kind, varying[at]))
            else:
                places.append(self._named(entity))
        said = self._chain(pattern.hops, places)
        if places[1].is_any and said.startswith(places[1].first):
            said = said[0].upper() + said[1:]
        itself = "; this is the fact that was asked for" if pattern.hops == (Hop(asked),) else ""
        return sentence(said + (f": {listed(which)}" if which else itself))

    def rule(self, asked: int, pattern: HopPattern) -> str:
        """What a pattern says of any two entities X and Y, as a reason for a relation."""
        if not pattern.hops:
            return sentence("The attention never left X")
        columns = list(zip(*(instance.entities for instance in pattern.instances), strict=True))
        x, y = _Place("X", "X"), _Place("Y", "Y")
        seen, places = [self._kinds.of(columns[0])], [x]
        for hop, entities in zip(pattern.hops[:-1], columns[1:-1], strict=True):
            kind = self.kind(hop, entities)
            places.append(_any(kind, seen, verb_and_noun(self._words(hop).forward)[1]))
            seen.append(kind)
        return sentence(f"{self._chain((Hop(asked),), [x, y])} if {self._chain(pattern.hops, [*places, y])}")

    def kind(self, hop: Hop, entities: Sequence[int]) -> str:
        """The word for entities that a hop leads to: their type, or what the relation makes of them, if anything."""
        kind = self._shown(one_line(self._kinds.of(entities)))
        return verb_and_noun(self._words(hop).forward)[1] or kind if kind == _ANY else kind

    def _chain(self, hops: Hops, places: list[_Place]) -> str:
        """The facts of a chain in one sentence, in the order in which attention passed them.

        A place that was said last goes on with "that" or "which", one that a clause began with, with "and".
        """
        # Where the place that is reached was said: at the end, first, "where" it is, or within a clause.
        said, last = "", "end"
        for hop, (here, there) in zip(hops, pairwise(places), strict=True):
            words = self._words(hop)
            if words.forward is not None:
                # "has a neighbour", not "has neighbour a country"
                verb = verb_and_noun(words.forward)[0] if there.is_any else ""
                clause = f"{verb or words.forward} {there.first}"
                if not said:
                    said = f"{here.first} {clause}"
                elif last == "end" or (last == "where" and here.is_any):
                    said += f"{here.which} {clause}"
                else:
                    said += f" and {clause}" if last == "first" else f", and {here.again} {clause}"
                last = "end"
                continue
            if not said:
                said, last = f"{there.first} {words.reverse} {here.first}", "first"
            elif last == "end" and words.reverse_without_place is not None:
                said += f"{'' if here.is_any else ','} where {there.first} {words.reverse_without_place}"
                last = "where"
            elif last == "end":
                said, last = f"{said}{here.which} {there.first} {words.reverse}", "within"
            else:
                said, last = f"{said}, and {there.first} {words.reverse} {here.again}", "within"
        return said

    def _words(self, hop: Hop) -> "_Words":
        backwards = bool(self._graph.is_inverse[hop.relation])
        relation = int(self._graph.inverse[hop.relation]) if backwards else hop.relation
        name = self._graph.relation_names.name(relation)
        words = relation_words(self._shown(self._names.relation(name)))
        if backwards or (hop.either_way and verb_and_noun(words.backward)[1]):
            return _Words(words.backward, words.forward, words.without_place)
        return _Words(words.forward, words.backward, None)

    def _named(self, entity: int) -> _Place:
        name = self._entity(entity)
        return _Place(name, name)

    def _entity(self, entity: int) -> str:
        return self._shown(self._names.entity(self._graph.entities.name(entity)))

    def _some(self, kind: str, entities: Sequence[int]) -> str:
        """How many entities, and the first of them: 4 products (A, B, C and 1 more)."""
        names = [self._entity(entity) for entity in entities[:_SHOWN_VARYING]]
        if more := entities[_SHOWN_VARYING:]:
            names.append(f"{len(more):,} more")
        return f"{counted(len(entities), kind, several(kind))} ({listed(names)})"


class _Words(NamedTuple):
    """How a hop is said in its direction, where that can be, and the other way round."""

    forward: str | None
    reverse: str | None
    reverse_without_place: str | None


def _any(kind: str, seen: Sequence[str], noun: str) -> _Place:
    """Any entity of a kind; another one, where one of that kind was said before.

    Where it is had as something, it is called that.
    """
    said = noun or kind
    again = f"that {said}"
    if kind in seen or said in seen:
        return _Place(f"another {said}", again, is_any=True)
    return _Place(article(said), again, is_any=True)


def record_text(record: PatternRecord | None) -> str:
    """The record in a sentence or two; nothing where there is none."""
    if record is None:
        return ""
    told, held = _tally_text(record.graph), record.validation
    if held is None or held.confidence is None:
        return told
    return (
        f"{told} To validation questions it adds {counted(held.answers, 'answer')}; {held.support:,} "
        f"{plural(held.support, 'is', 'are')} right ({percent(held.confidence)}{_interval(held)})."
    )


def _tally_text(tally: Tally) -> str:
    if tally.confidence is None and not tally.is_exact:
        return "It leads along too many paths to be counted."
    if tally.confidence is None:
        return "In the graph it leads to no other answer, so nothing else speaks for it or against it."
    alone = ""
    if tally.pca_confidence is not None and percent(tally.pca_confidence) != percent(tally.confidence):
        alone = f"; {percent(tally.pca_confidence)} where any answer is stated"
    return (
        f"In the graph it leads from {counted(tally.heads, 'entity', 'entities')} to "
        f"{counted(tally.answers, 'answer')}; {tally.support:,} {plural(tally.support, 'is', 'are')} stated "
        f"({percent(tally.confidence)}{_interval(tally)}{alone})."
    )


def _interval(tally: Tally) -> str:
    if tally.low is None or tally.high is None:
        return ""
    return f", {percent(tally.low)} to {percent(tally.high)} by a sample"
