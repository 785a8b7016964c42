"""Names that are not found: looking for near ones keeps nobody waiting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from serving import Server, serving

from dpmpn.data.vocabulary import Vocabulary
from dpmpn.serve.guard import LIMITS

UNKNOWN = 150


def _unknown(server: Server, number: int) -> dict:
    """The error of a question about a name that does not exist."""
    asked = {"head": f"chidl{number}", "relation": "father"}
    got = httpx.post(f"{server.url}/api/v1/ask", json=asked, timeout=30)
    assert got.status_code == 404 and got.json()["error"]["code"] == "unknown_entity"
    return got.json()["error"]


def test_many_unknown_names_hold_up_no_search(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searching, go_on, plain = threading.Event(), threading.Event(), Vocabulary.near

    def near(names: Vocabulary, name: str, among: int | None = None) -> list[str]:
        if name.startswith("chidl"):
            searching.set()
            assert go_on.wait(30)
        return plain(names, name, among)

    monkeypatch.setattr(Vocabulary, "near", near)
    most = 1 + LIMITS.waiting_near_names  # one is searched for, others wait
    with serving(run_dir) as server, ThreadPoolExecutor(most) as threads:
        try:
            waiting = [threads.submit(_unknown, server, number) for number in range(most)]
            assert searching.wait(20)
            until = threading.Event()
            while server.metric("dpmpn_waiting", queue="near names") < most:
                assert not until.wait(0.01)
            for number in range(most, UNKNOWN):  # each at once, without near names
                error = _unknown(server, number)
                assert error["near"] == [] and "search with /api/v1/entities" in error["message"]
            found = server.client.get("/api/v1/entities", params={"q": "father7"})
            assert found.status_code == 200 and [each["name"] for each in found.json()] == ["father7"]
            assert server.ask("child7").status_code == 200
        finally:
            go_on.set()
        assert all("child" in each.result()["near"][0] for each in waiting)
        assert _unknown(server, 7)["near"]
