"""Tables and numbers in Markdown, the way the paper prints them."""

from collections.abc import Collection, Iterable, Sequence
from statistics import mean, stdev

from dpmpn.wording import percentage


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] = ()) -> str:
    """A table; all columns but the first and those of `words` hold numbers, which stand to the right."""
    bars = ["---", *("---" if column in words else "--:" for column in columns[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, bars, *rows)) + "\n"


def mean_std(fractions: Sequence[float]) -> str:
    """Mean (standard deviation) in percent, as in the paper: 48.2 (.5); the mean alone where there is one value."""
    if len(fractions) == 1:
        return percentage(fractions[0])
    spread = f"{100 * stdev(fractions):.1f}"
    return f"{percentage(mean(fractions))} ({spread.removeprefix('0')})"
