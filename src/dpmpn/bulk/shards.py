"""One of n shares of a piece of work: which parts it has, and what is wrong with how it was named."""

import re
from dataclasses import dataclass

from dpmpn.errors import ConfigError

MOST = 1_000_000  # shards


@dataclass(frozen=True)
class Shard:
    """The k-th of n shares, counted from 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> "Shard":
        """A shard as it is named on the command line, such as 3/8."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip(), re.ASCII)
        if found is None:
            raise ConfigError(f"--shard '{text:.40}' is not k/n; write --shard 3/8 for the third of eight")
        number, of = map(int, found.groups())
        if not 1 <= of <= MOST:
            raise ConfigError(f"--shard {text}: the number of shards must be from 1 to {MOST:,}, not {of:,}")
        if not 1 <= number <= of:
            raise ConfigError(f"--shard {text}: shards are counted from 1, so give 1/{of} to {of}/{of}")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def parts(self, n_parts: int) -> range:
        """Its parts: they follow each other, and no two shards differ by more than one in number."""
        return range((self.number - 1) * n_parts // self.of, self.number * n_parts // self.of)
