"""Asks all questions part by part, keeps the best missing facts, and says what speaks for each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path

import polars as pl

from dpmpn.ask.core import fingerprint
from dpmpn.ask.reasoner import Reasoner
from dpmpn.ask.tables import Parts, table_format
from dpmpn.complete.calibration import Calibration
from dpmpn.complete.facts import FACT, FACTS, Finder, as_text, best_facts, described, facts_of
from dpmpn.complete.measure import calibration_of, digest_of
from dpmpn.complete.questions import Asking, Questions, check_questions
from dpmpn.data.dataset import SPLITS
from dpmpn.errors import ConfigError, DataError

PART = 4096  # questions; a killed run loses at most one part
_VERSION = 3  # of what a part holds
_EXPLAINED = 256  # facts of a part when reasons are looked for

Tick = Callable[[str, int, int], None]
"""Told what is being done ("measured", "asked" or "explained"), how much of it, and of how much."""


def complete(
    reasoner: Reasoner,
    relations: Sequence[str] | None = None,
    head_type: str | None = None,
    top: int = 100,
    min_probability: float | None = None,
    out: str | Path | None = None,
    *,
    asking: Asking = Asking(),  # noqa: B008 (frozen)
    held_out: bool = False,
    max_questions: int | None = None,
    calibration: Calibration | None = None,
    progress: Tick | None = None,
    say: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """The most probable facts that no split and no edge states, the best first.

    With `out` the table is written there, too; a run that was killed goes on when it is called again. With
    `held_out` validation and test facts count as missing and are marked. `calibration` is measured if not given.
    """
    ids = checked_request(reasoner, relations, head_type, top, min_probability, asking, max_questions)
    tick = progress or (lambda *_: None)
    if calibration is None:
        calibration = calibration_of(
            reasoner, asking, progress=lambda done, total: tick("measured", done, total)
        )
    request = {
        "command": "complete",
        "version": _VERSION,
        "relations": ids,
        **{"head_type": head_type, "top": top, "min_probability": min_probability},
        **{"held_out": held_out, "max_questions": max_questions, "asking": asdict(asking)},
        **fingerprint(reasoner.engine, reasoner.dataset),
        "calibration_sha256": digest_of(calibration and calibration.to_dict()),
    }
    # The table's name and place are tried before questions are counted.
    with nullcontext() if out is None else Parts(out, request) as parts:
        known = ("train",) if held_out else SPLITS
        questions = Questions(reasoner.dataset, asking, ids, head_type, max_questions, known)
        if questions.left_out and say is not None:
            say(
                f"{questions.left_out:,} questions are left out for --max-questions {max_questions:,}: "
                "those whose entities are least like the ones that have an answer"
            )
        finder = Finder(reasoner, known, asking.answers)

        def found(first: int) -> pl.DataFrame:
            tick("asked", first, questions.total)
            part = questions.part(first, min(first + PART, questions.total))
            answers = finder.find(
                part, questions.of_type, lambda done: tick("asked", first + done, questions.total)
            )
            return facts_of(reasoner.graph, calibration, part, answers)

        n_parts = -(-questions.total // PART)
        try:
            best = probable = _best(found, n_parts, top, parts)
            if min_probability is not None:
                probable = best.filter(pl.col("probability") >= min_probability)
            if probable.is_empty() and say is not None:
                say(_why_none(best, min_probability))
            describe = partial(described, reasoner, calibration, held_out)
            frames = list(_explained(probable, describe, n_parts, parts, tick))
        finally:
            reasoner.engine.close()
        if parts is not None:
            parts.finish(frames if table_format(parts.out) in ("jsonl", "parquet") else map(as_text, frames))
    return pl.concat(frames)


def checked_request(
    reasoner: Reasoner,
    relations: Sequence[str] | None,
    head_type: str | None,
    top: int,
    min_probability: float | None,
    asking: Asking,
    max_questions: int | None,
) -> list[int] | None:
    """Ids of the relations, ascending; what `complete` cannot do is refused here, before anything is measured."""
    _check_numbers(reasoner, top, min_probability, max_questions)
    graph, ids = reasoner.graph, None
    if relations is not None:
        ids = sorted({graph.relation_names.id(name, "relation", graph.n_forward) for name in relations})
    check_questions(reasoner.dataset, asking, ids, head_type)
    return ids


def _check_numbers(
    reasoner: Reasoner, top: int, min_probability: float | None, max_questions: int | None
) -> None:
    if top < 1:
        raise ConfigError(f"'--top' must be at least 1, not {top}")
    if max_questions is not None and max_questions < 1:
        raise ConfigError(f"'--max-questions' must be at least 1, not {max_questions}")
    if min_probability is None:
        return
    if not 0 <= min_probability <= 1:
        raise ConfigError(f"'--min-probability' must be from 0 to 1, not {min_probability:g}")
    if not len(reasoner.dataset.valid):
        raise DataError(
            "--min-probability needs validation facts to tell probabilities by, and this run has none; "
            "leave it out, or train on a dataset with a validation split"
        )


def _why_none(best: pl.DataFrame, min_probability: float | None) -> str:
    """Why there are no facts."""
    probabilities = best["probability"].drop_nulls().to_list()
    if min_probability is None or not probabilities:
        return "no missing facts were found"
    return f"no missing fact is as probable as {min_probability:g}; the best has {max(probabilities):.3f}"


def _best(
    found: Callable[[int], pl.DataFrame],  # the facts of the part that begins with a question
    n_parts: int,
    top: int,
    parts: Parts | None,
) -> pl.DataFrame:
    """The best facts of all questions; in memory are those of one part and the best so far."""
    best, done = pl.DataFrame(schema=FACTS), 0
    if parts is not None:
        done = min(parts.done(), n_parts)
        for frame in islice(parts.read(), done):
            best = best_facts(best, frame, top)
    for index in range(done, n_parts):
        facts = found(index * PART)
        best = best_facts(best, facts, top)
        if parts is not None:
            # What better facts have pushed out already cannot come back, so it need not be kept.
            parts.write(index, facts.join(best.select(FACT), on=FACT, how="semi"))
    return best


def _explained(
    best: pl.DataFrame,
    describe: Callable[[pl.DataFrame, int], pl.DataFrame],
    n_before: int,  # parts
    parts: Parts | None,
    tick: Tick,
) -> Iterator[pl.DataFrame]:
    """The facts with all that is said about them, in frames of which the first is there even without facts."""
    done = parts.done() - n_before if parts is not None else 0
    if parts is not None:
        yield from islice(parts.read(), n_before, None)
    for index in range(done, max(-(-len(best) // _EXPLAINED), 1)):
        tick("explained", index * _EXPLAINED, len(best))
        frame = describe(best.slice(index * _EXPLAINED, _EXPLAINED), index * _EXPLAINED)
        if parts is not None:
            parts.write(n_before + index, frame)
        yield frame
    tick("explained", len(best), len(best))
