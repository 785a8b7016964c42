import functools
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpmpn.cli.datasets import _with_rate, app
from dpmpn.data import registry
from dpmpn.data.registry import ListedFile, Listing
from dpmpn.errors import DataError

TRAIN = b"berlin\tcapital_of\tgermany\n"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty data folder, and a table with one dataset of one file."""
    monkeypatch.setenv("DPMPN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("DPMPN_MIRROR", raising=False)
    file = ListedFile("train.txt", len(TRAIN), hashlib.sha256(TRAIN).hexdigest())
    table = {
        "UMLS": Listing((file,), "as you like", "https://data.example.org/", ""),
        "Kinship": Listing((file,), "none", None, "it is gone"),
    }
    monkeypatch.setattr(registry, "_table", lambda: table)
    return tmp_path / "data"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """The address of a folder that the standard library's server serves; it knows no ranges."""
    (tmp_path / "mirror" / "UMLS").mkdir(parents=True)
    (tmp_path / "mirror" / "UMLS" / "train.txt").write_bytes(TRAIN)
    handler = functools.partial(_Quiet, directory=str(tmp_path / "mirror"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


def test_fetching_says_what_came_and_where_it_is(mirror: str, data: Path) -> None:
    result = call("fetch", "umls", "--mirror", mirror)
    assert result.exit_code == 0
    assert f"UMLS: 26 bytes fetched and checked, in {data / 'UMLS'}\nLicence: as you like.\n" == result.output
    assert (data / "UMLS" / "train.txt").read_bytes() == TRAIN
    again = call("fetch", "umls", "--mirror", mirror)
    assert f"UMLS is already complete in {data / 'UMLS'}: nothing to fetch." in again.output


def test_a_folder_that_is_not_looked_in_is_named(mirror: str, tmp_path: Path) -> None:
    result = call("fetch", "umls", "--mirror", mirror, "--to", tmp_path / "mine")
    assert f"It is found as {tmp_path / 'mine' / 'UMLS'}; by name only if $DPMPN_DATA" in result.output


def test_json(mirror: str, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    call("fetch", "umls", "--mirror", mirror, "--json", target)
    assert json.loads(target.read_text()) == {
        "name": "UMLS",
        "folder": str(data / "UMLS"),
        "is_new": True,
        "bytes": 26,
        "licence": "as you like",
    }


def test_the_bundled_dataset_needs_no_fetching() -> None:
    result = call("fetch", "countries")
    assert result.exit_code == 0 and "comes with the package: nothing to fetch" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("umsl",), "did you mean 'UMLS'"),
        (("kinship",), "'Kinship' cannot be fetched: it is gone; give --mirror, or put train.txt"),
        (("umls", "--mirror", "file:///"), "is not a web address"),
    ],
)
def test_mistakes_are_one_sentence(arguments: tuple[str, ...], message: str) -> None:
    error = call("fetch", *arguments).exception
    assert isinstance(error, DataError) and message in str(error)


def test_the_list_says_what_can_be_fetched(mirror: str) -> None:
    lines = [line.rstrip() for line in call().output.splitlines()]
    assert any(line.endswith("not found (dpmpn datasets fetch UMLS)") for line in lines)
    assert any(line.startswith("Kinship ") and line.endswith(" not found") for line in lines)
    call("fetch", "umls", "--mirror", mirror)
    assert "fetch UMLS" not in call().output


def test_rate_and_time_left_count_this_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 10.0])
    monkeypatch.setattr("dpmpn.cli.datasets.time.monotonic", lambda: next(clock))
    notes = []
    show = _with_rate(lambda done, total, note: notes.append((done, total, note)))
    show(50_000_000, 100_000_000)
    show(60_000_000, 100_000_000)
    assert notes == [
        (50_000_000, 100_000_000, ""),
        (60_000_000, 100_000_000, "1.0 MB/s, ETA 0:40"),
    ]
