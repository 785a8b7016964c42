"""Everything a person can configure: one tree of frozen dataclasses with defaults, help texts and presets."""

import difflib
import numbers
import re
import sys
import tomllib
import types
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dpmpn.errors import ConfigError

ROWS_ABOVE_ENTITIES = 100_000
"""With adam = "auto", larger entity tables are updated row by row; below, a dense Adam costs under 1 %."""


def _option(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: int | None = None,
) -> Any:
    """A dataclass field with its help text and the range its value must lie in."""
    bounds = {"at_least": at_least, "above": above, "at_most": at_most}
    return field(default=default, metadata={"help": help, **bounds})


@dataclass(frozen=True)
class _Section:
    """A group of settings that checks each value against its field's type and range."""

    def __post_init__(self) -> None:
        for option in fields(self):
            object.__setattr__(self, option.name, _checked(type(self), option, getattr(self, option.name)))


@dataclass(frozen=True)
class ModelConfig(_Section):
    """Sizes and forms of the two graph networks and the attention module."""

    model: Literal["paper", "strong"] = _option(
        "paper", "the paper's model, or the stronger one, whose states follow from relations alone"
    )
    n_dims: int = _option(100, "dimensions of node states, messages and embeddings", at_least=1)
    n_dims_att: int = _option(50, "dimensions in which the attention module works", at_least=1)
    n_steps_in_ignn: int = _option(2, "steps of the inattentive GNN; 0 leaves the embeddings", at_least=0)
    n_steps_in_agnn: int = _option(6, "reasoning steps: how far attention can flow from the head", at_least=1)
    max_sampling_per_step: int = _option(10_000, "edges drawn for each step of the IGNN", at_least=1)
    softmax: Literal["edge", "pair"] = _option(
        "edge", "one softmax entry per edge (the authors' program) or per node pair (the paper's equation)"
    )
    ignn_output: Literal["last", "pool"] = _option(
        "last", "the last IGNN state, or the mean over its steps including step 0"
    )
    relation_vectors: Literal["each_step", "turned", "query", "plain"] = _option(
        "turned",
        "strong: how what a relation adds to a message depends on the relation asked: by maps that each relation has "
        "for each step and one for all steps, by that one, by layers that all relations share alone, or not at all",
    )
    profiles: Literal["on", "prior", "off"] = _option(
        "on",
        "strong: whether the relations an entity has count for its state and its probability, for its probability "
        "alone, or not at all",
    )
    gates: Literal["edges", "nodes", "off"] = _option(
        "edges",
        "strong: whether messages are weighed by the attention that flows along their edges, by their senders' "
        "attention, or not, so that it only chooses what is expanded (and N3 keeps what most edges lead to)",
    )

    @property
    def ignn_steps(self) -> int:
        """Steps of the inattentive GNN, which the stronger model does not have."""
        return self.n_steps_in_ignn if self.model == "paper" else 0


@dataclass(frozen=True)
class Horizon(_Section):
    """How much of the graph a query may look at in one step (N1, N2 and N3 of Section 2)."""

    max_attending_from_per_step: int = _option(20, "N1: nodes a query expands in one step", at_least=1)
    max_sampling_per_node: int = _option(200, "N2: edges drawn from each expanded node", at_least=1)
    max_attending_to_per_step: int = _option(200, "N3: nodes that get messages in one step", at_least=1)
    strategy: Literal["attention", "boundary", "nodes", "nodes_and_boundary", "three_times"] = _option(
        "attention",
        "how a step grows the subgraph: by attention, or by sampling strategy 1 to 4 of Section 2",
    )
    max_sampling_per_relation: int | None = _option(
        None, "edges drawn from each relation of an expanded node; none = no cap", at_least=1
    )

    def bound(self, steps: int) -> int | None:
        """The most nodes a query can visit, 1 + T min(N1 N2, N3); None where no such bound holds."""
        if self.strategy not in ("attention", "three_times"):
            return None
        reached = self.max_attending_from_per_step * self.max_sampling_per_node
        return 1 + steps * min(reached, self.max_attending_to_per_step)


@dataclass(frozen=True)
class AskingConfig(_Section):
    """The horizon for asking and evaluating, where it differs from the one for training."""

    ask_attending_from_per_step: int | None = _option(
        None, "N1 when asking; none = as in training", at_least=1
    )
    ask_sampling_per_node: int | None = _option(None, "N2 when asking; none = as in training", at_least=1)
    ask_attending_to_per_step: int | None = _option(None, "N3 when asking; none = as in training", at_least=1)
    ask_sampling_per_relation: int | None = _option(
        None, "edges drawn from each relation of a node when asking; none = as in training", at_least=1
    )


