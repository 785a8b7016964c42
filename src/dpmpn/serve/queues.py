"""What requests wait in: the engine's queue, where questions are asked together, and a few threads for other work."""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from dpmpn.ask.results import QueryResult
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.serve.problems import overloaded
from dpmpn.serve.status import Metrics

Ids = tuple[int, int, bool]  # head, relation as it is asked, whether that is backwards
_Result = TypeVar("_Result")

_TOGETHER = 64  # questions asked at once; more save little time, and those behind them wait longer
_TRACED = 16  # of those that keep what each step did
_RECENT = 64  # questions that can be explained without asking again
_GATHER = 0.003  # seconds to wait for as many as last time, while requests come one batch after the other


class _Waiting(NamedTuple):
    question: Ids
    traced: bool
    future: "Future[QueryResult]"


class EngineQueue:
    """One thread that owns the engine, and the questions that wait for it."""

    def __init__(self, reasoner: Reasoner, metrics: Metrics, most_waiting: int) -> None:
        self._reasoner, self._metrics, self._most_waiting = reasoner, metrics, most_waiting
        self._waiting: deque[_Waiting] = deque()
        self._works: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._recent: OrderedDict[Ids, QueryResult] = OrderedDict()
        self._closed = False
        self._last, self._ended = 1, 0.0  # questions of the last batch, and when it ended
        self._thread = threading.Thread(target=self._work, name="dpmpn-engine", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether questions are still answered."""
        return self._thread.is_alive()

    async def ask(self, questions: Sequence[Ids], traced: bool = False) -> list[QueryResult]:
        """What questions reached, or a problem at once if they do not all find room in the queue.

        With `traced` they can be explained.
        """
        futures = [asyncio.wrap_future(future) for future in self._put(questions, traced)]
        try:
            return [await future for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()  # nobody waits for the rest: it need not be asked
            raise

    async def do(self, work: Callable[[], _Result]) -> _Result:
        """The result of some work with the engine, done between the questions; a problem where too much waits."""
        future: Future[Any] = Future()
        with self._changed:
            if self._closed or len(self._works) >= self._most_waiting:
                self._metrics.refused.labels("questions").inc()
                raise overloaded("too much work is waiting")
            self._works.append((work, future))
            self._changed.notify()
        result: _Result = await asyncio.wrap_future(future)
        return result

    def close(self) -> None:
        """Answer what waits, and end the thread and the engine's helpers."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._reasoner.engine.close()

    def _put(self, questions: Sequence[Ids], traced: bool) -> "list[Future[QueryResult]]":
        with self._changed:
            recent = [self._recent.get(question) for question in questions]
            if self._closed or len(self._waiting) + recent.count(None) > self._most_waiting:
                self._metrics.refused.labels("questions").inc()
                raise overloaded("too many questions are waiting")
            futures: list[Future[QueryResult]] = [Future() for _ in questions]
            for question, result, future in zip(questions, recent, futures, strict=True):
                if result is None:
                    self._waiting.append(_Waiting(question, traced, future))
                else:
                    self._recent.move_to_end(question)
                    self._metrics.recent.inc()
                    future.set_result(result)
            self._count_waiting()
            self._changed.notify()
        return futures

    def _work(self) -> None:
        while True:
            batch = self._taken()
            if batch:
                self._answer(batch)
                self._last, self._ended = len(batch), time.monotonic()
            if self._works:
                self._do_one()
            elif not batch:
                return

    def _do_one(self) -> None:
        """Some other work with the engine: one piece, so that questions need not wait for all."""
        work, future = self._works.popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    def _taken(self) -> list[_Waiting]:
        """The next questions to ask together; none when there is other work, or it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._works or self._closed)
            if (
                self._waiting and time.monotonic() - self._ended < _GATHER
            ):  # those just answered are about to ask again
                self._changed.wait_for(lambda: len(self._waiting) >= self._last or self._closed, _GATHER)
            batch = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            self._count_waiting()
        return batch

    def _answer(self, batch: list[_Waiting]) -> None:
        waiting: dict[Ids, list[_Waiting]] = {}
        for each in batch:
            if each.future.set_running_or_notify_cancel():
                waiting.setdefault(each.question, []).append(each)
        # One question alone costs no more with its trace.
        traced = [q for q, all_ in waiting.items() if len(waiting) == 1 or any(each.traced for each in all_)]
        others = [question for question in waiting if question not in set(traced)]
        parts = [traced[start : start + _TRACED] for start in range(0, len(traced), _TRACED)]
        for questions in filter(None, [*parts, others]):
            futures = [[each.future for each in waiting[question]] for question in questions]
            try:
                results = self._ask(questions, traced=questions is not others)
            except BaseException as error:
                for future in chain(*futures):
                    future.set_exception(error)
                continue
            for same, result in zip(futures, results, strict=True):
                for future in same:
                    future.set_result(result)

    def _ask(self, questions: list[Ids], traced: bool) -> list[QueryResult]:
        self._metrics.batches.observe(len(questions))
        results = self._reasoner.ask(questions, traced)
        if traced:
            results = [result.alone() for result in results] if len(results) > 1 else results
            with self._changed:  # these can be explained without asking again
                self._recent.update(zip(questions, results, strict=True))
                while len(self._recent) > _RECENT:
                    self._recent.popitem(last=False)
        return results

    def _count_waiting(self) -> None:
        self._metrics.waiting.labels("questions").set(len(self._waiting))


class WorkQueue:
    """Does work in threads, and refuses it when too much waits."""

    def __init__(self, name: str, threads: int, most_waiting: int, metrics: Metrics) -> None:
        self._name, self._most = name, threads + most_waiting
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(threads, f"dpmpn-{name}")
        self._lock, self._taken = threading.Lock(), 0

    async def do(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of some work, or a problem at once where too much waits."""
        with self._lock:
            if self._taken >= self._most:
                self._metrics.refused.labels(self._name).inc()
                raise overloaded(f"too many {self._name} are waiting")
            self._taken += 1
        self._metrics.waiting.labels(self._name).inc()
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what was begun."""
        self._threads.shutdown(cancel_futures=True)

    def _done(self, _: Future[Any]) -> None:
        with self._lock:
            self._taken -= 1
        self._metrics.waiting.labels(self._name).dec()
