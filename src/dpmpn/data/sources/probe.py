"""Tables are decoded in another process first: what a damaged one does to the decoder ends that one, not this.

The decoder of polars asks for as much memory as a damaged page names, and a process that is refused it ends at once,
without an error of Python. The other process is started with the first table, and ends with this one.
"""

import atexit
import json
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

_PROGRAM = """
import json, sys
import polars as pl
print("ready", flush=True)
for line in sys.stdin:
    scan, path, names, n_rows, step = json.loads(line)
    answer = "yes"
    try:
        table = getattr(pl, scan)(path, glob=False, hive_partitioning=False).select(names)
        for start in range(0, n_rows, step):
            table.slice(start, step).collect()
    except pl.exceptions.PanicException:
        answer = "no"
    except BaseException:
        pass  # whoever asks will read it, too, and say what is wrong
    print(answer, flush=True)
"""
_LOCK = Lock()


def can_be_decoded(scan: str, path: Path, names: list[str], n_rows: int, step: int) -> bool:
    """Whether a process survives decoding columns of a table that a function of polars scans, `step` rows at a time."""
    request = json.dumps([scan, str(path.absolute()), names, n_rows, step])
    with _LOCK:
        other = _other_process()
        if other is None or other.stdin is None or other.stdout is None:
            return True
        answer = ""
        try:
            other.stdin.write(request + "\n")
            other.stdin.flush()
            answer = other.stdout.readline()
        except OSError:  # it is gone
            pass
        finally:
            if not answer:
                _other_process.cache_clear()
                _end(other)
        return answer == "yes\n"


@cache
def _other_process() -> "subprocess.Popen[str] | None":
    """A process that decodes tables; None where there is none to be had, as within another program."""
    if not sys.executable:
        return None
    try:
        other = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # nobody is to hear how it ends
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is not for it
        )
    except OSError:
        return None
    atexit.register(_end, other)
    if other.stdout is not None and other.stdout.readline():
        return other
    _end(other)
    return None


def _end(other: "subprocess.Popen[str]") -> None:
    """End it, whatever it does."""
    atexit.unregister(_end)
    other.kill()
    with suppress(OSError, ValueError):
        other.communicate()
