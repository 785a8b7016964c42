import http.server
import importlib.util
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmpn.data.sources import sparql
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.sparql import PagedQuery, SparqlSource
from dpmpn.errors import DataError

E = "http://example.org/"
ALL = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"


def facts(source):
    return [row for batch in source.batches() for row in batch.rows()]


# The real program


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    program = shutil.which("rdflib-endpoint", path=Path(sys.executable).parent) or shutil.which(
        "rdflib-endpoint"
    )
    if program is None or importlib.util.find_spec("uvicorn") is None:
        pytest.skip("there is no endpoint program: pip install 'rdflib-endpoint[cli]' uvicorn")
    folder = tmp_path_factory.mktemp("endpoint")
    lines = [f"<{E}{i}> <{E}next> <{E}{i + 1}> ." for i in range(57)]
    lines += [f'<{E}0> <http://www.w3.org/2000/01/rdf-schema#label> "zero"@en .', f'<{E}0> <{E}size> "3" .']
    lines += [f"<{E}0> <{E}knows> _:someone ."]
    (folder / "facts.nt").write_text("\n".join(lines))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "serve", str(folder / "facts.nt"), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        url = f"http://127.0.0.1:{port}/"
        assert wait_until_ready(url, process), "rdflib-endpoint does not start"
        yield url
    finally:
        process.kill()
        process.wait()


def wait_until_ready(url, process):
    question = url + "?" + urllib.parse.urlencode({"query": "ASK {}"})
    request = urllib.request.Request(question, headers={"Accept": "application/sparql-results+json"})
    for _ in range(300):
        if process.poll() is not None:
            return False
        try:
            urllib.request.urlopen(request, timeout=5).close()
            return True
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    return False


def test_more_rows_than_a_page(endpoint):
    source = SparqlSource(endpoint, ReadOptions(query=ALL), page=10)
    rows = facts(source)
    chain = {(E + str(i), E + "next", E + str(i + 1)) for i in range(57)}
    assert set(rows) - chain == {next(row for row in rows if row[1] == E + "knows")}
    assert len(rows) == 58
    assert source.account.read == 60
    assert source.account.skipped == {"literal value": 1, "name or description, used as label": 1}
    assert source.labels().rows() == [(E + "0", "zero", None, None)]
    assert source.position() == (60, None)


def test_a_query_with_its_own_limit_is_asked_once(endpoint):
    source = SparqlSource(endpoint, ReadOptions(query=ALL + " ORDER BY ?s LIMIT 25"), page=10)
    assert len(facts(source)) + sum(source.account.skipped.values()) == 25


def test_a_construct_query(endpoint):
    query = f"CONSTRUCT {{ ?b <{E}previous> ?a }} WHERE {{ ?a <{E}next> ?b }}"
    source = SparqlSource(endpoint, ReadOptions(query=query), page=10)
    assert set(facts(source)) == {(E + str(i + 1), E + "previous", E + str(i)) for i in range(57)}


def test_names_and_time_of_columns(endpoint):
    query = f'SELECT ?tail ("follows" AS ?relation) ?head ("1815" AS ?year) {{ ?head <{E}next> ?tail }}'
    source = SparqlSource(endpoint, ReadOptions(query=query, time_column="year"), page=50)
    rows = facts(source)
    assert set(rows) == {(E + str(i), "follows", E + str(i + 1), "1815") for i in range(57)}


def test_what_the_endpoint_says_about_a_wrong_query(endpoint):
    with pytest.raises(DataError, match=r"refuses the query \(400 .*:"):
        facts(SparqlSource(endpoint, ReadOptions(query="SELECT ?s ?p ?o WHERE { ?s ?p }")))


def test_rows_without_a_value(endpoint):
    query = f"SELECT ?s ?p ?o {{ ?s <{E}next> ?x . BIND(<{E}p> AS ?p) OPTIONAL {{ ?s <{E}knows> ?o }} }}"
    with pytest.raises(DataError, match=r"row \d+: the tail has no value"):
        facts(SparqlSource(endpoint, ReadOptions(query=query)))
    source = SparqlSource(endpoint, ReadOptions(query=query, on_error="skip"), page=20)
    assert len(facts(source)) == 1
    assert source.account.skipped == {"empty tail": 56}
    assert source.account.read == 57


