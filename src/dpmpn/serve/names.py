"""Names in requests: entities found by what a person types, and names and labels as ids of the graph."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.names import normal
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName
from dpmpn.serve.bodies import AskedQuestion, Match
from dpmpn.serve.problems import Problem
from dpmpn.serve.queues import Ids, WorkQueue

_Result = TypeVar("_Result")

_ACCENTS = re.compile("[\u0300-\u036f]")  # not all marks: those of other scripts are vowels
_BLANKS = " \t\n\v\f\r\x85\u1680\u2028\u2029"  # those of Unicode that are left after decomposing
_LETTERS = str.maketrans(
    {
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i",
        "ς": "σ",  # which one a capital becomes depends on the letter after it
    }
)  # fmt: skip
_PATTERN = 64  # letters that polars looks for: one of 4096 takes it 0.2 s to prepare
_NEAR_LETTERS = 200  # of a name for which near ones are looked for
_SEARCHES = 3  # for near names, of all questions of one request: each takes as long as a few answers


class Found(NamedTuple):
    """An entity and how its name or label matches what was typed."""

    entity: int
    match: Match


class EntitySearch:
    """Finds entities by the beginning or any part of a name or label, the best connected first.

    A search goes through all names and labels, folded: at most 5 ms of CPU time for 10^5 entities with labels and
    50 ms for 10^6 (benchmarks/search_speed.py). An index of letter groups took 0.2 ms, but three times the memory and
    the time to build, and 140 lines more.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._texts, self._owners = _texts(graph)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self._texts.estimated_size() + self._owners.estimated_size())

    def search(self, text: str, limit: int = 10) -> list[Found]:
        """Entities whose name or label is the text, begins with it or has it inside, in this order, each once.

        Case, accents, blanks around the text and the difference of underscore and space do not matter; the better
        connected come first within each kind. An empty text gives the best connected entities.
        """
        needle = folded_text(text)
        if not _is_utf8(needle):
            return []
        found: dict[int, Match] = {}
        for match, texts in self._matches(needle):
            # An entity has two texts at most, so that these are enough for as many entities as are wanted.
            for owner in self._owners.gather(texts.head(2 * limit)).to_list():
                found.setdefault(owner, match)
            if len(found) >= limit:
                break
        return [*map(Found, found, found.values())][:limit]

    def _matches(self, needle: str) -> Iterator[tuple[Match, pl.Series]]:
        """Texts for each kind of match, the best connected first."""
        begins = self._texts.str.starts_with(needle).arg_true()
        is_whole = self._texts.gather(begins).str.len_bytes() == len(needle.encode())
        if needle:
            yield "exact", begins.filter(is_whole)
            begins = begins.filter(~is_whole)
        yield "prefix", begins
        inside = self._texts.str.contains(needle[:_PATTERN], literal=True).arg_true()
        if len(needle) > _PATTERN:
            has_it = [needle in text for text in self._texts.gather(inside)]
            inside = inside.filter(pl.Series(has_it, dtype=pl.Boolean))
        yield "inside", inside


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:  # half a character, which no name has
        return False


def _texts(graph: KnowledgeGraph) -> tuple[pl.Series, pl.Series]:
    """Folded names and labels, those of better connected entities first, and whose they are.

    A label that reads like the name is not kept twice.
    """
    entities = np.argsort(-_degrees(graph), kind="stable").astype(np.int32)
    columns = {"name": folded(pl.Series(list(graph.entities.packed), dtype=pl.String))}
    if graph.entities.labels is not None:
        columns["label"] = folded(graph.entities.labels["name"])
    ordered = pl.DataFrame({kind: texts.gather(entities) for kind, texts in columns.items()})
    if "label" in columns:
        ordered = ordered.with_columns(label=pl.when(pl.col("label") != pl.col("name")).then("label"))
    texts = ordered.with_columns(owner=pl.Series(entities, dtype=pl.Int32)).select(
        "owner", text=pl.concat_list(*columns)
    )
    texts = texts.explode("text").drop_nulls("text")
    return texts["text"], texts["owner"]


def _degrees(graph: KnowledgeGraph) -> np.ndarray:
    """Out-edges of each entity, and the in-edges whose inverse is not stored."""
    degrees = np.diff(graph.offsets)
    if (graph.inverse < 0).any():
        alone = (graph.inverse < 0)[graph.relations]
        degrees = degrees + np.bincount(graph.tails[alone], minlength=graph.n_entities)
    return degrees


def folded(texts: pl.Series) -> pl.Series:
    """Each text folded; null stays null. 10^6 texts take 0.1 s, and 2 s more if none is ASCII."""
    others = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    plain = texts.str.to_lowercase().str.replace_all("_", " ", literal=True).str.strip_chars(_BLANKS)
    return (
        plain.scatter(others, [folded_text(text) for text in texts.gather(others)]) if len(others) else plain
    )


