"""A tiny graph, settings to train on it in a moment, and what a call of the command line gives back."""

from collections.abc import Callable
from typing import NamedTuple

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
HELD_OUT = {"valid": [("child6", "father", "father6")], "test": [("child7", "father", "father7")]}
TINY = [
    *(
        "--model",
        "paper",
        "--n-dims",
        "6",
        "--n_dims_att",
        "4",
        "--n-steps-in-agnn",
        "3",
        "--n-steps-in-ignn",
        "1",
    ),
    *("--batch-size", "10", "--threads", "1", "--epochs", "2"),
]


class Result(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Result]
