"""Names and labels in requests as ids of the graph, or the problem with them."""

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName
from dpmpn.serve.asking import Ids
from dpmpn.serve.bodies import AskedQuestion, ExplanationQuery
from dpmpn.serve.desk import Desk
from dpmpn.serve.problems import Problem


class Naming:
    """Looks names up; those that are not found take longer, as near ones are looked for."""

    def __init__(self, graph: KnowledgeGraph, lookups: Desk) -> None:
        self._graph, self._lookups = graph, lookups
        for vocabulary in (graph.entities, graph.relation_names):
            vocabulary.find("")  # makes what a name is looked up in

    async def entity(self, name: str) -> int:
        """Id of an entity."""
        found = self._graph.entities.find(name)
        return found if found >= 0 else await self._lookups.do(_missing, self._graph.entities, name, "entity")

    async def relation(self, name: str) -> int:
        """Id of a relation."""
        names = self._graph.relation_names
        found = names.find(name)
        if found >= 0:
            return found
        return await self._lookups.do(_missing, names, name, "relation", self._graph.n_forward)

    async def question(self, asked: AskedQuestion | ExplanationQuery) -> Ids:
        """A question as ids."""
        head, relation = await self.entity(asked.head), await self.relation(asked.relation)
        if not asked.inverse:
            return head, relation, False
        inverse = int(self._graph.inverse[relation])
        if inverse < 0:
            raise Problem(
                "no_inverse",
                f"relation '{asked.relation}' has no inverse in this graph; ask it without inverse",
            )
        return head, inverse, True


def _missing(names: Vocabulary, name: str, kind: str, suggested: int | None = None) -> int:
    """Say what is wrong with a name."""
    try:
        return names.id(name, kind, suggested)
    except UnknownName as error:
        advice = "" if error.near else "; search with /api/v1/entities" * (kind == "entity")
        raise Problem(f"unknown_{kind}", str(error) + advice, error.near) from error
    except DataError as error:
        raise Problem("ambiguous_name", str(error), _identifiers(names, name)) from error


def _identifiers(names: Vocabulary, label: str) -> list[str]:
    """The first identifiers that have a label."""
    if names.labels is None:
        return []
    folded = names.labels.name.str.to_lowercase() == label.strip().lower()
    return (
        [names.name(id) for id in folded.fill_null(False).arg_true().head(5).to_list()] if len(folded) else []
    )
