"""The rooms of the package, the floors they are on, and the imports between them, read from the source."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "dpmpn"
FRONT_DOOR = "dpmpn"
"""The package's own `__init__`: it has the public names, which `_public.py` lists, and stands on no floor."""


@dataclass(frozen=True)
class Floor:
    """Rooms that may import all that is below, and not each other."""

    name: str
    rooms: tuple[str, ...]


FLOORS = (
    Floor("command line", ("cli",)),
    Floor("server, laboratory, first steps", ("serve", "lab", "start")),
    Floor("Python", ("reasoner",)),
    Floor("many questions", ("complete", "explain_eval", "learnt")),
    Floor("what decides", ("decisive",)),
    Floor("asking", ("ask",)),
    Floor("pictures, pages", ("render",)),
    Floor("reasons", ("explain",)),
    Floor("probabilities", ("calibrate",)),
    Floor("learning from many graphs", ("pretrain",)),
    Floor("learning", ("train",)),
    Floor("ranks", ("evaluate",)),
    Floor("settings that suit", ("suitable_config",)),
    Floor("configuration", ("config",)),
    Floor("models", ("models",)),
    Floor("steps", ("engine",)),
    Floor("arrays", ("ops",)),
    Floor("facts", ("data",)),
    Floor("how far it is", ("progress",)),
    Floor("work in parts", ("bulk",)),
    Floor("ground", ("arguments", "settings", "files", "provenance", "wording", "kernels")),
    Floor("errors", ("errors",)),
)
"""From the top down. A room imports from the floors below its own: never from above, never from beside."""


@dataclass(frozen=True)
class Import:
    """A line in which a module of the package imports another."""

    importer: str
    imported: str
    line: int
    is_deferred: bool  # within a function: not before that is called


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    return {
        ".".join(("dpmpn", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): file
        for file in sorted(PACKAGE.rglob("*.py"))
    }


def room_of(module: str) -> str:
    """The room of a module: its package or, at the top, the module itself."""
    parts = module.split(".")[1:]
    if not parts or parts == ["_public"]:
        return FRONT_DOOR
    if parts == ["__main__"]:  # `python -m dpmpn`
        return "cli"
    inner = ".".join(parts[:2])
    return inner if any(inner in floor.rooms for floor in FLOORS) else parts[0]


def floor_of(room: str) -> int:
    """The number of a room's floor, counted from the top; -1 for a room that stands on none."""
    return next((number for number, floor in enumerate(FLOORS) if room in floor.rooms), -1)


@cache
def imports() -> tuple[Import, ...]:
    """Every import between modules that can run; what only a type checker reads does not count."""
    found: list[Import] = []
    for name, file in modules().items():
        for statement, is_deferred in _import_statements(ast.parse(file.read_text("utf-8"))):
            found += [Import(name, target, statement.lineno, is_deferred) for target in _targets(statement)]
    return tuple(found)


def between_rooms() -> Counter[tuple[str, str]]:
    """How many imports lead from one room to another, the front door left out."""
    pairs = [(room_of(found.importer), room_of(found.imported)) for found in imports()]
    return Counter((a, b) for a, b in pairs if a != b and FRONT_DOOR not in (a, b))


def sign(room: str) -> str:
    """What a room is for: the first sentence of its docstring."""
    text = ast.get_docstring(ast.parse(modules()[f"dpmpn.{room}"].read_text("utf-8"))) or ""
    return text.splitlines()[0] if text else ""


def size(room: str) -> int:
    """How many modules a room has."""
    return sum(room_of(module) == room for module in modules())


def _import_statements(
    tree: ast.AST, is_deferred: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The import statements that can run, and whether they stand within a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_deferred
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from _import_statements(node, is_deferred or isinstance(node, ast.FunctionDef))


def _targets(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules of the package that a statement imports; there are no relative imports in it."""
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    else:
        base = statement.module or ""
        dotted = [f"{base}.{alias.name}" for alias in statement.names]
        names = sorted({name if name in modules() else base for name in dotted})
    return [name for name in names if name in modules()]
