"""The reference of the command line, made from the commands themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from dpmpn.cli.main import app

_KINDS = {int: "INT", float: "NUMBER", str: "TEXT", Path: "PATH"}


@dataclass(frozen=True)
class Command:
    """A command by its whole name, what it says of itself, and what it takes."""

    name: str
    help: str
    arguments: list[Any]
    options: list[Any]

    @property
    def flags(self) -> set[str]:
        """Everything that may be typed as an option."""
        return {"--help", "-h"} | {
            f for option in self.options for f in (*option.opts, *option.secondary_opts)
        }


def commands() -> list[Command]:
    """Every command, in the order of `dpmpn --help`."""
    return list(_below("dpmpn", typer.main.get_command(app)))


def _below(name: str, command: Any) -> Iterator[Command]:
    """A command and those below it, with all options: the reference has room for those that `--help` leaves out."""
    options = [parameter for parameter in command.params if parameter.opts[0].startswith("-")]
    yield Command(name, command.help or "", [p for p in command.params if p not in options], options)
    for inner in getattr(command, "commands", {}).values():
        yield from _below(f"{name} {inner.name}", inner)


def commands_reference() -> str:
    """All commands as Markdown."""
    return "\n\n".join(_section(command) for command in commands() if command.name != "dpmpn")


def _section(command: Command) -> str:
    parts = [f"## {command.name}", f"```text\n{_usage(command)}\n```", _prose(command.help)]
    if command.arguments:
        rows = [(f"`{_metavar(argument)}`".replace("|", "\\|"), argument) for argument in command.arguments]
        parts.append(_table("Argument", rows))
    panels: dict[str, list[Any]] = {}
    for option in command.options:
        panels.setdefault(option.rich_help_panel or "Options", []).append(option)
    for panel, options in panels.items():
        parts.append(_table(panel, [(_typed(option), option) for option in options]))
    return "\n\n".join(parts)


def _usage(command: Command) -> str:
    words = [command.name]
    for argument in command.arguments:
        word = _metavar(argument)
        words.append(word if argument.required else f"[{word}]")
    return " ".join([*words, *(["[OPTIONS]"] if command.options else [])])


def _prose(help: str) -> str:
    """A help text as paragraphs; one that is a command, or ends in one, shows it as code."""
    paragraphs = []
    for paragraph in help.split("\n\n"):
        text = " ".join(paragraph.split())
        before, example, typed = text.rpartition(": dpmpn ")
        if text.startswith("dpmpn "):
            paragraphs.append(f"```sh\n{text}\n```")
        elif example and ". " not in typed:
            paragraphs.append(f"{escaped(before)}:\n\n```sh\ndpmpn {typed}\n```")
        else:
            paragraphs.append(escaped(text))
    return "\n\n".join(paragraphs)


def _table(title: str, rows: list[tuple[str, Any]]) -> str:
    lines = [f"| {title} | |", "|---|---|"]
    for typed, parameter in rows:
        lines.append(
            f"| {typed} | {escaped(' '.join((parameter.help or '').split()))}{_default(parameter)} |"
        )
    return "\n".join(lines)


def _typed(option: Any) -> str:
    """How an option is typed: its names, and what follows them."""
    names = [f"`{name}`" for name in (*option.opts, *option.secondary_opts)]
    if not option.is_flag:
        names[-1] = f"{names[-1][:-1]} {_metavar(option)}`"
    return ", ".join(names).replace("|", "\\|")


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or parameter.required or not parameter.show_default or value in (False, "", ()):
        return ""
    return f" (default `{value.value if isinstance(value, Enum) else value}`)"


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return parameter.metavar
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return _KINDS[kind] if parameter.opts[0].startswith("-") else parameter.name.upper()


def escaped(text: str) -> str:
    """Text that means itself in Markdown, also within a table."""
    pieces = text.split("`")
    for at in range(0, len(pieces), 2):  # outside of code
        for mark in "\\<>|*_[]":
            pieces[at] = pieces[at].replace(mark, f"\\{mark}")
    return "`".join(piece.replace("|", "\\|") if at % 2 else piece for at, piece in enumerate(pieces))
