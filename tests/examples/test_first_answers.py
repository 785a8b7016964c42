"""The notebook runs from its first cell to its last, each shows something, and its answers are the right ones."""

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpmpn.train import run_folder

NOTEBOOK = json.loads((Path(__file__).parents[2] / "examples" / "first_answers.ipynb").read_text("utf-8"))


def shown(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does, and return the value of its last line if that is an expression."""
    *statements, last = ast.parse(source).body
    is_shown = isinstance(last, ast.Expr)
    first = ast.Module(statements if is_shown else [*statements, last], [])
    exec(compile(first, "first_answers.ipynb", "exec"), names)
    return eval(ast.unparse(last), names) if is_shown else None


def test_it_runs_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # What is measured is kept in the run.
    shipped = shutil.copytree(run_folder.run_path("demo"), tmp_path / "shipped")
    monkeypatch.setattr(run_folder, "_SHIPPED", shipped)
    names: dict[str, Any] = {}
    drawn = []
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            value = shown("".join(cell["source"]), names)
            drawn += [value._repr_html_()] if hasattr(value, "_repr_html_") else []
    assert names["reasoner"].predict("child 29", "father")[0].answer == "father 29"
    assert names["answers"][0].answer == "Southern Europe"
    assert len(names["missing"]) == 5 and 0.3 < names["scores"]["mrr"] < 1
    assert any("<svg" in html for html in drawn) and sum("<table" in html for html in drawn) >= 5
    assert (tmp_path / "families" / "config.json").exists()


def test_no_outputs_are_stored() -> None:
    """They would be those of one machine; whoever opens the notebook makes their own."""
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)
