import base64
import gzip
import hashlib
import http.server
import os
import resource
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.data import registry
from dpmpn.data import web as download_module
from dpmpn.data.importer import load_dataset
from dpmpn.data.registry import (
    DATASETS,
    MIRROR_VARIABLE,
    ROOT_VARIABLE,
    ListedFile,
    Listing,
    default_root,
    fetch_dataset,
    list_datasets,
)
from dpmpn.data.web import NotThere, Remote, download
from dpmpn.errors import DataError, UnknownName

NAME = "UMLS"
TRAIN = "".join(f"entity{i}\trelation{i % 7}\tentity{i * 31 % 5000}\n" for i in range(10_000)).encode()
FILES = {"test.txt": b"entity1\trelation0\tentity9\n", "train.txt": TRAIN}
ETAG = '"as it was"'
HALF = len(TRAIN) // 2


class Server(http.server.ThreadingHTTPServer):
    """Serves bodies by path; `plans` holds what to do with the next requests of a path instead."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies, self.plans = {}, defaultdict(list)
        self.requests, self.sent = [], defaultdict(int)
        self.cut_off = threading.Event()  # set to end what hangs

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def of(self, name):
        """Headers of the requests of a file."""
        return [headers for path, headers in self.requests if path.endswith(name)]

    def handle_error(self, request, client_address):
        pass  # clients go away as they like here


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append((self.path, self.headers))
        plans = self.server.plans[self.path]
        plan = plans.pop(0) if plans else whole
        plan(self, self.server.bodies.get(self.path))

    def begin(self, status, **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()

    def send(self, body):
        self.server.sent[self.path] += len(body)  # first: a client that has it all may look at once
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def whole(handler, body, n_sent=None):
    if body is None:
        return handler.begin(404)
    start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
    if start and handler.headers.get("If-Range", ETAG) == ETAG:
        span = f"bytes {start}-{len(body) - 1}/{len(body)}"
        handler.begin(206, Content_Length=len(body) - start, Content_Range=span, ETag=ETAG)
    else:
        start = 0
        handler.begin(200, Content_Length=len(body), ETag=ETAG)
    handler.send(body[start:] if n_sent is None else body[start : start + n_sent])


def cut(n_sent):
    return lambda handler, body: whole(handler, body, n_sent)


def hang(n_sent):
    def plan(handler, body):
        whole(handler, body, n_sent)
        handler.wfile.flush()
        handler.server.cut_off.wait(30)

    return plan


def without_ranges(handler, body):
    handler.begin(200, Content_Length=len(body))
    handler.send(body)


def status(code, **headers):
    return lambda handler, body: handler.begin(code, Content_Length=0, **headers)


def says(body, **headers):
    def plan(handler, _):
        handler.begin(200, **headers)
        handler.send(body)

    return plan


def listed(name, body, packed=None):
    return ListedFile(name, len(body), hashlib.sha256(body).hexdigest(), packed)


def table(files=FILES):
    return {
        NAME: Listing(tuple(listed(name, body) for name, body in files.items()), "none", None, "no place")
    }


@pytest.fixture
def server(monkeypatch):
    made = Server()
    for name, body in FILES.items():
        made.bodies[f"/{NAME}/{name}"] = body
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield made
    made.cut_off.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path, request):
    """No data of this machine, no waiting, and a dataset that is small."""
    monkeypatch.setattr(download_module, "PAUSES", (0.0, 0.0, 0.0, 0.0))
    if "real_table" in request.fixturenames:
        return
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(registry, "_table", table)


@pytest.fixture
def real_table():
    """The datasets of the registry and the data of this machine after all."""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data" / NAME


def fetch(server, **arguments):
    return fetch_dataset(NAME, mirror=server.url, **arguments)


def train_plans(server):
    return server.plans[f"/{NAME}/train.txt"]


def check_absent(folder):
    assert {row.name: row.folder for row in list_datasets()}[NAME] is None
    for wanted in (NAME, folder, f"{folder}.partial"):
        with pytest.raises(DataError):
            load_dataset(wanted)


def check_whole(folder):
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert not Path(f"{folder}.partial").exists()
    assert len(load_dataset(NAME).train) == 10_000


def test_a_dataset_is_fetched_and_only_then_visible(server, folder):
    seen = []

    def progress(done, total):
        seen.append((done, total))
        check_absent(folder)

    train_plans(server).append(lambda handler, body: [handler.begin(200), drip(handler, body)])
    fetched = fetch(server, progress=progress)
    assert (fetched.name, fetched.folder, fetched.is_new) == (NAME, folder, True)
    check_whole(folder)
    total = sum(map(len, FILES.values()))
    assert seen == sorted(seen) and seen[-1] == (total, total) == (fetched.bytes, total) and len(seen) > 4


def drip(handler, body):
    for start in range(0, len(body), HALF // 2):
        handler.send(body[start : start + HALF // 2])
        time.sleep(0.01)


def test_what_is_there_is_not_fetched_again(server, folder):
    fetch(server)
    n_requests = len(server.requests)
    again = fetch(server)
    assert not again.is_new and again.folder == folder and len(server.requests) == n_requests
    assert not fetch_dataset(NAME).is_new  # no address is needed then


def test_a_cut_connection_is_resumed_with_the_rest_only(server, folder):
    train_plans(server).append(cut(HALF))
    fetch(server)
    check_whole(folder)
    first, second = server.of("train.txt")
    assert first["Range"] is None
    assert (second["Range"], second["If-Range"]) == (f"bytes={HALF}-", ETAG)
    assert server.sent[f"/{NAME}/train.txt"] == len(TRAIN)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 60_000), max_size=6))
def test_wherever_it_is_cut_each_byte_is_sent_once(server, tmp_path, cuts):
    path = f"/{NAME}/train.txt"
    server.requests.clear()
    server.sent.clear()
    server.plans[path] = [cut(n_sent) for n_sent in cuts]
    target = tmp_path / "train.txt"
    remote = Remote(server.url + path, len(TRAIN), hashlib.sha256(TRAIN).hexdigest())
    download(remote, target, lambda position: None)
    assert target.read_bytes() == TRAIN
    assert server.sent[path] == len(TRAIN)


def test_a_server_without_ranges_starts_from_zero(server, folder):
    train_plans(server).extend([cut(HALF), without_ranges])
    fetch(server)
    check_whole(folder)
    assert server.sent[f"/{NAME}/train.txt"] == HALF + len(TRAIN)


def test_a_file_that_changed_meanwhile_is_sent_from_zero(server, folder):
    train_plans(server).append(says(b"x" * HALF, Content_Length=len(TRAIN), ETag='"another"'))
    fetch(server)
    check_whole(folder)
    assert server.of("train.txt")[1]["If-Range"] == '"another"'


def test_a_server_without_ranges_that_always_breaks_off_is_given_up(server, folder):
    train_plans(server).extend([says(TRAIN[:HALF], Content_Length=len(TRAIN))] * 99)
    with pytest.raises(DataError, match=r"broke off; .*bytes are kept, and the same command continues"):
        fetch(server)
    assert len(server.of("train.txt")) == 6  # the first one brought something new
    check_absent(folder)


def test_a_silent_server_is_left_and_asked_for_the_rest(server, folder, monkeypatch):
    monkeypatch.setattr(download_module, "TIMEOUT", 0.2)
    train_plans(server).append(hang(HALF))
    fetch(server)
    check_whole(folder)
    assert server.of("train.txt")[1]["Range"] == f"bytes={HALF}-"


def test_a_wrong_checksum_is_tried_once_more(server, folder):
    train_plans(server).append(says(b"x" * len(TRAIN), Content_Length=len(TRAIN)))
    fetch(server)
    check_whole(folder)
    assert server.of("train.txt")[1]["Range"] is None


def test_a_wrong_checksum_names_both_and_leaves_nothing(server, folder):
    wrong = b"x" * len(TRAIN)
    server.bodies[f"/{NAME}/train.txt"] = wrong
    with pytest.raises(DataError) as error:
        fetch(server)
    expected, found = (hashlib.sha256(body).hexdigest() for body in (TRAIN, wrong))
    assert f"SHA-256 is {found} instead of {expected}" in str(error.value)
    assert len(server.of("train.txt")) == 2
    assert [path.name for path in Path(f"{folder}.partial").iterdir()] == ["test.txt"]
    check_absent(folder)


@pytest.mark.parametrize(
    ("code", "kind"), [(404, NotThere), (410, NotThere), (403, DataError), (401, DataError)]
)
def test_what_is_refused_is_not_tried_again(server, folder, code, kind):
    train_plans(server).append(status(code))
    with pytest.raises(kind, match=rf"train.txt .*HTTP {code}"):
        fetch(server)
    assert len(server.of("train.txt")) == 1
    check_absent(folder)
    fetch(server)  # later it is there, and test.txt is not fetched twice
    check_whole(folder)
    assert len(server.of("test.txt")) == 1


def test_a_server_in_trouble_is_tried_again(server, folder, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(download_module, "PAUSES", (1.0, 2.0, 4.0, 8.0))
    train_plans(server).extend(
        [status(500), status(503), status(429, Retry_After=7), status(429, Retry_After=999)]
    )
    fetch(server)
    check_whole(folder)
    assert pauses == [1.0, 2.0, 7.0, 60.0]


def test_a_server_in_trouble_is_given_up(server, folder):
    train_plans(server).extend([status(500)] * 99)
    with pytest.raises(DataError, match="HTTP 500"):
        fetch(server)
    assert len(server.of("train.txt")) == 5
    check_absent(folder)


def test_without_network_one_sentence_at_once(server, folder, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    closed = Server()
    closed.server_close()
    for mirror, why in ((closed.url, "connection refused"), ("http://nowhere.invalid", ".*name")):
        with pytest.raises(DataError, match=f"cannot download {mirror}/.*{why}.*; check the network"):
            fetch_dataset(NAME, mirror=mirror)
    check_absent(folder)


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_redirections_go_to_web_addresses_only(server, folder, scheme, tmp_path):
    (tmp_path / "secret").write_bytes(TRAIN)
    train_plans(server).append(status(302, Location=f"{scheme}://{tmp_path}/secret"))
    with pytest.raises(DataError, match=f"not followed further: .*{scheme}:.*not allowed"):
        fetch(server)
    check_absent(folder)


def test_endless_redirections_end(server):
    train_plans(server).extend([status(302, Location=f"/{NAME}/train.txt")] * 99)
    with pytest.raises(DataError, match="not followed further"):
        fetch(server)


def test_a_redirection_keeps_the_range(server, folder):
    server.bodies["/elsewhere"] = TRAIN
    train_plans(server).extend([cut(HALF), status(302, Location="/elsewhere")])
    fetch(server)
    check_whole(folder)
    assert server.sent["/elsewhere"] == len(TRAIN) - HALF


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        (says(TRAIN + b"x"), "more bytes"),
        (says(b"", Content_Length=10**15), "1,000,000,000,000,000 bytes"),
        (says(b"<html>", Content_Length=6), "6 bytes"),
        (status(416), "fewer bytes"),
    ],
)
def test_another_size_ends_at_once(server, folder, plan, size):
    train_plans(server).append(plan)
    with pytest.raises(DataError, match=f"it has {size} instead of {len(TRAIN):,}"):
        fetch(server)
    assert len(server.of("train.txt")) == 1
    assert not any(path.stat().st_size for path in Path(f"{folder}.partial").glob(".*"))
    check_absent(folder)


def test_endless_data_does_not_fill_the_disk(server, folder):
    def endless(handler, _):
        handler.begin(200)
        while True:
            handler.send(bytes(1 << 16))

    train_plans(server).append(endless)
    with pytest.raises(DataError, match="more bytes"):
        fetch(server)
    assert sum(path.stat().st_size for path in folder.parent.rglob("*")) < 100_000


@pytest.mark.parametrize("span", ["bytes 0-9/10", "bytes 5-9/*", "nonsense", f"bytes {'9' * 6000}-1/1"])
def test_a_part_from_elsewhere_is_refused(server, folder, span):
    train_plans(server).extend([cut(HALF), lambda handler, body: handler.begin(206, Content_Range=span)])
    with pytest.raises(DataError, match="from another place"):
        fetch(server)
    check_absent(folder)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here to make a certificate")
def test_an_untrusted_certificate_is_named(server, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
    ]
    subprocess.run([*made, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with pytest.raises(DataError, match=r"certificate of https://.* is not trusted .*self-signed"):
        fetch_dataset(NAME, mirror=server.url.replace("http:", "https:"))


SCRIPT = """
import sys
from dpmpn.data import registry
from dpmpn.data.registry import ListedFile, Listing
from dpmpn.data.registry import fetch_dataset
files = tuple(ListedFile(name, int(size), digest) for name, size, digest in
              (line.split(",") for line in sys.argv[2:]))
