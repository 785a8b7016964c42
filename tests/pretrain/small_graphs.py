"""Small made-up graphs with regularities to learn, and settings that train on them in a second."""

import numpy as np

from dpmpn.config import Config
from dpmpn.pretrain.graphs import NamedGraph
from dpmpn.pretrain.settings import PretrainingSettings, chosen, default_config
from dpmpn.pretrain.splits import Facts, renumbered


def family_facts(n_families: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Parents, children, marriages and homes: what is hidden follows from the rest."""
    draw, facts = np.random.default_rng(seed), []
    for family in range(n_families):
        mother, father, town = f"m{family}", f"f{family}", f"t{draw.integers(5)}"
        facts += [(mother, "husband", father), (mother, "lives in", town), (father, "lives in", town)]
        for child in range(int(draw.integers(1, 4))):
            name = f"c{family}-{child}"
            facts += [(name, "mother", mother), (name, "father", father), (name, "lives in", town)]
    return facts


def numbered(facts: list[tuple[str, str, str]]) -> Facts:
    """Facts in numbers, sorted."""
    entities = sorted({name for head, _, tail in facts for name in (head, tail)})
    relations = sorted({relation for _, relation, _ in facts})
    rows = {(entities.index(h), relations.index(r), entities.index(t)) for h, r, t in facts}
    return renumbered(np.array(sorted(rows), np.int64))


def small_graph(n_families: int, seed: int = 0) -> NamedGraph:
    """One graph."""
    return NamedGraph(f"families-{seed}", numbered(family_facts(n_families, seed)), ())


def small_settings(**changes: str) -> tuple[Config, PretrainingSettings]:
    """Settings for a run of about a second."""
    small = {
        "n_dims": "4",
        "n_steps_in_agnn": "2",
        "n_relation_layers": "1",
        "batch_size": "8",
        "threads": "1",
        "questions": "200",
        "validate_every": "100",
        "least_subgraph_facts": "100",
        "most_subgraph_facts": "200",
        "validation_facts": "10",
        "checkpoint_every_seconds": "0",
    }
    return chosen(small | changes, default_config(), PretrainingSettings())
