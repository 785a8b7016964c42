"""The settings of a command: an option for each, made from the configuration, and those a dataset starts from."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import typer

from dpmpn.config import MODEL, SECTIONS, Config, all_settings, check_overrides, load_preset, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.importer import load_dataset
from dpmpn.settings import Setting
from dpmpn.suitable_config import DEFAULT_MODEL, suitable_config

DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET_OR_FOLDER", help="a name of `dpmpn datasets`, a folder, or a file of facts"
    ),
]
PresetName = Annotated[
    str | None, typer.Option("--preset", metavar="NAME|FILE", help="settings to start from")
]
_OFTEN_USED = {"model", "n_epochs", "questions", "seed", "threads"}
"""Settings that `--help` shows of a command that has many; `--help-all` shows the others, too."""
_MANY = 10
_ALIASES = {"n_epochs": ["--epochs"]}
_KINDS = {int: "INT", float: "NUMBER", str: "TEXT"}
_HELP_ALL = "help_all"
DASHES = {"token_normalize_func": lambda name: name.replace("_", "-")}
"""Context settings under which --n_dims is --n-dims."""


def with_settings(
    *sections: str, seldom: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each setting of some sections, of all where none is named.

    Of its own options, the `seldom` used ones are shown by --help-all alone.
    """
    chosen = [leaf for leaf in all_settings() if leaf.section in (sections or SECTIONS)]
    return with_options(
        [leaf._replace(default=DEFAULT_MODEL) if leaf.key == MODEL else leaf for leaf in chosen], seldom
    )


def with_options(
    leaves: Sequence[Setting], seldom: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each of some settings.

    The command gets those that were used as `settings`, texts by key; the configuration parses them. Where they are
    many, the help shows those that are often used and says how to see the rest.
    """
    has_many = len(leaves) > _MANY

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_given(**values: Any) -> None:
            texts = {leaf.key: values.pop(leaf.key) for leaf in leaves}
            values.pop(_HELP_ALL, None)
            command(**values, settings={key: text for key, text in texts.items() if text is not None})

        signature = inspect.signature(command)
        own = [
            _hidden(parameter) if name in seldom else parameter
            for name, parameter in signature.parameters.items()
            if name != "settings"
        ]
        parameters = [*own, *(_parameter(leaf, has_many) for leaf in leaves)]
        if has_many:
            parameters.append(_help_all_parameter())
        # What typer reads: the signature and the annotations, which must agree.
        with_given.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_given.__annotations__ = {p.name: p.annotation for p in parameters}
        del with_given.__wrapped__
        return with_given

    return decorate


def chosen_settings(
    name: str, preset: str | None, settings: Mapping[str, str], say: Callable[[str], None] | None = None
) -> tuple[Dataset, Config, list[str]]:
    """A dataset, its settings with those that were given, and why they are so; what is wrong is refused before reading.

    They start from a preset, else from what suits the dataset.
    """
    model = check_overrides(settings)
    config = load_preset(preset) if preset is not None else None
    dataset, reasons = load_dataset(name, say), [f"preset {preset}"]
    if config is None:
        config, reasons = suitable_config(dataset, model)
    return dataset, with_overrides(config, settings), reasons


def _parameter(leaf: Setting, is_of_many: bool) -> inspect.Parameter:
    is_often_used = is_of_many and leaf.key in _OFTEN_USED
    option = typer.Option(
        "--" + leaf.key.replace("_", "-"),
        *_ALIASES.get(leaf.key, []),
        help=_help(leaf),
        metavar=_metavar(leaf),
        show_default=False,
        hidden=is_of_many and not is_often_used,
        rich_help_panel=None if is_often_used else f"Settings: {leaf.section}",
    )
    annotation = Annotated[str | None, option]
    return inspect.Parameter(leaf.key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _hidden(parameter: inspect.Parameter) -> inspect.Parameter:
    """The same option, which the help leaves out."""
    kind, option = get_args(parameter.annotation)
    option = copy.copy(option)
    option.hidden = True
    return parameter.replace(annotation=Annotated[kind, option])


def _help_all_parameter() -> inspect.Parameter:
    option = typer.Option(
        "--help-all",
        help="Show all options: these, and those that are seldom needed",
        is_eager=True,  # as --help is: required options need not be there
        callback=_show_whole_help,
    )
    annotation = Annotated[bool, option]
    return inspect.Parameter(_HELP_ALL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


def _show_whole_help(context: typer.Context, is_asked: bool) -> None:
    """Print the help of a command with the options that `--help` leaves out."""
    if not is_asked:
        return
    whole = copy.copy(context.command)
    whole.params = [copy.copy(parameter) for parameter in whole.params]
    for parameter in whole.params:
        parameter.hidden = False  # type: ignore[attr-defined]
    whole.get_help(context)  # typer prints it
    raise typer.Exit


def _help(leaf: Setting) -> str:
    choices = f": {', '.join(leaf.choices)}" if leaf.choices else ""
    default = f"{leaf.default:g}" if isinstance(leaf.default, float) else str(leaf.default).lower()
    return f"{leaf.help}{choices} (default {default})"


def _metavar(leaf: Setting) -> str:
    if leaf.choices:
        return "CHOICE"
    return next(name for kind, name in _KINDS.items() if kind in (leaf.type, *get_args(leaf.type)))
