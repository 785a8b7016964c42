"""The first seconds of the program: Ctrl-C ends it in one line at any moment, and so does a folder that is gone."""

import subprocess
import sys
from pathlib import Path

import pytest

# Sends itself SIGINT when it looks for the module of a number: imports are what the first seconds are.
INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupter:
    left = int(sys.argv.pop(1))
    def find_spec(self, name, *_):
        Interrupter.left -= 1
        if not Interrupter.left:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupter())
from dpmpn.__main__ import main
main()
"""


def started(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=cwd)


# Of about 450 modules with the help, and 2,000 with a prediction.
@pytest.mark.parametrize("number", [4, 20, 70, 150, 250, 350, 500, 700, 1000, 1400, 1800])
def test_interrupted_at_any_import(trained: Path, number: int) -> None:
    done = started("-c", INTERRUPTED, str(number), "predict", str(trained), "child7", "father")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("dpmpn: interrupted") and done.stderr.count("\n") == 1, done.stderr


def test_nothing_slow_is_loaded_before_it_hears_ctrl_c() -> None:
    done = started(
        "-c", "import sys, dpmpn.__main__; print(*(sys.modules.keys() & {'numpy', 'polars', 'typing'}))"
    )
    assert (done.stdout, done.stderr) == ("\n", "")


def test_it_ends_after_ctrl_c_though_nobody_reads_what_it_says() -> None:
    command = [sys.executable, "-c", INTERRUPTED, "20", "--help"]
    done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *command], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    """As what a shell runs in the background."""
    code = INTERRUPTED.replace("default_int_handler", "SIG_IGN")
    done = started("-c", code, "20", "--help")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["--help"], ["predict", "run", "a", "b"]])
def test_a_working_directory_that_was_deleted(tmp_path: Path, arguments: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-m", "dpmpn", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=gone)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dpmpn: the current folder was deleted; change to one that exists\n"


def test_the_installed_program_starts_there() -> None:
    """The script that is installed and `python -m dpmpn` begin alike."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"dpmpn": "dpmpn.__main__:main"}


def test_public_names_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, dpmpn; assert 'numpy' not in sys.modules; from dpmpn import *; print(Reasoner is dpmpn.Reasoner,"
        " set(dpmpn.__all__) <= set(dir(dpmpn)), hasattr(dpmpn, 'nothing'), dpmpn.data.__name__)"
    )
    done = started("-c", code)
    assert (done.stdout, done.stderr) == ("True True False dpmpn.data\n", "")
