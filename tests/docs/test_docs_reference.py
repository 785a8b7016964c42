"""The reference holds every command with all its options, every setting and every public name."""

import re
from html import unescape
from pathlib import Path

import pytest
from _generators.commands import commands, escaped
from _generators.pages import GENERATORS, filled

import dpmpn
from dpmpn.config import all_settings, load_preset, preset_names, to_dict


def text_of(site: Path, page: str) -> str:
    """The words of a page as they are seen."""
    html = (site / "docs" / "reference" / f"{page}.html").read_text("utf-8")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_every_command_and_option(site: Path) -> None:
    text = text_of(site, "commands")
    names = [command.name for command in commands() if command.name != "dpmpn"]
    assert {"dpmpn train", "dpmpn datasets stats", "dpmpn explain-eval"} <= set(names)
    sections = re.split(r" (?=dpmpn [a-z-]+(?: [a-z-]+)? ¶ )", text)  # headings end in the sign of their link
    found = {section.partition(" ¶ ")[0]: section for section in sections}
    assert "--batch-size" in found["dpmpn train"]  # which its --help leaves out
    for command in commands():
        if command.name == "dpmpn":
            continue
        for option in command.options:
            for name in (*option.opts, *option.secondary_opts):
                assert re.search(rf"{name}(?![\w-])", found[command.name]), f"{command.name} {name}"
            assert option.help, f"{command.name} {option.name} says nothing of itself"
        for argument in command.arguments:
            assert (argument.metavar or argument.name.upper()) in found[command.name]


def test_every_setting(site: Path) -> None:
    text = text_of(site, "settings")
    for leaf in all_settings():
        assert f" {leaf.key} " in text
        assert " ".join(leaf.help.split()) in text
        assert f"--{leaf.key.replace('_', '-')} " in text


def test_every_difference_of_a_preset() -> None:
    table = GENERATORS["presets"]().splitlines()
    columns = [cell.strip() for cell in table[0].strip("|").split("|")]
    rows = {row.split("`")[1]: [cell.strip(" `") for cell in row.strip("|").split("|")] for row in table[2:]}
    default = {setting.key: setting.default for setting in all_settings()}
    for preset in preset_names():
        for values in to_dict(load_preset(preset)).values():
            for key, value in values.items():
                shown = rows[key][columns.index(preset)] if key in rows else ""
                assert (shown != "") == (value != default[key]), (preset, key)
                assert shown in ("", f"{value:g}" if isinstance(value, float) else str(value).lower())


def test_every_public_name(site: Path) -> None:
    html = (site / "docs" / "reference" / "python.html").read_text("utf-8")
    for name in dpmpn.__all__:
        assert f'id="dpmpn.{name}"' in html
    assert 'id="dpmpn.Reasoner.with_facts"' in html
    assert "without training; this reasoner stays as it is" in html  # docstrings are there, too


def test_a_page_cannot_ask_for_what_is_not_made() -> None:
    with pytest.raises(KeyError):
        filled("<!-- from the code: nothing -->")


def test_help_texts_mean_themselves() -> None:
    assert escaped("<?, a_b> | `x|y_z`") == r"\<?, a\_b\> \| `x\|y_z`"
