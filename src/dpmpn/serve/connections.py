"""The connections of a server: how long each may be silent or not read, and which goes where there are too many."""

import asyncio
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpmpn.serve.guard import LATE, LET_IN, Guard
from dpmpn.serve.problems import Problem

_MOST = 800  # a process may often have no more than 1024 files and connections
_PART = 1 << 16  # bytes that are read at once, so that no more than these wait behind a request
_LEAVING_SECONDS = 2.0  # for a client to stop sending once it is refused
_NO_HTTP = "this is not HTTP, or its head or address is too long; send a shorter one"


class Connection(H11Protocol):
    """Answers one request after the other, and closes itself where the client does not do its part.

    The head of a request must come within some seconds, and an answer be taken within some more. Until it is taken, the
    next request is not looked at. What is not taken stays within two shares of memory: a small one of those who need
    no token, and that of all others; where one is full, the connection that did not read for longest is closed.

    uvicorn's own settings (0.54: timeout_keep_alive, limit_concurrency) do not reach connections that never had an
    answer, nor those that do not read theirs: 1,100 idle ones on which half a head was sent, or 300 that did not read,
    kept everybody out for good.
    """

    guard: Guard
    most: int
    unread: "dict[Connection, None]"  # whose answers are not taken yet, those who began to wait first first

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._heard = time.monotonic()
        self._waiting: asyncio.TimerHandle | None = None  # for a head
        self._writing: asyncio.TimerHandle | None = None  # an answer
        self._is_answered = False  # with an answer that is still being written
        self._is_leaving = False  # refused; what still comes is thrown away
        self.is_late = self.guard.stopping
        if self.is_late:
            self.app_state = {**self.app_state, LATE: True}

    @property
    def is_let_in(self) -> bool:
        """Whether its last request was one for which a token is asked, if there is one, and had it."""
        return self.scope is not None and LET_IN in self.scope["state"]

    @property
    def is_idle(self) -> bool:
        """Whether it is open, no request is being answered, and all answers are taken."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        return not is_busy and self._writing is None and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        transport.max_size = _PART  # type: ignore[attr-defined]
        transport.set_write_buffer_limits(high=0)  # to be told where a single byte is not taken
        self._wait()
        if len(self.connections) > self.most:
            self._make_way()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head, from its first byte on; the guard waits for bodies."""
        self._heard = time.monotonic()
        if self._is_leaving:
            return
        super().data_received(data)
        if not self.is_idle:
            self._wait_no_more()
        elif self._waiting is None:
            self._wait()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not take all of its answer.

        The application need not wait: it gives whole answers, and the next request is not begun before.
        """
        self.flow.pause_reading()
        self._writing = self.loop.call_later(self.guard.limits.reading_seconds, self._drop)
        self.unread[self] = None
        self._make_room()

    def resume_writing(self) -> None:
        """Go on, as all of the answer is taken."""
        self._write_no_more()
        self.flow.resume_reading()
        if self._is_answered:
            self._is_answered = False
            super().on_response_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, but not before the answer is taken."""
        if self._writing is None:
            super().on_response_complete()
        else:
            self._is_answered = True

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; where an answer was begun, nothing can be said any more.

        A socket that is closed while bytes wait in it is reset, and the answer may be lost with it. So the client is
        told that nothing more comes, and what it still sends is read for a moment.
        """
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        refusal = Problem("invalid_request", _NO_HTTP, status=400).response()
        headers = [*refusal.raw_headers, (b"connection", b"close")]
        answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (answer, h11.Data(data=bytes(refusal.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._is_leaving = True
        self.transport.write_eof()
        self.loop.call_later(_LEAVING_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait_no_more()
        self._write_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.guard.limits.body_seconds, self._close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close(self) -> None:
        self._waiting = None
        if self.is_idle:
            self.transport.close()

    def _write_no_more(self) -> None:
        self.unread.pop(self, None)
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _drop(self) -> None:
        """Close it at once, whatever is not taken."""
        self._write_no_more()
        self.transport.abort()

    def _make_room(self) -> None:
        """Close those of its kind that did not read for longest, until the others' answers have room."""
        limits = self.guard.limits
        room = limits.unread_bytes if self.is_let_in else limits.free_unread_bytes
        alike = [each for each in self.unread if each.is_let_in == self.is_let_in]
        for each in reversed(alike):  # those who began to wait last stay
            room -= each.transport.get_write_buffer_size()
            if room < 0 and each is not self:
                each._drop()

    def _make_way(self) -> None:
        """Close the one silent longest: of those not let in, or else of the idle, or of those that do not read."""
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        closable = [each for each in others if not each.is_let_in or each.is_idle or each in self.unread]
        closable = [each for each in closable if each in self.unread or not each.transport.is_closing()]
        min(closable, key=Connection._worth, default=self)._drop()

    def _worth(self) -> tuple[bool, bool, float]:
        return self.is_let_in, self.is_let_in and not self.is_idle, self._heard


def connections(guard: Guard, most: int = _MOST) -> type[Connection]:
    """The connections of one server."""

    class Connections(Connection):
        unread: dict[Connection, None] = {}  # noqa: RUF012  # of all of them

    Connections.guard, Connections.most = guard, most
    return Connections
