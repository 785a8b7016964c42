"""Numbers, lists and times as people read them: the one place that decides how they are written."""

import math
import re
from collections.abc import Sequence
from typing import Any
from unicodedata import category

DIGITS = 6
"""Significant digits of a number in a file or a reply: the seventh of a float32 depends on what is asked with it."""

_UNSEEN = (
    "Cc",
    "Cs",
    "Zl",
    "Zp",
)  # control characters, half characters, separators of lines and of paragraphs
# Marks of no width, and those that turn the direction of what follows.
_MARKS = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_BEYOND_JSON = re.compile(f"[\x7f-\x9f\u2028\u2029{_MARKS}\ud800-\udfff]")
_LAID_OUT = "\n\t\u2068\u2069"  # what texts are set with here: lines, and names that keep their direction to themselves
_NEXT_TO_NOTHING = 0.005  # what two decimals would show as nothing, or as certain
_SMALL_SCORE = 0.0005  # what three decimals would show as nothing
_SMALL_PART = 0.005  # what whole per cent would show as nothing
_NEARLY_ALL = 0.9995  # below it, a part is not all
_FIRST_DIGIT = 1e-5  # parts below it have no digit that anybody wants


def plural(count: float, one: str, several: str | None = None) -> str:
    """A noun, or other words, for so many."""
    return one if count == 1 else several or one + "s"


def counted(count: int, one: str, several: str | None = None) -> str:
    """A count and its noun: 1 fact, 1,200 facts."""
    return f"{count:,} {plural(count, one, several)}"


def listed(texts: Sequence[str], last: str = "and") -> str:
    """Texts in a row, with commas between them and `last` before the last one."""
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else "".join(texts)


def score_shown(score: float) -> str:
    """A score with three decimals; one that is next to nothing, but not nothing, does not look like it."""
    return f"{score:.3f}" if score >= _SMALL_SCORE else f"{score:.1g}"


def probability_shown(probability: float) -> str:
    """A probability with two decimals, as it is not known any better; none is certain or impossible."""
    if probability >= 1 - _NEXT_TO_NOTHING:
        return ">0.99"
    return f"{probability:.2f}" if probability >= _NEXT_TO_NOTHING else "<0.01"


def interval_shown(low: float, high: float) -> str:
    """An interval of probabilities: 0.61 to 0.89."""
    return f"{probability_shown(low)} to {probability_shown(high)}"


def percent(part: float) -> str:
    """A part in whole per cent, for a sentence: 37%; what is not nothing, or not all, does not look like it."""
    if 0 < part <= _SMALL_PART:
        return "<1%"
    return ">99%" if 1 - _SMALL_PART <= part < _NEARLY_ALL else f"{part:.0%}"


def small_percent(part: float) -> str:
    """A part in whole per cent, a small one with its first digit: 0.2%."""
    return f"{100 * part:.1g}%" if _FIRST_DIGIT <= part <= _SMALL_PART else percent(part)


def percentage(fraction: float | None, digits: int = 1) -> str:
    """A fraction in percent without the sign, for a table: 48.2; a dash where there is none."""
    return "-" if fraction is None else f"{100 * fraction:.{digits}f}"


def six_digits(value: Any) -> Any:
    """A value with its numbers rounded to six significant digits, whatever it holds; tuples become lists."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: six_digits(each) for key, each in value.items()}
    return [six_digits(each) for each in value] if isinstance(value, list | tuple) else value


def duration(seconds: float) -> str:
    """A duration as m:ss or h:mm:ss; a dash where nobody knows it."""
    if not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def about(seconds: float) -> str:
    """A duration that is only guessed: about 40 s, about 3 min, about 2 h 05 min."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 90 else f"about {minutes // 60} h {minutes % 60:02} min"


def megabytes(n_bytes: float, digits: int = 0) -> str:
    """A size in MB of a million bytes, as files have it."""
    return f"{n_bytes / 1e6:,.{digits}f} MB"


def memory(n_bytes: int) -> str:
    """A size of memory in whole MB or GB, by powers of two."""
    return f"{n_bytes >> 30:,} GB" if n_bytes >= 1 << 30 else f"{n_bytes / 2**20:,.0f} MB"


def sentence(text: str) -> str:
    """A text with the stop at its end; a name such as "Acme Ltd." brings its own."""
    return text if text.endswith(".") else f"{text}."


def one_line(text: str) -> str:
    """A name with what a terminal acts on, or nobody sees, spelled out: it may come from anywhere."""
    return text if text.isascii() and text.isprintable() else "".join(map(_spelled_out, text))


def on_terminal(text: str) -> str:
    """A text of several lines that may hold names, such as a terminal can be given."""
    return "".join(c if c in _LAID_OUT else _spelled_out(c) for c in text)


def in_json(text: str) -> str:
    """JSON with the same characters escaped that a terminal acts on; what it says stays the same."""
    return _BEYOND_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelled_out(character: str) -> str:
    is_seen = category(character) not in _UNSEEN and character not in _MARKS
    return character if is_seen else character.encode("unicode_escape").decode()
