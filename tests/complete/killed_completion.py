"""Completes a graph in forked processes that kill themselves at chosen moments; started by test_completer.

A fork costs no imports, and is safe because this process itself computes nothing.
"""

import json
import os
import signal
import sys

import dpmpn
from dpmpn.complete import complete, completer


def kill_at(moment: int, when: str) -> None:
    """SIGKILL this process just before or just after its n-th file takes its place."""
    seen = 0
    replace = os.replace

    def counted(*arguments, **keywords):
        nonlocal seen
        seen += 1
        if seen == moment and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*arguments, **keywords)
        if seen == moment and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = counted


def session(run_dir: str, out: str, moment: int | None, when: str) -> int:
    child = os.fork()
    if child == 0:
        completer.PART, completer._EXPLAINED = 16, 8
        if moment is not None:
            kill_at(moment, when)
        complete(dpmpn.Reasoner.load(run_dir), top=30, out=out)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main() -> None:
    run_dir, out, moments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    ends = [session(run_dir, out, moment, when) for moment, when in moments]
    print(json.dumps([*ends, session(run_dir, out, None, "never")]))


if __name__ == "__main__":
    main()
