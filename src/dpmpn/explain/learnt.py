"""What a model has learnt about a relation: the patterns that brought attention to right answers, put together."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.explanation import PATTERN_PATHS, PATTERN_SHARE
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.paths import strongest_walks
from dpmpn.explain.patterns import HopPattern, Hops, Instance, patterns_of
from dpmpn.explain.record import PatternRecord, pattern_record

_KEPT_INSTANCES = 30  # of a pattern: examples, and what types are read from


@dataclass(frozen=True)
class LearntPattern:
    """A pattern over all questions; the share of its examples is the part of their own answer's attention."""

    pattern: HopPattern  # its share is the mean over all questions
    questions: int  # in which attention came along it
    record: PatternRecord | None


@dataclass(frozen=True, eq=False)
class LearntRelation:
    """The patterns of one relation, by ids, those of the largest mean share first."""

    graph: KnowledgeGraph
    asked: int  # the relation; an inverse one was asked backwards
    questions: int  # that were asked
    reached: int  # of their stated answers attention reached so many
    kinds: int  # patterns that were found in all
    patterns: tuple[LearntPattern, ...]


@dataclass
class _Found:
    share: float = 0.0
    questions: int = 0
    instances: list[Instance] = field(default_factory=list)


class PatternCollection:
    """Adds up the patterns of answers to questions of one relation."""

    def __init__(self, graph: KnowledgeGraph, asked: int) -> None:
        self._graph, self._asked = graph, asked
        self._questions = self._reached = 0
        self._found: dict[Hops, _Found] = {}

    def add(self, flow: AnswerFlow) -> None:
        """Count the answer of one more question, whether attention reached it or not."""
        self._questions += 1
        if not flow.is_reached:
            return
        self._reached += 1
        walks = strongest_walks(flow, PATTERN_PATHS, PATTERN_SHARE)
        for pattern in patterns_of(self._graph, int(flow.query.nodes[flow.query.head]), walks):
            found = self._found.setdefault(pattern.hops, _Found())
            found.share += pattern.share
            found.questions += 1
            strongest = [*found.instances, pattern.instances[0]]
            found.instances = sorted(strongest, key=lambda each: -each.share)[:_KEPT_INSTANCES]

    def add_all(self, flows: Iterable[AnswerFlow]) -> None:
        """The same of several."""
        for flow in flows:
            self.add(flow)

    def relation(self, top: int, validation: np.ndarray | None) -> LearntRelation:
        """The strongest patterns with their records."""
        order = sorted(self._found.items(), key=lambda item: -item[1].share)
        patterns = tuple(
            LearntPattern(
                HopPattern(hops, found.share / self._questions, tuple(found.instances)),
                found.questions,
                pattern_record(self._graph, self._asked, hops, None, validation),
            )
            for hops, found in order[:top]
        )
        return LearntRelation(self._graph, self._asked, self._questions, self._reached, len(order), patterns)
