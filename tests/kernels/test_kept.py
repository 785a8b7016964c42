"""Compiled kernels are kept on disk where that can be done; where it cannot, they are compiled each time."""

import errno
import importlib.util
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpn.kernels import kept, kernel

SOURCE = "def twice(x):\n    return x + x\n"


@pytest.fixture
def twice(tmp_path: Path) -> Callable[[], Any]:
    """Makes one kernel again and again, each time as a new process would."""
    (tmp_path / "doubling.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("doubling", tmp_path / "doubling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda: kernel(module.twice)


@pytest.fixture(autouse=True)
def nothing_said_yet() -> None:
    kept._say_once.cache_clear()


def files(tmp_path: Path, suffix: str) -> list[Path]:
    return sorted(tmp_path.glob(f"__pycache__/*.{suffix}"))


def hits(made: Any) -> int:
    return sum(made.stats.cache_hits.values())


def test_a_kernel_is_kept_beside_its_module(twice: Callable[[], Any], tmp_path: Path) -> None:
    first, second = twice(), twice()
    assert first(2) == 4 and not hits(first)
    assert len(files(tmp_path, "nbi")) == len(files(tmp_path, "nbc")) == 1
    assert second(3) == 6 and hits(second) == 1


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80", b"no pickle at all"])
def test_a_damaged_file_is_compiled_anew(
    twice: Callable[[], Any], tmp_path: Path, suffix: str, content: bytes
) -> None:
    """As a power cut leaves it: numba does not wait until a file is on the disk."""
    twice()(2)
    (file,) = files(tmp_path, suffix)
    file.write_bytes(content)
    again, healed = twice(), twice()
    assert again(2) == 4 and not hits(again)
    assert healed(2) == 4 and hits(healed) == 1


def test_the_code_of_another_signature_is_not_run(twice: Callable[[], Any], tmp_path: Path) -> None:
    """As two processes can leave it that write at once."""
    made = twice()
    made(2), made(2.5)
    of_int, of_float = files(tmp_path, "nbc")
    of_int.write_bytes(of_float.read_bytes())
    assert twice()(2) == 4
    assert twice()(np.int64(2**40)) == 2**41


def test_compiling_is_said_once_and_finding_what_was_kept_is_not(
    twice: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    made = twice()
    assert made(2) == 4 and made(2.5) == 5.0
    (record,) = caplog.records
    assert "compiling for this machine" in record.message
    kept._say_once.cache_clear()
    assert twice()(2) == 4
    assert len(caplog.records) == 1


def test_a_full_disk_is_said_once(
    twice: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    made = twice()
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    assert made(2) == 4 and made(2.5) == 5.0 and twice()(2) == 4
    compiling, record = caplog.records
    assert "compiling for this machine" in compiling.message
    assert record.levelno == logging.WARNING
    assert "(No space left on device)" in record.message and "NUMBA_CACHE_DIR" in record.message


def test_without_a_home_no_folder_is_used_that_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in there are unpickled: they must not come with a folder of somebody else's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "~")  # what it is expanded to for a user without one
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert kept._OwnCache.from_function(files, __file__) is None
    assert not list(tmp_path.iterdir())
