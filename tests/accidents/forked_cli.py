"""Command lines in processes of their own, forked from one that has imported everything: quick enough to kill dozens.

As a script, this is the process they are forked from. It computes nothing itself, which keeps forking safe.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Ended(NamedTuple):
    """How a command ended: its exit code, negative for a signal, and what it printed."""

    code: int
    out: str
    err: str


class Running:
    """A command that was started."""

    def __init__(self, parent: "ForkedCli", pid: int, folder: Path) -> None:
        self.parent, self.pid, self.folder = parent, pid, folder

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def printed(self) -> str:
        return (self.folder / "out").read_text()

    def is_running(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def wait(self) -> Ended:
        code = self.parent.ask({"wait": self.pid})
        return Ended(code, self.printed(), (self.folder / "err").read_text())


class ForkedCli:
    """Starts commands; use it as a context."""

    def __init__(self, unshared: str | None = None) -> None:
        """With `unshared`, a shell command that prepares a mount namespace of their own for all commands."""
        command = [sys.executable, __file__]
        if unshared is not None:
            command = ["unshare", "-rm", "sh", "-ec", f'{unshared}; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = tempfile.TemporaryDirectory(prefix="dpmpn-commands-")
        self.count = 0

    def __enter__(self) -> "ForkedCli":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def ask(self, request: dict[str, Any]) -> Any:
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def start(
        self,
        *arguments: object,
        before: Sequence[Any] | None = None,
        largest_file: int | None = None,
        call: Sequence[Any] | None = None,
    ) -> Running:
        """Start a command line, or `call` = (module, function, arguments...); `before` is called first.

        `largest_file` is a limit in bytes beyond which files cannot grow, as on a disk that is full.
        """
        self.count += 1
        folder = Path(self.folder.name) / str(self.count)
        folder.mkdir()
        request = {
            "arguments": [str(argument) for argument in arguments],
            "before": before,
            "call": call,
            "largest_file": largest_file,
            "folder": str(folder),
            "path": [str(Path(__file__).parent)],
        }
        return Running(self, self.ask(request), folder)

    def run(self, *arguments: object, **options: Any) -> Ended:
        """Start a command and wait for its end."""
        return self.start(*arguments, **options).wait()


def _call(module: str, function: str, *arguments: Any) -> Any:
    return getattr(importlib.import_module(module), function)(*arguments)


def _child(request: dict[str, Any], printed: list[int]) -> None:
    for number, handle in enumerate((os.open(os.devnull, os.O_RDONLY), *printed)):
        os.dup2(handle, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    if request["largest_file"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"],) * 2)
    code = 0
    try:
        if request["before"]:
            _call(*request["before"])
        if request["call"]:
            _call(*request["call"])
        else:
            from dpmpn.cli.main import run

            run(request["arguments"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 70
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()
        os._exit(code)


class _Parent:
    """The process that the commands are forked from."""

    def __init__(self) -> None:
        self.pipes: dict[int, list[tuple[int, Path]]] = {}

    def fork(self, request: dict[str, Any]) -> int:
        files = [Path(request["folder"]) / name for name in ("out", "err")]
        printed = [os.open(file, os.O_WRONLY | os.O_CREAT) for file in files]
        reading = []
        if request["largest_file"] is not None:  # what is printed must not count as a file of the command's
            pipes = [os.pipe() for _ in files]
            reading, printed = [pipe[0] for pipe in pipes], [pipe[1] for pipe in pipes]
        pid = os.fork()
        if pid == 0:
            _child(request, printed)
        for handle in printed:
            os.close(handle)
        self.pipes[pid] = list(zip(reading, files, strict=False))
        return pid

    def wait(self, pid: int) -> int:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for handle, file in self.pipes.pop(pid):
            os.set_blocking(handle, False)
            with os.fdopen(handle, "rb") as pipe:
                file.write_bytes(pipe.read() or b"")
        return code


def main() -> None:
    import numpy as np

    import dpmpn.cli.main
    import dpmpn.evaluate.evaluator
    import dpmpn.lab.bench
    import dpmpn.train.trainer  # noqa: F401
    from dpmpn.ops.permutation import combine

    with contextlib.suppress(ImportError):
        import typer._adapters  # noqa: F401  # where it exists, every child would load it
    combine(np.uint64(1), np.uint64(2))  # numba loads half of itself when the first kernel is called
    replies, parent = os.fdopen(os.dup(1), "w"), _Parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        sys.path[:0] = [path for path in request.get("path", []) if path not in sys.path]
        reply = parent.wait(request["wait"]) if "wait" in request else parent.fork(request)
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
