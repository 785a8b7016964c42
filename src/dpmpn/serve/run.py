"""Runs the server in this process: it stops taking requests when asked to, and finishes those it took."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn

from dpmpn.errors import ConfigError
from dpmpn.serve.connections import connections
from dpmpn.serve.guard import Guard

GRACE = 10.0  # seconds for what was taken to be finished


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
            overdue = time.monotonic() - self._began_to_stop > GRACE
            self.should_exit = self.should_exit or overdue or not self._guard.in_flight
        return await super().on_tick(counter)
