"""The process that tunes a run's model while another one serves it: it ends, saved, when that one closes its pipe."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dpmpn.engine.workers import receive, send
from dpmpn.errors import DpmpnError
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.start.verdict import Judge, Verdict, verdict_of
from dpmpn.train.checkpoint import best_kept
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import Progress, train

_NICE = 10  # questions that people ask come first
Tell = Callable[[dict[str, Any]], None]


def tune(run: RunFolder, max_minutes: float | None, tell: Tell, stop: Callable[[], bool]) -> None:
    """Train a run to its end, and tell how far it is, when it is clearly better, and what came of it."""
    judge, verdict = Judge(run), verdict_of(run)

    def look() -> Verdict | None:
        """Judge the best model, unless that was done or it is the one that training began from."""
        kept = best_kept(run.path)
        if kept is None or kept.position == 0 or (verdict is not None and verdict.position == kept.position):
            return verdict
        found = judge.compare(kept.position)
        found.write(run)
        return found

    def hear(progress: Progress) -> None:
        nonlocal verdict
        tell({"progress": asdict(progress)})
        if progress.message is not None and not (verdict is not None and verdict.is_better):
            verdict = look()
            if verdict is not None:
                if verdict.is_better:  # it is asked from now on
                    Reasoner.load(run.path).calibrate()
                tell({"verdict": asdict(verdict)})

    result = train(
        run,
        judge.dataset,
        run.config,
        resume=run.has_weights(),
        max_minutes=max_minutes,
        progress=hear,
        stop=stop,
    )
    if result.stopped_because == "interrupted":
        return
    verdict = look()
    if verdict is not None:
        verdict = replace(verdict, is_finished=result.stopped_because != "max_minutes")
        verdict.write(run)
        Reasoner.load(run.path).calibrate()
    tell({"done": None if verdict is None else asdict(verdict)})


def main() -> None:
    """Tune the run that the first message names."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent's to handle
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not reach the pipe
    os.nice(_NICE)
    meta, _ = receive(sys.stdin.buffer)
    is_left = threading.Event()

    def wait() -> None:
        os.read(0, 1)  # nothing comes but the end
        is_left.set()

    def tell(what: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # nobody listens any more: it stops soon
            send(stdout, what)

    threading.Thread(target=wait, daemon=True).start()
    try:
        tune(RunFolder.open(Path(meta["run"])), meta["max_minutes"], tell, is_left.is_set)
    except DpmpnError as error:
        tell({"failed": str(error)})


if __name__ == "__main__":
    main()
