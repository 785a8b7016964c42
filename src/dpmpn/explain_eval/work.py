"""The measurement of explanations in parts: each keeps what became of its questions, as JSON."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import polars as pl

from dpmpn.bulk.work import InMemory, Tick, cut, make_parts
from dpmpn.engine.fingerprint import fingerprint
from dpmpn.explain_eval.fidelity import (
    Measured,
    Measurement,
    Nothing,
    Sample,
    draw,
    measure_question,
    split_questions,
)
from dpmpn.explain_eval.report import report_of

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

PART = 16  # questions: each is asked again a few dozen times
_VERSION = 2  # of what a part holds
_COLUMNS = {"measured": pl.String, "nothing": pl.String, "seconds": pl.Float64}


class ExplanationWork:
    """Questions drawn from a split, and the tests of the explanations of their answers."""

    def __init__(self, reasoner: "Reasoner", plan: Measurement) -> None:
        self._reasoner, self._plan = reasoner, plan
        questions = split_questions(reasoner.dataset, plan.split, plan.answers)
        self._of_questions = len(questions)
        self._drawn = draw(questions, plan.sample, plan.seed)
        self.sizes = cut(len(self._drawn), PART)

    @property
    def request(self) -> dict[str, Any]:
        """All that the measures depend on."""
        chosen = {**asdict(self._plan), "draw": self._plan.seed}
        return {
            "command": "explain-eval",
            "version": _VERSION,
            **chosen,
            **fingerprint(self._reasoner.engine, self._reasoner.dataset),
        }

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        """What became of some questions."""
        rows = []
        for done, question in enumerate(self._drawn[index * PART :][:PART].tolist(), 1):
            began = time.perf_counter()
            found = measure_question(self._reasoner, self._plan, question)
            rows.append((*_written(found), time.perf_counter() - began))
            tick(done)
        return pl.DataFrame(rows, _COLUMNS, orient="row")

    def sample(self, frames: Iterable[pl.DataFrame]) -> Sample:
        """What all parts hold."""
        rows = (row for frame in frames for row in frame.select("measured", "nothing").iter_rows())
        return Sample.of([_read(*row) for row in rows], self._of_questions)

    def report(self, frames: Iterable[pl.DataFrame]) -> dict[str, Any]:
        """The measures of all parts, summed up."""
        frames = list(frames)
        seconds = float(sum(frame["seconds"].sum() for frame in frames))
        return report_of(self._reasoner.dataset.name, self._plan, self.sample(frames), seconds)

    def close(self) -> None:
        """End the processes that helped."""
        self._reasoner.engine.close()


def measure_predictions(
    reasoner: "Reasoner",
    plan: Measurement = Measurement(),  # noqa: B008 (frozen)
    progress: Tick | None = None,
) -> Sample:
    """Test explanations of the answers to a sample of a split's questions."""
    work, parts = ExplanationWork(reasoner, plan), InMemory()
    make_parts(work, parts, progress)
    return work.sample(parts.read(range(len(work.sizes))))


def measure_explanations(
    reasoner: "Reasoner",
    plan: Measurement = Measurement(),  # noqa: B008 (frozen)
    progress: Tick | None = None,
) -> dict[str, Any]:
    """How necessary and how sufficient the facts of explanations are, against random ones and shortest paths."""
    work, parts = ExplanationWork(reasoner, plan), InMemory()
    make_parts(work, parts, progress)
    return work.report(parts.read(range(len(work.sizes))))


def _written(found: Measured | Nothing) -> tuple[str | None, str | None]:
    return (None, found.name) if isinstance(found, Nothing) else (json.dumps(asdict(found)), None)


def _read(measured: str | None, nothing: str | None) -> Measured | Nothing:
    if measured is None:
        return Nothing[str(nothing)]
    found: Measured = _restored(Measured, json.loads(measured))
    return found


def _restored(kind: Any, value: Any) -> Any:
    """A value of a type, from what JSON holds of it; numbers come back as they were, to the last bit."""
    if value is None:
        return None
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: _restored(hints[field.name], value[field.name]) for field in fields(kind)})  # type: ignore[operator]
    arguments = get_args(kind)
    if type(None) in arguments:
        return _restored(arguments[0], value)
    if get_origin(kind) is dict:
        return {name: _restored(arguments[1], inner) for name, inner in value.items()}
    if get_origin(kind) is tuple:
        return tuple(_restored(arguments[0], inner) for inner in value)
    return value
