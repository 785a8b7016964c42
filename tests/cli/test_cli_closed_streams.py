"""A closed standard output is a mistake with a sentence, a closed standard error is nobody to talk to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def called(redirection: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line with a shell's redirection, such as `>&-`."""
    command = [sys.executable, "-m", "dpmpn", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *command], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("options", [(), ("--json", "-")])
def test_standard_output_is_closed(trained: Path, options: tuple[str, ...]) -> None:
    for arguments in (("datasets",), ("explain", trained, "child0", "mother")):
        result = called(">&-", *arguments, *options)
        assert result.returncode == 2, result
        assert result.stderr == (
            "dpmpn: cannot print: standard output is closed; send it to a file or to /dev/null\n"
        )


def test_standard_error_is_closed(trained: Path) -> None:
    result = called("2>&-", "explain", trained, "child0", "mother", "--json", "-")
    assert result.returncode == 0
    assert json.loads(result.stdout)["question"]["head"] == "child0"
    mistake = called("2>&-", "nonsense")
    assert (mistake.returncode, mistake.stdout) == (2, "")  # data alone goes there, whoever reads it


def test_both_are_closed() -> None:
    assert called(">&- 2>&-", "datasets").returncode == 2


def test_a_full_disk_behind_standard_error() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    result = called("2>/dev/full", "nonsense")
    assert (result.returncode, result.stdout) == (2, "")


def test_a_full_disk_behind_help() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    result = called(">/dev/full", "--help")
    assert (result.returncode, result.stderr) == (2, "dpmpn: cannot print: No space left on device\n")