registry._table = lambda: {"UMLS": Listing(files, "none", None, "")}
fetch_dataset("umls", mirror=sys.argv[1])
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_fetch_is_resumed_and_two_at_once_are_refused(server, folder, sign):
    train_plans(server).append(hang(HALF))
    lines = [f"{file.name},{file.bytes},{file.sha256}" for file in table()[NAME].files]
    killed = subprocess.Popen([sys.executable, "-c", SCRIPT, server.url, *lines], stderr=subprocess.PIPE)
    partial = Path(f"{folder}.partial") / ".train.txt.partial"
    try:
        deadline = time.monotonic() + 30
        while not (partial.exists() and partial.stat().st_size == HALF):
            assert killed.poll() is None and time.monotonic() < deadline, killed.stderr
            time.sleep(0.01)
        check_absent(folder)
        with pytest.raises(DataError, match=f"'{NAME}' is being fetched .* by another process"):
            fetch(server)
        killed.send_signal(sign)
        assert killed.wait(10) != 0
    finally:
        killed.kill()
        killed.communicate()
    assert partial.read_bytes() == TRAIN[:HALF]
    check_absent(folder)
    fetch(server)
    check_whole(folder)
    assert server.of("train.txt")[-1]["Range"] == f"bytes={HALF}-"
    assert server.sent[f"/{NAME}/train.txt"] == len(TRAIN)
    assert len(server.of("test.txt")) == 1


