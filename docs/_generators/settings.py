"""The reference of the configuration, made from its dataclasses and the preset files."""

from typing import Any, get_args

from _generators.commands import escaped
from dpmpn.config import SECTIONS, all_settings, load_preset, preset_names, to_dict
from dpmpn.settings import Setting

_KINDS = {int: "whole number", float: "number", str: "text"}


def settings_reference() -> str:
    """Every setting by section, with what it allows, its default and its meaning, as Markdown."""
    return "\n\n".join(_section(name) for name in SECTIONS)


def presets_reference() -> str:
    """What each preset changes; a cell that is empty is the default."""
    presets = {name: to_dict(load_preset(name)) for name in preset_names()}
    rows = [f"| Setting | default | {' | '.join(presets)} |", "|---|---|" + "---|" * len(presets)]
    for leaf in all_settings():
        # A preset has the settings of its model alone.
        values = [preset[leaf.section].get(leaf.key, leaf.default) for preset in presets.values()]
        if any(value != leaf.default for value in values):
            cells = ["" if value == leaf.default else _shown(value) for value in values]
            rows.append(f"| `{leaf.key}` | {_shown(leaf.default)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _section(name: str) -> str:
    rows = ["| Setting, option | Allowed | Default | |", "|---|---|---|---|"]
    for leaf in all_settings():
        if leaf.section == name:
            option = "--" + leaf.key.replace("_", "-")
            rows.append(
                f"| `{leaf.key}`<br>`{option}` | {_allowed(leaf)} | {_shown(leaf.default)} | {escaped(leaf.help)} |"
            )
    return f"## {name}\n\n{SECTIONS[name].__doc__}\n\n" + "\n".join(rows)


def _allowed(leaf: Setting) -> str:
    if leaf.choices:
        return ", ".join(f"`{choice}`" for choice in leaf.choices)
    kinds = get_args(leaf.type) or (leaf.type,)
    bounds = leaf.bounds
    words = {"at_least": "from", "above": "above", "at_most": "to"}
    limits = [f"{word} {bounds[bound]}" for bound, word in words.items() if bounds[bound] is not None]
    allowed = " ".join([next(_KINDS[kind] for kind in kinds if kind in _KINDS), *limits])
    return f"{allowed}, or `none`" if type(None) in kinds else allowed


def _shown(value: Any) -> str:
    return f"`{value:g}`" if isinstance(value, float) else f"`{str(value).lower()}`"
