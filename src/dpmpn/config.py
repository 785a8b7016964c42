"""Everything a person can configure: one tree of frozen dataclasses with defaults, help texts and presets."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from dpmpn.arguments import typed
from dpmpn.engine.settings import Horizon, ModelSettings, RunConfig
from dpmpn.errors import ConfigError
from dpmpn.models import MODELS
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.settings import Section, Setting, folded, key_of, option, parsed, refusal, settings_of

ROWS_ABOVE_ENTITIES = 100_000
"""With adam = "auto", larger entity tables are updated row by row; below, a dense Adam costs under 1 %."""


@dataclass(frozen=True)
class AskingConfig(Section):
    """The horizon for asking and evaluating, where it differs from the one for training."""

    ask_attending_from_per_step: int | None = option(
        None, "N1 when asking; none = as in training", at_least=1
    )
    ask_sampling_per_node: int | None = option(None, "N2 when asking; none = as in training", at_least=1)
    ask_attending_to_per_step: int | None = option(None, "N3 when asking; none = as in training", at_least=1)
    ask_sampling_per_relation: int | None = option(
        None, "edges drawn from each relation of a node when asking; none = as in training", at_least=1
    )


@dataclass(frozen=True)
class TrainingConfig(Section):
    """How the model is trained, validated and saved."""

    weight_average: float = option(
        0.0,
        "average of the weights over steps that is validated and kept: 0.998 over about 500; 0 = the last weights",
        at_least=0,
        at_most=1,
    )
    batch_size: int = option(100, "queries in a batch", at_least=1, at_most=1_000_000)
    learning_rate: float = option(0.001, "step size of the optimiser", above=0, at_most=10)
    schedule: Literal["constant", "linear"] = option(
        "constant", "learning rate over the run: constant, or rising over 100 batches, then falling to 1 %"
    )
    grad_clipnorm: float | None = option(1.0, "largest gradient norm of each variable; none = off", above=0)
    joint_targets: int = option(
        1,
        "answers of a question that are learnt together, in one training query",
        at_least=1,
        at_most=1_000_000,
    )
    n_epochs: float = option(
        1.0, "times all training queries are shown; 0.5 is half an epoch", above=0, at_most=1_000_000
    )
    joined_share: float = option(
        1.0,
        "share of facts to train on among those whose entities another training fact joins; the rest are only edges",
        at_least=0,
        at_most=1,
    )
    leak_removal: Literal["triples", "pairs"] = option(
        "triples", "hide from a batch its own triples, or every edge between its head-tail pairs"
    )
    fact_dropout: float = option(
        0.0,
        "largest share of all other facts that is also hidden from a batch, drawn for each batch; 0 = none",
        at_least=0,
        at_most=1,
    )
    optimizer: Literal["adam"] = option("adam", "the optimiser")
    adam: Literal["auto", "dense", "rows"] = option(
        "auto",
        f"update all embeddings or touched rows; auto = rows above {ROWS_ABOVE_ENTITIES:,} entities",
    )
    validate_every_queries: int = option(
        0,
        "training queries between two validations; 0 = at the end of each epoch and of the run",
        at_least=0,
        at_most=10**12,
    )
    validation_queries: int = option(2000, "queries drawn for each validation; 0 = all", at_least=0)
    patience: int | None = option(
        None, "stop after this many validations without improvement; none = never", at_least=1
    )
    checkpoint_every_seconds: float = option(60.0, "seconds between checkpoints; 0 = every batch", at_least=0)

    def adam_by_rows(self, n_entities: int) -> bool:
        """Whether the optimiser updates only touched embedding rows on a graph of this size."""
        return self.adam == "rows" or (self.adam == "auto" and n_entities > ROWS_ABOVE_ENTITIES)


@dataclass(frozen=True)
class Config:
    """The whole tree; every key is unique, so that a key alone names a setting."""

    model: ModelSettings = field(default_factory=PaperSettings)
    horizon: Horizon = field(default_factory=Horizon)
    asking: AskingConfig = field(default_factory=AskingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        for name, owner in SECTIONS.items():
            if not isinstance(getattr(self, name), owner):
                raise refusal(name, getattr(self, name), f"{owner.__name__}(...)")

    def replace(self, **settings: Any) -> "Config":
        """A copy with some settings changed, named by their keys alone."""
        return with_overrides(self, settings)

    def asking_horizon(self) -> Horizon:
        """The horizon for asking: the training horizon with what `asking` sets put in its place."""
        trained, asking = self.horizon, self.asking
        return Horizon(
            asking.ask_attending_from_per_step or trained.max_attending_from_per_step,
            asking.ask_sampling_per_node or trained.max_sampling_per_node,
            asking.ask_attending_to_per_step or trained.max_attending_to_per_step,
            trained.strategy,
            asking.ask_sampling_per_relation or trained.max_sampling_per_relation,
        )

    @property
    def asking_batch_size(self) -> int:
        """How many questions are asked together where many are: as many as in training."""
        return self.training.batch_size


MODEL = "model"
"""The section of the model's settings, and the key in it that says which model they are of."""
SECTIONS: dict[str, type[Section]] = {
    MODEL: ModelSettings,
    "horizon": Horizon,
    "asking": AskingConfig,
    "training": TrainingConfig,
    "run": RunConfig,
}


