"""The folder of a pre-training: what it is made of, its checkpoint, its log, and the weights that come of it.

pretraining.json     graphs, configuration and settings; a folder that has it is a pre-training
start/               the weights that it begins with, where it was given some (see `train.pretrained`)
checkpoint.json      the last checkpoint, with its checkpoint-*.safetensors
log.jsonl            one line per stretch of training and per validation
weights.safetensors  the average of the weights at the last validation, with weights.json and MODEL_CARD.md
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dpmpn.config import Config, from_dict, to_dict
from dpmpn.errors import ConfigError, RunError
from dpmpn.files import check_version, new_file, new_folder, read_json, whole_folder, write_json
from dpmpn.pretrain.graphs import NamedGraph
from dpmpn.pretrain.lanes import Places
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.provenance import versions
from dpmpn.settings import key_of
from dpmpn.train.checkpoint import LossWindow, check_values, is_count, is_number, loss_window
from dpmpn.train.pretrained import Pretrained, load_pretrained, write_pretrained

FORMAT, VERSION = "dpmpn-pretraining", 1
MANIFEST, START, LOG = "pretraining.json", "start", "log.jsonl"
_ADVICE = "copy the folder again, or pre-train again with another --out"
_MAY_CHANGE = {"questions", "validate_every", "learning_rate", "threads", "checkpoint_every_seconds"}
"""Settings that another session may have: what was drawn so far does not depend on them."""


@dataclass
class PretrainingState:
    """All that the loop knows besides tensors."""

    position: int = 0  # questions seen since the beginning
    elapsed_seconds: float = 0.0
    cpu_seconds: float = 0.0
    places: list[Places] = field(default_factory=list)  # of each lane
    lines: int = 0  # of the log
    window: LossWindow = field(default_factory=LossWindow)
    validated_position: int | None = None
    validation: dict[str, Any] | None = None  # the last one
    best: dict[str, Any] | None = None  # the mean MRR of the best one, and its position


def create(
    folder: Path,
    graphs: Sequence[NamedGraph],
    validation: Sequence[NamedGraph],
    config: Config,
    settings: PretrainingSettings,
    start: Pretrained | None = None,
) -> None:
    """Make the folder of a new pre-training, from random weights or from those of another one."""
    if (folder / MANIFEST).is_file():
        raise RunError(
            f"{folder} already holds a pre-training; continue with --resume or choose another --out"
        )
    with whole_folder(folder) as new:
        manifest = _manifest(graphs, validation, config, settings)
        if start is not None:
            manifest["start"] = start.name
            write_pretrained(new_folder(new / START), start.model, start.config, start.card)
        write_json(new / MANIFEST, manifest)
        with new_file(new / LOG):
            pass  # no lines yet


def begun_with(folder: Path) -> tuple[Config, PretrainingSettings]:
    """The configuration and the settings of a pre-training that is there."""
    manifest = _read_manifest(folder)
    try:
        settings = manifest.get("settings")
        if not isinstance(settings, dict):
            raise ConfigError("it has no settings")
        for key in settings:
            key_of(key, PretrainingSettings.__dataclass_fields__)
        return from_dict(manifest.get("config") or {}), PretrainingSettings(**settings)
    except ConfigError as error:
        raise RunError(f"{folder / MANIFEST}: {error}; another version may have written it") from error


def start_of(folder: Path) -> Pretrained | None:
    """The weights that a pre-training begins with; None where they are random."""
    name = _read_manifest(folder).get("start")
    return None if name is None else replace(load_pretrained(folder / START), name=str(name))


def adopt(
    folder: Path,
    graphs: Sequence[NamedGraph],
    validation: Sequence[NamedGraph],
    config: Config,
    settings: PretrainingSettings,
) -> None:
    """Go on in a folder where graphs and settings are those it was begun with; what may change is written down."""
    before, now = _read_manifest(folder), _manifest(graphs, validation, config, settings)
    for kind, what in (("graphs", "trained"), ("validation", "validated")):
        if before.get(kind) != now[kind]:
            raise RunError(
                f"{folder} is {what} on other graphs than were named: {_difference(before.get(kind), now[kind])}; name "
                "the same ones in the same order, or choose another --out"
            )
    old, new = (_by_key(*both) for both in (begun_with(folder), (config, settings)))
    for key in old:
        if key not in _MAY_CHANGE and old[key] != new[key]:
            raise RunError(
                f"{folder} was begun with {key} = {old[key]}, which cannot become {new[key]} on --resume; leave it as "
                "it was or choose another --out"
            )
    if old != new:
        write_json(folder / MANIFEST, before | now)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise RunError(f"{folder} has no {MANIFEST}: there is no pre-training to resume; leave out --resume")
    manifest = read_json(path, _ADVICE)
    check_version(path, manifest, FORMAT, VERSION, _ADVICE, RunError)
    return manifest


def _manifest(
    graphs: Sequence[NamedGraph],
    validation: Sequence[NamedGraph],
    config: Config,
    settings: PretrainingSettings,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "graphs": [graph.described() for graph in graphs],
        "validation": [graph.described() for graph in validation],
        "settings": asdict(settings),
        "config": to_dict(config),
        "versions": versions(),
    }


def _by_key(config: Config, settings: PretrainingSettings) -> dict[str, Any]:
    """All settings, whose keys are unique."""
    sections = [asdict(settings), *to_dict(config).values()]
    return {key: value for section in sections for key, value in section.items()}


def _difference(before: Any, now: list[dict[str, Any]]) -> str:
    """What is not the same in two lists of graphs, in words."""
    names = [
        [str(graph.get("name")) if isinstance(graph, dict) else "?" for graph in graphs]
        for graphs in (before if isinstance(before, list) else [], now)
    ]
    if names[0] != names[1]:
        return f"{', '.join(names[0]) or 'none'} then, {', '.join(names[1]) or 'none'} now"
    return f"'{next(n['name'] for b, n in zip(before, now, strict=True) if b != n)}' holds other facts now"


def state_of(path: Path, manifest: dict[str, Any], n_lanes: int, n_graphs: int) -> PretrainingState:
    """The state of a pre-training, from the manifest of its checkpoint."""

    def are_places(value: Any) -> bool:
        rows = value if isinstance(value, list) and len(value) == n_lanes else [None]
        return all(
            isinstance(lane, list) and len(lane) == n_graphs and all(map(_is_place, lane)) for lane in rows
        )

    checks = _STATE | {"places": are_places}
    check_values(path, manifest, checks)
    values = {key: manifest[key] for key in checks}
    return PretrainingState(**values | {"window": loss_window(path, values["window"])})


def _is_place(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_count, value))


def _is_optional_dict(value: Any) -> bool:
    return value is None or isinstance(value, dict)


_STATE = {
    "position": is_count,
    "elapsed_seconds": lambda value: is_number(value) and value >= 0,
    "cpu_seconds": lambda value: is_number(value) and value >= 0,
    "lines": is_count,
    "window": lambda value: isinstance(value, dict),
    "validated_position": lambda value: value is None or is_count(value),
    "validation": _is_optional_dict,
    "best": _is_optional_dict,
}
