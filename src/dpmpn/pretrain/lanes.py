"""Lanes: streams of batches from all graphs. An update is the mean gradient of one batch of each lane.

What a lane draws follows from the seed, its number and its places alone: which split of each graph it has come to, and
how many batches of that it has used. So a resumed lane repeats an unbroken one, in whichever process it runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.learning import Gradients
from dpmpn.engine.model import Model, ModelOnGraph
from dpmpn.ops.permutation import combine
from dpmpn.pretrain.questions import Questions
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.pretrain.splits import Facts, drawn_split

_GRAPH, _SPLIT = 1, 2  # keep draws of the same numbers apart
Places = list[list[int]]
"""For each graph the number of its split, and how many batches of that were used."""


@dataclass(frozen=True, eq=False)
class LaneResult:
    """What came of a lane's batch."""

    graph: int
    queries: int
    targets: int
    gradients: Gradients  # of the mean loss over the targets
    places: Places  # after it


class Lane:
    """One stream of batches, and a model that computes their gradients."""

    def __init__(
        self,
        model: Model,
        graphs: Sequence[Facts],
        config: Config,
        settings: PretrainingSettings,
        number: int,
        places: Places,
    ) -> None:
        self.model, self.graphs, self.config, self.settings = model, graphs, config, settings
        self.number, self.places = number, [list(place) for place in places]
        self._whole: dict[int, KnowledgeGraph] = {}
        self._current: dict[int, tuple[ModelOnGraph[Any], Questions]] = {}  # of the split each graph is at
        self._chances = chances(graphs)

    def gradients(self, step: int) -> LaneResult:
        """The gradients of the lane's batch of an update; the lane has then moved on."""
        seed = self.config.run.seed
        graph = drawn_graph(self._chances, seed, self.number, step)
        on_graph, questions = self._split(graph)
        key = np.uint64(combine(np.uint64(combine(np.uint64(seed), self.number)), step))
        batch, targets = questions.batch(self.places[graph][1], key)
        n_targets = len(targets.entities)
        found = on_graph.gradients(batch, targets, self.config.horizon, n_targets)
        self._move_on(graph, len(questions))
        return LaneResult(graph, len(batch), n_targets, found, [list(place) for place in self.places])

    def _split(self, graph: int) -> tuple[ModelOnGraph[Any], Questions]:
        """The split that a graph is at, made where this process does not have it."""
        if graph not in self._current:
            facts = self.graphs[graph]
            if graph not in self._whole:
                self._whole[graph] = KnowledgeGraph.from_ids(*facts[:3])
            draw = np.random.default_rng(
                [self.config.run.seed, self.number, graph, self.places[graph][0], _SPLIT]
            )
            split = drawn_split(facts, self._whole[graph], draw, self.settings)
            training = self.config.training
            questions = Questions(split, draw, training.batch_size, training.joint_targets)
            on_graph = self.model.on(split.graph)
            for other, _ in self._current.values():
                on_graph.pools = other.pools  # memory for one batch, which all graphs can share
                break
            self._current[graph] = on_graph, questions
        return self._current[graph]

    def _move_on(self, graph: int, n_batches: int) -> None:
        place = self.places[graph]
        place[1] += 1
        if place[1] == n_batches:
            place[:] = place[0] + 1, 0
            del self._current[graph]


def drawn_graph(share: np.ndarray, seed: int, lane: int, step: int) -> int:
    """The graph that a lane draws for an update."""
    draw = np.random.default_rng([seed, lane, step, _GRAPH])
    return int(np.searchsorted(np.cumsum(share)[:-1], draw.random(), side="right"))


def chances(graphs: Sequence[Facts]) -> np.ndarray:
    """How likely each graph is drawn: by the root of the number of its facts."""
    roots = np.sqrt([len(facts.triples) for facts in graphs])
    share: np.ndarray = roots / roots.sum()
    return share
