"""What is done in processes that are killed or ended on the way: import facts, fetch a dataset."""

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from dpmpn.data import registry
from dpmpn.data.importer import import_dataset
from dpmpn.data.labels import read_labels
from dpmpn.data.registry import ListedFile, Listing, fetch_dataset
from dpmpn.data.sources.formats import source_of

FILES = {
    "test.txt": b"entity1\trelation0\tentity9\n",
    "train.txt": b"".join(b"entity%d\trelation0\tentity%d\n" % (i, i * 31 % 500) for i in range(1000)),
}


def import_facts(facts: str, labels: str, out: str) -> None:
    import_dataset({"train": [source_of(facts)]}, out, labels=read_labels(labels))


def fetch(mirror: str, folder: str) -> None:
    files = tuple(ListedFile(name, len(x), hashlib.sha256(x).hexdigest()) for name, x in FILES.items())
    registry._table = lambda: {"UMLS": Listing(files, "none", None, "it has no address")}
    fetch_dataset("UMLS", Path(folder), mirror)


def end_at(point: int, folder: str) -> None:
    """Send this process SIGTERM at the n-th time it opens a file of a folder for writing, or renames one."""
    seen = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        is_change = event == "os.rename" or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if is_change and str(arguments[0]).startswith(folder):
            seen += 1
            if seen == point:
                os.kill(os.getpid(), signal.SIGTERM)

    sys.addaudithook(watch)
