"""Numbers and lists in words."""

from collections.abc import Sequence

_SMALL = 0.0005  # what three decimals would show as nothing


def counted(count: int, one: str, several: str | None = None) -> str:
    """A count and its noun, or other words, in singular or plural."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def listed(texts: Sequence[str], last: str = "and") -> str:
    """Texts in a row, with commas between them and `last` before the last one."""
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else "".join(texts)


def probability_shown(probability: float) -> str:
    """A probability with three decimals; one that is next to nothing, but not nothing, does not look like it."""
    return f"{probability:.3f}" if probability >= _SMALL else f"{probability:.1g}"
