"""The one small exception tree: everything a user can cause, each with a sentence that says what to do.

DpmpnError
├── DataError       a file, triple, name or folder that cannot be used
│   └── UnknownName an entity, relation or dataset that does not exist; carries near names
├── ConfigError     a key, value or preset that does not exist or does not fit
└── RunError        a run folder or checkpoint that cannot be used
"""


class DpmpnError(Exception):
    """Base of all errors a user can cause; the command line prints its text and exits with code 2."""


class DataError(DpmpnError):
    """A file, triple, name or folder that cannot be used."""


class UnknownName(DataError):
    """A name that does not exist, with the nearest existing ones."""

    def __init__(self, kind: str, name: str, near: list[str], hint: str = "") -> None:
        self.kind, self.name, self.near = kind, name, near
        text = f"unknown {kind} '{name}'"
        if near:
            text += "; did you mean " + ", ".join(f"'{n}'" for n in near) + "?"
        if hint:
            text += f" ({hint})" if near else f"; {hint}"
        super().__init__(text)


class ConfigError(DpmpnError):
    """A configuration key, value or preset that does not exist or does not fit."""


class RunError(DpmpnError):
    """A run folder or checkpoint that cannot be used."""
