"""What the engine is told: how far to look, what to use of the machine, and what a model says before it is built."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.settings import MOST_SEED, Section, option, refusal

MOST_DIMS, MOST_STEPS = 100_000, 100
"""Of any model: far more than was ever of use."""
MOST_THREADS = 256


@dataclass(frozen=True)
class Horizon(Section):
    """How much of the graph a query may look at in one step (N1, N2 and N3 of Section 2)."""

    max_attending_from_per_step: int = option(20, "N1: nodes a query expands in one step", at_least=1)
    max_sampling_per_node: int = option(200, "N2: edges drawn from each expanded node", at_least=1)
    max_attending_to_per_step: int = option(200, "N3: nodes that get messages in one step", at_least=1)
    strategy: Literal["attention", "boundary", "nodes", "nodes_and_boundary", "three_times"] = option(
        "attention",
        "how a step grows the subgraph: by attention, or by sampling strategy 1 to 4 of Section 2",
    )
    max_sampling_per_relation: int | None = option(
        None, "edges drawn from each relation of an expanded node; none = no cap", at_least=1
    )

    def bound(self, steps: int) -> int | None:
        """The most nodes a query can visit, however large the graph is; None where nothing bounds them.

        1 + T min(N1 N2, N3), or 1 + T N1 N2 where all nodes that are led to are attended to.
        """
        pruning = STRATEGIES[self.strategy]
        if pruning.attending_from == "all" or not pruning.sampling:
            return None
        reached = self.max_attending_from_per_step * self.max_sampling_per_node
        if pruning.attending_to == "all":
            return 1 + steps * reached
        return 1 + steps * min(reached, self.max_attending_to_per_step)


@dataclass(frozen=True)
class Pruning:
    """How the three horizons choose: by attention, at random, or not at all."""

    attending_from: str
    sampling: bool
    attending_to: str


STRATEGIES = {
    "attention": Pruning("attention", True, "attention"),
    "boundary": Pruning("all", True, "all"),
    "nodes": Pruning("random", False, "all"),
    "nodes_and_boundary": Pruning("random", True, "all"),
    "three_times": Pruning("random", True, "random"),
}
"""The attention form and strategies 1 to 4 of Section 2."""


@dataclass(frozen=True)
class RunConfig(Section):
    """What a run may use of the machine, and the seed it draws from."""

    seed: int = option(0, "key of every random draw", at_least=0, at_most=MOST_SEED)
    memory_budget_mb: int = option(
        0, "megabytes a batch may take; larger ones are split; 0 = half of the machine's", at_least=0
    )
    threads: int = option(0, "threads to compute with; 0 = all cores", at_least=0, at_most=MOST_THREADS)
    device: str = option("cpu", "where tensors live: cpu, cuda, cuda:1, mps")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", self.device):
            raise refusal("device", self.device, "cpu, cuda, cuda:<number> or mps")


class MemoryNeed(NamedTuple):
    """Upper bounds of what a model's values take, in bytes."""

    query: int
    """Of one query, alone."""
    node: int = 0
    """Of a node that any query of a batch scans; queries share it."""


Choice = tuple[str, Any, str]
"""A setting's key, its value, and why."""


@dataclass(frozen=True)
class GraphFacts:
    """Statistics of a graph that settings follow from."""

    n_entities: int
    n_edges: int
    """Inverse edges count, self-loops do not."""
    n_train: int
    """Training triples."""
    max_degree: int
    pme_valid: float | None
    """Of the validation triples, the part whose head and tail a training triple joins, too; None without any."""
    tails_per_question: float = 1.0
    """Answers that training states to one of its questions, on average."""
    n_relations: int = 1
    """Inverses count."""

    @property
    def is_small(self) -> bool:
        """Whether there is little to learn from."""
        return self.n_train < 5_000

    @property
    def degree(self) -> float:
        """Edges of an entity, on average."""
        return self.n_edges / max(self.n_entities, 1)

    @property
    def is_sparse(self) -> bool:
        """Whether entities have few edges: WN18RR 4, WN18 7; YAGO3-10 18, FB15K-237 37."""
        return self.degree < 10

    @property
    def distance(self) -> str:
        """How far answers are, in words."""
        far = "far" if self.is_sparse else "near"
        return f"an entity has {self.degree:.1f} edges on average, so answers are {far}"

    @property
    def busiest(self) -> str:
        """How many edges an entity has at most, in words."""
        return f"the busiest entity has {self.max_degree:,} edges"

    @property
    def are_apart(self) -> bool:
        """Whether no fact joins a head to the answer that is asked for."""
        return self.pme_valid is not None and self.pme_valid < 0.01


@dataclass(frozen=True)
class ModelSettings(Section):
    """What every model has, and what the engine asks of one before it has parameters."""

    name: ClassVar[str]

    n_dims: int = option(
        100, "dimensions of node states, messages and embeddings", at_least=1, at_most=MOST_DIMS
    )
    n_steps_in_agnn: int = option(
        6, "reasoning steps: how far attention can flow from the head", at_least=1, at_most=MOST_STEPS
    )

    @property
    def ignn_draws(self) -> tuple[int, int]:
        """How often edges are drawn from the whole graph for each batch, and how many each time."""
        return 0, 0

    def least_values(self, graph: KnowledgeGraph) -> int:
        """A lower bound of the number of parameters on a graph."""
        raise NotImplementedError

    def size_on(self, graph: KnowledgeGraph) -> tuple[str, str]:
        """What makes the model large on a graph, and what makes it smaller: for a person to read."""
        raise NotImplementedError

    def memory_need(self, graph: KnowledgeGraph, horizon: Horizon, training: bool) -> MemoryNeed:
        """What its values take; when training, all steps are kept for the backward pass."""
        raise NotImplementedError

    @classmethod
    def derived(cls, facts: GraphFacts) -> Iterable[Choice]:
        """Settings of any section that suit a graph without a preset."""
        raise NotImplementedError


class EngineConfig(Protocol):
    """The parts of a configuration that the engine reads."""

    @property
    def model(self) -> ModelSettings:
        """The model's settings."""

    @property
    def horizon(self) -> Horizon:
        """The horizon of training."""

    @property
    def run(self) -> RunConfig:
        """The machine and the seed."""

    def asking_horizon(self) -> Horizon:
        """The horizon of asking."""

    @property
    def asking_batch_size(self) -> int:
        """How many questions are asked together where many are."""
