"""Connections of the server: those that keep it waiting for a request are closed, so that they keep nobody else out."""

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST = 800  # open at a time; a process may often have no more than 1024 files and connections


def connections(head_seconds: float, most: int = _MOST) -> type[H11Protocol]:
    """What handles a connection on which the head of a request comes within some seconds."""

    class Connection(_Connection):
        _head_seconds, _most = head_seconds, most

    return Connection


class _Connection(H11Protocol):
    """Closes itself when no request is being answered and the head of the next one does not come whole."""

    _head_seconds, _most = 10.0, _MOST

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
        """Wait for the rest of a head, from its first byte on; what is answered is waited for elsewhere."""
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
