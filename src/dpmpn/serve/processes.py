"""Several processes that serve one address: started one after the other, replaced when one dies, stopped together."""

import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from dpmpn.errors import ConfigError, RunError
from dpmpn.serve.run import GRACE

_LEAST_SECONDS = 2.0  # a process that dies sooner after it began to answer would die again
_COUNTED_IN = "PROMETHEUS_MULTIPROC_DIR"  # read when prometheus_client is first imported: in each process

Serve = Callable[[bool, Callable[[], None], Callable[[], bool]], int]
"""Serves in the process it is called in: whether it is the first, what to call when it answers, when to stop."""


class _Death(NamedTuple):
    pid: int
    lived: float  # seconds since it began to answer
    code: int


class Processes:
    """Forked processes; each ends when this one does, however that ends."""

    def __init__(self, serve: Serve, count: int, complain: Callable[[str], None]) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError("several workers need a system that can fork; use --workers 1")
        self._serve, self._count, self._complain = serve, count, complain
        self._began: dict[int, float] = {}  # when each process began to answer
        self._deaths: list[_Death] = []  # noticed while another process was started
        self._here, self._gone = os.pipe()  # the writing end closes when this process ends
        self._ready, self._tell = os.pipe()

    def run(self, stop: Callable[[], bool], started: Callable[[], None]) -> int:
        """Serve until `stop` says so; returns an exit code."""
        with tempfile.TemporaryDirectory(prefix="dpmpn-counts-") as folder:
            os.environ[_COUNTED_IN] = folder
            try:
                return self._watched(stop, started)
            finally:
                self._end()
                del os.environ[_COUNTED_IN]

    def _watched(self, stop: Callable[[], bool], started: Callable[[], None]) -> int:
        for number in range(self._count):
            code = self._start(number == 0, stop)
            if code is not None or stop():
                return code or 0
        started()
        while not stop():
            time.sleep(0.1)
            self._deaths += self._dead()
            while self._deaths and not stop():
                death = self._deaths.pop(0)
                self._complain(f"worker {death.pid} ended with code {death.code}; another one is started")
                if death.lived < _LEAST_SECONDS or self._start(False, stop) is not None:
                    raise RunError("workers end as soon as they are started; what they said last is above")
        return 0

    def _start(self, first: bool, stop: Callable[[], bool]) -> int | None:
        """Start a process and wait until it answers; its exit code if it ended instead."""
        pid = os.fork()
        if not pid:
            self._be_one(first)
        self._began[pid] = time.monotonic()
        while not stop():
            if select.select([self._ready], [], [], 0.1)[0]:
                os.read(self._ready, 1)
                self._began[pid] = time.monotonic()
                return None
            self._deaths += self._dead()
            for death in self._deaths:
                if death.pid == pid:
                    self._deaths.remove(death)
                    return death.code or 1
        return None

    def _be_one(self, first: bool) -> None:
        """Serve in a process that was just forked; does not return."""
        code = 1
        try:
            os.setpgid(0, 0)  # a Ctrl-C is for the one that watches
            os.close(self._gone)
            code = self._serve(first, self._say_ready, self._is_alone)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _say_ready(self) -> None:
        os.write(self._tell, b"+")

    def _is_alone(self) -> bool:
        """Whether the process that watches is gone."""
        return bool(select.select([self._here], [], [], 0)[0])

    def _dead(self) -> list[_Death]:
        """Processes that ended since this was last asked."""
        from prometheus_client.multiprocess import mark_process_dead

        found = []
        for pid in list(self._began):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                mark_process_dead(pid)
                lived = time.monotonic() - self._began.pop(pid)
                found.append(_Death(pid, lived, os.waitstatus_to_exitcode(status)))
        return found

    def _end(self) -> None:
        """Ask all to stop; those that do not are killed."""
        for pid in self._began:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + GRACE + 5
        while self._began and time.monotonic() < until:
            self._dead()
            time.sleep(0.05)
        for pid in self._began:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for end in (self._here, self._gone, self._ready, self._tell):
            os.close(end)
