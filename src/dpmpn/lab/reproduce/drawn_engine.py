"""Asking as the authors' program does, with the IGNN's edges drawn anew for each batch, or drawn once more."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpmpn.engine.batch import NO_EDGES, QueryBatch, sample_ignn_edges
from dpmpn.engine.engine import Engine
from dpmpn.ops.permutation import combine


class DrawnEngine(Engine):
    """An engine that draws by a number of its own, for all batches alike or for each of them."""

    def __init__(self, *engine: Any, draw: int, anew: bool) -> None:
        super().__init__(*engine)
        self._draw, self._anew, self._batches = draw, anew, 0

    def asking_batch(
        self, heads: np.ndarray, relations: np.ndarray, removed: np.ndarray = NO_EDGES
    ) -> QueryBatch:
        """The queries as they always are, and the edges of this draw."""
        batch = super().asking_batch(heads, relations, removed)
        key = combine(
            combine(np.uint64(self.config.run.seed), self._draw), self._batches if self._anew else 0
        )
        self._batches += 1
        drawn = sample_ignn_edges(self.graph, removed, *self.model.settings.ignn_draws, key)
        return replace(batch, ignn_edges=drawn)
