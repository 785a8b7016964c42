"""Starts the process that tunes a run's model, hears what it tells, and ends it."""

import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dpmpn.engine.workers import Closed, ask_process, receive, start_process
from dpmpn.train.run_folder import RunFolder

_SECONDS_TO_SAVE = 30.0


class Tuner:
    """A process that tunes a run, and a thread that hears it."""

    def __init__(
        self, run: RunFolder, max_minutes: float | None, hear: Callable[[dict[str, Any]], None]
    ) -> None:
        self._message = {"run": str(run.path.absolute()), "max_minutes": max_minutes}
        self._hear = hear
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._listen, name="dpmpn-tuning", daemon=True)
        self._is_closed = False

    def start(self) -> None:
        """Begin, or go on from the last checkpoint."""
        self._process = start_process("dpmpn.start.tuning")
        ask_process(self._process, self._message)
        self._thread.start()

    def close(self) -> None:
        """Let it save what it has, and end."""
        self._is_closed = True
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_SAVE)
        except subprocess.TimeoutExpired:  # the checkpoint before is whole
            self._process.kill()
            self._process.wait()
        self._thread.join()

    def _listen(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        is_told = False
        while True:
            try:
                message, _ = receive(self._process.stdout)
            except Closed:
                break
            is_told = is_told or "done" in message or "failed" in message
            if not self._is_closed:
                self._hear(message)
        if not is_told and not self._is_closed:
            code = self._process.wait()
            self._hear({"failed": f"the process that tunes it ended with code {code}"})
