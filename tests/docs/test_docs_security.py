"""The promises of SECURITY.md are held by tests that exist."""

import ast
import re

from docs_reading import ROOT

PAGE = (ROOT / "SECURITY.md").read_text("utf-8")


def functions_of(file: str) -> set[str]:
    path = ROOT / file
    body = ast.parse(path.read_text("utf-8")).body if path.is_file() else []
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_every_test_it_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 40
    assert not [f"{file}::{name}" for file, name in named if name not in functions_of(file)]


def test_every_promise_has_a_test() -> None:
    rows = [
        line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| Promise |")
    ]
    assert not [row for row in rows if "::test_" not in row.split(" | ")[1]]
