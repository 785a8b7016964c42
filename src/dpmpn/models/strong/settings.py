"""Settings of the stronger model, and the sizes that follow from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import FLOAT, INTEGERS_PER_EDGE, attended_to, largest_scan
from dpmpn.engine.settings import Choice, GraphFacts, Horizon, MemoryNeed, ModelSettings
from dpmpn.settings import option

# Relations with inverses; WN18RR has 22, FB15K-237 474, FB15K 2,690.
_FEW_RELATIONS = 100  # maps for each of eight steps have 2.5 million parameters
_MANY_RELATIONS = 5000  # maps for all steps have 10 million


@dataclass(frozen=True)
class StrongSettings(ModelSettings):
    """Sizes and forms of the stronger model, whose states follow from relations alone."""

    name: ClassVar[str] = "strong"

    relation_vectors: Literal["each_step", "turned", "query", "plain"] = option(
        "turned",
        "how what a relation adds to a message depends on the relation asked: by maps that each relation has for each "
        "step and one for all steps, by that one, by layers that all relations share alone, or not at all",
    )
    profiles: Literal["on", "prior", "off"] = option(
        "on",
        "whether the relations an entity has count for its state and its probability, for its probability alone, or "
        "not at all",
    )
    gates: Literal["edges", "nodes", "off"] = option(
        "edges",
        "whether messages are weighed by the attention that flows along their edges, by their senders' attention, or "
        "not, so that it only chooses what is expanded (and N3 keeps what most edges lead to)",
    )

    def least_values(self, graph: KnowledgeGraph) -> int:
        """What each relation has; entities have nothing."""
        turned = 2 * self.n_dims**2 * (self.relation_vectors in ("turned", "each_step"))
        turned += 3 * self.n_dims**2 * self.n_steps_in_agnn * (self.relation_vectors == "each_step")
        return graph.n_relations * (turned + (3 * self.n_steps_in_agnn + 5) * self.n_dims) + self.n_dims**2

    def size_on(self, graph: KnowledgeGraph) -> tuple[str, str]:
        """It grows with the relations."""
        forms = f"n_dims = {self.n_dims} and relation_vectors = {self.relation_vectors}"
        sizes = f"{forms} on {graph.n_relations:,} relations, inverses among them,"
        return sizes, "lower n_dims, or take relation_vectors = query"

    def memory_need(self, graph: KnowledgeGraph, horizon: Horizon, training: bool) -> MemoryNeed:
        """A step's vectors, and those of the read-out.

        Per node attended to: state before, sum and mean of messages, change, new state and score's layer, with
        gradients (19 n_dims). Per node attended from: what it sends, with its gradient (6 n_dims). Per relation: what
        it adds to a message, the layer before it and what the query makes of it, with gradients (20 n_dims). The
        read-out has two layers of twice n_dims for each visited node, and the prior and its softmax some numbers for
        each profile: there are no more than entities, and in training one more for each that loses a fact. What a batch
        makes once for each profile is not counted.
        """
        edges = largest_scan(graph, horizon)
        attended = attended_to(min(edges, graph.n_entities), horizon)
        senders = min(horizon.max_attending_from_per_step, graph.n_entities)
        values = (attended * 19 + senders * 6 + (graph.n_relations + 1) * 20) * self.n_dims
        step = values * FLOAT + edges * INTEGERS_PER_EDGE
        visited = min(1 + self.n_steps_in_agnn * attended, graph.n_entities)
        profiles = (2 if training else 1) * graph.n_entities
        read_out = (visited * 8 * self.n_dims + profiles * 12) * FLOAT
        return MemoryNeed(read_out + step * (self.n_steps_in_agnn if training else 1))

    @classmethod
    def derived(cls, facts: GraphFacts) -> Iterator[Choice]:
        """What suits a graph without a preset; how it was found: docs/stronger.md."""
        small, sparse = facts.is_small, facts.is_sparse
        far = facts.distance + (f", {'but' if sparse else 'and'} the graph is small" if small else "")
        n2 = 200 if sparse else 4000
        sampled = "some are drawn at each step" if facts.max_degree > n2 else "none is left out"
        yield "model", "strong", "it is more accurate than the paper's: docs/stronger.md"
        yield "n_dims", 32, "states depend on relations alone and need few dimensions"
        yield "n_steps_in_agnn", (8 if sparse else 5) - (2 if small else 0), far
        yield _relation_vectors(facts.n_relations)
        cheap = "a node costs little, because messages are computed once for each relation"
        yield "max_attending_from_per_step", 100, cheap
        yield "max_sampling_per_node", n2, f"{facts.busiest}, so {sampled}"
        if not sparse:
            why = f"{facts.busiest}, and some edges of each relation show what a node is"
            yield "max_sampling_per_relation", 200, why
        yield "max_attending_to_per_step", 400, "of all nodes that edges lead to, few are worth a state"
        if sparse:
            yield "ask_attending_from_per_step", 200, "asking costs less than training, and looks further"
            yield (
                "ask_attending_to_per_step",
                1000,
                "where answers are far away, many nodes may be on the way",
            )
        yield "batch_size", 32, "small batches make more updates"
        yield "learning_rate", 0.005, "higher than the paper's, as it falls"
        yield "schedule", "linear", "a high learning rate has to fall"
        yield "weight_average", 0.998, "the average over about 500 steps is better than any single one"
        yield _joint_targets(facts)


def _relation_vectors(n_relations: int) -> Choice:
    each = f"{n_relations:,} relations with inverses are"
    if n_relations > _MANY_RELATIONS:
        return "relation_vectors", "query", f"{each} too many to have a map of the relation asked each"
    why = f"{each} few enough to have a map of the relation asked"
    if n_relations > _FEW_RELATIONS:
        return "relation_vectors", "turned", f"{why} each"
    return "relation_vectors", "each_step", f"{why} for each step"


def _joint_targets(facts: GraphFacts) -> Choice:
    answers = f"a training question has {facts.tails_per_question:.1f} answers on average"
    if facts.tails_per_question > 2:
        return "joint_targets", 8, f"{answers}, which are learnt together"
    if facts.are_apart:
        why = "facts are hidden by pairs, so that answers of a question can be learnt together"
        return "joint_targets", 8, why
    return "joint_targets", 1, f"{answers}, so each is learnt alone"
