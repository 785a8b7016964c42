"""Runs the server: its address, its connections, its orderly end, and several processes behind one address."""

import asyncio
import contextlib
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpmpn.errors import ConfigError, RunError
from dpmpn.files import temporary_folder
from dpmpn.serve.guard import Guard

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess  # not on every system

_GRACE = 10.0  # seconds for requests that were taken to be finished
_MOST_CONNECTIONS = 800  # a process may often have no more than 1024 files and connections
_LEAST_SECONDS = 2.0  # a worker that dies sooner after it began to answer would die again
_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read when prometheus_client is first imported: in each worker


def bind(host: str, port: int) -> socket.socket:
    """Take an address, before the model is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio looks at it: only then replies are sent at once (TCP_NODELAY). Without,
    # each waits 40 ms for the client to confirm its first part.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(1024)
    except OSError as error:
        taken.close()
        raise ConfigError(
            f"cannot serve on {host}, port {port}: {error.strerror or error}; choose another --host or --port "
            "(0 takes a free one)"
        ) from error
    return taken


def address(taken: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = taken.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(
    guard: Guard, taken: socket.socket, stop: Callable[[], bool], started: Callable[[], None] = lambda: None
) -> None:
    """Serve until `stop` says so; `started` is called once requests are answered."""
    config = uvicorn.Config(
        guard,
        http=connections(guard.limits.body_seconds),
        ws="none",
        loop="asyncio",
        lifespan="on",
        interface="asgi3",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
    )
    _Server(config, guard, stop, started).run([taken])


class _Server(uvicorn.Server):
    """Answers new requests with 503 once it is to stop, and ends when the others are answered."""

    def __init__(
        self, config: uvicorn.Config, guard: Guard, stop: Callable[[], bool], started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._guard, self._stop, self._tell = guard, stop, started
        self._is_told, self._began_to_stop = False, 0.0

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the server."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Look ten times a second whether it is time to end."""
        if not self._is_told:  # the counter comes back to 0 after a day
            self._is_told = True
            self._tell()
        if self._stop() and not self._guard.stopping:
            self._guard.stopping, self._began_to_stop = True, time.monotonic()
        elif self._guard.stopping:
            overdue = time.monotonic() - self._began_to_stop > _GRACE
            self.should_exit = self.should_exit or overdue or not self._guard.in_flight
        return await super().on_tick(counter)


def connections(head_seconds: float, most: int = _MOST_CONNECTIONS) -> type[H11Protocol]:
    """What handles a connection on which the head of a request comes within some seconds."""

    class Connection(_Connection):
        _head_seconds, _most = head_seconds, most

    return Connection


class _Connection(H11Protocol):
    """Closes itself when no request is being answered and the head of the next one does not come whole.

    uvicorn's own settings (0.54: timeout_keep_alive, limit_concurrency) do not reach connections that never had an
    answer: 1,100 idle ones on which half a head was sent kept everybody out for good. With this, others were answered
    within 60 ms meanwhile.
    """

    _head_seconds, _most = 10.0, _MOST_CONNECTIONS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._waiting: asyncio.TimerHandle | None = None
        self._heard = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether it is open and no request is being answered."""
        return not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; where there are too many connections, the one that was quiet longest goes."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self._most:
            idle = [each for each in self.connections if isinstance(each, _Connection) and each.is_idle]
            if idle:
                min(idle, key=lambda each: each._heard).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head, from its first byte on; the guard waits for bodies."""
        self._heard = time.monotonic()
        super().data_received(data)
        if not self.is_idle:
            self._wait_no_more()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self._head_seconds, self._close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close(self) -> None:
        self._waiting = None
        if self.is_idle:
            self.transport.close()


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

    def run(self, stop: Callable[[], bool], started: Callable[[], None]) -> int:
        """Serve until `stop` says so; returns an exit code."""
        with temporary_folder() as folder:  # of the metrics
            os.environ[_SHARED_FOLDER] = folder
            try:
                return self._watch(stop, started)
            finally:
                self._end()
                del os.environ[_SHARED_FOLDER]

    def _watch(self, stop: Callable[[], bool], started: Callable[[], None]) -> int:
        for number in range(self._count):
            code = self._start(number == 0, stop)
            if code is not None or stop():
                return code or 0
        started()
        while not stop():
            time.sleep(0.1)
            self._note_ends()
            while self._ended and not stop():
                worker, seconds = self._ended.pop(0)
                self._complain(
                    f"worker {worker.pid} ended with code {worker.exitcode}; another one is started"
                )
                if seconds < _LEAST_SECONDS or self._start(False, stop) is not None:
                    raise RunError("workers end as soon as they are started; what they said last is above")
        return 0

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
        until = time.monotonic() + _GRACE + 5
        try:
            for worker in self._began:
                worker.terminate()
            for worker in self._began:
                worker.join(max(0.0, until - time.monotonic()))
        finally:  # also where a second signal comes
            for worker in self._began:
                worker.kill()
                worker.join()