def test_a_broken_part_of_an_earlier_run_does_no_harm(server, folder):
    partial = Path(f"{folder}.partial")
    partial.mkdir(parents=True)
    (partial / ".train.txt.partial").write_bytes(b"x" * (len(TRAIN) + 5))
    (partial / "test.txt").write_bytes(b"x" * len(FILES["test.txt"]))
    (partial / "left over").write_bytes(b"")
    fetch(server)
    check_whole(folder)


def test_a_part_that_is_all_there_is_checked_not_fetched(server, folder):
    partial = Path(f"{folder}.partial")
    partial.mkdir(parents=True)
    (partial / ".train.txt.partial").write_bytes(TRAIN)
    fetch(server)
    check_whole(folder)
    assert server.of("train.txt") == []


def test_a_folder_with_other_files_is_left_alone(server, folder):
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("a\tr\tb\n")
    with pytest.raises(DataError, match=r"is there already, but test.txt is missing .*move the folder away"):
        fetch(server)
    assert (folder / "train.txt").read_text() == "a\tr\tb\n" and not server.requests


def test_a_gzipped_file_of_a_mirror_will_do(server, folder, monkeypatch):
    packed = gzip.compress(TRAIN)
    del server.bodies[f"/{NAME}/train.txt"]
    server.bodies[f"/{NAME}/train.txt.gz"] = packed
    files = (
        listed("test.txt", FILES["test.txt"]),
        listed("train.txt", TRAIN, listed("train.txt.gz", packed)),
    )
    monkeypatch.setattr(registry, "_table", lambda: {NAME: Listing(files, "none", None, "")})
    seen = []
    fetched = fetch(server, progress=lambda *bytes: seen.append(bytes))
    assert fetched.is_new and fetched.bytes == seen[-1][0]
    assert sorted(path.name for path in folder.iterdir()) == ["test.txt", "train.txt.gz"]
    assert seen[-1][0] == seen[-1][1] == len(FILES["test.txt"]) + len(packed)
    assert len(load_dataset(NAME).train) == 10_000
    assert not fetch(server).is_new


