"""What is done in a process whose files cannot grow."""

from pathlib import Path

from dpmpn.errors import RunError
from dpmpn.train.run_folder import append_line


def append_long_line(path: str) -> None:
    try:
        append_line(Path(path), {"text": "x" * 200})
    except RunError as error:
        print(str(error)[-40:])
