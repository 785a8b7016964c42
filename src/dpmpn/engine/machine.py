"""This machine: what processes have used of it, and keeping freed memory for the next batch.

CPU time counts beside wall time, which alone lies on a busy machine.
"""

import ctypes
import functools
import os
import platform
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # names of mallopt(3)
_LARGEST_KEPT = 32 << 20  # bytes of one array; glibc takes no more
_KEPT, _ASKED_FOR_AT_ONCE = 1 << 30, 64 << 20


@dataclass(frozen=True)
class Usage:
    """CPU seconds and peak resident bytes, summed over processes."""

    cpu_seconds: float
    peak_rss_bytes: int


def process_usage(pids: list[int]) -> Usage:
    """Usage of these processes, read from /proc; where there is none, of this process alone."""
    try:
        return Usage(sum(map(_cpu_seconds, pids)), sum(map(_peak_rss, pids)))
    except OSError:
        own = resource.getrusage(resource.RUSAGE_SELF)
        unit = 1 if sys.platform == "darwin" else 1024
        return Usage(own.ru_utime + own.ru_stime, own.ru_maxrss * unit)


def _cpu_seconds(pid: int) -> float:
    # The second field, the command, may hold spaces; everything after its bracket is numbers.
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no peak memory for process {pid}")


@functools.cache
def keep_freed_memory() -> None:
    """Let this process keep about a gigabyte that it has freed; arrays above 32 MiB go back at once, as ever.

    Every batch allocates and frees arrays of some megabytes. The C library would give each back to the system and ask
    for it again, page by page, which takes a good part of the time. Without effect where the C library is not glibc.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
    libc.mallopt(_TRIM_THRESHOLD, _KEPT)
    libc.mallopt(_TOP_PAD, _ASKED_FOR_AT_ONCE)
