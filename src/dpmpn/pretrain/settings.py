"""Settings of pre-training: how graphs are drawn, divided and changed, beside the configuration every model has."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpmpn.config import SECTIONS, Config, with_overrides
from dpmpn.errors import ConfigError
from dpmpn.settings import Section, Setting, option, parsed, settings_of

MODEL = "any-graph"
SECTION = "pretraining"
_DIFFERENCES = {
    "n_dims": 32,
    "n_steps_in_agnn": 6,
    "relation_vectors": "query",
    "max_attending_from_per_step": 100,
    "max_sampling_per_node": 1000,
    "max_attending_to_per_step": 400,
    "max_sampling_per_relation": 200,
    "ask_attending_from_per_step": 200,
    "ask_sampling_per_node": 4000,
    "ask_attending_to_per_step": 1000,
    "batch_size": 32,
    "joint_targets": 8,
    "learning_rate": 0.003,
    "schedule": "linear",
    "weight_average": 0.998,
}
_USED = {
    "model": ("n_dims", "n_steps_in_agnn", "profiles", "gates", "n_relation_layers"),
    "training": (
        "batch_size",
        "joint_targets",
        "learning_rate",
        "grad_clipnorm",
        "weight_average",
        "checkpoint_every_seconds",
    ),
    "run": ("seed", "threads"),
}
"""Settings of sections that are not used as a whole."""
_MEANT = {"grad_clipnorm": "largest norm of the whole gradient; none = off"}
"""Settings that mean something else here."""


@dataclass(frozen=True)
class PretrainingSettings(Section):
    """What is drawn from the graphs, and how much."""

    questions: int = option(1_000_000, "questions to train on", at_least=1, at_most=10**12)
    batches_per_update: int = option(
        2,
        "batches, each of a graph that is drawn for it, whose mean gradient is one update",
        at_least=1,
        at_most=64,
    )
    subgraph_share: float = option(
        0.5, "part of the splits that are made of a random part of their graph", at_least=0, at_most=1
    )
    least_subgraph_facts: int = option(2_500, "facts of the smallest such part", at_least=100)
    most_subgraph_facts: int = option(25_000, "facts of the largest such part", at_least=100)
    least_hidden: float = option(
        0.05, "smallest part of a split's facts that is hidden and asked for", above=0, at_most=0.9
    )
    most_hidden: float = option(
        0.35, "largest part of a split's facts that is hidden and asked for", above=0, at_most=0.9
    )
    most_hidden_facts: int = option(12_000, "most facts of a split that are hidden and asked for", at_least=1)
    hide_pairs: float = option(
        0.05,
        "part of the splits in which every fact between the two entities of a hidden one is hidden, too",
        at_least=0,
        at_most=1,
    )
    drop_doubled: float = option(
        0.75,
        "part of the splits that lose the relations most of whose facts repeat those of another, or its inverse",
        at_least=0,
        at_most=1,
    )
    thin_facts: float = option(
        0.0, "part of the splits that lose up to 30 % of their other facts", at_least=0, at_most=1
    )
    drop_relations: float = option(
        0.2, "part of the splits that lose up to 30 % of their relations", at_least=0, at_most=1
    )
    merge_relations: float = option(
        0.0,
        "part of the splits in which up to 30 % of the relations become one with another",
        at_least=0,
        at_most=1,
    )
    validate_every: int = option(
        25_000, "questions between two validations, which leave usable weights", at_least=1, at_most=10**12
    )
    validation_facts: int = option(
        200, "facts of each validation graph that are asked for, in both directions", at_least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for least, most in (
            ("least_hidden", "most_hidden"),
            ("least_subgraph_facts", "most_subgraph_facts"),
        ):
            if getattr(self, least) > getattr(self, most):
                raise ConfigError(
                    f"'{least}' is {getattr(self, least):g}, above '{most}' of {getattr(self, most):g}; change one"
                )


def default_config() -> Config:
    """The configuration that pre-training starts from."""
    return with_overrides(Config(), {"model": MODEL, **_DIFFERENCES})


def all_options() -> list[Setting]:
    """All that can be set, with the values that it has where nothing is said: options are made from this."""
    config = default_config()
    found = settings_of(SECTION, PretrainingSettings)
    for section in SECTIONS:
        values = getattr(config, section)
        for setting in settings_of(section, type(values)):
            if setting.key in _USED.get(section, (setting.key,)):
                meant = _MEANT.get(setting.key, setting.help)
                found.append(setting._replace(default=getattr(values, setting.key), help=meant))
    return found


def chosen(
    given: Mapping[str, str], config: Config, settings: PretrainingSettings
) -> tuple[Config, PretrainingSettings]:
    """The configuration and the settings with those changed that were given, as texts by key."""
    own = {setting.key for setting in settings_of(SECTION, PretrainingSettings)}
    drawn = {key: parsed(PretrainingSettings, key, text) for key, text in given.items() if key in own}
    others = {key: text for key, text in given.items() if key not in own}
    return with_overrides(config, others), replace(settings, **drawn)
