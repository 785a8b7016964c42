"""What a user may see of an accident: one line that says what it was, and exit code 2."""

from collections.abc import Callable

import pytest
from forked_cli import Ended

from dpmpn.cli.main import run

Call = Callable[..., Ended]


def is_refused(ended: Ended, *says: object) -> bool:
    """Whether a command ended with one sentence that says all this."""
    assert ended.code == 2, ended
    assert ended.err.startswith("dpmpn: ") and ended.err.count("\n") == 1, ended.err
    assert all(str(text) in ended.err for text in says), ended.err
    return True


def caller(capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the command line in this process, where that is quicker than one of its own."""

    def call(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return call