def folded_text(text: str) -> str:
    """One text folded in the same way; not as a column of one, which waits for threads on a busy machine."""
    if not text.isascii():
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).lower().translate(_LETTERS)
    return text.lower().replace("_", " ").strip(_BLANKS)


class Naming:
    """Looks names up; for those that are not found near ones are looked for, unless too many wait for that already."""

    def __init__(self, graph: KnowledgeGraph, searches: WorkQueue) -> None:
        self._graph, self._searches = graph, searches
        self._names = {"entity": graph.entities, "relation": graph.relation_names}
        for vocabulary in self._names.values():
            vocabulary.find("")  # makes what a name is looked up in

    async def entity(self, name: str) -> int:
        """Id of an entity."""
        pair = ("entity", name)
        return _or_raised((await self._ids([pair]))[pair])

    async def relation(self, name: str, inverse: bool) -> int:
        """Id of a relation as it is asked."""
        pair = ("relation", name)
        return _or_raised(self._as_asked(_or_raised((await self._ids([pair]))[pair]), name, inverse))

    async def question(self, question: AskedQuestion) -> Ids:
        """A question as ids."""
        return _or_raised((await self.questions([question]))[0])

    async def questions(self, questions: Sequence[AskedQuestion]) -> list[Ids | Problem]:
        """Each question as ids, or what is wrong with it; near names are given for the first unknown ones only."""
        ids = await self._ids(
            pair for each in questions for pair in (("entity", each.head), ("relation", each.relation))
        )
        return [
            self._question(each, ids["entity", each.head], ids["relation", each.relation])
            for each in questions
        ]

    async def _ids(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int | Problem]:
        ids: dict[tuple[str, str], int | Problem] = {}
        missing = []
        for kind, name in dict.fromkeys(names):
            ids[kind, name] = id = self._names[kind].find(name)
            if id < 0:
                missing.append((kind, name))
        if missing:
            try:
                ids.update(await self._searches.do(self._problems, missing, _SEARCHES))
            except Problem:  # near names are a courtesy
                ids.update(self._problems(missing, 0))
        return ids

    def _question(
        self, question: AskedQuestion, head: int | Problem, relation: int | Problem
    ) -> Ids | Problem:
        if isinstance(head, Problem):
            if self._graph.are_swapped(question.head, question.relation):
                said = f"'{question.head}' is a relation and '{question.relation}' an entity; swap head and relation"
                return Problem("unknown_entity", said)
            return head
        if isinstance(relation, Problem):
            return relation
        asked = self._as_asked(relation, question.relation, question.inverse)
        return asked if isinstance(asked, Problem) else (head, asked, question.inverse)

    def _as_asked(self, relation: int, name: str, inverse: bool) -> int | Problem:
        """The relation, or its inverse where it is asked backwards."""
        asked = int(self._graph.inverse[relation]) if inverse else relation
        if asked < 0:
            message = f"relation '{name}' has no inverse in this graph; ask it without inverse"
            return Problem("no_inverse", message)
        return asked

    def _problems(self, missing: Sequence[tuple[str, str]], searches: int) -> dict[tuple[str, str], Problem]:
        """What is wrong with names of which none was found."""
        return {
            (kind, name): self._problem(kind, name, at < searches) for at, (kind, name) in enumerate(missing)
        }

    def _problem(self, kind: str, name: str, search: bool) -> Problem:
        """What is wrong with a name, and near ones if they are to be searched for."""
        names = self._names[kind]
        if names.is_ambiguous(name):
            if not search:
                return Problem(
                    "ambiguous_name", f"'{name}' is the label of several; give the identifier of the {kind}"
                )
            try:
                names.id(name, kind)
            except DataError as error:
                return Problem("ambiguous_name", str(error), _identifiers(names, name))
        near = []
        if search and len(name) <= _NEAR_LETTERS:
            near = names.near(name, self._graph.n_forward if kind == "relation" else None)
        advice = "" if near else "; search with /api/v1/entities" * (kind == "entity")
        return Problem(f"unknown_{kind}", str(UnknownName(kind, name, near)) + advice, near)


def _or_raised(result: _Result | Problem) -> _Result:
    if isinstance(result, Problem):
        raise result
    return result


def _identifiers(names: Vocabulary, label: str) -> list[str]:
    """The first identifiers that have a label."""
    if names.labels is None:
        return []
    has_it = names.labels["name"].str.to_lowercase() == normal(label).lower()
    return [names.name(id) for id in has_it.fill_null(False).arg_true().head(5).to_list()]
