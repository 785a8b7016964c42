"""Finding entities by what a person types: the beginning or any part of a name or label, the best connected first."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.serve.folding import folded, folded_text
from dpmpn.serve.grams import GramMap

Match = Literal["exact", "prefix", "inside"]

_APART = 0xFF  # after each text: no byte of UTF-8, so that no needle reaches from one text into the next
_STRETCH = 1024  # texts of the alphabet whose best is known


class Found(NamedTuple):
    """An entity and how its name or label fits what was typed."""

    entity: int
    match: Match


class EntityIndex:
    """Names and labels as one block of folded bytes, in the order of falling degree, and their alphabetical order.

    Memory: about 2.3 bytes a byte of names and labels and 16 bytes for each name or label; a label that reads like
    the name is not kept twice.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        texts, self._owners = _texts(graph)  # int32, texts: whose text it is
        self._starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(texts.str.len_bytes().to_numpy() + np.int64(1), out=self._starts[1:])
        block = np.frombuffer(("\n".join(texts.to_list()) + "\n").encode(), np.uint8).copy()
        block[self._starts[1:] - 1] = _APART
        self._grams = GramMap(block)
        self._block = block.tobytes()
        # Polars compares texts by their bytes.
        self._alphabet = texts.arg_sort().to_numpy().astype(np.int32)
        stretches = np.arange(0, len(texts), _STRETCH)
        self._best = np.minimum.reduceat(self._alphabet, stretches) if len(texts) else self._alphabet
        self._longest = int(np.diff(self._starts).max(initial=1)) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        arrays = (self._owners, self._starts, self._alphabet, self._best)
        return len(self._block) + self._grams.nbytes + sum(array.nbytes for array in arrays)

    def search(self, text: str, limit: int = 10) -> list[Found]:
        """Entities whose name or label is the text, begins with it or has it inside, in this order, each once.

        Case, accents, blanks around the text and the difference of underscore and space do not matter; the better
        connected come first within each kind. An empty text gives the best connected entities.
        """
        needle = _needle(text)
        if needle is None or len(needle) > self._longest or limit < 1:
            return []
        found: dict[int, Match] = {}
        for match, texts in self._matches(needle, limit):
            for owner in self._owners[texts].tolist() if isinstance(texts, np.ndarray) else texts:
                found.setdefault(owner, match)
                if len(found) == limit:
                    return [*map(Found, found, found.values())]
        return [*map(Found, found, found.values())]

    def _matches(self, needle: bytes, limit: int) -> Iterator[tuple[Match, np.ndarray | Iterable[int]]]:
        """Texts or their owners for each kind of match, as many as can matter, the best connected first."""
        enough = 2 * limit  # an entity has two texts at most
        if not needle:
            yield "prefix", np.arange(min(enough, len(self._owners)))
            return
        order, size = self._alphabet, len(needle)
        low = bisect_left(order, needle, key=self._text)
        end = bisect_right(order, needle, lo=low, key=self._text)
        yield "exact", self._first_texts(low, end, enough)
        high = bisect_right(order, needle, lo=end, key=lambda text: self._text(text)[:size])
        yield "prefix", self._first_texts(end, high, enough)
        yield "inside", self._inside(needle)

    def _first_texts(self, low: int, high: int, count: int) -> np.ndarray:
        """The first texts among those from low to high in the alphabet, ascending."""
        texts = self._alphabet[low:high]
        first, last = -(-low // _STRETCH), high // _STRETCH
        if last - first > count:
            # Each of the first texts is in one of as many stretches that have the smallest first ones.
            best = first + np.argpartition(self._best[first:last], count)[:count]
            inner = self._alphabet[(best[:, None] * _STRETCH + np.arange(_STRETCH)).ravel()]
            outer = (self._alphabet[low : first * _STRETCH], self._alphabet[last * _STRETCH : high])
            texts = np.concatenate([inner, *outer])
        if len(texts) > count:
            texts = np.partition(texts, count)[:count]
        return np.sort(texts)

    def _inside(self, needle: bytes) -> Iterator[int]:
        """Owners of the texts that have the needle in them, in their order."""
        for at, end in self._grams.spans(needle):
            while (hit := self._block.find(needle, at, end + len(needle) - 1)) >= 0:
                text = int(np.searchsorted(self._starts, hit, side="right")) - 1
                yield int(self._owners[text])
                at = int(self._starts[text + 1])

    def _text(self, text: int) -> bytes:
        return self._block[self._starts[text] : self._starts[text + 1] - 1]


def _needle(text: str) -> bytes | None:
    try:
        return folded_text(text).encode()
    except UnicodeEncodeError:  # half a character, which no name has
        return None


def _texts(graph: KnowledgeGraph) -> tuple[pl.Series, np.ndarray]:
    """Folded names and labels, those of better connected entities first, and whose they are."""
    entities = np.argsort(-_degrees(graph), kind="stable").astype(np.int32)
    columns = {"name": folded(pl.Series(list(graph.entities.packed), dtype=pl.String))}
    if graph.entities.labels is not None:
        columns["label"] = folded(graph.entities.labels.name)
    ordered = pl.DataFrame({kind: texts.gather(entities) for kind, texts in columns.items()})
    if "label" in columns:
        ordered = ordered.with_columns(label=pl.when(pl.col("label") != pl.col("name")).then("label"))
    texts = ordered.with_columns(owner=pl.Series(entities, dtype=pl.Int32)).select(
        "owner", text=pl.concat_list(*columns)
    )
    texts = texts.explode("text").drop_nulls("text")
    return texts["text"], texts["owner"].to_numpy()


def _degrees(graph: KnowledgeGraph) -> np.ndarray:
    """Out-edges of each entity, and the in-edges whose inverse is not stored."""
    degrees = np.diff(graph.offsets)
    if (graph.inverse < 0).any():
        alone = (graph.inverse < 0)[graph.relations]
        degrees = degrees + np.bincount(graph.tails[alone], minlength=graph.n_entities)
    return degrees