@cache
def all_settings() -> tuple[Setting, ...]:
    """All settings in order, those of each model after those that all models have: options are made from this."""
    every = "the paper's model, the stronger one, whose states follow from relations alone, or the one for any graph"
    found = [Setting(MODEL, MODEL, str, Config().model.name, every, tuple(MODELS), {})]
    for section, owner in SECTIONS.items():
        found += settings_of(section, owner)
        if section == MODEL:
            found += _settings_of_some({setting.key for setting in found})
    return tuple(found)


def _settings_of_some(shared: set[str]) -> list[Setting]:
    """The settings that not all models have, each once, after the names of those that do."""
    found: dict[str, Setting] = {}
    for settings in MODELS.values():
        for setting in settings_of(MODEL, settings):
            if setting.key not in shared:
                found.setdefault(setting.key, setting)
    owners = {key: [name for name, model in MODELS.items() if _has(model, key)] for key in found}
    return [
        setting._replace(help=f"{', '.join(owners[key])}: {setting.help}") for key, setting in found.items()
    ]


def with_overrides(config: Config, overrides: Mapping[str, Any]) -> Config:
    """A copy with some settings changed by key; strings are parsed by the setting's type.

    With another model, settings that both have stay as they are. A setting of another model than the one in use is
    refused.
    """
    changes: dict[str, dict[str, Any]] = {}
    for name, value in overrides.items():
        section, key = _section_and_key(name)
        changes.setdefault(section, {})[key] = value
    of_model = changes.get(MODEL, {})
    if MODEL in of_model:
        config = replace(config, model=_as_model(config.model, of_model.pop(MODEL)))
    sections: dict[str, Any] = {name: _changed(getattr(config, name), new) for name, new in changes.items()}
    return replace(config, **sections)


def check_overrides(overrides: Mapping[str, Any]) -> str | None:
    """Refuse settings that no model would take; the model that they name, if any.

    Without a name, which model it is may be known only when there is a graph.
    """
    keys = [_section_and_key(name)[1] for name in overrides]
    if MODEL in keys:
        return with_overrides(Config(), overrides).model.name
    for key, value in zip(keys, overrides.values(), strict=True):
        owner = next(
            (model for model, settings in MODELS.items() if _has(settings, key)), Config().model.name
        )
        with_overrides(Config(), {MODEL: owner, key: value})
    return None


def to_dict(config: Config) -> dict[str, dict[str, Any]]:
    """The configuration as nested plain values, ready for JSON."""
    values = asdict(config)
    return values | {MODEL: {MODEL: config.model.name, **values[MODEL]}}


def from_dict(values: Mapping[str, Any]) -> Config:
    """The configuration of a nested dict, as run folders hold it; missing keys take their defaults, unknown are errors.

    Earlier versions wrote the settings of all models, whichever the run was of: those of others are left out.
    """
    sections = _checked_sections(values)
    of_model = sections.pop(MODEL, {})
    owner = _model_named(of_model.pop(MODEL, Config().model.name))
    model = owner(**{key: value for key, value in of_model.items() if _has(owner, key)})
    rest: dict[str, Any] = {name: SECTIONS[name](**new) for name, new in sections.items()}
    return Config(model, **rest)


def preset_names() -> list[str]:
    """Names of the shipped presets, sorted."""
    return sorted(_preset_files())


@typed
def load_preset(name_or_path: str | Path) -> Config:
    """A shipped preset by name (case, dashes and underscores do not matter), or a .toml file of one's own."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text or "\\" in text:
        return _read_preset(Path(name_or_path), text)
    files = _preset_files()
    found = [name for name in files if folded(name) == folded(text)]
    if not found:
        raise ConfigError(
            f"unknown preset '{text}'; there are {', '.join(sorted(files))}; or give the path of a .toml file"
        )
    return _read_preset(files[found[0]], f"preset {found[0]}")


def _preset_files() -> dict[str, Traversable]:
    folder = resources.files("dpmpn") / "presets"
    return {file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")}


def _read_preset(file: Traversable, shown: str) -> Config:
    try:
        values = tomllib.loads(file.read_bytes().decode())
        sections = _checked_sections(values)
        return with_overrides(
            Config(), {key: value for new in sections.values() for key, value in new.items()}
        )
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is not a UTF-8 text file") from error
    except ValueError as error:  # TOMLDecodeError, whose text names line and column, or a too long number
        raise ConfigError(f"{shown} is not valid TOML: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"{shown}: {error}") from error


def _section_and_key(name: str) -> tuple[str, str]:
    """The section and the key of a setting, with dashes and underscores equal."""
    sections = {setting.key: setting.section for setting in all_settings()}
    key = key_of(name, sections)
    return sections[key], key


def _checked_sections(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings by section and key; unknown sections and keys and misplaced keys are refused."""
    sections: dict[str, dict[str, Any]] = {}
    for section, settings in values.items():
        if section not in SECTIONS:
            raise ConfigError(f"unknown section '{section}'; the sections are {', '.join(SECTIONS)}")
        if not isinstance(settings, Mapping):
            raise ConfigError(f"'{section}' is a section of settings and cannot be {settings!r}")
        for name, value in settings.items():
            owner, key = _section_and_key(name)
            if owner != section:
                raise ConfigError(f"'{name}' belongs in section '{owner}', not in '{section}'")
            sections.setdefault(section, {})[key] = value
    return sections


def _as_model(settings: ModelSettings, name: Any) -> ModelSettings:
    """The settings of another model, with what both have; or those that they are."""
    owner = _model_named(name)
    if owner is type(settings):
        return settings
    return owner(**{key: value for key, value in asdict(settings).items() if _has(owner, key)})


def _changed(section: Section, new: Mapping[str, Any]) -> Section:
    if isinstance(section, ModelSettings):
        _refuse_foreign(type(section), new)
    return replace(section, **{key: parsed(type(section), key, value) for key, value in new.items()})


def _model_named(name: Any) -> type[ModelSettings]:
    found = [model for model in MODELS if isinstance(name, str) and folded(model) == folded(name.strip())]
    if not found:
        raise refusal(MODEL, name, " or ".join(f"'{model}'" for model in MODELS))
    return MODELS[found[0]]


def _refuse_foreign(owner: type[ModelSettings], settings: Mapping[str, Any]) -> None:
    for key in settings:
        if not _has(owner, key):
            owners = " and ".join(f"'{name}'" for name, model in MODELS.items() if _has(model, key))
            raise ConfigError(
                f"'{key}' is a setting of the model {owners}, and this is '{owner.name}'; leave it out, or choose "
                "the other model with --model"
            )


def _has(owner: type[Section], key: str) -> bool:
    return any(setting.name == key for setting in fields(owner))
