"""A question to a graph of no dataset, where everything that attention reached fits what the relation asks for."""

from functools import cached_property

import numpy as np

from dpmpn.ask.new_answers import Judged
from dpmpn.ask.results import QueryResult


class AllFit(QueryResult):
    """Its answers are stated nowhere, and nothing was measured of them."""

    @cached_property
    def _judged(self) -> Judged:
        n = len(self.reached)
        return Judged(np.zeros(n, np.int8), np.ones(n, bool), {})
