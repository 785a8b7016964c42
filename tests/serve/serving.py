"""A server of a tiny model on a free port of this machine, in a thread of the test."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.serve.app import Explorer, make_app
from dpmpn.serve.connections import Connection
from dpmpn.serve.guard import LIMITS, Guard, Limits, allowed_hosts
from dpmpn.serve.run import address, bind, run

QUESTION = {"head": "child7", "relation": "father"}


class Server(NamedTuple):
    client: httpx.Client
    url: str
    reasoner: Reasoner
    explorer: Explorer
    guard: Guard
    stop: threading.Event
    thread: threading.Thread

    def ask(self, head: str, relation: str = "father", **more: object) -> httpx.Response:
        return self.client.post("/api/v1/ask", json={"head": head, "relation": relation, **more})

    def metric(self, name: str, **labels: str) -> float:
        return self.explorer.metrics.registry.get_sample_value(name, labels) or 0.0

    def requests(self) -> float:
        """Requests answered so far."""
        samples = (sample for metric in self.explorer.metrics.requests.collect() for sample in metric.samples)
        return sum(sample.value for sample in samples if sample.name == "dpmpn_requests_total")

    def connections(self) -> list[Connection]:
        """Those that are open."""
        found = (each for each in gc.get_objects() if issubclass(type(each), Connection))
        return [each for each in found if each.guard is self.guard and each in each.connections]


@contextmanager
def serving(run_dir: Path, token: str | None = None, limits: Limits = LIMITS) -> Iterator[Server]:
    reasoner = Reasoner.load(run_dir).in_memory()
    explorer = Explorer(reasoner, run_dir, limits)
    guard = make_app(explorer, token, allowed_hosts("127.0.0.1", token is not None))
    taken, stop, started = bind("127.0.0.1", 0), threading.Event(), threading.Event()
    url = address(taken).rstrip("/")
    thread = threading.Thread(target=run, args=(guard, taken, stop.is_set, started.set), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        with httpx.Client(base_url=url, timeout=30) as client:
            yield Server(client, url, reasoner, explorer, guard, stop, thread)
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()


class Gate:
    """Holds the engine of a server until it is opened."""

    def __init__(self, server: Server) -> None:
        self.held, self._open = threading.Event(), threading.Event()
        self._plain, self._reasoner = server.reasoner.ask, server.reasoner

    def __enter__(self) -> "Gate":
        self._reasoner.ask = self._wait  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._reasoner.ask = self._plain  # type: ignore[method-assign]

    def open(self) -> None:
        self._open.set()

    def _wait(self, *arguments: object) -> object:
        self.held.set()
        assert self._open.wait(30)
        return self._plain(*arguments)  # type: ignore[arg-type]
