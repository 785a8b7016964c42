"""Files are written in one room: no other module opens one for writing, makes or removes one, by its syntax."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpmpn

PACKAGE = Path(dpmpn.__file__).parent
_METHODS = {
    *("write_text", "write_bytes", "mkdir", "unlink", "rmdir", "touch", "symlink_to", "hardlink_to", "chmod"),
    *("save_file", "tofile", "makedirs", "removedirs", "mkstemp", "mkdtemp", "extractall"),
}
_OF_MODULES = {
    "os": {"open", "rename", "replace", "remove", "link", "symlink", "truncate", "mkfifo", "renames"},
    "shutil": {"rmtree", "copy", "copy2", "copyfile", "copytree", "move", "unpack_archive"},
    "tempfile": {"TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"},
    "np": {"save", "savez", "savez_compressed", "savetxt"},
    "torch": {"save"},
}
_ALLOWED = {"cli/signals.py": {"os.open"}}  # of /dev/null


def writers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls that write, by line: open with a mode that is not reading, and names that nothing else has."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute):
            name, module = call.func.attr, getattr(call.func.value, "id", "")
            is_rename = name == "replace" and len(call.args) == 1 and not call.keywords
            if name in _OF_MODULES.get(module, ()) or name in _METHODS or is_rename:
                yield call.lineno, f"{module}.{name}"
        else:
            name = getattr(call.func, "id", "")
        if name in ("open", "fdopen") and _modes(call) & set("wax+"):
            yield call.lineno, name


def _modes(call: ast.Call) -> set[str]:
    """The letters of what may be modes of opening."""
    given = [*call.args, *(word.value for word in call.keywords)]
    values = [value.value for value in given if isinstance(value, ast.Constant)]
    return {x for text in values if isinstance(text, str) and set(text) <= set("rwaxbt+") for x in text}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if PACKAGE / "files" not in path.parents]


def test_no_other_module_writes() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path in modules()
        for line, name in writers(ast.parse(path.read_text("utf-8")))
        if name not in _ALLOWED.get(str(path.relative_to(PACKAGE)), ()) and not _is_a_stream(path, line)
    }
    assert not found, "write through dpmpn.files"


def _is_a_stream(path: Path, line: int) -> bool:
    """Whether a line opens what is open already, such as standard output for a worker process."""
    return "os.fdopen(os.dup(" in path.read_text("utf-8").splitlines()[line - 1]


@pytest.mark.parametrize(
    "line",
    [
        "path.open('wb')",
        "open(path, mode='a')",
        "open(path, 'r+b')",
        "path.write_bytes(b'')",
        "path.replace(other)",
        "os.replace(a, b)",
        "shutil.rmtree(path)",
        "(folder / name).mkdir()",
        "np.save(path, array)",
    ],
)
def test_such_a_line_would_be_found(line: str) -> None:
    assert list(writers(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["path.open('rb')", "open(path)", "text.replace('a', 'b')", "config.replace(seed=1)"]
)
def test_reading_is_not_writing(line: str) -> None:
    assert not list(writers(ast.parse(line)))
