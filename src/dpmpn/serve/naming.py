"""Names and labels in requests as ids of the graph, or the problem with them."""

from collections.abc import Sequence

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName
from dpmpn.serve.asking import Ids
from dpmpn.serve.bodies import AskedQuestion, ExplanationQuery
from dpmpn.serve.desk import Desk
from dpmpn.serve.problems import Problem

_NEAR_LETTERS = 200  # of a name for which near ones are looked for
_SEARCHES = 3  # for near names, of all questions of one request: each goes through the whole graph


class Naming:
    """Looks names up; those that are not found take longer, as near ones are looked for."""

    def __init__(self, graph: KnowledgeGraph, lookups: Desk) -> None:
        self._graph, self._lookups = graph, lookups
        self._names = {"entity": graph.entities, "relation": graph.relation_names}
        for vocabulary in self._names.values():
            vocabulary.find("")  # makes what a name is looked up in

    async def entity(self, name: str) -> int:
        """Id of an entity."""
        return await self._id("entity", name)

    async def question(self, asked: AskedQuestion | ExplanationQuery) -> Ids:
        """A question as ids."""
        return self._ids(
            asked, await self._id("entity", asked.head), await self._id("relation", asked.relation)
        )

    async def questions(self, asked: Sequence[AskedQuestion]) -> list[Ids | Problem]:
        """Each question as ids, or what is wrong with it; only the first unknown names are told near ones."""
        names = dict.fromkeys(
            pair for each in asked for pair in (("entity", each.head), ("relation", each.relation))
        )
        found = {(kind, name): self._names[kind].find(name) for kind, name in names}
        missing = [pair for pair, id in found.items() if id < 0]
        problems = await self._lookups.do(self._problems, missing) if missing else {}
        return [self._ids_or_problem(each, found, problems) for each in asked]

    async def _id(self, kind: str, name: str) -> int:
        found = self._names[kind].find(name)
        if found >= 0:
            return found
        raise await self._lookups.do(self._problem, kind, name, True)

    def _ids_or_problem(
        self,
        asked: AskedQuestion,
        found: dict[tuple[str, str], int],
        problems: dict[tuple[str, str], Problem],
    ) -> Ids | Problem:
        head, relation = ("entity", asked.head), ("relation", asked.relation)
        if problem := problems.get(head) or problems.get(relation):
            return problem
        try:
            return self._ids(asked, found[head], found[relation])
        except Problem as problem:
            return problem

    def _ids(self, asked: AskedQuestion | ExplanationQuery, head: int, relation: int) -> Ids:
        if not asked.inverse:
            return head, relation, False
        inverse = int(self._graph.inverse[relation])
        if inverse < 0:
            raise Problem(
                "no_inverse",
                f"relation '{asked.relation}' has no inverse in this graph; ask it without inverse",
            )
        return head, inverse, True

    def _problems(self, missing: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Problem]:
        """What is wrong with names of which none was found."""
        return {
            (kind, name): self._problem(kind, name, at < _SEARCHES) for at, (kind, name) in enumerate(missing)
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


def _identifiers(names: Vocabulary, label: str) -> list[str]:
    """The first identifiers that have a label."""
    if names.labels is None:
        return []
    folded = names.labels.name.str.to_lowercase() == label.strip().lower()
    return (
        [names.name(id) for id in folded.fill_null(False).arg_true().head(5).to_list()] if len(folded) else []
    )
