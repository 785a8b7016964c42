"""What can be looked up without asking: entities, their facts, and relations to ask."""

from typing import Any

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.labels import TYPES_APART
from dpmpn.serve.facts import count_facts, facts_of
from dpmpn.serve.related import relations_for
from dpmpn.serve.search import EntityIndex


class Lookups:
    """Reads the graph for people."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph, self._index = graph, EntityIndex(graph)
        relations_for(graph)  # collects what later calls look up

    def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Entities whose name or label has the text in it."""
        return [
            {
                **self._entity(found.entity),
                "description": self._graph.entities.describe(found.entity),
                "facts": count_facts(self._graph, found.entity),
                "match": found.match,
            }
            for found in self._index.search(text, limit)
        ]

    def entity(self, entity: int, limit: int, offset: int) -> dict[str, Any]:
        """An entity and some of its facts."""
        facts, total = facts_of(self._graph, entity, limit, offset)
        types = self._graph.entities.types
        return {
            **self._entity(entity),
            "description": self._graph.entities.describe(entity),
            "types": (types[entity] or "").split(TYPES_APART) if types is not None and types[entity] else [],
            "facts": [
                {
                    "head": self._entity(fact.head),
                    "relation": self._relation(fact.relation),
                    "tail": self._entity(fact.tail),
                }
                for fact in facts
            ],
            "total": total,
        }

    def relations(self, head: int | None) -> list[dict[str, Any]]:
        """The questions that can be asked, the most fitting first."""
        return [
            {
                **self._relation(each.relation),
                "inverse": each.inverse,
                "used": each.used,
                "count": each.count,
            }
            for each in relations_for(self._graph, head)
        ]

    def _entity(self, entity: int) -> dict[str, str]:
        names = self._graph.entities
        return {"name": names.name(entity), "label": names.label(entity)}

    def _relation(self, relation: int) -> dict[str, str]:
        names = self._graph.relation_names
        return {"name": names.name(relation), "label": names.label(relation)}