def test_where_it_goes(server, tmp_path, monkeypatch):
    assert fetch(server, to=tmp_path / "mine").folder == tmp_path / "mine" / NAME
    monkeypatch.delenv(ROOT_VARIABLE)
    monkeypatch.setenv(MIRROR_VARIABLE, server.url + "/")
    fetched = fetch_dataset(NAME)
    assert fetched.folder == default_root() / NAME == tmp_path / "home" / "dpmpn" / NAME
    assert load_dataset(NAME).folder == fetched.folder
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "data"))
    assert load_dataset(NAME).folder == fetched.folder
    shutil.copytree(fetched.folder, tmp_path / "data" / NAME)
    assert load_dataset(NAME).folder == tmp_path / "data" / NAME


def test_a_full_disk_is_said_before_anything_comes(server, folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(DataError, match=r"No space left on device; make room .*--to"):
        fetch(server)
    assert not server.requests


def test_a_disk_that_fills_up_keeps_what_came(server, folder):
    limit = 100_001  # a file may grow to it, whatever is written at once
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(DataError, match=f"cannot write {folder}: File too large; "):
            fetch(server)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (Path(f"{folder}.partial") / ".train.txt.partial").read_bytes() == TRAIN[:limit]
    check_absent(folder)
    fetch(server)
    check_whole(folder)
    assert server.of("train.txt")[-1]["Range"] == f"bytes={limit}-"


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*; choose another folder with --to"):
        fetch(server, to=tmp_path / "file" / "below")


@pytest.mark.parametrize(
    "mirror", ["file:///tmp", "mirror.example.org", "https://", "http://[::1", "ftp://a.b/c"]
)
def test_a_mirror_is_a_web_address(mirror):
    with pytest.raises(DataError, match="is not a web address"):
        fetch_dataset(NAME, mirror=mirror)


@pytest.mark.parametrize("mirror", ["http://a b.invalid", "http://127.0.0.1:port", "http://127.0.0.1:1/é"])
def test_a_mirror_that_cannot_be_asked(mirror):
    with pytest.raises(DataError, match=r"is not a web address .*check --mirror"):
        fetch_dataset(NAME, mirror=mirror)


SECRET = "s3cr:et é"
BASIC = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()


def with_password(url):
    return url.replace("http://", f"http://me:{quote(SECRET)}@")


def test_a_password_is_sent_and_not_shown(server, folder):
    train_plans(server).append(cut(HALF))
    fetch_dataset(NAME, mirror=with_password(server.url))
    check_whole(folder)
    assert {headers["Authorization"] for _, headers in server.requests} == {BASIC}
    assert "@" not in str(server.requests[0][1]["Host"])


def test_a_password_is_for_its_origin_alone(server, folder):
    other = Server()
    other.bodies.update(server.bodies)
    thread = threading.Thread(target=other.serve_forever, args=(0.02,))
    thread.start()
    try:
        path = f"/{NAME}/test.txt"
        server.bodies["/here"] = FILES["test.txt"]
        server.plans[path].append(status(302, Location=f"{server.url}/here"))
        server.plans["/here"].append(status(302, Location=other.url + path))
        other.plans[path].append(status(302, Location=f"{server.url}/back"))
        server.bodies["/back"] = FILES["test.txt"]
        fetch_dataset(NAME, mirror=with_password(server.url))
    finally:
        other.shutdown()
        thread.join()
        other.server_close()
    check_whole(folder)
    sent = {path: headers["Authorization"] for path, headers in server.requests}
    assert sent[f"/{NAME}/test.txt"] == sent["/here"] == sent[f"/{NAME}/train.txt"] == BASIC
    assert [headers["Authorization"] for _, headers in other.requests] == [None]
    assert sent["/back"] is None  # nobody else decides where it goes


@pytest.mark.parametrize(
    "mirror",
    [
        "http://me:s3cret@127.0.0.1:port/x",
        "http://me:s3cret@127.0.0.1:1/x",
        "me:s3cret@mirror.example.org",
        "ftp://me:s3cret@mirror.example.org",
        "http://me:s3cret/more@mirror.example.org",
        "http://me:12#s3cret@mirror.example.org",
        "http://me:12?s3cret@mirror.example.org",
    ],
)
def test_no_message_shows_a_password(mirror, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(DataError) as error:
        fetch_dataset(NAME, mirror=mirror)
    assert "s3cret" not in str(error.value)
    assert "127.0.0.1" in str(error.value) or "mirror.example.org" in str(error.value)


def test_a_refused_password_is_not_shown(server):
    server.plans[f"/{NAME}/test.txt"].append(status(401))
    with pytest.raises(DataError, match="may not be read") as error:
        fetch_dataset(NAME, mirror=with_password(server.url))
    assert "s3cr" not in str(error.value)


def test_names(server):
    assert fetch_dataset("countries").folder == DATASETS["countries"].folder()
    with pytest.raises(UnknownName, match="'WN18RR'"):
        fetch_dataset("wn18r")
    with pytest.raises(
        DataError, match=f"'{NAME}' cannot be fetched: no place; give --mirror, or put test.txt"
    ):
        fetch_dataset(NAME)


@pytest.mark.usefixtures("real_table")
def test_the_table_lists_every_dataset(monkeypatch):
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    for entry in DATASETS.values():
        found = registry.listing(entry.location)
        assert (found is None) == (entry.kind == "bundled")
        if found is None or not found.files:
            continue
        names = [file.name for file in found.files]
        assert names[-1] == "train.txt" and len(set(names)) == len(names)
        assert {"test.txt"} < set(names) and ("sort_test.pairs" in names) == (entry.kind == "task")
        assert all(len(file.sha256) == 64 and file.bytes > 0 for file in found.files)
        assert not any("/" in name or name.startswith(".") for name in names)
        assert bool(found.why) == (found.base is None)
        assert found.base is None or (found.base.startswith("https://") and found.base.endswith("/"))
    fetchable = {name for name, entry in DATASETS.items() if entry.can_be_fetched()}
    assert {"FB15K", "FB15K-237", "WN18", "WN18RR", "UMLS"} < fetchable
    assert not fetchable & {"YAGO3-10", "NELL-995", "countries", "NELL-995/worksfor"}
    monkeypatch.setenv(MIRROR_VARIABLE, "https://mirror.example.org")
    assert DATASETS["NELL-995/worksfor"].can_be_fetched() and not DATASETS["YAGO3-10"].can_be_fetched()


@pytest.mark.usefixtures("real_table")
def test_yago_says_what_to_do_instead(monkeypatch, tmp_path):
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    with pytest.raises(DataError, match=r"YAGO3-10.tar.gz of TimDettmers/ConvE.*; put train.txt"):
        fetch_dataset("YAGO3-10", mirror="https://mirror.example.org")


@pytest.mark.usefixtures("real_table")
@pytest.mark.skipif(not os.environ.get(ROOT_VARIABLE), reason=f"${ROOT_VARIABLE} names no data folder")
@pytest.mark.parametrize("name", [name for name, entry in DATASETS.items() if entry.kind != "bundled"])
def test_the_table_agrees_with_the_data(name):
    folder = DATASETS[name].folder()
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    assert not fetch_dataset(name).is_new
