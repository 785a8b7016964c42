"""A few threads for work that is not the engine's, with a bounded number of things to do."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from dpmpn.serve.counts import Counts
from dpmpn.serve.problems import overloaded

_Result = TypeVar("_Result")


class Desk:
    """Does work in threads, and refuses it when too much waits."""

    def __init__(self, name: str, threads: int, most_waiting: int, counts: Counts) -> None:
        self._name, self._most = name, threads + most_waiting
        self._counts = counts
        self._threads = ThreadPoolExecutor(threads, f"dpmpn-{name}")
        self._lock, self._taken = threading.Lock(), 0

    async def do(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of some work, or a problem at once where too much waits."""
        with self._lock:
            if self._taken >= self._most:
                self._counts.refused.labels(self._name).inc()
                raise overloaded(f"too many {self._name} are waiting")
            self._taken += 1
        self._counts.waiting.labels(self._name).inc()
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what was begun."""
        self._threads.shutdown(cancel_futures=True)

    def _done(self, _: Future) -> None:
        with self._lock:
            self._taken -= 1
        self._counts.waiting.labels(self._name).dec()
