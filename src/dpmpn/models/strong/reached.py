"""What the steps of a batch came to, before any softmax."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from dpmpn.models.strong.profiles import Kinds


@dataclass(frozen=True, eq=False)
class Reached:
    """Logits of the visited nodes, and of each kind for all others."""

    offsets: np.ndarray  # queries + 1
    query: np.ndarray  # visited nodes: their query
    nodes: np.ndarray  # int32, and entity
    logits: Tensor  # visited nodes
    kinds: Kinds
    prior: Tensor  # queries x kinds: logits of entities that were not visited
