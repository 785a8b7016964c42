"""What a group of processes has used: CPU time, since wall time alone lies on a busy machine, and memory."""

import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path


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
