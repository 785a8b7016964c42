"""Names as plain text that can stand in any sentence: on one line, and in their own direction of writing."""

import re
import unicodedata

from dpmpn.render.text import readable

_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BEGIN, _END = "\u2068", "\u2069"  # what stands between has a direction of its own


def plain(name: str) -> str:
    """A name for a sentence; one that is written from right to left does not turn its neighbours round."""
    text = readable(_DIRECTION_MARKS.sub("", name))
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        return f"{_BEGIN}{text}{_END}"
    return text
