"""The record of a pattern: where it leads in the graph, and how often what it leads to is stated."""

from dataclasses import dataclass

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.evaluate.metrics import wilson
from dpmpn.explain.patterns import Hops, as_rows

COUNTED_EDGES = 1_000_000
"""How many edges are looked at for a record, which takes some milliseconds; beyond, heads are drawn at random."""

_ANSWERS, _STATED, _WANTED = range(3)  # columns of what is counted


@dataclass(frozen=True)
class Tally:
    """How many answers a pattern leads to from some heads, and how many of them are right."""

    heads: int  # from which it leads to an answer
    answers: int  # pairs of a head and an answer, each once
    support: int  # those that are stated
    confidence: float | None  # support per answer; None without answers
    pca_confidence: float | None = None  # the same, counting only heads for which an answer is stated
    low: float | None = None  # of the 95 % interval where heads were drawn; None where all were counted
    high: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether all heads were counted."""
        return self.low is None


@dataclass(frozen=True)
class PatternRecord:
    """How good a reason a pattern is: for what the graph states, and for what it does not, but validation does."""

    graph: Tally
    validation: Tally | None  # of answers that the graph does not state; None without validation facts


def pattern_record(
    graph: KnowledgeGraph,
    asked: int,
    hops: Hops,
    hidden: tuple[int, int] | None = None,
    validation: np.ndarray | None = None,
) -> PatternRecord | None:
    """The record of a pattern as a reason for facts of a relation; None where it is that fact itself, or no fact.

    `hidden` are the head and the answer in question: that fact is neither used nor counted. `validation` (n x 2) are
    the heads and tails of the relation's validation facts. The relation may be an inverse one.
    """
    if not hops or (len(hops) == 1 and hops[0].relation == asked):
        return None
    rows = as_rows(graph, hops)
    heads = graph.heads_of(rows[0][rows[0] >= 0])
    drawn = np.random.default_rng(0).permutation(heads)
    counted = _counted(graph, asked, rows, drawn, hidden, None)
    stated = graph.n_edges_of(drawn[: len(counted)], asked)
    if hidden is not None:
        stated -= (drawn[: len(counted)] == hidden[0]) & graph.has_edge(hidden[0], asked, hidden[1])
    found = _tally(counted[:, _ANSWERS], counted[:, _STATED], stated > 0, len(heads))
    if validation is None or not len(validation):
        return PatternRecord(found, None)
    order = np.lexsort((validation[:, 1], validation[:, 0]))
    wanted = validation[order].astype(np.int64)
    heads, starts = np.unique(wanted[:, 0], return_index=True)
    shuffled = np.random.default_rng(0).permutation(len(heads))
    lists = np.split(wanted[:, 1], starts[1:])
    held = _counted(graph, asked, rows, heads[shuffled], hidden, [lists[at] for at in shuffled.tolist()])
    new = held[:, _ANSWERS] - held[:, _STATED]
    return PatternRecord(found, _tally(new, held[:, _WANTED], np.ones(len(held), bool), len(heads)))


def _counted(
    graph: KnowledgeGraph,
    asked: int,
    rows: np.ndarray,
    heads: np.ndarray,
    hidden: tuple[int, int] | None,
    wanted: list[np.ndarray] | None,  # tails for each head
) -> np.ndarray:
    """Answers, stated ones and wanted ones of each head that was counted, in their order: heads x 3."""
    from dpmpn.explain.chains import count_chains  # compiled, so imported when it is needed

    lengths = np.zeros(len(heads), np.int64) if wanted is None else np.array([*map(len, wanted)], np.int64)
    tails = np.concatenate([np.empty(0, np.int64), *(wanted or ())])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    arrays = graph.inverse, graph.offsets, graph.relations, graph.tails
    pair = hidden or (-1, -1)
    heads = heads.astype(np.int64)
    found: np.ndarray = count_chains(heads, rows, asked, *arrays, offsets, tails, *pair, COUNTED_EDGES)
    return found


def _tally(answers: np.ndarray, right: np.ndarray, is_answered: np.ndarray, of_heads: int) -> Tally:
    """Add up the heads that were counted; where they are a sample, with an interval.

    Answers of one head stand or fall together, so the interval is that of a ratio of two sums over heads: as Wilson's
    for as many independent answers as would vary as much.
    """
    applies, answered = answers > 0, int(answers[is_answered].sum())
    answers, right = answers[applies], right[applies]
    n_heads, total, support = len(answers), int(answers.sum()), int(right.sum())
    drawn = len(applies)
    if not total:
        return Tally(n_heads, 0, 0, None) if drawn == of_heads else Tally(n_heads, 0, 0, None, None, 0.0, 1.0)
    share, pca = support / total, support / answered if answered else None
    if drawn == of_heads:
        return Tally(n_heads, total, support, share, pca)
    rest = right - share * answers
    variance = float((rest**2).sum()) * n_heads / max(n_heads - 1, 1) / total**2 * (1 - drawn / of_heads)
    n = share * (1 - share) / variance if variance > 0 else float(n_heads)
    low, high = (float(end) for end in wilson(np.array(share), n))
    return Tally(n_heads, total, support, share, pca, low, high)
