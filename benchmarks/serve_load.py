"""Requests per second and how long they take: python benchmarks/serve_load.py RUN_DIR --clients 1,8,64 --json FILE

Starts the server as a process of its own; the clients are in another one. Each asks one question after the other, all
different ones of the test split in both directions. With --soak MINUTES the last number of clients goes on so long,
and the server's memory is noted.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import dpmpn

WARM_UP = 3.0  # seconds that are not counted


def questions_of(run_dir: Path) -> list[dict[str, Any]]:
    """The questions of the test split, or where it is empty of another one, each once."""
    reasoner = dpmpn.Reasoner.load(run_dir)
    graph, names = reasoner.graph, reasoner.graph.entities
    splits = (reasoner.dataset.split(name) for name in ("test", "valid", "train"))
    facts = next((split for split in splits if len(split)), None)
    if facts is None:
        raise SystemExit(f"{run_dir} has no facts to ask about; train on some")
    asked = {}
    for head, relation, tail in facts.tolist():
        name = graph.relation_names.name(relation)
        asked[head, name, False] = {"head": names.name(head), "relation": name}
        if graph.inverse[relation] >= 0:
            asked[tail, name, True] = {"head": names.name(tail), "relation": name, "inverse": True}
    questions = list(asked.values())
    np.random.default_rng(0).shuffle(questions)  # type: ignore[arg-type]
    return questions


class Load:
    """Clients that ask until the time is up."""

    def __init__(self, url: str, questions: list[dict[str, Any]]) -> None:
        self.url, self.questions, self.next = url, questions, 0
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()

    async def run(self, clients: int, seconds: float) -> dict[str, Any]:
        """What so many clients saw in so many seconds."""
        connections = [Connection(self.url) for _ in range(clients)]
        await self._all(connections, WARM_UP)
        self.seconds, self.statuses = [], Counter()
        began = time.perf_counter()
        await self._all(connections, seconds)
        took = time.perf_counter() - began
        for connection in connections:
            connection.close()
        p50, p95, p99 = (1e3 * np.percentile(self.seconds or [float("nan")], [50, 95, 99])).tolist()
        answered = self.statuses["200"]
        return {
            "clients": clients,
            "seconds": round(took, 1),
            "answered": answered,
            "requests_per_second": round(answered / took, 1),
            "milliseconds": {"p50": round(p50, 1), "p95": round(p95, 1), "p99": round(p99, 1)},
            "statuses": dict(self.statuses),
            "lost": sum(count for status, count in self.statuses.items() if not status.isdigit()),
        }

    async def _all(self, connections: list["Connection"], seconds: float) -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(self._one(connection, until) for connection in connections))

    async def _one(self, connection: "Connection", until: float) -> None:
        while (began := time.perf_counter()) < until:
            question = self.questions[self.next % len(self.questions)]
            self.next += 1
            try:
                async with asyncio.timeout(60):
                    status, body = await connection.post("/api/v1/ask", question)
                complete = status != 200 or "answers" in json.loads(body)
                self.statuses[str(status) if complete else "broken"] += 1
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                self.statuses[type(error).__name__] += 1
                connection.close()
            self.seconds.append(time.perf_counter() - began)


class Connection:
    """One connection that is kept open; a client library would cost more than the server."""

    def __init__(self, url: str) -> None:
        self.host, _, port = url.removeprefix("http://").partition(":")
        self.port = int(port)
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, value: Any) -> tuple[int, bytes]:
        """Status and body of the answer."""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        body = json.dumps(value).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(answer.partition("content-length:")[2].split()[0])
        return int(answer.split()[1]), await reader.readexactly(length)

    def close(self) -> None:
        """Close it; the next question opens it again."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def started(run_dir: Path, options: list[str]) -> tuple[subprocess.Popen, str]:
    """The server and its address."""
    command = [sys.executable, "-m", "dpmpn", "serve", str(run_dir), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://\S+", line):
            return process, found[0].rstrip("/")
    raise SystemExit("the server did not start")


def memory(pid: int) -> float:
    """MB that a process and those it started hold, each shared page counted as its part."""
    total = 0
    for each in family(pid):
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1])  # type: ignore[index]
    return round(total / 1024, 1)


def family(pid: int) -> list[int]:
    """A process and all it started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return [pid, *(each for child in children for each in family(child))]


async def soak(load: Load, clients: int, minutes: float, pid: int) -> dict[str, Any]:
    """What so many clients saw in so many minutes, and the server's memory meanwhile."""
    noted = []
    working = asyncio.create_task(load.run(clients, 60 * minutes))
    began = time.perf_counter()
    while not working.done():
        noted.append({"minute": round((time.perf_counter() - began) / 60, 2), "memory_mb": memory(pid)})
        await asyncio.wait([working], timeout=min(15.0, 6 * minutes))
    return {**await working, "memory": noted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--clients", default="1,8,64")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    questions = questions_of(given.run_dir)
    process, url = started(given.run_dir, ["--workers", str(given.workers)])
    load, counts = Load(url, questions), [int(count) for count in given.clients.split(",")]
    report: dict[str, Any] = {
        "run": given.run_dir.name,
        "workers": given.workers,
        "cores": os.cpu_count(),
        "different_questions": len(questions),
        "memory_mb_at_start": memory(process.pid),
    }
    try:
        report["load"] = []
        for clients in counts:
            report["load"].append(asyncio.run(load.run(clients, given.seconds)))
            print(json.dumps(report["load"][-1]), flush=True)
        if given.soak:
            report["soak"] = asyncio.run(soak(load, counts[-1], given.soak, process.pid))
        metrics = httpx.get(f"{url}/metrics").text
        batches = _metric(metrics, "dpmpn_batch_questions_count")  # none where all were asked recently
        together = _metric(metrics, "dpmpn_batch_questions_sum") / batches if batches else None
        report["questions_in_a_batch"] = together and round(together, 2)
        report["memory_mb_at_end"] = memory(process.pid)
    finally:
        process.terminate()
        report["exit_code"] = process.wait(30)
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(json.dumps(report, indent=2))


def _metric(text: str, name: str) -> float:
    return float(re.search(rf"^{name} (\S+)", text, re.MULTILINE)[1])  # type: ignore[index]


if __name__ == "__main__":
    main()
