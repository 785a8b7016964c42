"""Single-relation tasks made of any dataset: one relation is asked one way, and few candidates are ranked."""

from dataclasses import replace

import numpy as np

from dpmpn.data.candidates import Candidates
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.errors import DataError

WRONG_PER_HEAD = 10
"""Wrong candidates of a head; the NELL-995 tasks have 2 to 9 on average."""


def single_relation_task(dataset: Dataset, relation: str, seed: int = 0) -> Dataset:
    """The queries of one relation, with candidates: each test head's answers, and wrong ones drawn by the seed.

    A wrong candidate is an answer of the relation to other heads, so that its kind alone does not give it away.
    """
    asked = dataset.graph.relation_names.id(relation, "relation")
    train, valid, test = (_asking(dataset.split(name), asked) for name in SPLITS)
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


def _asking(triples: np.ndarray, relation: int) -> np.ndarray:
    return triples[triples[:, 1] == relation]


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
