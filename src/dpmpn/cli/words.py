"""Counted things in words."""


def counted(count: int, one: str, several: str | None = None) -> str:
    """A count and its noun, or other words, in singular or plural."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"
