"""Settings for a graph without a preset, derived from its statistics."""

from typing import Any

from dpmpn.config import Config, with_overrides

_Choice = tuple[str, Any, str]  # key, value, reason


def derived_defaults(
    n_entities: int,
    n_edges: int,
    n_train: int,
    max_degree: int,
    pme_valid: float | None,
    model: str = "paper",
    tails_per_question: float = 1.0,
    n_relations: int = 1,
) -> tuple[Config, list[str]]:
    """Settings of the "paper" or the "strong" model for a graph without a preset, each with a sentence that says why.

    `n_edges` counts inverse edges but no self-loops. `pme_valid` is the proportion of validation triples
    whose head and tail a training triple joins too; None without validation triples. `tails_per_question` is the
    mean number of answers that training states to a training query; only the strong model asks for it and for
    `n_relations`, which counts inverses.
    """
    small = n_train < 5_000
    degree = n_edges / max(n_entities, 1)
    if model == "strong":
        chosen = [
            *_strong_sizes(small, degree, n_relations),
            *_strong_horizon(degree, max_degree),
            *_strong_training(pme_valid, tails_per_question),
            *_derived_epochs(n_train, pme_valid),
        ]
    else:
        chosen = [
            *_derived_sizes(small, degree, n_train),
            *_derived_horizon(n_entities, max_degree),
            _derived_batch(small, degree),
            *_derived_epochs(n_train, pme_valid),
        ]
    config = with_overrides(Config(), {key: value for key, value, _ in chosen})
    return config, [f"{key} = {_shown(value)}: {reason}" for key, value, reason in chosen]


def _way(degree: float) -> str:
    return f"an entity has {degree:.1f} edges on average, so answers are {'far' if _is_sparse(degree) else 'near'}"


def _is_sparse(degree: float) -> bool:
    return degree < 10  # edges per entity: WN18RR 4, WN18 7; YAGO3-10 18, FB15K-237 37


def _derived_sizes(small: bool, degree: float, n_train: int) -> list[_Choice]:
    sparse = _is_sparse(degree)
    steps = (8 if sparse else 6) - (2 if small else 0)
    size = f"{n_train:,} training triples are {'few, so states are small' if small else 'enough'}"
    huge = n_train > 1_000_000
    return [
        ("n_dims", 32 if small else 100, size + ("" if small else " for the paper's dimensions")),
        ("n_dims_att", 16 if small else 50, "half of n_dims, as in the paper"),
        ("n_steps_in_agnn", steps, _way(degree) + (", but the graph is small" if small and sparse else "")),
        ("n_steps_in_ignn", 1 if huge else 2, f"as in the paper on {'YAGO3-10' if huge else 'WN18RR'}"),
    ]


def _derived_horizon(n_entities: int, max_degree: int) -> list[_Choice]:
    sampled = "some are drawn at each step" if max_degree > 200 else "none is left out"
    attended = "the best 200" if n_entities > 200 else "all"
    return [
        ("max_attending_from_per_step", 20, "as in the paper"),
        ("max_sampling_per_node", 200, f"the busiest entity has {max_degree:,} edges, so {sampled}"),
        (
            "max_attending_to_per_step",
            200,
            f"of {n_entities:,} entities, {attended} can get messages in a step",
        ),
    ]


def _derived_batch(small: bool, degree: float) -> _Choice:
    if small:
        return "batch_size", 32, "small batches make more updates of few triples"
    if degree > 30:  # FB15K-237 37, FB15K 65: the paper takes batches of 80 there
        return "batch_size", 80, "the graph is dense, as FB15K-237 is"
    return "batch_size", 100, "as in the paper"


def _are_apart(pme_valid: float | None) -> bool:
    """Whether no fact joins a head to the answer that is asked for."""
    return pme_valid is not None and pme_valid < 0.01


