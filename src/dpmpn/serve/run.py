"""Runs the server in one process: its address, and its orderly end."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.logging import DefaultFormatter

from dpmpn.errors import ConfigError
from dpmpn.serve.connections import Connection, connections
from dpmpn.serve.guard import GRACE, Guard
from dpmpn.wording import on_terminal

_UNSENT = 1 << 17  # bytes that the kernel keeps for a client that does not read; by itself it kept 2.5 MB
_LINGER = 1.0  # seconds in which a client that had an answer may send its next request to a server that stops
_LAST = 0.5  # seconds for connections made in the last moment to be told


def bind(host: str, port: int) -> socket.socket:
    """Take an address, before the model is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio looks at it: only then replies are sent at once (TCP_NODELAY). Without,
    # each waits 40 ms for the client to confirm its first part.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT
    )  # of each connection; the kernel takes twice as much
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


class LogFormatter(DefaultFormatter):
    """Lines of the log, in which names of anybody may stand."""

    def format(self, record: logging.LogRecord) -> str:
        """A line, or the lines of a traceback."""
        return on_terminal(super().format(record))


_LOGGING = LOGGING_CONFIG | {
    "formatters": {
        name: {"()": LogFormatter, "fmt": "%(levelprefix)s %(message)s"}
        for name in LOGGING_CONFIG["formatters"]
    }
}


def run(
    guard: Guard, taken: socket.socket, stop: Callable[[], bool], started: Callable[[], None] = lambda: None
) -> None:
    """Serve until `stop` says so; `started` is called once requests are answered."""
    _allow_files()
    config = uvicorn.Config(
        guard,
        http=connections(guard),
        ws="none",
        loop="asyncio",
        lifespan="on",
        interface="asgi3",
        log_level="error",  # whoever sends what is not HTTP is told, not the log
        log_config=_LOGGING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
    )
    _Server(config, guard, stop, started).run([taken])


def _allow_files() -> None:
    """Take as many open files as this process may: many connections are accepted before the first can be closed."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # not on every system
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Server(uvicorn.Server):
    """Ends in order once it is to stop.

    Clients are told with their next answer that their connection ends with it; those that send nothing more have a
    moment. Requests on new connections are answered with 503. It ends when all that was taken is answered, and read.
    """

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
            self._guard.stop()
            self._began_to_stop = time.monotonic()
        elif self._guard.stopping:
            self.should_exit = self.should_exit or self._is_done(time.monotonic() - self._began_to_stop)
        return await super().on_tick(counter)

    def _is_done(self, seconds: float) -> bool:
        """Whether it may end, so many seconds after it was to."""
        if seconds > GRACE + 1:
            return True
        open = [each for each in self.server_state.connections if isinstance(each, Connection)]
        if self._guard.in_flight or any(each in each.unread for each in open):
            return False
        return seconds > _LINGER or all(each.is_late for each in open)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the address, tell those that came in the last moment, and close all connections."""
        await self._accept_no_more()
        until = time.monotonic() + _LAST
        while time.monotonic() < until and any(
            isinstance(each, Connection) and each.cycle is None for each in self.server_state.connections
        ):
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    async def _accept_no_more(self) -> None:
        """Close the address, but accept all who reached it before: the kernel would reset them."""
        loop, last = asyncio.get_running_loop(), []
        for server in self.servers:
            for taken in server.sockets:
                loop.remove_reader(taken.fileno())
        for _ in range(3):  # turns of the loop in which those just accepted become connections
            await asyncio.sleep(0)
        for server in self.servers:
            for taken in server.sockets:
                with socket.socket(fileno=os.dup(taken.fileno())) as listening, contextlib.suppress(OSError):
                    listening.setblocking(False)
                    while True:  # until none is left, which is an error
                        last.append(listening.accept()[0])
            server.close()
        for accepted in last:
            await loop.connect_accepted_socket(self._connection, accepted)

    def _connection(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made
