"""Options that are numbers: read and checked as settings are, with a smallest and a largest value."""

from typing import Any

import typer

from dpmpn.settings import MOST, checked_number

_METAVARS = {int: "INT", float: "NUMBER"}


def number(
    kind: type,
    name: str,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float = MOST,
    metavar: str | None = None,
    hidden: bool = False,
) -> Any:
    """An option that takes an int or a float of a range."""

    def read(given: Any) -> Any:
        try:
            value = kind(given)
        except ValueError:
            value = given  # which the check refuses
        return checked_number(name, value, kind, at_least=at_least, above=above, at_most=at_most)

    return typer.Option(name, parser=read, metavar=metavar or _METAVARS[kind], help=help, hidden=hidden)