def _derived_epochs(n_train: int, pme_valid: float | None) -> list[_Choice]:
    epochs = min(max(round(250_000 / max(2 * n_train, 1)), 1), 30)
    shown = "few, so they are shown" if epochs > 1 else "enough to be shown"
    times = f"{epochs} times" if epochs > 1 else "once"
    apart = _are_apart(pme_valid)
    if pme_valid is None:
        leak = "there are no validation triples to tell whether answers share a pair with other edges"
    else:
        leak = f"{pme_valid:.1%} of the validation pairs are joined by a training triple" + (
            ", as in FB15K-237, so such edges must not help in training"
            if apart
            else ", so such edges may help"
        )
    many = epochs >= 5
    choices: list[_Choice] = [
        ("n_epochs", epochs, f"{n_train:,} training triples are {shown} {times}"),
        ("leak_removal", "pairs" if apart else "triples", leak),
        (
            "validate_every_queries",
            0 if many else 50_000,
            "at the end of each epoch" if many else "epochs are long, so they are validated in between",
        ),
    ]
    if many and pme_valid is not None:
        choices.append(
            ("patience", 5, f"training may end before {epochs} epochs when five bring nothing better")
        )
    return choices


# With inverses; WN18RR has 22, FB15K-237 474, FB15K 2,690.
_FEW_RELATIONS = 100  # maps for each of eight steps have 2.5 million parameters
_MANY_RELATIONS = 5000  # maps for all steps have 10 million


def _strong_sizes(small: bool, degree: float, n_relations: int) -> list[_Choice]:
    sparse = _is_sparse(degree)
    steps = (8 if sparse else 5) - (2 if small else 0)
    return [
        ("model", "strong", "it is better than the paper's on graphs like this, and needs no more time"),
        ("n_dims", 32, "states follow from relations alone, and need few dimensions"),
        (
            "n_steps_in_agnn",
            steps,
            _way(degree) + (f", {'but' if sparse else 'and'} the graph is small" if small else ""),
        ),
        _relation_vectors(n_relations),
    ]


def _relation_vectors(n_relations: int) -> _Choice:
    each = f"{n_relations:,} relations with inverses are"
    if n_relations > _MANY_RELATIONS:
        return "relation_vectors", "query", f"{each} too many to have a map of the relation asked each"
    if n_relations > _FEW_RELATIONS:
        return "relation_vectors", "turned", f"{each} few enough to have a map of the relation asked each"
    return (
        "relation_vectors",
        "each_step",
        f"{each} few enough to have a map of the relation asked for each step",
    )


def _strong_horizon(degree: float, max_degree: int) -> list[_Choice]:
    sparse = _is_sparse(degree)
    n2 = 200 if sparse else 4000
    busiest = f"the busiest entity has {max_degree:,} edges"
    sampled = "some are drawn at each step" if max_degree > n2 else "none is left out"
    choices: list[_Choice] = [
        (
            "max_attending_from_per_step",
            100,
            "a node costs little where messages are made once for each relation",
        ),
        ("max_sampling_per_node", n2, f"{busiest}, so {sampled}"),
    ]
    if not sparse:
        choices.append(
            ("max_sampling_per_relation", 200, f"{busiest}, and some of each relation tell what it is")
        )
    choices.append(("max_attending_to_per_step", 400, "of all nodes that are led to, few are worth a state"))
    if sparse:
        choices.append(
            ("ask_attending_from_per_step", 200, "asking costs less than training, and looks further")
        )
        choices.append(("ask_attending_to_per_step", 1000, "where answers are far, many may be on the way"))
    return choices


def _strong_training(pme_valid: float | None, tails_per_question: float) -> list[_Choice]:
    many = tails_per_question > 2
    if many:
        joint = (
            f"a training question has {tails_per_question:.1f} answers on average, which are learnt together"
        )
    elif _are_apart(pme_valid):
        joint = "facts are hidden by pairs, so that answers of a question can be learnt together"
    else:
        joint = (
            f"a training question has {tails_per_question:.1f} answers on average, so each is learnt alone"
        )
    return [
        ("batch_size", 32, "small batches make more updates"),
        (
            "learning_rate",
            0.005,
            "higher than the paper's, as it falls",
        ),
        ("schedule", "linear", "a high learning rate has to fall"),
        ("weight_average", 0.998, "the average over some 500 steps is better than any one of them"),
        ("joint_targets", 8 if many or _are_apart(pme_valid) else 1, joint),
    ]


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
