"""Single-relation tasks: one relation is asked one way, and few candidates are ranked; those of NELL-995, or any."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmpn.data.dataset import SPLITS, UNKNOWN_ENTITY, Candidates, Dataset
from dpmpn.data.sources.lines import encoding_problem, text_chunks
from dpmpn.data.sources.unpack import open_unpacked
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError

CANDIDATES_FILE = "sort_test.pairs"
WRONG_PER_HEAD = 10
"""Wrong candidates of a head; the NELL-995 tasks have 2 to 9 on average."""

_LINE = re.compile(r"thing\$(.+),thing\$(.+): ([+-])")


def single_relation_task(dataset: Dataset, relation: str, seed: int = 0) -> Dataset:
    """The queries of one relation, with candidates: each test head's answers, and wrong ones drawn by the seed.

    A wrong candidate is an answer of the relation to other heads, so that what it is alone does not give it away.
    """
    asked = dataset.graph.relation_names.id(relation, "relation")
    train, valid, test = (rows[rows[:, 1] == asked] for rows in map(dataset.split, SPLITS))
    for name, facts in (("train", train), ("test", test)):
        if not len(facts):
            raise DataError(
                f"dataset '{dataset.name}' has no {name} facts of '{relation}'; choose another relation"
            )
    return replace(
        dataset,
        name=f"{dataset.name}/{relation}",
        train=train,
        valid=valid,
        test=test,
        both_directions=False,
        candidates=_candidates(test, np.concatenate([train, valid, test]), np.random.default_rng(seed)),
        folder=None,
    )


def _candidates(test: np.ndarray, known: np.ndarray, draw: np.random.Generator) -> Candidates:
    """Candidates of the test heads; what is known of a head is never drawn as wrong."""
    answers = np.unique(known[:, 2])
    rows: list[tuple[int, int, bool]] = []
    for head in np.unique(test[:, 0]):
        right = test[test[:, 0] == head, 2]
        others = np.setdiff1d(answers, known[known[:, 0] == head, 2])
        wrong = draw.choice(others, min(WRONG_PER_HEAD, len(others)), replace=False)
        rows.extend((head, tail, True) for tail in right)
        rows.extend((head, tail, False) for tail in wrong)
    heads, tails, positive = (np.array(column) for column in zip(*rows, strict=True))
    return Candidates(int(test[0, 1]), heads.astype(np.int32), tails.astype(np.int32), positive)


def read_candidates(path: Path, entities: Vocabulary, relation: int) -> Candidates:
    """Read lines `thing$head,thing$tail: +` (or `-`).

    Four of the tasks list some right answers a second time as wrong ones, where a head has several: an answer that is
    right is not wrong, and the second line is left out.
    """
    with open_unpacked(path) as stream:
        content = b"".join(chunk.content for chunk in text_chunks(stream))
    lines = content.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    rows = [_read_line(f"{path}, line {number:,}", line) for number, line in enumerate(lines, start=1)]
    right = {(head, tail) for head, tail, sign in rows if sign == "+"}
    rows = [row for row in rows if row[2] == "+" or row[:2] not in right]
    heads, tails, signs = zip(*rows, strict=True)
    return Candidates(
        relation=relation,
        heads=_ids(heads, entities),
        tails=_ids(tails, entities),
        positive=np.array([sign == "+" for sign in signs]),
    )


def _read_line(where: str, line: bytes) -> tuple[str, str, str]:
    if problem := encoding_problem(line):
        raise DataError(f"{where}: {problem.text}; {problem.advice}")
    text = line.decode("utf-8")
    match = _LINE.fullmatch(text)
    if match is None:
        raise DataError(f"{where}: '{text}' is not a candidate; write 'thing$head,thing$tail: +' or ': -'")
    return match[1], match[2], match[3]


def _ids(names: tuple[str, ...], entities: Vocabulary) -> np.ndarray:
    ids = (entities.id(name) if name in entities else UNKNOWN_ENTITY for name in names)
    return np.fromiter(ids, np.int32, len(names))
