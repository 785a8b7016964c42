"""Makes parts on a Ray cluster: each worker opens model and graph once, and parts go to whoever is free.

Ray only carries the work. Parts come back to the process that began it, which keeps them as it keeps its own: so a part
that was made twice, because a machine was lost, counts once, and whatever ends the command, what came back is kept.
"""

import hashlib
import io
import json
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import polars as pl

from dpmpn.bulk.work import Carry, Work
from dpmpn.errors import ConfigError, DpmpnError, RunError

ANY = "auto"
"""The address of the cluster this machine belongs to or, if it belongs to none, of a new one on it alone."""
_MOST_TRIES = 4  # of one part, or of opening without a worker that is ready: more would hardly help
_SECONDS_BETWEEN_LOOKS = 5.0


def carried(make: Callable[[], Work], address: str, cpus: int, say: Callable[[str], None]) -> Carry:
    """Make parts on a cluster, whose workers take so many CPUs each; `make` opens the same work there."""
    ray = _imported()

    def carry(
        work: Work, wanted: Sequence[int], _: Callable[[int], None]
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        if wanted:
            with _connected(ray, address):
                yield from _Crew(ray, make, digest(work.request), cpus, say).made(wanted)

    return carry


def digest(request: Mapping[str, Any]) -> str:
    """A digest of all that parts depend on."""
    return hashlib.sha256(json.dumps(dict(request), sort_keys=True).encode()).hexdigest()


class Worker:
    """What runs on the cluster: some work, opened once, and its parts."""

    def __init__(self) -> None:
        self._work: Work | None = None

    def open(self, make: Callable[[], Work], folder: str, request: str) -> str:
        """Open the work in the folder of the one who began it; what is wrong, or nothing."""
        try:
            os.chdir(folder)
            self._work = make()
        except OSError as error:
            return f"on {socket.gethostname()}, {error.filename or folder} cannot be opened: {error.strerror}; {_SAME}"
        except DpmpnError as error:
            return f"on {socket.gethostname()}: {error}"
        if digest(self._work.request) != request:
            return f"on {socket.gethostname()}, the model, the graph or the questions are others; {_SAME}"
        return ""

    def part(self, index: int) -> bytes | str:
        """One part, packed; or what is wrong."""
        assert self._work is not None
        try:
            frame = self._work.part(index, lambda _: None)
        except DpmpnError as error:
            return f"on {socket.gethostname()}: {error}"
        packed = io.BytesIO()
        frame.write_parquet(packed)
        return packed.getvalue()


_SAME = "all machines of the cluster must see the same files under the same names, and have the same version of dpmpn"


class _Crew:
    """The workers of one command: those that open their work, those that are idle, and those that make a part."""

    def __init__(
        self, ray: Any, make: Callable[[], Work], request: str, cpus: int, say: Callable[[str], None]
    ) -> None:
        self._ray, self._say = ray, say
        self._kind = ray.remote(Worker).options(num_cpus=cpus, max_restarts=0)
        self._opened_with = make, os.getcwd(), request
        self._most = max(1, int(ray.cluster_resources().get("CPU", 1)) // cpus)
        self._opening: dict[Any, Any] = {}  # workers, by the reply that is waited for
        self._busy: dict[Any, tuple[Any, int]] = {}
        self._idle: list[Any] = []
        self._todo: deque[int] = deque()
        self._tries = Counter[int]()
        self._lost_opening = 0  # since one was ready

    def made(self, wanted: Sequence[int]) -> Iterator[tuple[int, pl.DataFrame]]:
        """The parts as they come back; one whose worker was lost is asked for again."""
        self._todo.extend(wanted)
        while self._todo or self._busy:
            self._hire()
            while self._idle and self._todo:
                worker, index = self._idle.pop(), self._todo.popleft()
                self._busy[worker.part.remote(index)] = worker, index
            replies = [*self._opening, *self._busy]
            for reply in self._ray.wait(replies, num_returns=1, timeout=_SECONDS_BETWEEN_LOOKS)[0]:
                if reply in self._opening:
                    self._opened(reply)
                elif (found := self._part(reply)) is not None:
                    yield found

    def _hire(self) -> None:
        """As many workers as there are CPUs for, and parts to make; one that was lost is replaced."""
        wanted = min(self._most, len(self._todo) + len(self._busy))
        for _ in range(wanted - len(self._opening) - len(self._busy) - len(self._idle)):
            worker = self._kind.remote()
            self._opening[worker.open.remote(*self._opened_with)] = worker

    def _opened(self, reply: Any) -> None:
        worker = self._opening.pop(reply)
        try:
            problem = self._ray.get(reply)
        except self._ray.exceptions.RayTaskError as error:
            raise ConfigError(
                f"a worker of the Ray cluster could not begin ({_last_line(error)}); {_SAME}"
            ) from error
        except self._ray.exceptions.RayError as error:
            self._lost_opening += 1
            if self._lost_opening >= _MOST_TRIES + self._most:
                raise RunError(
                    f"no worker of the Ray cluster could be started ({_first_line(error)})"
                ) from error
            return
        if problem:
            raise ConfigError(problem)
        self._lost_opening = 0
        self._idle.append(worker)

    def _part(self, reply: Any) -> tuple[int, pl.DataFrame] | None:
        worker, index = self._busy.pop(reply)
        try:
            found = self._ray.get(reply)
        except (
            self._ray.exceptions.RayTaskError
        ) as error:  # a mistake in the program, which trying again repeats
            raise error.as_instanceof_cause() from error
        except self._ray.exceptions.RayError as error:
            self._tries[index] += 1
            if self._tries[index] >= _MOST_TRIES:
                raise RunError(
                    f"part {index} ended its worker {_MOST_TRIES} times ({_first_line(error)}); what was done is kept"
                ) from error
            self._say(f"a worker was lost; part {index} is asked for again")
            self._todo.appendleft(index)
            return None
        if isinstance(found, str):
            raise RunError(found)
        self._idle.append(worker)
        return index, pl.read_parquet(io.BytesIO(found))


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """Be connected to a cluster; to one that this process is connected to already, it stays so."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault(
        "RAY_USAGE_STATS_ENABLED", "0"
    )  # a cluster of our own tells nobody that it is there
    try:
        ray.init(
            None if address == ANY else address,
            log_to_driver=False,
            logging_level="error",
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"--on-ray {address}: no Ray cluster could be reached ({_first_line(error)}); start one with `ray start "
            "--head`, name the address of one, or leave it out"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _imported() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigError(
            "--on-ray needs Ray, which is not installed: pip install 'dpmpn[ray]'; or use --shard with any scheduler"
        ) from error


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()[:200]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