@dataclass(frozen=True)
class TrainingConfig(_Section):
    """How the model is trained, validated and saved."""

    weight_average: float = _option(
        0.0,
        "average of the weights over steps that is validated and kept: 0.998 over about 500; 0 = the last weights",
        at_least=0,
        at_most=1,
    )
    batch_size: int = _option(100, "queries in a batch", at_least=1)
    learning_rate: float = _option(0.001, "step size of the optimiser", above=0)
    schedule: Literal["constant", "linear"] = _option(
        "constant", "learning rate over the run: as it is, or rising over 100 batches, then falling to 1 %"
    )
    grad_clipnorm: float | None = _option(1.0, "largest gradient norm of each variable; none = off", above=0)
    joint_targets: int = _option(
        1, "answers of a question that are learnt together, in one training query", at_least=1
    )
    n_epochs: float = _option(1.0, "times all training queries are shown; 0.5 is half an epoch", above=0)
    joined_share: float = _option(
        1.0,
        "share of the facts that is learnt where another training fact joins the same entities; the rest are edges",
        at_least=0,
        at_most=1,
    )
    leak_removal: Literal["triples", "pairs"] = _option(
        "triples", "hide from a batch its own triples, or every edge between its head-tail pairs"
    )
    fact_dropout: float = _option(
        0.0,
        "up to what part of all other facts is hidden from a batch, too, drawn anew for each; 0 = none",
        at_least=0,
        at_most=1,
    )
    optimizer: Literal["adam"] = _option("adam", "the optimiser")
    adam: Literal["auto", "dense", "rows"] = _option(
        "auto",
        f"update all embeddings or touched rows; auto = rows above {ROWS_ABOVE_ENTITIES:,} entities",
    )
    validate_every_queries: int = _option(
        0, "training queries between two validations; 0 = at the end of each epoch and of the run", at_least=0
    )
    validation_queries: int = _option(2000, "queries drawn for each validation; 0 = all", at_least=0)
    patience: int | None = _option(
        None, "stop after so many validations without a better one; none = never", at_least=1
    )
    checkpoint_every_seconds: float = _option(
        60.0, "seconds between checkpoints; 0 = every batch", at_least=0
    )

    def adam_by_rows(self, n_entities: int) -> bool:
        """Whether the optimiser updates only touched embedding rows on a graph of this size."""
        return self.adam == "rows" or (self.adam == "auto" and n_entities > ROWS_ABOVE_ENTITIES)


@dataclass(frozen=True)
class RunConfig(_Section):
    """What a run may use of the machine, and the seed it draws from."""

    seed: int = _option(0, "key of every random draw", at_least=0, at_most=2**63 - 1)
    memory_budget_mb: int = _option(
        0, "megabytes a batch may take; larger ones are split; 0 = half of the machine's", at_least=0
    )
    threads: int = _option(0, "threads to compute with; 0 = all cores", at_least=0)
    device: str = _option("cpu", "where tensors live: cpu, cuda, cuda:1, mps")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", self.device):
            raise _refusal("device", self.device, "cpu, cuda, cuda:<number> or mps")


