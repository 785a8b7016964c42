"""What ends a command from outside: a request to stop becomes an orderly end, with nothing half done."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from dpmpn.errors import Stopped

_HANGUP = getattr(signal, "SIGHUP", None)  # the terminal was closed; not on every system
_STOPPING = [number for number in (signal.SIGINT, signal.SIGTERM, _HANGUP) if number is not None]

_AGAIN_AFTER = 0.05  # seconds: by then whatever let no exception out is over

_Handler = Callable[[int, FrameType | None], Any]


class Stop:
    """Whether a signal asked a command to stop, and which."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.number is not None

    @property
    def exit_code(self) -> int:
        """What a shell reports of a process that the signal ended."""
        return Stopped(self.number).exit_code


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Stopped` where SIGINT, SIGTERM or SIGHUP comes."""
    came: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise Stopped(number)

    with _handling(_STOPPING, end), _heard():
        try:
            yield
        except Stopped:
            raise
        except (
            BaseException
        ) as error:  # compiled libraries make errors of their own of one that comes within them
            if came:
                raise Stopped(came[0]) from error
            raise


@contextmanager
def _heard() -> Iterator[None]:
    """Send a signal again that came where Python lets no exception out, such as a finaliser: it would be lost."""
    before, again = sys.unraisablehook, []

    def note(ignored: Any) -> None:
        if not isinstance(ignored.exc_value, Stopped):
            before(ignored)
            return
        again.append(threading.Timer(_AGAIN_AFTER, os.kill, (os.getpid(), ignored.exc_value.signal_number)))
        again[-1].start()

    sys.unraisablehook = note
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Note the first SIGINT, SIGTERM or SIGHUP, for work that ends at its next good moment; a second ends at once."""
    stop = Stop()

    def note(number: int, _: FrameType | None) -> None:
        if stop.number is not None:
            raise Stopped(number)
        stop.number = number

    with _handling(_STOPPING, note):
        yield stop


@contextmanager
def _handling(numbers: list[signal.Signals], handler: _Handler) -> Iterator[None]:
    """Give signals a handler, but those that whoever started this process had it ignore, as nohup does."""
    terminals = [
        stream.fileno() for stream in (sys.__stdout__, sys.__stderr__) if stream and _is_terminal(stream)
    ]

    def handle(number: int, frame: FrameType | None) -> None:
        if number == _HANGUP:
            _silence(terminals)
        handler(number, frame)

    before = {}
    try:
        for number in numbers:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handle)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except ValueError:  # closed
        return False


def _silence(descriptors: list[int]) -> None:
    """Send what is still printed nowhere: writing to a terminal that is gone would be an error of its own."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in descriptors:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
