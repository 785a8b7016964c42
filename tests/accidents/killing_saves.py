"""Ends a process between two steps of saving a model."""

import os
import signal
from typing import Any

from dpmpn.train import trainer


def kill_after_best() -> None:
    """Kill this process right after it saved its first best model."""
    plain = trainer.save_best

    def save(*arguments: Any) -> None:
        plain(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    trainer.save_best = save