def test_columns_that_are_missing(endpoint):
    with pytest.raises(DataError, match="2 columns"):
        facts(SparqlSource(endpoint, ReadOptions(query="SELECT ?s ?p { ?s ?p ?o }")))


# Faulty programs


@pytest.fixture
def serve():
    servers = []

    def start(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.server.asked.append(self.path)
                answer(self)

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                self.path += "?" + self.rfile.read(length).decode()
                self.do_GET()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.asked = []
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        start.server = server
        return f"http://127.0.0.1:{server.server_port}/sparql"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def pauses(monkeypatch):
    found = []
    monkeypatch.setattr(sparql.time, "sleep", found.append)
    return found


def reply(handler, body, status=200, type="application/sparql-results+json", length=None, **headers):
    body = body if isinstance(body, bytes) else body.encode()
    handler.send_response(status)
    handler.send_header("Content-Type", type)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def answer_of(rows):
    terms = [
        [{"type": "bnode" if n.startswith("_:") else "uri", "value": n.removeprefix("_:")} for n in r]
        for r in rows
    ]
    bindings = [dict(zip("spo", row, strict=True)) for row in terms]
    return json.dumps({"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": bindings}})


def window(handler):
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)["query"][0]
    limit, offset = re.search(r"LIMIT (\d+) OFFSET (\d+)", query).groups()
    return int(limit), int(offset)


FACTS = [(f"e:{i:02}", "e:p", f"e:{i + 1:02}") for i in range(25)]


def give_page(handler):
    limit, offset = window(handler)
    reply(handler, answer_of(FACTS[offset : offset + limit]))


def test_an_endpoint_that_gives_less_than_a_page_loses_nothing(serve):
    def give_seven(handler):
        limit, offset = window(handler)
        reply(handler, answer_of(FACTS[offset : offset + min(limit, 7)]))

    assert facts(SparqlSource(serve(give_seven), ReadOptions(query=ALL), page=10)) == FACTS


def test_a_busy_endpoint_is_asked_again_when_it_says(serve, pauses):
    def busy(handler):
        n = len(handler.server.asked)
        if n in (1, 2):
            return reply(handler, "slow down", 429, Retry_After="7")
        if n == 4:
            return reply(handler, "", 503)
        if n == 5:
            return reply(handler, "", 503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")
        return give_page(handler)

    assert facts(SparqlSource(serve(busy), ReadOptions(query=ALL), page=10)) == FACTS
    assert pauses == [7.0, 7.0, 1.0, 0.0]


def test_an_endpoint_that_stays_busy(serve, pauses):
    url = serve(lambda handler: reply(handler, "", 429, Retry_After="99999"))
    with pytest.raises(DataError, match=r"no answer after 5 tries \(429 Too Many Requests\)"):
        facts(SparqlSource(url, ReadOptions(query=ALL)))
    assert pauses == [120.0] * 4
    assert len(serve.server.asked) == 5


def test_a_broken_endpoint(serve, pauses):
    url = serve(lambda handler: reply(handler, "<p>out of\nmemory</p>", 500, "text/html"))
    with pytest.raises(
        DataError, match=r"refuses the query \(500 Internal Server Error: <p>out of memory</p>\)"
    ):
        facts(SparqlSource(url, ReadOptions(query=ALL)))
    assert not pauses


def test_an_answer_that_is_cut_off(serve, pauses):
    def cut_off(handler):
        if len(handler.server.asked) == 1:
            body = answer_of(FACTS)
            handler.close_connection = True
            return reply(handler, body[:200], length=len(body))
        return give_page(handler)

    assert facts(SparqlSource(serve(cut_off), ReadOptions(query=ALL), page=10)) == FACTS
    assert pauses == [1.0]
    url = serve(lambda handler: reply(handler, "{", length=1000))
    with pytest.raises(DataError, match="no answer after 5 tries"):
        facts(SparqlSource(url, ReadOptions(query=ALL)))


def test_a_page_cut_off_between_chunks(serve, pauses):
    def cut_off(handler):
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b'5\r\n{"hea\r\n')
        handler.close_connection = True

    with pytest.raises(DataError, match="no answer after 5 tries"):
        facts(SparqlSource(serve(cut_off), ReadOptions(query=ALL)))


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>Welcome</body></html>",
        b"{}",
        b"[1, 2",
        b'{"head": {}, "boolean": true}',
        b"\xff\xfe\x00",
        b"",
    ],
)
def test_an_answer_that_is_no_answer(serve, body):
    url = serve(lambda handler: reply(handler, body, type="text/html"))
    with pytest.raises(DataError, match=r"does not answer as a SPARQL endpoint does but with text/html"):
        facts(SparqlSource(url, ReadOptions(query=ALL)))
    with pytest.raises(DataError, match=r"does not answer as a SPARQL endpoint does but with text/html"):
        facts(SparqlSource(url, ReadOptions(query="CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")))


