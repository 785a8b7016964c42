"""What can be expected of a model that has never seen a graph: where the graph says too little, a sentence says so."""

from functools import cached_property

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.wording import counted, one_line, percent

FEW_FACTS = 5
"""With fewer facts of a relation nobody can tell what it follows from."""
_FEW_SHARED = 0.05  # of the facts: below it, hardly any chain of facts leads anywhere


class Expectations:
    """Sentences on what a graph lets a model expect that was not trained on it."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    @cached_property
    def of_graph(self) -> tuple[str, ...]:
        """What holds for every question; nothing of a graph that is rich enough."""
        graph, found = self._graph, []
        if np.count_nonzero(self._n_facts[: graph.n_forward]) == 1:
            only = one_line(graph.relation_names.label(int(self._n_facts[: graph.n_forward].argmax())))
            found.append(
                f"this graph has only one relation, '{only}', so nothing else can support its facts: expect no more "
                "than patterns that its own facts repeat"
            )
        shared = self._share_with_others()
        if shared < _FEW_SHARED:
            facts = (
                f"only {percent(shared)} of the facts share" if shared else "no two facts of this graph share"
            )
            found.append(
                f"{facts} an entity, so chains of facts lead nowhere: expect the most frequent answers, whatever the "
                "question is about"
            )
        return tuple(found)

    def of_question(self, relation: int) -> tuple[str, ...]:
        """What holds for a question of a relation, which may be an inverse."""
        count = int(self._n_facts[relation])
        if count >= FEW_FACTS:
            return self.of_graph
        graph = self._graph
        asked = int(graph.inverse[relation]) if graph.is_inverse[relation] else relation
        facts = counted(count, "fact") if count else "no facts"
        few = (
            f"'{one_line(graph.relation_names.label(asked))}' has {facts} in this graph, too few to tell what it "
            "follows from: treat the answers as guesses, whatever their probabilities"
        )
        return (*self.of_graph, few)

    @cached_property
    def few(self) -> tuple[str, ...]:
        """The relations of the file that have facts, but too few."""
        counts = self._n_facts[: self._graph.n_forward]
        names = self._graph.relation_names
        return tuple(names.label(int(r)) for r in np.flatnonzero((counts > 0) & (counts < FEW_FACTS)))

    @cached_property
    def _n_facts(self) -> np.ndarray:
        """Number of facts of each relation; int64, n_relations."""
        return np.bincount(self._graph.relations, minlength=self._graph.n_relations)

    def _share_with_others(self) -> float:
        """The share of the facts that have an entity with another fact."""
        graph = self._graph
        stated = graph.relations < graph.n_forward  # the rest are added inverses
        heads, tails = graph.all_heads()[stated], graph.tails[stated]
        counts = np.bincount(heads, minlength=graph.n_entities)
        counts += np.bincount(tails[heads != tails], minlength=graph.n_entities)
        return float(np.mean((counts[heads] > 1) | (counts[tails] > 1))) if len(heads) else 0.0