@dataclass(frozen=True)
class Config:
    """The whole tree; every leaf key is unique, so that a key alone names a setting."""

    model: ModelConfig = field(default_factory=ModelConfig)
    horizon: Horizon = field(default_factory=Horizon)
    asking: AskingConfig = field(default_factory=AskingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def replace(self, **leaf_keys: Any) -> "Config":
        """A copy with some settings changed, named by their keys alone."""
        return with_overrides(self, leaf_keys)

    def asking_horizon(self) -> Horizon:
        """The horizon for asking: the training horizon with what `asking` sets put in its place."""
        trained, asked = self.horizon, self.asking
        return Horizon(
            asked.ask_attending_from_per_step or trained.max_attending_from_per_step,
            asked.ask_sampling_per_node or trained.max_sampling_per_node,
            asked.ask_attending_to_per_step or trained.max_attending_to_per_step,
            trained.strategy,
            asked.ask_sampling_per_relation or trained.max_sampling_per_relation,
        )


SECTIONS: dict[str, type[_Section]] = {
    "model": ModelConfig,
    "horizon": Horizon,
    "asking": AskingConfig,
    "training": TrainingConfig,
    "run": RunConfig,
}


class LeafField(NamedTuple):
    """One setting; `type` is int, float or str, with `| None` where the value "none" is allowed."""

    section: str
    key: str
    type: Any
    default: Any
    help: str
    choices: tuple[str, ...] | None


@cache
def leaf_fields() -> tuple[LeafField, ...]:
    """All settings in order: command-line flags and their help are made from this."""
    leaves = []
    for section, owner in SECTIONS.items():
        for option in fields(owner):
            kind, optional, choices = _kind(owner, option.name)
            shown = kind | None if optional else kind
            leaves.append(
                LeafField(section, option.name, shown, option.default, option.metadata["help"], choices)
            )
    return tuple(leaves)


def with_overrides(config: Config, overrides: Mapping[str, Any]) -> Config:
    """A copy with some settings changed by key; strings are parsed by the setting's type."""
    changes: dict[str, dict[str, Any]] = {}
    for name, value in overrides.items():
        leaf = _leaf(name)
        changes.setdefault(leaf.section, {})[leaf.key] = _parsed(leaf, value)
    return replace(
        config, **{section: replace(getattr(config, section), **new) for section, new in changes.items()}
    )


def to_dict(config: Config) -> dict[str, dict[str, Any]]:
    """The configuration as nested plain values, ready for JSON."""
    return asdict(config)


def from_dict(values: Mapping[str, Any]) -> Config:
    """The configuration of a nested dict; missing keys take their defaults, unknown ones are refused."""
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for key, value in _by_leaf_key(values).items():
        sections[_leaf(key).section][key] = value
    return Config(**{section: SECTIONS[section](**new) for section, new in sections.items()})  # type: ignore[arg-type]


def preset_names() -> list[str]:
    """Names of the shipped presets, sorted."""
    return sorted(_preset_files())


def load_preset(name_or_path: str | Path) -> Config:
    """A shipped preset by name (case, dashes and underscores do not matter), or a .toml file of one's own."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text or "\\" in text:
        return _read_preset(Path(name_or_path), text)
    files = _preset_files()
    found = [name for name in files if _folded(name) == _folded(text)]
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
        return with_overrides(Config(), _by_leaf_key(values))
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is not a UTF-8 text file") from error
    except ValueError as error:  # TOMLDecodeError, whose text names line and column, or a too long number
        raise ConfigError(f"{shown} is not valid TOML: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"{shown}: {error}") from error


def _by_leaf_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of all sections by key alone; unknown sections and keys and misplaced keys are refused."""
    flat: dict[str, Any] = {}
    for section, settings in values.items():
        if section not in SECTIONS:
            raise ConfigError(f"unknown section '{section}'; settings stand in {', '.join(SECTIONS)}")
        if not isinstance(settings, Mapping):
            raise ConfigError(f"'{section}' is a section of settings and cannot be {settings!r}")
        for name, value in settings.items():
            leaf = _leaf(name)
            if leaf.section != section:
                raise ConfigError(f"'{name}' belongs in section '{leaf.section}', not in '{section}'")
            flat[leaf.key] = value
    return flat


def _folded(name: str) -> str:
    return re.sub("[-_]", "", name).lower()


def _leaf(name: str) -> LeafField:
    """The setting a key names, with dashes and underscores equal."""
    key = name.replace("-", "_").lower()
    leaves = {leaf.key: leaf for leaf in leaf_fields()}
    if key in leaves:
        return leaves[key]
    near = difflib.get_close_matches(key, leaves, n=3, cutoff=0.5)
    meant = "did you mean " + ", ".join(f"'{n}'" for n in near) + "?"
    raise ConfigError(f"unknown setting '{name}'; {meant if near else 'settings are ' + ', '.join(leaves)}")


def _kind(owner: type[_Section], name: str) -> tuple[type, bool, tuple[str, ...] | None]:
    """A field's plain type, whether None is allowed, and its choices."""
    hint = get_type_hints(owner)[name]
    if get_origin(hint) is Literal:
        return str, False, get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None)), True, None
    return hint, False, None


def _parsed(leaf: LeafField, value: Any) -> Any:
    """A string as the setting's type; other values, and strings that do not parse, go on to the check."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    kind, optional, choices = _kind(SECTIONS[leaf.section], leaf.key)
    if optional and text.lower() in ("none", "off"):
        return None
    if choices:
        return next((choice for choice in choices if _folded(choice) == _folded(text)), value)
    try:
        return kind(text)
    except ValueError:
        return value


def _checked(owner: type[_Section], option: Field[Any], value: Any) -> Any:
    """The value as its field's plain type, or a ConfigError that says what is allowed."""
    kind, optional, choices = _kind(owner, option.name)
    if value is None and optional:
        return None
    if choices is not None:
        fits = isinstance(value, str) and value in choices
    elif kind is int:
        fits = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    elif kind is float:
        fits = isinstance(value, numbers.Real) and not isinstance(value, bool)
        fits = fits and abs(value) <= sys.float_info.max
    else:
        fits = isinstance(value, kind)
    if not fits or not _in_range(option.metadata, value):
        raise _refusal(option.name, value, _allowed(option.metadata, kind, optional, choices))
    return kind(value)


def _in_range(bounds: Mapping[str, Any], value: Any) -> bool:
    at_least, above, at_most = bounds["at_least"], bounds["above"], bounds["at_most"]
    return (
        (at_least is None or value >= at_least)
        and (above is None or value > above)
        and (at_most is None or value <= at_most)
    )


def _allowed(bounds: Mapping[str, Any], kind: type, optional: bool, choices: tuple[str, ...] | None) -> str:
    if choices is not None:
        return " or ".join(f"'{choice}'" for choice in choices)
    text = {int: "a whole number", float: "a number", str: "a text"}[kind]
    words = {"at_least": "of at least", "above": "above", "at_most": "and at most"}
    text += "".join(f" {words[name]} {bounds[name]}" for name in words if bounds[name] is not None)
    return text + (" or none" if optional else "")


def _refusal(key: str, value: Any, allowed: str) -> ConfigError:
    return ConfigError(f"'{key}' must be {allowed}, not {value!r}")
