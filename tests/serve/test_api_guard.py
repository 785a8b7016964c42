"""What keeps a server up and to itself: tokens, hosts, headers, limits, overload and an orderly end."""

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from serving import QUESTION, Gate, Server, serving

from dpmpn.serve import guard as guard_module
from dpmpn.serve import run as run_module
from dpmpn.serve.connections import connections
from dpmpn.serve.guard import HEADERS, LIMITS, allowed_hosts

PATHS = (
    "/",
    "/livez",
    "/readyz",
    "/metrics",
    "/api/v1/model",
    "/api/openapi.json",
    "/nothing",
    "/page/none.js",
)


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(server: Server, path: str) -> None:
    got = server.client.get(path)
    for name, value in HEADERS.items():
        if name != "Cache-Control":
            assert got.headers[name] == value
    assert "default-src 'none'" in got.headers["content-security-policy"]
    assert "access-control-allow-origin" not in got.headers and "server" not in got.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "10.0.0.1"]
)
def test_another_sites_name_cannot_lead_here(server: Server, host: str) -> None:
    got = server.client.get("/api/v1/model", headers={"host": host})
    assert got.status_code == 400 and got.json()["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:80"])
def test_its_own_names_do(server: Server, host: str) -> None:
    assert server.client.get("/api/v1/model", headers={"host": host}).status_code == 200


def test_hosts_elsewhere() -> None:
    for host in ("0.0.0.0", "127.0.0.1"):  # the token keeps others out
        assert allowed_hosts(host, has_token=True)("proxy.example")
    assert not allowed_hosts("127.0.0.1", has_token=False)("proxy.example")
    is_meant = allowed_hosts("0.0.0.0", has_token=False)
    assert is_meant("192.0.2.7") and is_meant("fe80::1") and is_meant(socket.gethostname().lower())
    assert not is_meant("evil.example") and not is_meant("")


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e/app.py",
        "/page//etc/passwd",
        "/page/..\\app.py",
        "/page/index.html%00.js",
        "/page/",
        "/page/__init__.py",
    ],
)
def test_no_other_file_is_reached_through_the_page(server: Server, path: str) -> None:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))  # sends the path as it is
    connection.request("GET", path)
    got = connection.getresponse()
    assert got.status == 404 and b"not_found" in got.read()
    connection.close()


def test_the_page_is_not_sent_twice(server: Server) -> None:
    first = server.client.get("/")
    assert first.headers["content-type"].startswith("text/html")
    again = server.client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_a_token_opens_the_api_and_nothing_else_does(run_dir: Path) -> None:
    with serving(run_dir, token="s3cret-s3cret-s3cret") as server:
        for given in (
            None,
            "Bearer",
            "Bearer wrong",
            "Basic s3cret-s3cret-s3cret",
            "s3cret-s3cret-s3cret",
            "Bearer é",
        ):
            headers = [] if given is None else [("authorization", given.encode())]
            for path in ("/api/v1/model", "/metrics", "/api/openapi.json", "/api/v1/nothing"):
                got = server.client.get(path, headers=headers)
                assert got.status_code == 401 and got.json()["error"]["code"] == "unauthorised"
                assert got.headers["www-authenticate"] == "Bearer"
        for path in ("/", "/livez", "/readyz"):
            assert server.client.get(path).status_code == 200
        right = {"authorization": "bearer s3cret-s3cret-s3cret", "host": "proxy.example"}
        assert server.client.get("/api/v1/model", headers=right).status_code == 200
        assert server.client.post("/api/v1/ask", json=QUESTION, headers=right).status_code == 200


def _waiting(server: Server, count: int) -> None:
    """Wait until so many questions do."""
    until = time.monotonic() + 10
    while server.metric("dpmpn_waiting", queue="questions") < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def _post(server: Server, path: str, **question: object) -> httpx.Response:
    return httpx.post(f"{server.url}/api/v1/{path}", json=question, timeout=30)


