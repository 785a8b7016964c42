"""What stands before every request: whom it is meant for, who may send it, how large it is and how long it may take."""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import math
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpmpn.serve.problems import Problem, overloaded

if TYPE_CHECKING:
    # Where several processes count together, what counts is imported only in them.
    from dpmpn.serve.status import Metrics


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a server answering whatever is asked of it."""

    body_bytes: int = 1_000_000
    name_letters: int = 4096  # of an entity or a relation
    top: int = 1000  # answers to one question
    questions: int = 256  # of one ask-many
    top_of_many: int = 100  # answers to each of them
    found: int = 100  # entities of one search
    facts: int = 1000  # of one page of an entity's facts
    seconds: float = 30.0  # until a request is answered
    body_seconds: float = 10.0  # until its head has come, and again until its body has
    reading_seconds: float = 30.0  # until the client has taken its answer
    unread_bytes: int = 64_000_000  # of answers that are not taken yet, of all clients
    free_unread_bytes: int = 2_000_000  # likewise, of all that needs no token
    requests: int = 256  # being answered at the same time
    bodies: int = 256  # on their way at the same time
    waiting_questions: int = 512
    waiting_lookups: int = 128  # searches, facts, relations
    waiting_near_names: int = 16  # names that are not found; beyond, no near ones are searched for
    waiting_explanations: int = 32  # being written or drawn


LIMITS = Limits()  # the route of the model lists them

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer, unless it has another."""
_PROBES = ("/livez", "/readyz")
GRACE = 10.0  # seconds for requests that were taken to be answered, once the server is to stop

# What is noted in the state of a request.
LATE = "late"  # its connection was opened after the server began to stop
LET_IN = "let_in"  # it is for more than everybody may see, and allowed to


class Guard:
    """An application behind its limits; knows how many requests are being answered and whether it is stopping."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: "Metrics",
        token: str | None = None,
        is_meant: Callable[[str], bool] = lambda _: True,
        limits: Limits = LIMITS,
    ) -> None:
        self._app, self._metrics, self.limits = app, metrics, limits
        self.routes: Collection[str] = ()  # those that are counted by their own names
        self._token = _digest(token.encode()) if token else None
        self._is_meant = is_meant  # by the name in the Host header
        self.in_flight, self.stopping, self._end = 0, False, math.inf
        self._answering: dict[asyncio.Timeout, None] = {}  # those whose bodies have come
        self._reading: dict[asyncio.Timeout, None] = {}  # those whose bodies come, the oldest first

    def stop(self) -> None:
        """Answer what was taken within the grace, and refuse what comes on new connections."""
        self.stopping, self._end = True, asyncio.get_running_loop().time() + GRACE
        for until in self._answering:
            if not until.expired():
                until.reschedule(min(self._end, until.when() or self._end))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self.in_flight += 1
        self._metrics.in_flight.inc()
        began, answer = time.perf_counter(), _Answer(send, self)
        route = scope["path"]
        if route not in self.routes:  # clients must not be able to make up routes
            route = "/page" if route.startswith("/page/") else "other"
        if scope["method"] == "HEAD":  # uvicorn leaves the body away
            scope = {**scope, "method": "GET"}
        try:
            await self._answered(scope, receive, answer)
        finally:
            self.in_flight -= 1
            self._metrics.in_flight.dec()
            self._metrics.requests.labels(route, str(answer.status or 499)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - began)

    async def _answered(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            self._check(scope)
            if LET_IN in scope["state"]:
                body = await self._body(scope, receive)
                async with self._counted():
                    await self._app(scope, _replay(body, receive), answer)
            else:  # at once, whatever else is being answered, and without its body, if it has one
                await self._app(scope, _replay(b"", receive), answer)
        except ClientDisconnect:  # before it had sent its request
            return
        except Problem as problem:
            await problem.response()(scope, receive, answer)
        except TimeoutError:
            await self._too_late().response()(scope, receive, answer)
        except Exception:
            if not answer.is_sent:
                raise
            # The client has its answer; ending its connection now would lose the request it sends next.
            logging.getLogger("uvicorn.error").exception("a request failed")

    def _too_late(self) -> Problem:
        if self.stopping:
            return _stopping()
        return Problem(
            "timeout",
            f"no answer within {self.limits.seconds:g} seconds; try again later, or ask for less",
        )

    def _check(self, scope: Scope) -> None:
        """Refuse what is not to be answered at all, and note what is let in."""
        path, headers = scope["path"], dict(scope["headers"])
        # Browsers, which others could lead here, always say a name; programs that speak HTTP/1.0 need not.
        is_unnamed = b"host" not in headers and scope["http_version"] == "1.0"
        if not is_unnamed and not self._is_meant(_host(headers.get(b"host", b""))):
            raise Problem(
                "invalid_request",
                "this server is not called that; open it under the address it printed",
                status=400,
            )
        if path in _PROBES:
            return
        if path.startswith("/api") or path == "/metrics":
            self._check_token(headers.get(b"authorization", b""))
            scope["state"][LET_IN] = True
        if LATE in scope["state"]:
            raise _stopping()

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        """Count a request whose body has come and bound its time, or refuse it where there are too many."""
        if len(self._answering) >= self.limits.requests:
            self._metrics.refused.labels("requests").inc()
            raise overloaded("too many requests are being answered")
        now = asyncio.get_running_loop().time()
        async with asyncio.timeout_at(min(now + self.limits.seconds, self._end)) as until:
            self._answering[until] = None
            try:
                yield
            finally:
                del self._answering[until]

    def _check_token(self, given: bytes) -> None:
        if self._token is None:
            return
        scheme, _, token = given.partition(b" ")
        # Digests, so that not even the token's length can be measured.
        if not hmac.compare_digest(_digest(token.strip()), self._token) or scheme.lower() != b"bearer":
            raise Problem(
                "unauthorised",
                "this server requires a token; send the header Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is not too large and does not take too long."""
        most = self.limits.body_bytes
        too_large = Problem(
            "too_large", f"the body has more than {most:,} bytes; send less", headers={"Connection": "close"}
        )
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > most:
            raise too_large
        body, until = bytearray(), asyncio.timeout(self.limits.body_seconds)
        try:
            async with until:
                self._make_room()
                self._reading[until] = None
                async for part in Request(scope, receive).stream():
                    body += part
                    if len(body) > most:
                        raise too_large
                return bytes(body)
        except TimeoutError:
            if until not in self._reading:
                self._metrics.refused.labels("bodies").inc()
                raise overloaded("too many bodies are being sent") from None
            raise Problem(
                "timeout",
                f"the body did not come within {self.limits.body_seconds:g} seconds; send it again",
                headers={"Connection": "close"},
                status=408,
            ) from None
        finally:
            self._reading.pop(until, None)

    def _make_room(self) -> None:
        """Give up the body that has been on its way longest, where too many are."""
        if len(self._reading) >= self.limits.bodies:
            slowest = next(iter(self._reading))
            if not slowest.expired():
                del self._reading[slowest]
                slowest.reschedule(asyncio.get_running_loop().time())


class _Answer:
    """Sends an answer with the headers that all have, and notes its status."""

    def __init__(self, send: Send, guard: Guard) -> None:
        self._send, self._guard, self.status, self.is_sent = send, guard, 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if self._guard.stopping:  # so that the client sends its next request elsewhere
                headers["Connection"] = "close"
        await self._send(message)
        self.is_sent = message["type"] == "http.response.body" and not message.get("more_body", False)


def _stopping() -> Problem:
    return Problem("overloaded", "this server is stopping; try again later", headers={"Retry-After": "5"})


def allowed_hosts(host: str, has_token: bool) -> Callable[[str], bool]:
    """Whether a server bound to `host` is meant by the name in a request.

    A page of another site can have its own name lead here, and its script would then read all answers. A token
    keeps it out, too (and a proxy may pass any name on), and an address is no such name. Starlette's
    TrustedHostMiddleware takes a list of names, so not every address, and its refusals have not the shape of others.
    """
    if has_token:
        return lambda _: True
    names = {"localhost", "127.0.0.1", "::1", host.lower()}
    if is_loopback(host):
        return names.__contains__
    names |= {name.lower() for name in (socket.gethostname(), socket.getfqdn())}
    return lambda name: name in names or _address(name) is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(name)
    return None


def _host(header: bytes) -> str:
    """The name in a Host header, without the port."""
    text = header.decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give an application a body that was read already."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
