"""The one small exception tree: everything a user can cause, each with a sentence that says what to do.

DpmpnError
├── DataError       a file, triple, name or folder that cannot be used
│   └── UnknownName an entity, relation or dataset that does not exist; carries near names
├── WrongType       an argument of another type than a function takes; a TypeError, too
├── ConfigError     a key, value or preset that does not exist or does not fit
└── RunError        a run folder or checkpoint that cannot be used
    └── Diverged    weights that are not numbers, or too large to compute with

Stopped             beside it: no error; a signal or the caller asked the work to stop
"""

import signal
from typing import Any

_SHOWN = 60  # characters of a value that is refused


def shown(value: Any) -> str:
    """A value in the sentence that refuses it: on one line, and not too long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of more digits than Python writes
        text = "an integer of thousands of digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


class DpmpnError(Exception):
    """Base of all errors a user can cause; the command line prints its text and exits with code 2."""


class DataError(DpmpnError):
    """A file, triple, name or folder that cannot be used."""


class UnknownName(DataError):
    """A name that does not exist, with the nearest existing ones."""

    def __init__(self, kind: str, name: str, near: list[str], hint: str = "", where: str = "") -> None:
        self.kind, self.name, self.near = kind, name, near
        text = f"{where}: unknown {kind} '{name}'" if where else f"unknown {kind} '{name}'"
        if near:
            text += "; did you mean " + ", ".join(f"'{n}'" for n in near) + "?"
        if hint:
            text += f" ({hint})" if near else f"; {hint}"
        super().__init__(text)


class WrongType(DpmpnError, TypeError):
    """An argument of another type than a function takes."""


class ConfigError(DpmpnError):
    """A configuration key, value or preset that does not exist or does not fit."""


class RunError(DpmpnError):
    """A run folder or checkpoint that cannot be used."""


class Diverged(RunError):
    """Weights that are not numbers, or too large to compute with: nothing that follows from them is an answer."""


class Stopped(BaseException):
    """Work was asked to stop, by a signal or a caller's `stop()`; what was written before is whole.

    Not an Exception, so that only what cleans up, or says what is kept, sees it.
    """

    def __init__(self, signal_number: int | None = None) -> None:
        self.signal_number = signal_number  # None: the caller asked
        number = signal_number or signal.SIGINT
        how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        super().__init__(f"{how}; files written so far are complete: run the same command again")

    @property
    def exit_code(self) -> int:
        """What a shell reports of a process that the signal ended."""
        return 128 + (self.signal_number or signal.SIGINT)