def test_questions_are_asked_together_and_answered_as_alone(run_dir: Path) -> None:
    heads = [f"{who}{i}" for who in ("child", "mother", "father") for i in range(8)]
    with serving(run_dir) as server, Gate(server) as gate, ThreadPoolExecutor(30) as threads:
        before = server.metric("dpmpn_batch_questions_count")
        first = threads.submit(server.ask, "a/b c", inverse=True)
        assert gate.held.wait(10)
        others = [
            threads.submit(_post, server, "ask", head=head, relation="father", inverse=True) for head in heads
        ]
        _waiting(server, len(heads))
        gate.open()
        together = [other.result().json()["answers"] for other in others]
        assert first.result().status_code == 200
        assert server.metric("dpmpn_batch_questions_count") == before + 2  # the first alone, then all others
    for head, answers in zip(heads, together, strict=True):
        expected = server.reasoner.predict(head, "father", inverse=True)
        assert [each["name"] for each in answers] == [each.answer for each in expected]
        assert [each["score"] for each in answers] == pytest.approx(
            [each.score for each in expected], rel=2e-5
        )


def test_the_same_question_is_asked_once_for_all_who_ask_it(run_dir: Path) -> None:
    with serving(run_dir) as server, Gate(server) as gate, ThreadPoolExecutor(8) as threads:
        threads.submit(server.ask, "a/b c", inverse=True)
        assert gate.held.wait(10)
        same = [threads.submit(_post, server, "ask", head="child1", relation="husband") for _ in range(5)]
        _waiting(server, 5)
        before = server.metric("dpmpn_batch_questions_sum")
        gate.open()
        assert len({str(each.result().json()["answers"]) for each in same}) == 1
        assert server.metric("dpmpn_batch_questions_sum") == before + 1


def test_explanations_in_a_batch_are_as_alone(run_dir: Path) -> None:
    heads = ["mother2", "mother3", "father2"]
    with serving(run_dir) as server, Gate(server) as gate, ThreadPoolExecutor(8) as threads:
        threads.submit(server.ask, "a/b c", inverse=True)
        assert gate.held.wait(10)
        asked = {"relation": "father", "inverse": True}
        told = [threads.submit(_post, server, "explain", head=head, **asked) for head in heads]
        plain = threads.submit(_post, server, "ask", head="mother5", **asked)
        _waiting(server, len(heads) + 1)
        gate.open()
        texts = [each.result().json()["text"] for each in told]
        assert plain.result().status_code == 200
    assert texts == [server.reasoner.explain(head, "father", inverse=True).text() for head in heads]


def test_too_many_questions_are_refused_at_once_and_the_others_answered(run_dir: Path) -> None:
    limits = replace(LIMITS, waiting_questions=3)
    with serving(run_dir, limits=limits) as server, Gate(server) as gate, ThreadPoolExecutor(8) as threads:
        taken = [threads.submit(server.ask, "child0", inverse=True)]
        assert gate.held.wait(10)
        taken += [threads.submit(server.ask, f"child{i}", inverse=True) for i in (1, 2, 3)]
        _waiting(server, 3)
        began = time.perf_counter()
        refused = server.ask("child4", inverse=True)
        assert time.perf_counter() - began < 1
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        many = server.client.post("/api/v1/ask-many", json={"questions": [{**QUESTION, "inverse": True}]})
        assert many.status_code == 503
        assert server.metric("dpmpn_refused_total", queue="questions") == 2
        gate.open()
        assert [each.result().status_code for each in taken] == [200] * 4
        assert server.ask("child4", inverse=True).status_code == 200


def test_too_many_requests_are_refused(run_dir: Path) -> None:
    limits = replace(LIMITS, requests=1)
    with serving(run_dir, limits=limits) as server, Gate(server) as gate, ThreadPoolExecutor(2) as threads:
        taken = threads.submit(server.ask, "child0", inverse=True)
        assert gate.held.wait(10)
        assert server.client.get("/api/v1/model").status_code == 503
        assert server.client.get("/readyz").status_code == 200
        gate.open()
        assert taken.result().status_code == 200


