"""Tables and numbers in Markdown, the way the paper prints them."""

from collections.abc import Collection, Iterable, Sequence
from statistics import mean, stdev


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] = ()) -> str:
    """A table; all columns but the first and those of `words` hold numbers, which stand to the right."""
    bars = ["---", *("---" if column in words else "--:" for column in columns[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, bars, *rows)) + "\n"


def percent(fraction: float | None, digits: int = 1) -> str:
    """A fraction as the paper prints it; a dash where there is none."""
    return "-" if fraction is None else f"{100 * fraction:.{digits}f}"


def mean_std(fractions: Sequence[float]) -> str:
    """Mean (standard deviation) in percent, as in the paper: 48.2 (.5); the mean alone where there is one value."""
    if len(fractions) == 1:
        return percent(fractions[0])
    spread = f"{100 * stdev(fractions):.1f}"
    return f"{percent(mean(fractions))} ({spread.removeprefix('0')})"
