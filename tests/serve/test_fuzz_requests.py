"""A server against anything that can be sent: every request has an answer below 500, and the next one is answered."""

import atexit
import functools
import json
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Server, serving

import dpmpn

quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
FACTS = [(f"child{i}", "mother", f"mother{i}") for i in range(6)] + [("caf\u00e9\x1b", "mother", "=b<i>")]
TINY = {
    "model": "paper",
    "n_dims": 4,
    "n_dims_att": 3,
    "n_steps_in_agnn": 2,
    "n_steps_in_ignn": 1,
    "threads": 1,
}
ROUTES = ["ask", "ask-many", "explain", "picture", "why-not"]
GETS = [
    "entities",
    "entity",
    "facts",
    "model",
    "relations",
    "explanation.svg",
    "explanation.json",
    "explanation.csv",
    "x",
]
names = st.sampled_from(["child1", "cafe\u0301\x1b", "mother", "mother1", "=b<i>"]) | st.text(
    st.characters(exclude_categories=[]), max_size=8
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
KEYS = ["head", "relation", "inverse", "top", "new", "answer", "candidate", "questions", "why"]
bodies = st.fixed_dictionaries({"head": names, "relation": names}).flatmap(
    lambda body: st.dictionaries(st.sampled_from(KEYS), names | values, max_size=4).map(
        lambda more: {**body, **more}
    )
)
LINES = [
    *(b"GET / HTTP/1.1", b"POST /api/v1/ask HTTP/1.1", b"HEAD /livez HTTP/1.0", b"GET /%00%ff%1b HTTP/1.1"),
    *(b"Host: 127.0.0.1", b"Content-Length: 5", b"Content-Length: -1", b"Transfer-Encoding: chunked"),
    *(
        b"Expect: 100-continue",
        b"Connection: close",
        b"Content-Type: application/json",
        b"Upgrade: websocket",
    ),
    *(b"", b"5", b"zz", b"0", b'{"head":', b"\x00\xff", b"A" * 70_000),
]


@functools.cache
def server() -> Server:
    """One for all cases of this process."""
    opened = ExitStack()
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="dpmpn-fuzz-")))
    dpmpn.Reasoner(**TINY, n_epochs=1).fit(dpmpn.dataset_from_tuples(FACTS, name="family"), folder / "run")
    atexit.register(opened.close)
    return opened.enter_context(serving(folder / "run"))


def check(response) -> None:  # type: ignore[no-untyped-def]
    assert response.status_code < 500, response.text
    if response.headers["content-type"].startswith("application/json"):
        json.loads(response.text)
    if response.status_code >= 400:
        assert response.json()["error"]["message"]


@quick
@given(st.sampled_from(ROUTES), bodies | values)
def test_any_body_has_an_answer(route: str, body: object) -> None:
    content = json.dumps(body).encode()
    check(
        server().client.post(
            f"/api/v1/{route}", content=content, headers={"content-type": "application/json"}
        )
    )


@quick
@given(
    st.sampled_from(ROUTES), st.binary(max_size=100), st.sampled_from(["application/json", "text/plain", "x"])
)
def test_any_bytes_have_an_answer(route: str, content: bytes, kind: str) -> None:
    check(server().client.post(f"/api/v1/{route}", content=content, headers={"content-type": kind}))


@quick
@given(
    st.sampled_from(GETS),
    st.dictionaries(st.sampled_from([*KEYS, "name", "text", "limit", "offset", "q"]), names, max_size=4),
)
def test_any_address_has_an_answer(route: str, query: dict[str, str]) -> None:
    spelled = {key: value.encode("utf-8", "surrogatepass") for key, value in query.items()}
    check(server().client.get(f"/api/v1/{route}", params=spelled))


@quick
@given(st.lists(st.sampled_from(LINES) | st.binary(max_size=30), min_size=1, max_size=8))
def test_what_is_hardly_http_hurts_nobody(lines: list[bytes]) -> None:
    address = server().client.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=10) as connection:
        connection.settimeout(0.02)  # what is not answered by then waits for more
        try:
            connection.sendall(b"\r\n".join([*lines, b"", b""]))
            answer = connection.recv(1 << 16)
        except OSError:
            answer = b""
    assert not answer or answer.startswith(b"HTTP/1.1 ")
    assert not answer.startswith(b"HTTP/1.1 5") or answer[9:12] in (b"501", b"503", b"505"), answer
    assert server().client.get("/livez").status_code == 200


def test_who_sends_too_much_reads_why() -> None:
    """A connection that is closed while bytes wait in it is reset, and the answer lost on its way."""
    address = server().client.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=10) as connection:
        for _ in range(64):
            connection.sendall(b"x" * 65536)
        with connection.makefile("rb") as answer:
            assert answer.readline().startswith(b"HTTP/1.1 400 ") and b"this is not HTTP" in answer.read()
