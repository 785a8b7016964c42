"""The network a run trains: refused where this machine cannot hold it, then made on the device of the run."""

from dpmpn.config import Config, ModelConfig
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import memory_budget
from dpmpn.errors import ConfigError
from dpmpn.models.paper.network import AnyNetwork, build_network

_BYTES_TO_TRAIN = 4 * 4  # of each value: itself, two moments and a gradient


def least_values(graph: KnowledgeGraph, model: ModelConfig) -> int:
    """A lower bound of a network's number of values: the tables it has, and a matrix of each width."""
    if model.model == "strong":  # no entity table
        turned = 2 * model.n_dims**2 * (model.relation_vectors in ("turned", "each_step"))
        turned += 3 * model.n_dims**2 * model.n_steps_in_agnn * (model.relation_vectors == "each_step")
        of_relation = turned + (3 * model.n_steps_in_agnn + 5) * model.n_dims
        return graph.n_relations * of_relation + model.n_dims**2
    return (graph.n_entities + graph.n_relations + 1) * model.n_dims + model.n_dims**2 + model.n_dims_att**2


def placed_network(graph: KnowledgeGraph, config: Config) -> AnyNetwork:
    """A network with its initial values, on the device it is trained on."""
    _check_memory(graph, config.model)
    device = config.run.device
    network = build_network(graph.n_entities, graph.n_relations, config.model, config.run.seed)
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:  # how PyTorch says that a device is not there
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device '{device}' cannot be used here ({reason}); use --device cpu") from error


def _check_memory(graph: KnowledgeGraph, model: ModelConfig) -> None:
    needed, machine = _BYTES_TO_TRAIN * least_values(graph, model), 2 * memory_budget(0)
    if needed > machine:
        strong = model.model == "strong"
        sizes = f"n_dims = {model.n_dims} and " + (
            f"relation_vectors = {model.relation_vectors} on {graph.n_relations:,} relations, inverses among them,"
            if strong
            else f"n_dims_att = {model.n_dims_att} on {graph.n_entities:,} entities"
        )
        lower = "lower n_dims, or take relation_vectors = query" if strong else "lower n_dims"
        raise ConfigError(
            f"{sizes} need {needed >> 30:,} GB to train, and this machine has {machine >> 30:,} GB; {lower}"
        )
