"""The server as a process: started by the command, killed, started again, and stopped by signals."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from serving import QUESTION

from dpmpn.serve.run import _Server, bind

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and forks as on Unix")


@contextmanager
def started(run_dir: Path, *options: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """The command, and the address it prints."""
    command = [sys.executable, "-m", "dpmpn", "serve", str(run_dir), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while not (found := re.search(r"http://\S+", said)):
            line = process.stdout.readline()
            assert line, said
            said += line
        yield process, found[0].rstrip("/")
    finally:
        process.kill()
        process.wait()


def ask(url: str) -> list[dict]:
    got = httpx.post(f"{url}/api/v1/ask", json=QUESTION, timeout=30)
    assert got.status_code == 200
    return got.json()["answers"]


def begun(url: str) -> socket.socket:
    """A request whose body is still to come."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    length = len(json.dumps(QUESTION))
    head = f"POST /api/v1/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
    return connection


def test_a_killed_server_starts_again_on_its_port_and_sigterm_finishes_a_request(run_dir: Path) -> None:
    with started(run_dir, "--workers", "2") as (process, url):
        before, workers = ask(url), _children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        _wait_for(
            lambda: not any(_is_running(worker) for worker in workers)
        )  # they end with their supervisor
        with pytest.raises(httpx.ConnectError):
            ask(url)
    with started(run_dir, "--port", url.rpartition(":")[2]) as (process, again):
        assert again == url
        assert ask(url) == before
        connection = begun(url)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None
        assert httpx.get(f"{url}/readyz").status_code == 503
        connection.sendall(json.dumps(QUESTION).encode())
        answer = connection.makefile("rb").read()  # to its end: the connection is closed
        assert answer.startswith(b"HTTP/1.1 200") and b"father7" in answer
        assert process.wait(10) == 0
        assert process.stdout is not None and process.stdout.read().strip() == "stopped"


def test_workers_answer_together_are_replaced_together_and_end_with_the_first(run_dir: Path) -> None:
    with started(run_dir, "--workers", "3") as (process, url):
        workers = _children(process.pid)
        assert len(workers) == 3
        expected = ask(url)
        assert all(ask(url) == expected for _ in range(8))
        text = httpx.get(f"{url}/metrics").text  # counted over all processes
        assert float(re.search(r'requests_total{route="/api/v1/ask",status="200"} (\S+)', text)[1]) == 9  # type: ignore[index]
        found = httpx.get(f"{url}/api/v1/entities", params={"q": "father7"}).json()  # with threads of polars
        assert [each["name"] for each in found] == ["father7"]
        time.sleep(2.1)  # one that dies sooner is not replaced
        for worker in workers[:2]:
            os.kill(worker, signal.SIGKILL)

        def are_replaced() -> bool:
            assert process.poll() is None
            now = _children(process.pid)
            return len(now) == 3 and not set(now) & set(workers[:2])

        _wait_for(are_replaced)
        now = _children(process.pid)
        assert workers[2] in now and ask(url) == expected
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert not any(_is_running(worker) for worker in now)
        assert process.stdout is not None
        said = process.stdout.read()
        assert said.count("ended with code -9; another one is started") == 2 and "Traceback" not in said