def test_a_request_that_takes_too_long_is_told_so_and_not_asked_later(run_dir: Path) -> None:
    with serving(run_dir, limits=replace(LIMITS, seconds=0.3)) as server, Gate(server) as gate:
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(server.ask, "child0", inverse=True)
            assert gate.held.wait(10)
            second = server.ask("child1", inverse=True)
            for got in (first.result(), second):
                assert got.status_code == 503 and got.json()["error"]["code"] == "timeout"
        asked = server.metric("dpmpn_batch_questions_count")
        gate.open()
        assert server.ask("child2", inverse=True).status_code == 200
        assert server.metric("dpmpn_batch_questions_count") == asked + 1  # child1 was not


def test_bodies_are_limited_in_size_and_time(run_dir: Path) -> None:
    with serving(run_dir, limits=replace(LIMITS, body_bytes=1000, body_seconds=0.3)) as server:
        large = {**QUESTION, "head": "x" * 2000}
        for got in (
            server.client.post("/api/v1/ask", json=large),
            server.client.post("/api/v1/ask", content=(b"x" * 100 for _ in range(30))),  # chunked
        ):
            assert got.status_code == 413 and got.json()["error"]["code"] == "too_large"
        with _begun(server, length=100) as slow:
            answer = slow.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 408") and b'"timeout"' in answer
        assert server.ask("child0").status_code == 200


def test_connections_without_a_whole_head_are_closed(run_dir: Path) -> None:
    whole, half = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost: lo"
    with serving(run_dir, limits=replace(LIMITS, body_seconds=0.3)) as server:
        with ExitStack() as open:
            sent = {open.enter_context(_connected(server)): data for data in (b"", half, whole + half)}
            for connection, data in sent.items():
                connection.sendall(data[:-6])
            time.sleep(0.1)
            for connection, data in sent.items():
                connection.sendall(data[-6:])
            for connection, data in sent.items():
                answer = connection.makefile("rb").read()  # to its end
                assert answer.count(b"HTTP/1.1 200") == data.count(whole)
        assert server.client.get("/livez").status_code == 200
        time.sleep(0.5)  # one that has had its answer may be quiet for longer
        assert server.client.get("/livez").status_code == 200


def test_idle_connections_keep_nobody_out(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "connections", lambda guard: connections(guard, most=5))
    with serving(run_dir) as server, ExitStack() as open:
        idle = [open.enter_context(_connected(server)) for _ in range(12)]
        assert server.ask("child0").status_code == 200
        assert idle[0].recv(1) == b""  # closed: the oldest one
        idle[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle[-1].recv(12) == b"HTTP/1.1 200"


def test_slow_bodies_keep_nobody_out(run_dir: Path) -> None:
    with serving(run_dir, limits=replace(LIMITS, requests=1, bodies=2)) as server, ExitStack() as open:
        slow = [open.enter_context(_begun(server, length=100)) for _ in range(3)]
        assert slow[0].recv(12) == b"HTTP/1.1 503"  # the oldest one
        assert server.ask("child0").status_code == 200
        assert server.client.get("/api/v1/model").status_code == 200
        assert server.metric("dpmpn_refused_total", queue="bodies") >= 1


def test_a_body_that_breaks_off_is_not_answered(run_dir: Path) -> None:
    with serving(run_dir) as server:
        labels = {"route": "/api/v1/ask", "status": "499"}
        _begun(server, length=100).close()
        until = time.monotonic() + 5
        while not server.metric("dpmpn_requests_total", **labels):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert not server.metric("dpmpn_requests_total", **{**labels, "status": "422"})


def test_stopping_finishes_what_was_taken_and_refuses_the_rest(run_dir: Path) -> None:
    with serving(run_dir) as server, Gate(server) as gate, ThreadPoolExecutor(1) as threads:
        taken = threads.submit(httpx.post, f"{server.url}/api/v1/ask", json={**QUESTION, "inverse": True})
        assert gate.held.wait(10)
        server.stop.set()
        until = time.monotonic() + 5
        while server.client.get("/readyz").status_code == 200 and time.monotonic() < until:
            time.sleep(0.02)
        assert server.client.get("/readyz").status_code == 503
        assert server.client.get("/livez").status_code == 200
        refused = server.ask("child1", inverse=True)
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "overloaded"
        threading.Timer(0.3, gate.open).start()
        assert taken.result().status_code == 200
        server.thread.join(5)
        assert not server.thread.is_alive()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/livez")


def test_clients_that_keep_their_connection_are_answered_once_more_and_told(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "_LINGER", 20.0)  # it ends sooner: with the last of them
    with serving(run_dir) as server:
        clients = [
            http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20) for _ in range(30)
        ]
        for client in clients:
            assert _asked(client) == (200, None)
        server.stop.set()
        _until(lambda: server.guard.stopping)
        late = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
        assert _asked(late) == (503, "close")
        assert [_asked(client) for client in clients] == [(200, "close")] * len(clients)
        server.thread.join(10)
        assert not server.thread.is_alive()


