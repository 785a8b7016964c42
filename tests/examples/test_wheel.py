"""The wheel, in a fresh environment: its model answers at once, and the demo runs from it."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; what the package needs is found where the tests run."""
    folder = tmp_path_factory.mktemp("wheel")
    built = [
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(folder),
        str(copied(folder)),
    ]
    run(sys.executable, "-m", "pip", *built)
    (wheel,) = folder.glob("dpmpn-*.whl")
    venv.create(folder / "venv", with_pip=False)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "venv"),
        "install",
        "-q",
        "--no-deps",
        str(wheel),
    )
    (site / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "venv" / "bin"


def copied(folder: Path) -> Path:
    """The sources that are under version control or would be: building leaves files beside them."""
    source = folder / "source"
    source.mkdir()
    listed = run(
        "git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "src", "pyproject.toml", "README.md"
    )
    for name in [*listed.splitlines(), *(path.name for path in ROOT.glob("LICENSE*"))]:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    return source


def run(*words: str, cwd: Path | None = None, **variables: str) -> str:
    """What a command prints; it must not fail."""
    ended = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return ended.stdout


def test_the_model_that_comes_with_the_package_answers_at_once(environment: Path, tmp_path: Path) -> None:
    where = run(str(environment / "python"), "-c", "import dpmpn; print(dpmpn.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment.parent)
    shown = run(
        str(environment / "dpmpn"), "predict", "demo", "Serbia", "in_subregion", "--why", cwd=tmp_path
    )
    assert shown.split("Southern Europe")[0].rstrip().endswith("1")
    assert not list(tmp_path.iterdir())


def test_its_answers_have_the_probabilities_that_were_measured(environment: Path, tmp_path: Path) -> None:
    ask = [str(environment / "dpmpn"), "predict", "demo", "Serbia", "in_subregion", "--json", "-"]
    first = json.loads(run(*ask, cwd=tmp_path))[0]
    assert first["answer"] == "Southern Europe"
    assert 0.5 < first["probability_low"] < first["probability"] < first["probability_high"] < 1
    assert first["cases"] >= 20
    complete = [str(environment / "dpmpn"), "complete", "demo", "--relation", "in_subregion", "--held-out"]
    facts = json.loads(run(*complete, "--top", "50", "--json", "-", cwd=tmp_path))["facts"]
    (listed,) = [fact for fact in facts if fact["head"] == "Serbia" and fact["tail"] == "Southern Europe"]
    assert listed["probability"] == pytest.approx(first["probability"], rel=1e-4)
    assert not list(tmp_path.iterdir()), "nothing had to be measured again"


def test_the_demo_runs_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "demo.sh")
    shown = run("sh", script, cwd=tmp_path, BIN=str(environment), RUN="runs/demo")
    assert "All three first answers are correct." in shown
    assert (tmp_path / "runs" / "demo" / "best.json").exists()
