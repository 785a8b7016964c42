"""Several processes that serve one address: started, replaced when they die, ended together."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import TYPE_CHECKING

from dpmpn.errors import ConfigError, RunError
from dpmpn.files.held import temporary_folder
from dpmpn.serve.guard import GRACE

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess  # not on every system

_LEAST_SECONDS = 2.0  # a worker that dies sooner after it began to answer would die again
_MOST_SECONDS = 60.0  # between attempts to replace one
_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read when prometheus_client is first imported: in each worker

Serve = Callable[[bool, Callable[[], None], Callable[[], bool]], int]
"""Serves in the process it is called in: whether it is the first, what to call when it answers, when to stop."""


class Workers:
    """Forked processes that serve one address: started one after the other, replaced when one dies, ended together.

    uvicorn's own workers (0.54) outlive a supervisor that was killed, and are started again for ever where the model
    cannot be loaded. They are spawned, not forked: 83 MB more each, and of two the first answer came after 14 instead
    of 8 seconds.
    """

    def __init__(self, serve: Serve, count: int, complain: Callable[[str], None]) -> None:
        if "fork" not in multiprocessing.get_all_start_methods():
            raise ConfigError("several workers need a system that can fork; use --workers 1")
        self._serve, self._count, self._complain = serve, count, complain
        self._began: dict[ForkProcess, float] = {}  # when each worker began to answer
        self._ended: list[tuple[ForkProcess, float]] = []  # and how many seconds it answered
        self._wait = self._next = 0.0  # seconds until one is started again, and when that is

    def run(
        self,
        stop: Callable[[], bool],
        started: Callable[[], None],
        stopping: Callable[[], None] = lambda: None,
    ) -> int:
        """Serve until `stop` says so, and call `stopping` before workers are ended; returns an exit code."""
        with temporary_folder() as folder:  # of the metrics
            os.environ[_SHARED_FOLDER] = folder
            try:
                for number in range(self._count):
                    code = self._start(number == 0, stop)
                    if code is not None or stop():
                        return code or 0
                started()
                self._watch(stop)
                stopping()
                return 0
            finally:
                self._end()
                del os.environ[_SHARED_FOLDER]

    def _watch(self, stop: Callable[[], bool]) -> None:
        """Replace workers that end, ever later where that fails: those that answer go on."""
        while not stop():
            time.sleep(0.1)
            self._note_ends()
            while self._ended:
                worker, seconds = self._ended.pop(0)
                self._complain(
                    f"worker {worker.pid} ended with code {worker.exitcode}; another one is started"
                )
                if seconds < _LEAST_SECONDS:
                    self._fail()
                else:
                    self._wait = self._next = 0.0
            is_due = len(self._began) < self._count and time.monotonic() >= self._next
            if is_due and self._start(False, stop) is not None:
                self._fail()

    def _fail(self) -> None:
        """Try again later, if others answer meanwhile."""
        if not self._began:
            raise RunError("workers end as soon as they are started; what they said last is above")
        self._wait = min(max(2 * self._wait, _LEAST_SECONDS), _MOST_SECONDS)
        self._next = time.monotonic() + self._wait
        self._complain(
            f"a worker could not be replaced; {len(self._began)} of {self._count} answer, and it is tried again in "
            f"{self._wait:g} seconds"
        )

    def _start(self, first: bool, stop: Callable[[], bool]) -> int | None:
        """Start a worker and wait until it answers; its exit code if it ended instead."""
        fork = multiprocessing.get_context("fork")
        here, there = fork.Pipe(duplex=False)
        worker = fork.Process(target=self._work, args=(first, there))
        worker.start()
        there.close()  # so that the worker's end is the only one: the pipe breaks when it ends
        self._began[worker] = time.monotonic()
        with here:
            while not stop():
                self._note_ends(but=worker)
                if here.poll(0.1):
                    try:
                        here.recv_bytes()
                    except EOFError:
                        del self._began[worker]
                        worker.join()
                        return worker.exitcode or 1
                    self._began[worker] = time.monotonic()
                    break
        return None

    def _work(self, first: bool, ready: Pipe) -> None:
        """What a worker does."""
        os.setpgid(0, 0)  # a Ctrl-C is for the one that watches
        watcher = os.getppid()
        sys.exit(self._serve(first, lambda: ready.send_bytes(b"+"), lambda: os.getppid() != watcher))

    def _note_ends(self, but: "ForkProcess | None" = None) -> None:
        """Note which workers ended since this was last asked."""
        from prometheus_client.multiprocess import mark_process_dead

        for worker in [each for each in self._began if each is not but and not each.is_alive()]:
            self._ended.append((worker, time.monotonic() - self._began.pop(worker)))
            mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]

    def _end(self) -> None:
        """Ask all to stop; those that do not are killed."""
        until = time.monotonic() + GRACE + 5
        try:
            for worker in self._began:
                worker.terminate()
            for worker in self._began:
                worker.join(max(0.0, until - time.monotonic()))
        finally:  # also where a second signal comes
            for worker in self._began:
                worker.kill()
                worker.join()
