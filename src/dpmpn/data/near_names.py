"""Names that look like one that was not found: "did you mean"."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

import numpy as np

_NEAR_NAMES = 3
_NEAR_RATIO = 0.6
_SHORTLIST = 200  # names that are compared letter by letter
_LONGLIST = 2000  # names whose letter groups are compared
_MAX_GRAMS = 24
_PLANES = 256
_END = ord("\n")  # around each name
_BLOCK = 1 << 16  # names that are taken in at once: 16 MB


class NearNames:
    """Finds names that look like a given one.

    Letters come in groups of three, and each group has one of 256 numbers. For each number a bit per name says whether
    the name has such a group: 32 bytes a name, and a search looks only at the few numbers of the wanted name instead of
    going through all names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        n_bytes = -(-len(names) // 8)
        self._planes = np.zeros((_PLANES, n_bytes), np.uint8)  # numbers x names / 8
        self._lengths = np.zeros(len(names), np.int32)
        if len(names) > _SHORTLIST:
            for start in range(0, len(names), _BLOCK):
                self._take_in(start, names[start : start + _BLOCK])

    def find(self, name: str) -> list[str]:
        """Up to three names that look like this one, nearest first."""
        wanted = _folded(name)
        matcher = SequenceMatcher(None, "", wanted)
        scored = ((_likeness(wanted, _folded(other), matcher), other) for other in self._shortlist(wanted))
        close = sorted((-score, other) for score, other in scored if score >= _NEAR_RATIO)
        return [other for _, other in close[:_NEAR_NAMES]]

    def _take_in(self, start: int, names: Sequence[str]) -> None:
        """Note which letter groups each of some names has."""
        text = "\n".join(names)
        if text.count("\n") >= len(names):
            text = "\n".join(name.replace("\n", " ") for name in names)
        letters = _letters(text)
        ends = np.flatnonzero(letters[1:] == _END) + 1
        self._lengths[start : start + len(names)] = np.diff(ends, prepend=0) - 1
        owners = np.repeat(np.arange(len(names)), np.diff(ends, prepend=0))[: len(letters) - 2]
        has = np.zeros((_PLANES, -(-len(names) // 8) * 8), bool)
        has[_numbers(letters), owners] = True
        self._planes[:, start // 8 : start // 8 + has.shape[1] // 8] = np.packbits(has, axis=1)

    def _shortlist(self, wanted: str) -> Sequence[str]:
        """The names that share most letter groups with the wanted one, those of a similar length first."""
        if len(self._names) <= _SHORTLIST or not wanted:
            return self._names[:_SHORTLIST]
        letters = _letters(wanted.replace("\n", " "))
        shared = np.zeros(len(self._names), np.uint8)
        for number in _some(np.unique(_numbers(letters))):
            shared += np.unpackbits(self._planes[number], count=len(shared))
        at_least = np.cumsum(np.bincount(shared)[::-1])[::-1]  # names that share so many groups or more
        enough = int(np.count_nonzero(at_least >= _LONGLIST)) - 1
        found = np.flatnonzero(shared >= max(enough, 1))
        gaps = np.abs(self._lengths[found] - (len(letters) - 2))
        best = found[np.lexsort((gaps, -shared[found].astype(np.int32)))[:_LONGLIST]]
        return _closest(wanted, [self._names[at] for at in best.tolist()])


def _closest(wanted: str, names: Sequence[str]) -> list[str]:
    """Of some names those that share most letter groups with the wanted one, in the same way."""
    grams, ranked = _grams(wanted), []
    for at, name in enumerate(names):
        other = _folded(name)
        # Two swapped letters in the middle of a short name leave no group as it was.
        shared = len(grams) if _is_one_slip(wanted, other) else sum(gram in other for gram in grams)
        ranked.append((-shared, abs(len(other) - len(wanted)), at))
    return [names[at] for shared, _, at in sorted(ranked)[:_SHORTLIST] if shared]


def near_names(name: str, names: Sequence[str]) -> list[str]:
    """Up to three of the names that look like this one, nearest first."""
    return NearNames(names).find(name)


def _letters(text: str) -> np.ndarray:
    """The bytes of folded names, a line break around each."""
    return np.frombuffer(f"\n{_folded(text)}\n".encode(errors="replace"), np.uint8)


def _numbers(letters: np.ndarray) -> np.ndarray:
    """A number below 256 for each group of three letters."""
    wide = letters.astype(np.uint32)
    mixed: np.ndarray = (
        wide[:-2] * np.uint32(0x9E3779B1)
        ^ wide[1:-1] * np.uint32(0x85EBCA6B)
        ^ wide[2:] * np.uint32(0xC2B2AE35)
    )
    return mixed >> np.uint32(24)


def _some(numbers: np.ndarray) -> Iterable[int]:
    few: list[int] = numbers[:: -(-len(numbers) // _MAX_GRAMS)].tolist()
    return few


def _grams(text: str) -> list[str]:
    size = 3 if len(text) > 4 else 2 if len(text) > 2 else 1
    grams = sorted({text[i : i + size] for i in range(len(text) - size + 1)})
    step = -(-len(grams) // _MAX_GRAMS)
    return grams[::step]


def _likeness(wanted: str, other: str, matcher: SequenceMatcher[str]) -> float:
    """Likeness in 0..1; counts too what the name contains and its last words, as in concept_city_berlin."""
    if len(wanted) > 2 and wanted in other:
        return 0.8 + 0.2 * len(wanted) / len(other)
    if _is_one_slip(wanted, other):
        return 1 - 0.5 / len(wanted)
    last_words = " ".join(other.split()[-len(wanted.split()) :])
    return max(_ratio(matcher, other), 0.9 * _ratio(matcher, last_words))


def _is_one_slip(wanted: str, other: str) -> bool:
    """Whether one letter was left out, added or changed, or two neighbours swapped, which a matcher counts as two."""
    if len(wanted) <= 2 or abs(len(wanted) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(wanted, other, strict=False)) if a != b), -1)
    if start < 0:
        return True
    a, b = wanted[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:])


def _ratio(matcher: SequenceMatcher[str], other: str) -> float:
    """Likeness of the wanted name and another; 0 where a quick look says that it is not near."""
    matcher.set_seq1(other)
    if matcher.real_quick_ratio() < _NEAR_RATIO or matcher.quick_ratio() < _NEAR_RATIO:
        return 0.0
    return matcher.ratio()


def _folded(name: str) -> str:
    return name.lower().replace("_", " ")
