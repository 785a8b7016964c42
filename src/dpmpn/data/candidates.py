"""The candidates of a NELL-995 task: which head-tail pairs are ranked, and which of them are true."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmpn.data.readers import decode_line, read_content
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError

CANDIDATES_FILE = "sort_test.pairs"
UNKNOWN_ENTITY = -1
_LINE = re.compile(r"thing\$(.+),thing\$(.+): ([+-])")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs asked about one relation, one row a candidate, in the order of the file."""

    relation: int  # the task's relation
    heads: np.ndarray  # int32, n_candidates; -1 for an entity the graph does not have, which scores 0
    tails: np.ndarray  # int32, n_candidates; likewise
    positive: np.ndarray  # bool, n_candidates

    def __len__(self) -> int:
        return len(self.heads)


def read_candidates(path: Path, entities: Vocabulary, relation: int) -> Candidates:
    """Read lines `thing$head,thing$tail: +` (or `-`).

    Four of the tasks list some right answers a second time as wrong ones, where a head has several: an answer that is
    right is not wrong, and the second line is left out.
    """
    lines = enumerate(read_content(path).split(b"\n"), start=1)
    rows = [_read_line(f"{path}, line {number}", line) for number, line in lines]
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
    text = decode_line(where, line)
    match = _LINE.fullmatch(text)
    if match is None:
        raise DataError(f"{where}: '{text}' is not a candidate; write 'thing$head,thing$tail: +' or ': -'")
    return match[1], match[2], match[3]


def _ids(names: tuple[str, ...], entities: Vocabulary) -> np.ndarray:
    ids = (entities.id(name) if name in entities else UNKNOWN_ENTITY for name in names)
    return np.fromiter(ids, np.int32, len(names))
