"""The best answers to many questions at once, as rows of a table."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dpmpn.data.dataset import SPLITS
from dpmpn.engine.answer import Answer
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import strongest_paths
from dpmpn.models.paper.unseen import through_unseen

if TYPE_CHECKING:
    from dpmpn.ask.reasoner import Reasoner

BATCH = 256  # questions asked at once; the engine splits them between cores and within memory
_TRACED = 16  # questions asked at once where each step is kept; more of them save little time
_DIGITS = 6  # the seventh digit of a float32 depends on which questions are asked together
_WHY = pl.List(pl.Struct({"facts": pl.List(pl.List(pl.String)), "share": pl.Float64}))


class Answerer:
    """Asks a model, and gives each question's best answers as `Reasoner.predict` would."""

    def __init__(self, reasoner: "Reasoner", top: int, new: bool, why: bool) -> None:
        self._reasoner, self._graph, self._engine = reasoner, reasoner.graph, reasoner.engine
        self._top, self._new, self._why = top, new, why
        self._traced = why or reasoner.unseen is not None
        self._stated = reasoner.stated
        entities = self._graph.entities
        self._names = pl.Series("answer", entities.names, dtype=pl.String)
        self._labels = entities.labels.name if entities.has_labels and entities.labels else None
        self._schema: dict[str, Any] = {
            "asked": pl.Int64,
            "rank": pl.Int64,
            "answer": pl.String,
            **({} if self._labels is None else {"label": pl.String}),
            "probability": pl.Float64,
            "known": pl.Boolean,
            "held_out": pl.String,
            **({} if reasoner.unseen is None else {"through_unseen": pl.Float64}),
            **({"why": _WHY} if why else {}),
        }

    def answer(
        self, heads: np.ndarray, relations: np.ndarray, tick: Callable[[int], None] | None = None
    ) -> pl.DataFrame:
        """Rows of answers with the position of their question, in the order of questions and ranks.

        `tick` is told how many questions were asked, each different one once.
        """
        keys = heads.astype(np.int64) * self._graph.n_relations + relations
        _, first, same = np.unique(keys, return_index=True, return_inverse=True)
        # Attention cannot leave a head without edges, and is no answer there.
        asked = first[self._graph.degree(heads[first]) > 0]
        size = _TRACED if self._traced else BATCH
        found = [pl.DataFrame(schema=self._schema)]
        for start in range(0, len(asked), size):
            found.append(self._asked(asked[start : start + size], heads, relations))
            if tick is not None:
                tick(min(start + size, len(asked)))
        questions = pl.DataFrame({"position": np.arange(len(heads)), "asked": first[same]})
        return questions.join(pl.concat(found), on="asked", maintain_order="left_right").drop("asked")

    def _asked(self, rows: np.ndarray, heads: np.ndarray, relations: np.ndarray) -> pl.DataFrame:
        """Best answers to some different questions; `asked` says to which."""
        heads, relations = heads[rows], relations[rows]
        batch = self._engine.asking_batch(heads, relations)
        answer, trace = self._engine.trace(batch) if self._traced else (self._engine.answer(batch), None)
        at, query, rank = self._best(answer, heads, relations)
        entities = answer.nodes[at]
        probabilities = answer.attention.detach().cpu().numpy()[at].astype(np.float64)
        columns: dict[str, Any] = {
            "asked": rows[query],
            "rank": rank,
            "answer": self._names.gather(entities),
            "probability": pl.Series(probabilities).round_sig_figs(_DIGITS),
            **self._known(heads, relations, query, entities),
        }
        if self._labels is not None:
            columns["label"] = self._labels.gather(entities).fill_null(columns["answer"])
        if self._reasoner.unseen is not None and trace is not None:
            part = through_unseen(answer, trace, self._reasoner.unseen)[at]
            columns["through_unseen"] = pl.Series(part).round_sig_figs(_DIGITS)
        if self._why:
            columns["why"] = self._paths(trace, query, entities)
        return pl.DataFrame({name: columns[name] for name in self._schema}, self._schema)

    def _best(
        self, answer: Answer, heads: np.ndarray, relations: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions of the best answers, their questions, and their ranks from 1."""
        attention = answer.attention.detach().cpu().numpy()
        at = np.flatnonzero(attention > 0)
        query = np.repeat(np.arange(len(heads)), np.diff(answer.offsets))[at]
        if self._new:
            stated = self._is_stated(SPLITS, heads, relations, query, answer.nodes[at])
            at, query = at[~stated], query[~stated]
        order = np.lexsort((-attention[at], query))  # stable: among equals the smaller entity goes first
        at, query = at[order], query[order]
        rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
        chosen = rank <= self._top
        return at[chosen], query[chosen], rank[chosen]

    def _known(
        self, heads: np.ndarray, relations: np.ndarray, query: np.ndarray, entities: np.ndarray
    ) -> dict[str, pl.Series]:
        """Whether each answer is known, and which split it is held out in, null where in none."""
        known = self._is_stated(("train",), heads, relations, query, entities)
        held_out = np.full(len(entities), None, object)
        for split in SPLITS[1:]:
            held_out[self._is_in(split, heads, relations, query, entities) & ~known] = split
        return {"known": pl.Series(known), "held_out": pl.Series(held_out.tolist(), dtype=pl.String)}

    def _is_stated(
        self,
        splits: Sequence[str],
        heads: np.ndarray,
        relations: np.ndarray,
        query: np.ndarray,
        entities: np.ndarray,
    ) -> np.ndarray:
        """Whether the graph or some splits state each answer."""
        stated = self._graph.find_edges(heads[query], relations[query], entities) >= 0
        for split in splits:
            stated |= self._is_in(split, heads, relations, query, entities)
        return stated

    def _is_in(
        self, split: str, heads: np.ndarray, relations: np.ndarray, query: np.ndarray, entities: np.ndarray
    ) -> np.ndarray:
        """Whether a split states each answer."""
        offsets, tails = self._stated[split].lookup(heads, relations)
        n_entities = self._graph.n_entities
        stated = np.repeat(np.arange(len(heads)), np.diff(offsets)) * n_entities + tails
        return np.isin(query * n_entities + entities, stated)

    def _paths(
        self, trace: ReasoningTrace | None, query: np.ndarray, entities: np.ndarray
    ) -> list[list[dict]]:
        """The facts behind each answer, as `dpmpn predict --why --json` gives them."""
        flows = {question: QueryFlow.of(trace, question) for question in np.unique(query).tolist()}  # type: ignore[arg-type]
        return [
            [
                {"facts": [list(fact) for fact in path.facts], "share": float(f"{path.share:.{_DIGITS}g}")}
                for path in strongest_paths(AnswerFlow.to(flows[question], entity), self._graph)
            ]
            for question, entity in zip(query.tolist(), entities.tolist(), strict=True)
        ]
