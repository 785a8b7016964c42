"""How good a model is, for people: one table of its scores, its best and worst relations, and what to expect of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import combining, east_asian_width

import numpy as np

from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.metrics import MAP_TITLES, TIES, TITLES, wilson
from dpmpn.wording import counted, listed, one_line, percentage

DIRECTIONS = {"both": "both", "tail": "<head, relation, ?>", "head": "<?, relation, tail>"}
"""What tables call the directions, by their keys."""
_SPLITS = {"test": "test", "valid": "validation", "train": "training"}
_TIES_MATTER = 0.01  # of any metric, between ties placed first and placed last
_SHOWN_RELATIONS = 3  # best ones, and as many worst ones
_ENOUGH = 10  # questions of a relation: fewer say little about it
_HARDLY = 0.1  # MRR below which a relation can hardly be predicted
_HARDER = 0.05  # difference in MRR at which one direction is called harder
_ROUGH = 0.05  # half an interval above which a share is told with its interval
_NUMBERS = ("questions", *TITLES.values(), "coverage")


def held_out_split(dataset: Dataset) -> str | None:
    """The split that says how good a model is: test, else validation; None where nothing is held out."""
    return next((split for split in ("test", "valid") if len(dataset.split(split))), None)


@dataclass(frozen=True)
class Report:
    """The scores of a model, as `evaluate` gives them, ready to be read."""

    scores: Mapping[str, Any]
    labels: Mapping[str, str]  # what to show for a relation, by its name
    n_facts: int  # of the split, of which not all may have been asked

    @classmethod
    def of(cls, scores: Mapping[str, Any], dataset: Dataset) -> "Report":
        """The report of a dataset's scores."""
        names = dataset.graph.relation_names
        labels = {name: names.label(names.id(name)) for name in scores.get("per_relation", ())}
        return cls(scores, labels, len(dataset.split(scores["split"])))

    def __str__(self) -> str:
        return self.text()

    def text(self, all_ties: bool = False, all_relations: bool = False) -> str:
        """All of it; ties are shown only where they matter, and of many relations the best and the worst."""
        parts = [self.heading(), self.table(all_ties)]
        if "per_relation" in self.scores:
            parts.append(self.relation_table(all_relations))
        if "map" in self.scores:
            parts.append(self._precision_table(all_ties))
        return "\n\n".join([*parts, "\n".join(self.expectations())])

    def heading(self) -> str:
        """What was asked."""
        scores = self.scores
        facts = counted(scores["triples"], f"{_SPLITS[scores['split']]} fact")
        if scores["triples"] < self.n_facts:
            facts = (
                f"{scores['triples']:,} of {self.n_facts:,} {_SPLITS[scores['split']]} facts, drawn at random"
            )
        unseen = f"; {scores['unseen']:,} with an entity that has no training fact" * bool(scores["unseen"])
        return f"{facts}; {counted(scores['queries'], 'question')}{unseen}"

    def table(self, all_ties: bool = False) -> str:
        """The scores in both directions and in each, in percent."""
        summaries = {DIRECTIONS[key]: self.scores[key] for key in DIRECTIONS if self.scores[key] is not None}
        if not all_ties and not any(_ties_matter(summary) for summary in summaries.values()):
            rows = [[label, *_cells(summary)] for label, summary in summaries.items()]
            return _laid_out(["direction", *_NUMBERS], rows, 1)
        rows = []
        for label, summary in summaries.items():
            for ties in TIES:
                count, *scores, coverage = _cells(summary, ties)
                first = ties == TIES[0]
                rows.append([label, ties, count, *scores, coverage] if first else ["", ties, "", *scores, ""])
        return _laid_out(["direction", "ties", *_NUMBERS], rows, 2)

    def relation_table(self, every: bool = False) -> str:
        """The scores of each relation, the best first; of many only the first and the last of them."""
        ranked = self._ranked(1)
        if not every and len(ranked) > 2 * _SHOWN_RELATIONS:
            ranked = self._ranked(_ENOUGH) or ranked
        rows = [[self.labels[name], *_cells(summary)] for name, summary in ranked]
        if not every and len(rows) > 2 * _SHOWN_RELATIONS:
            rows[_SHOWN_RELATIONS:-_SHOWN_RELATIONS] = [["..."] + [""] * len(_NUMBERS)]
        return _laid_out(["relation", *_NUMBERS], rows, 1)

    def expectations(self) -> Iterator[str]:
        """What to expect of the model's answers, in sentences."""
        both = self.scores["both"]
        first, ten = (both["realistic"][f"hits_at_{k}"] for k in (1, 10))
        yield (
            f"Of 100 first answers, expect about {100 * first:.0f} to be right{_interval(first, both['queries'])}. "
            f"The right answer is among the first ten in about {100 * ten:.0f} of 100."
        )
        if self.scores["head"] is not None:
            mrr = {key: self.scores[key]["realistic"]["mrr"] for key in ("tail", "head")}
            harder, easier = sorted(mrr, key=lambda key: mrr[key])
            if mrr[easier] - mrr[harder] >= _HARDER:
                yield (
                    f"Questions {DIRECTIONS[harder]} are harder (MRR {percentage(mrr[harder])}) "
                    f"than {DIRECTIONS[easier]} (MRR {percentage(mrr[easier])})."
                )
        yield from self._hardly_predictable()
        if self.scores["split"] == "valid":
            yield "There are no test facts. Validation facts also selected the model, so expect slightly worse results."
        if self.scores["split"] == "train":
            yield "The model has seen these facts in training, so expect worse results on others."

    def _hardly_predictable(self) -> Iterator[str]:
        if "per_relation" not in self.scores:
            return
        hard = [self.labels[name] for name, s in self._ranked(_ENOUGH) if s["realistic"]["mrr"] < _HARDLY][
            ::-1
        ]
        if hard:
            more = [f"{len(hard) - _SHOWN_RELATIONS:,} more"] if len(hard) > _SHOWN_RELATIONS else []
            names = listed([f"'{one_line(name)}'" for name in hard[:_SHOWN_RELATIONS]] + more)
            yield f"{names} can hardly be predicted (MRR below {100 * _HARDLY:.0f})."

    def _ranked(self, least: int) -> list[tuple[str, Mapping[str, Any]]]:
        """Relations with so many questions and their scores in both directions, the best first."""
        found = [(name, each["both"]) for name, each in self.scores["per_relation"].items()]
        found = [(name, summary) for name, summary in found if summary["queries"] >= least]
        return sorted(found, key=lambda pair: (-pair[1]["realistic"]["mrr"], pair[0]))

    def _precision_table(self, all_ties: bool) -> str:
        precision = self.scores["map"]
        matter = any(_differs(precision, mean) for mean in MAP_TITLES)
        ways = TIES if all_ties or matter else TIES[:1]
        rows = [[ties, *(percentage(precision[ties][mean]) for mean in MAP_TITLES)] for ties in ways]
        return _laid_out(["ties", *MAP_TITLES.values()], rows, 1)


def _ties_matter(summary: Mapping[str, Any]) -> bool:
    return any(_differs(summary, metric) for metric in TITLES)


def _differs(summary: Mapping[str, Any], key: str) -> bool:
    return bool(summary["optimistic"][key] - summary["pessimistic"][key] > _TIES_MATTER)


def _cells(summary: Mapping[str, Any], ties: str = TIES[0]) -> list[str]:
    scores = [percentage(summary[ties][metric]) for metric in TITLES]
    return [f"{summary['queries']:,}", *scores, percentage(summary["coverage"])]


def _interval(share: float, n: int) -> str:
    """The 95 % interval of a share that few questions were asked for, else nothing."""
    low, high = (100 * float(end) for end in wilson(np.array(share), n))
    return f" (between {low:.0f} and {high:.0f})" if high - low > 200 * _ROUGH else ""


def _laid_out(titles: Sequence[str], rows: Sequence[Sequence[str]], n_texts: int) -> str:
    """A table in plain text: the first columns hold texts, the others numbers."""
    lines = [[one_line(cell) for cell in row] for row in (titles, *rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell + " " * (width - _width(cell)) if at < n_texts else " " * (width - _width(cell)) + cell
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