def test_an_answer_without_end(serve, monkeypatch):
    def endless(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/sparql-results+json")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 65536)
        except OSError:
            pass

    monkeypatch.setattr(sparql, "_LARGEST_ANSWER", 1 << 21)
    with pytest.raises(DataError, match="no end within 2 MB"):
        facts(SparqlSource(serve(endless), ReadOptions(query=ALL)))
    monkeypatch.setattr(sparql, "_LARGEST_ANSWER", 1 << 40)
    monkeypatch.setattr(sparql, "_LONGEST_ANSWER", 0.1)
    with pytest.raises(DataError, match="no end within"):
        facts(SparqlSource(serve(endless), ReadOptions(query=ALL)))


def test_an_endpoint_that_says_nothing(monkeypatch, pauses):
    monkeypatch.setattr(sparql, "_SILENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(DataError, match=r"no answer after 5 tries .*timed out"):
            facts(SparqlSource(url, ReadOptions(query=ALL)))
    assert pauses == [1.0, 2.0, 4.0, 8.0]


def test_nobody_there(pauses):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(DataError, match=r"no answer after 5 tries .*refused"):
        facts(SparqlSource(url, ReadOptions(query=ALL)))


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,x"])
def test_redirects_leave_the_web_never(serve, target):
    url = serve(lambda handler: reply(handler, "", 302, Location=target))
    with pytest.raises(DataError):
        facts(SparqlSource(url, ReadOptions(query=ALL)))


def test_redirects_to_another_host_carry_no_password(serve):
    seen = []

    def target(handler):
        seen.append(handler.headers.get("Authorization"))
        give_page(handler)

    there = serve(target)

    def redirect(handler):
        seen.append(handler.headers.get("Authorization"))
        reply(handler, "", 302, Location=there + "?" + handler.path.partition("?")[2])

    url = serve(redirect).replace("http://", "http://ada:secret@")
    assert facts(SparqlSource(url, ReadOptions(query=ALL), page=100)) == FACTS
    assert seen == ["Basic YWRhOnNlY3JldA==", None] * 2


def test_passwords_are_not_shown(serve):
    url = (
        serve(lambda handler: reply(handler, "no", 403)).replace("http://", "http://ada:se%20cret@")
        + "?key=hidden"
    )
    source = SparqlSource(url, ReadOptions(query=ALL))
    with pytest.raises(DataError) as raised:
        facts(source)
    for text in (str(raised.value), source.account.source):
        assert "cret" not in text
        assert "ada" not in text
        assert "hidden" not in text


def test_a_long_query_is_posted(serve):
    query = ALL.replace("?s ?p ?o }", "?s ?p ?o " + "# " + "long " * 1000 + "\n}")
    assert facts(SparqlSource(serve(give_page), ReadOptions(query=query), page=100)) == FACTS


def test_blank_nodes_of_two_pages_differ(serve):
    def blank(handler):
        _, offset = window(handler)
        reply(handler, answer_of([("_:b0", "e:p", "_:b1")] if offset < 2 else []))

    rows = facts(SparqlSource(serve(blank), ReadOptions(query=ALL), page=1))
    assert rows == [("_:page1/b0", "e:p", "_:page1/b1"), ("_:page2/b0", "e:p", "_:page2/b1")]


@pytest.mark.parametrize("n_rows", [10, 3, 1])
def test_an_endpoint_that_does_not_know_offset(serve, n_rows):
    url = serve(lambda handler: reply(handler, answer_of(FACTS[:n_rows])))
    with pytest.raises(
        DataError, match=r"gives the same rows for every page, so it does not know OFFSET; give"
    ):
        facts(SparqlSource(url, ReadOptions(query=ALL), page=10))
    assert len(serve.server.asked) == 2
    assert facts(SparqlSource(url, ReadOptions(query=ALL + " LIMIT 9"), page=10)) == FACTS[:n_rows]


def test_a_construct_that_does_not_know_offset(serve):
    lines = [f"<{h}> <{r}> <{t}> ." for h, r, t in FACTS]

    def give_shuffled(handler):
        lines.reverse()
        reply(handler, "\n".join([*lines, "_:b <e:p> <e:x> ."]), type="application/n-triples")

    source = SparqlSource(
        serve(give_shuffled), ReadOptions(query="CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }"), page=10
    )
    with pytest.raises(DataError, match="does not know OFFSET"):
        facts(source)


def test_an_endpoint_that_does_not_know_limit(serve):
    url = serve(lambda handler: reply(handler, answer_of(FACTS)))
    with pytest.raises(DataError, match="gives 25 rows where 10 were asked for, so it does not know LIMIT"):
        facts(SparqlSource(url, ReadOptions(query=ALL), page=10))


def test_one_row_may_fill_several_pages(serve):
    def give_same(handler):
        limit, offset = window(handler)
        reply(handler, answer_of((FACTS[:1] * 25)[offset : offset + limit]))

    assert facts(SparqlSource(serve(give_same), ReadOptions(query=ALL), page=10)) == FACTS[:1] * 25


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://host/", "http:///path", "host/sparql", "http://h:x/", ""]
)
def test_addresses_that_are_none(url):
    with pytest.raises(DataError, match="begins with http:// or https://"):
        SparqlSource(url, ReadOptions(query=ALL))


@pytest.mark.parametrize(
    "query", [None, "", "ASK {}", "DESCRIBE <e:a>", "DROP ALL", "INSERT DATA { <e:a> <e:b> <e:c> }"]
)
def test_queries_that_give_no_facts(query):
    with pytest.raises(DataError, match="a SELECT of three variables or a CONSTRUCT"):
        SparqlSource("http://127.0.0.1/", ReadOptions(query=query))


# Queries cut into pages


@pytest.mark.parametrize(
    ("query", "page"),
    [
        (ALL, ALL + "\nORDER BY ?s ?p ?o LIMIT 5 OFFSET 10\n"),
        (ALL + " ORDER BY ?p", ALL + " ORDER BY ?p\nLIMIT 5 OFFSET 10\n"),
        (ALL + " LIMIT 3", ALL + " LIMIT 3"),
        (ALL + "\noffset 3", ALL + "\noffset 3"),
        (
            "SELECT * { { SELECT ?s { ?s ?p ?o } LIMIT 3 } }",
            "SELECT * { { SELECT ?s { ?s ?p ?o } LIMIT 3 } }\nORDER BY ?s ?p ?o LIMIT 5 OFFSET 10\n",
        ),
        (
            "SELECT ?s (COUNT(?p) AS ?n) $o { ?s ?p ?o } GROUP BY ?s ?o",
            "SELECT ?s (COUNT(?p) AS ?n) $o { ?s ?p ?o } GROUP BY ?s ?o\nORDER BY ?s ?n ?o LIMIT 5 OFFSET 10\n",
        ),
        (
            "SELECT ?s ?p ?o { ?s ?p ?o } VALUES ?s { <e:a> }",
            "SELECT ?s ?p ?o { ?s ?p ?o } \nORDER BY ?s ?p ?o LIMIT 5 OFFSET 10\nVALUES ?s { <e:a> }",
        ),
        (
            'SELECT ?s ?p ?o { ?s ?p ?o FILTER(?o != "} LIMIT 5") } # LIMIT 3',
            'SELECT ?s ?p ?o { ?s ?p ?o FILTER(?o != "} LIMIT 5") } # LIMIT 3\nORDER BY ?s ?p ?o LIMIT 5 OFFSET 10\n',
        ),
        (
            "PREFIX e: <http://e/LIMIT#x> CONSTRUCT { ?a e:p ?b } WHERE { ?a e:q ?b }",
            "PREFIX e: <http://e/LIMIT#x> CONSTRUCT { ?a e:p ?b } WHERE { ?a e:q ?b }"
            "\nORDER BY ?a ?b LIMIT 5 OFFSET 10\n",
        ),
    ],
)
def test_where_a_page_is_asked_for(query, page):
    assert PagedQuery.of(query).page(5, 10) == page