def test_a_worker_that_cannot_begin_is_told_once_and_ends_the_command(run_dir: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("no\nlabels\n")
    command = [sys.executable, "-m", "dpmpn", "serve", str(run_dir), "--port", "0", "--workers", "2"]
    ended = subprocess.run([*command, "--labels", str(labels)], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.count(str(labels)) == 1 and "Traceback" not in ended.stderr


def test_workers_that_die_as_soon_as_they_answer_are_not_replaced_for_ever() -> None:
    script = """
from dpmpn.serve.workers import Workers

def serve(first, ready, is_alone):
    ready()
    return 3

Workers(serve, 2, print).run(lambda: False, lambda: None)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "ended with code 3; another one is started" in ended.stdout
    assert "RunError: workers end as soon as they are started" in ended.stderr


WORKERS = """
import os, pathlib, sys, time
from dpmpn.serve.workers import Workers

broken = pathlib.Path(sys.argv[1])

def serve(first, ready, is_alone):
    if broken.exists():
        return 2
    ready()
    while not is_alone():
        time.sleep(0.05)

say = lambda text: print(text, flush=True)
Workers(serve, 2, say).run(lambda: False, lambda: say("serving"))
"""


def test_a_worker_that_cannot_be_replaced_ends_no_other(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    command = [sys.executable, "-c", WORKERS, str(broken)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "serving\n"
        first, second = _children(process.pid)
        time.sleep(2.1)  # one that dies sooner is not replaced at once
        broken.touch()
        os.kill(first, signal.SIGKILL)
        assert "ended with code -9" in process.stdout.readline()
        for seconds in (2, 4):  # ever later
            line = process.stdout.readline()
            assert f"1 of 2 answer, and it is tried again in {seconds} seconds" in line
        assert process.poll() is None and _is_running(second)
        broken.unlink()
        _wait_for(lambda: len(_children(process.pid)) == 2)
        assert second in _children(process.pid)
        broken.touch()  # and where none is left, there is nothing to go on with
        for worker in _children(process.pid):
            os.kill(worker, signal.SIGKILL)
        assert process.wait(20) == 1 and "workers end as soon as they are started" in process.stdout.read()
    finally:
        process.kill()
        process.wait()


def test_what_is_served_does_not_change_with_the_folder(run_dir: Path, tmp_path: Path) -> None:
    served = shutil.copytree(run_dir, tmp_path / "run")
    with started(served, "--workers", "2") as (process, url):
        before, (first, second) = _all_answers(url), _children(process.pid)
        for path in served.rglob("*.json"):
            path.write_bytes(path.read_bytes() + b"\n")  # as good as before, and yet not the same
        os.kill(first, signal.SIGKILL)
        said = ""
        while "has changed since this server was started" not in said:
            assert process.stdout is not None and "Traceback" not in said
            said += process.stdout.readline()
        for path in (*served.rglob("*.npy"), *served.rglob("*.txt"), *served.rglob("*.safetensors")):
            path.write_bytes(b"\xff" * path.stat().st_size)
            os.truncate(path, 1)  # what maps it would be killed by SIGBUS
        assert _all_answers(url) == before
        shutil.rmtree(served)
        assert _all_answers(url) == before and httpx.get(f"{url}/readyz").status_code == 200
        assert _children(process.pid) == [second]


def _all_answers(url: str) -> list[object]:
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
        questions = [
            {"head": f"{who}{i}", "relation": "father"} for who in ("child", "mother") for i in range(8)
        ]
        return [
            *client.post("/ask-many", json={"questions": questions}).json()["results"],
            client.post("/explain", json=questions[0]).json()["text"],
            client.get("/entities", params={"q": "f"}).json(),
            client.get("/entity", params={"name": "mother1"}).json(),
            client.get("/relations", params={"head": "mother1"}).json(),
            client.post("/ask", json={"head": "fahter7", "relation": "father"}).json(),
        ]


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = """
import sys
from dpmpn.files.held import temporary_folder

folder = temporary_folder()
print(folder.name, flush=True)
sys.stdin.read()
"""
    command, here = [sys.executable, "-c", script], {**os.environ, "TMPDIR": str(tmp_path)}
    processes = []
    for _ in range(2):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=here
        )
        assert process.stdout is not None
        processes.append((process, Path(process.stdout.readline().strip())))
    (killed, left), (living, kept) = processes
    killed.kill()
    killed.wait()
    assert left.is_dir() and kept.is_dir()
    (left / "counter.db").touch()
    for folder in (left, kept):
        os.utime(folder, (0, 0))  # they were made long ago
    again = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=here)
    assert again.returncode == 0 and [*tmp_path.iterdir()] == [kept]
    living.communicate()
    assert not [*tmp_path.iterdir()]


def test_it_says_once_that_it_serves() -> None:
    told: list[str] = []
    guard = SimpleNamespace(stopping=False, in_flight=0)
    server = _Server(uvicorn.Config(guard), guard, lambda: False, lambda: told.append("serving"))  # type: ignore[arg-type]
    for counter in (0, 1, 0):  # as after a day
        asyncio.run(server.on_tick(counter))
    assert told == ["serving"]


def _wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.1)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_replies_do_not_wait_to_be_confirmed() -> None:
    """Only for sockets that name their protocol asyncio turns Nagle's algorithm off."""
    with bind("127.0.0.1", 0) as taken, socket.create_connection(taken.getsockname()):
        accepted, _ = taken.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP
