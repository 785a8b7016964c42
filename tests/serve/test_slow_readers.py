"""Clients that do not read their answers, or go away: they lose their own, and nobody else notices."""

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.client import parse_headers
from pathlib import Path
from typing import BinaryIO

import httpx
import pytest
from serving import QUESTION, Server, serving

from dpmpn.serve import run as run_module
from dpmpn.serve.connections import connections
from dpmpn.serve.guard import LIMITS

TOKEN = "s3cret-s3cret-s3cret"
LETTING_IN = {"authorization": f"Bearer {TOKEN}"}
PAGE = b"GET /page/player.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
MODEL = b"GET /api/v1/model HTTP/1.1\r\nHost: localhost\r\n\r\n"
DESCRIPTION = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"  # the longest answer
READERS = 300


@contextmanager
def not_reading(server: Server, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connections on which requests were sent and no answer is read."""
    with ExitStack() as open:
        readers = [open.enter_context(socket.socket()) for _ in range(count)]
        host, port = server.url.removeprefix("http://").split(":")
        for reader in readers:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.settimeout(20)
            reader.connect((host, int(port)))
            reader.sendall(sent)
        yield readers


def wait_for(is_so: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_still(server: Server) -> bool:
    """Whether no request is answered any more, since nobody reads."""
    before = server.requests()
    time.sleep(0.3)
    return before > 0 and server.requests() == before


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is logged."""
    yield
    assert not caplog.records, caplog.text


def is_closed(reader: socket.socket) -> bool:
    """Whether a connection was closed, whatever of an answer came before."""
    try:
        while reader.recv(1 << 20):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.usefixtures("log")
def test_readers_without_a_token_keep_nobody_out(run_dir: Path) -> None:
    with serving(run_dir, TOKEN) as server, not_reading(server, READERS, PAGE * 200):
        wait_for(lambda: is_still(server))
        for _ in range(20):
            got = server.client.post("/api/v1/ask", json=QUESTION, headers=LETTING_IN)
            assert got.status_code == 200
            again = httpx.post(f"{server.url}/api/v1/ask", json=QUESTION, headers=LETTING_IN, timeout=30)
            assert again.status_code == 200
        for path in ("/livez", "/readyz", "/", "/page/player.js"):
            assert httpx.get(f"{server.url}{path}", timeout=30).status_code == 200


@pytest.mark.usefixtures("log")
def test_readers_keep_nobody_out_where_there_is_no_token(run_dir: Path) -> None:
    with serving(run_dir) as server, not_reading(server, READERS, DESCRIPTION * 5):
        wait_for(lambda: is_still(server))
        assert len([each for each in server.connections() if each in each.unread]) > 100
        for _ in range(5):
            assert server.client.get("/api/v1/model").status_code == 200
            assert httpx.post(f"{server.url}/api/v1/ask", json=QUESTION, timeout=30).status_code == 200


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("sent", [PAGE, MODEL, b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_who_does_not_read_is_closed(run_dir: Path, sent: bytes) -> None:
    limits = replace(LIMITS, reading_seconds=0.5)
    with serving(run_dir, limits=limits) as server, not_reading(server, 1, sent * 1000) as (reader,):
        wait_for(lambda: is_still(server))
        wait_for(lambda: not server.connections())
        assert is_closed(reader)
        assert server.requests() < 1000


def test_who_reads_slowly_has_all_of_it(run_dir: Path) -> None:
    with serving(run_dir) as server, not_reading(server, 1, PAGE * 40) as (reader,):
        wait_for(lambda: is_still(server))
        assert server.requests() < 40
        page = server.client.get("/page/player.js").content
        with reader.makefile("rb") as answers:
            assert [read(answers) for _ in range(40)] == [page] * 40
            reader.sendall(PAGE)
            assert read(answers) == page


def read(answers: BinaryIO) -> bytes:
    """The body of the next answer."""
    assert answers.readline().startswith(b"HTTP/1.1 200")
    return answers.read(int(parse_headers(answers)["content-length"]))


@pytest.mark.parametrize("body", [b"", b"Content-Length: 5\r\n"])
def test_one_answer_at_a_time_waits_to_be_read(run_dir: Path, body: bytes) -> None:
    """Also where bodies that nobody asked for come after it."""
    request = PAGE[:-2] + body + b"\r\n"
    with serving(run_dir) as server, not_reading(server, 1, request) as (reader,):
        one = len(server.client.get("/page/player.js").content) + 2000
        reader.settimeout(0.5)
        with pytest.raises(TimeoutError):  # at some time the server reads no more, too
            while True:
                reader.sendall((b"12345" if body else b"") + request)
        (unread,) = (each for each in server.connections() if each in each.unread)
        assert 0 < unread.transport.get_write_buffer_size() <= one


def test_of_those_who_do_not_read_the_first_makes_room(run_dir: Path) -> None:
    limits = replace(LIMITS, free_unread_bytes=60_000)
    with serving(run_dir, TOKEN, limits) as server, not_reading(server, 12, PAGE * 60) as readers:
        wait_for(lambda: is_still(server))
        unread = [each for each in server.connections() if each in each.unread]
        assert 0 < sum(each.transport.get_write_buffer_size() for each in unread) <= limits.free_unread_bytes
        assert is_closed(readers[0])


def test_who_has_the_token_is_not_closed_for_those_who_have_not(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "connections", lambda guard: connections(guard, most=20))
    with serving(run_dir, TOKEN) as server:
        assert server.client.get("/api/v1/model", headers=LETTING_IN).status_code == 200
        (mine,) = server.connections()
        with not_reading(server, 30, PAGE * 60), not_reading(server, 30, b""):
            wait_for(lambda: len(server.connections()) == 20)
            assert mine in server.connections() and not mine.transport.is_closing()
            assert server.client.get("/api/v1/model", headers=LETTING_IN).status_code == 200


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    "sent",
    [
        PAGE * 60,
        b"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n",
        b"GET /api/v1/explanation.svg?head=child7&relation=father HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"no HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
    ],
)
@pytest.mark.parametrize("token", [None, TOKEN])
def test_who_goes_away_leaves_no_word_in_the_log(run_dir: Path, token: str | None, sent: bytes) -> None:
    with serving(run_dir, token) as server:
        for wait in (0, 0.1):
            with not_reading(server, 3, sent) as readers:
                time.sleep(wait)
                for reader in readers:  # a reset instead of an orderly end
                    reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with not_reading(server, 3, sent) as readers:  # one that is refused goes on sending
            time.sleep(0.1)
            for reader in readers:
                with suppress(ConnectionError):
                    reader.sendall(b"zz\r\n\r\n")
            time.sleep(0.1)
        wait_for(lambda: not server.connections())
        assert server.client.get("/livez").status_code == 200