def test_no_request_is_lost_when_it_stops_under_load(run_dir: Path) -> None:
    def ask_on() -> Counter[int]:
        """Statuses of one question after the other, until no connection can be made any more."""
        statuses: Counter[int] = Counter()
        while True:
            client = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
            try:
                client.connect()
            except ConnectionError:
                return statuses
            closes = None
            while closes is None:
                status, closes = _asked(client)
                statuses[status] += 1
            client.close()

    with serving(run_dir) as server, ThreadPoolExecutor(20) as threads:
        asking = [threads.submit(ask_on) for _ in range(20)]
        _until(lambda: server.requests() > 100)
        server.stop.set()
        statuses = sum((each.result() for each in asking), Counter())
        server.thread.join(10)
    assert statuses[200] > 100 and set(statuses) <= {200, 503}


def test_a_request_that_is_not_answered_in_the_grace_is_told_so(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard_module, "GRACE", 0.5)
    with serving(run_dir) as server, Gate(server) as gate, ThreadPoolExecutor(1) as threads:
        taken = threads.submit(httpx.post, f"{server.url}/api/v1/ask", json={**QUESTION, "inverse": True})
        assert gate.held.wait(10)
        server.stop.set()
        assert taken.result().status_code == 503 and "stopping" in taken.result().text
        gate.open()
        server.thread.join(10)
    assert not caplog.records


def test_head_is_answered_as_get_without_the_body(server: Server) -> None:
    asked = {"head": "child7", "relation": "father"}
    for path in (*PATHS, f"/api/v1/explanation.txt?{urlencode(asked)}", "/api/v1/ask", "/page/player.js"):
        got, head = server.client.get(path), server.client.head(path)
        assert head.status_code == got.status_code and not head.content
        if path != "/metrics":  # which counts both
            assert head.headers["content-length"] == got.headers["content-length"]
        assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize("path", ["/livez", "/", "/api/v1/model"])
def test_http_1_0_needs_no_host(server: Server, path: str) -> None:
    for method in ("GET", "HEAD"):
        with _connected(server) as connection:
            connection.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode())
            answer = connection.makefile("rb").read()  # to its end
            assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\n") == (method == "HEAD")
    with _connected(server) as connection:  # but where it is said, it must be right
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: evil.example\r\n\r\n".encode())
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 400")


def _asked(client: http.client.HTTPConnection) -> tuple[int, str | None]:
    """Status of an answer, and whether the connection ends with it."""
    client.request("POST", "/api/v1/ask", json.dumps(QUESTION), {"content-type": "application/json"})
    answer = client.getresponse()
    answer.read()
    return answer.status, answer.headers["connection"]


def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def _connected(server: Server) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def _begun(server: Server, length: int) -> socket.socket:
    """A connection on which a request was begun and its body has not come."""
    connection = _connected(server)
    head = "POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
    return connection
