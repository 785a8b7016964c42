"""A program that somebody else installed, run by a user who has no home and may write to one folder only."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from accident_data import SETTINGS
from one_line import caller, is_refused

SOURCE = Path(__file__).parents[2] / "src"
# Runs commands one after the other, in one process: to start one takes longest.
COMMANDS = """
import json, sys
from dpmpn.cli.main import run
codes = []
for arguments in json.loads(sys.argv[1]):
    try:
        run(arguments)
    except SystemExit as ended:
        codes.append(ended.code)
print(codes)
"""
CHECK = "import os; print(*(os.access(path, os.W_OK, effective_ids=True) for path in ('.', '../out')))"
NOBODY = 65534
DROPPED = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
READS_ALL = [*DROPPED, "--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search"]
NOT_ALMIGHTY = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]


class Installed(NamedTuple):
    source: Path  # nobody may write to it
    out: Path  # everybody may; there is a trained run in it
    command: list[str]
    environment: dict[str, str]

    def options(self) -> dict[str, object]:
        return {"cwd": self.source, "env": self.environment, "text": True}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command, sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, **self.options())


@pytest.fixture(scope="module")
def installed(family: Path, trained_once: Path) -> Iterator[Installed]:
    """A copy of the package, with what was compiled of it for that training."""
    with tempfile.TemporaryDirectory() as name:  # the folders that pytest makes are for their owner only
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(SOURCE / "dpmpn", folder / "source" / "dpmpn")
        out = shutil.copytree(trained_once, folder / "out" / "trained").parent
        shutil.copytree(family, out / "family")
        out.chmod(0o777)
        for path in (*(folder / "source").rglob("*"), folder / "source"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield _given_up(folder / "source", out)
        for path in (folder / "source", *(folder / "source").rglob("*")):
            path.chmod(0o755)


def _given_up(source: Path, out: Path) -> Installed:
    """A way to run programs that may write to `out` alone, as far as these folders go."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    homeless = environment | {"HOME": str(source / "none")}
    # In a container root often has no more rights to give than to read and write all.
    ways = [(READS_ALL, environment), (NOT_ALMIGHTY, homeless)] if os.getuid() == 0 else [([], homeless)]
    for command, settings in ways:
        made = Installed(source, out, command, settings)
        if shutil.which("setpriv") or not command:
            tried = made.run("-c", CHECK)
            if tried.stdout == "False True\n":
                return made
    pytest.skip("root cannot give up its rights here: there is no setpriv, or it is not allowed")


def test_help(installed: Installed) -> None:
    done = installed.run("-m", "dpmpn", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_work_and_say_once_where_kernels_can_be_kept(
    installed: Installed,
) -> None:
    for index in installed.source.glob("dpmpn/ops/__pycache__/select.*.nbi"):
        index.parent.chmod(0o755)
        index.unlink()  # which is then compiled
        index.parent.chmod(0o555)
    out, trained = installed.out, installed.out / "trained"
    commands = [
        ["import", out / "family" / "train.txt", "--out", out / "imported"],
        ["train", out / "family", "--out", out / "run", *SETTINGS, "--max-queries", 20],
        ["predict", trained, "child1", "father"],
        ["explain", trained, "child1", "father", "--out", out / "explained"],
    ]
    done = installed.run("-c", COMMANDS, json.dumps([list(map(str, command)) for command in commands]))
    assert done.stdout.endswith("\n[0, 0, 0, 0]\n"), done
    compiling, kept = done.stderr.splitlines()
    assert compiling.startswith("dpmpn: compiling for this machine")
    assert kept.startswith("dpmpn: compiled kernels cannot be kept")
    assert "set NUMBA_CACHE_DIR to a folder" in done.stderr
    assert (out / "explained" / "explanation.png").exists()


def test_kernels_that_came_with_the_program_are_used(installed: Installed) -> None:
    """An image whose kernels were compiled when it was built starts quickly, though nothing in it can be written."""
    code = (
        "from dpmpn.ops.permutation import combine; import numpy\n"
        "combine(numpy.uint64(1), numpy.uint64(2)); print(sum(combine.stats.cache_hits.values()))"
    )
    if not list(installed.source.glob("dpmpn/ops/__pycache__/permutation.combine*.nbi")):
        pytest.skip("compiled kernels are kept elsewhere than beside the source")
    done = installed.run("-c", code)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_server(installed: Installed) -> None:
    command = [*installed.command, sys.executable, "-m", "dpmpn", "serve", "../out/trained", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **installed.options()
    ) as server:
        try:
            line = server.stdout.readline()
            port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            asked = json.dumps({"head": "child1", "relation": "father"})
            connection.request("POST", "/api/v1/ask", asked, {"Content-Type": "application/json"})
            assert connection.getresponse().status == 200
        finally:
            server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
    assert server.returncode in (0, 143), (line, out, err)
    assert "Traceback" not in err


def test_without_a_temporary_folder(
    trained_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    ended = caller(capsys)("serve", trained_once, "--port", 0, "--workers", 2)
    assert is_refused(ended, "no temporary folder", "set TMPDIR to one you can write to")
