"""Made-up graphs: families with planted rules, to judge explanations by, and power-law graphs, to measure cost by."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import DataError

Fact = tuple[str, str, str]  # head, relation and tail
RULES: dict[str, tuple[str, ...]] = {
    "grandparent_of": ("parent_of", "parent_of"),
    "uncle_of": ("brother_of", "parent_of"),
    "learnt_in": ("apprenticed_to", "works_at", "located_in"),
}
"""The relation each rule derives, and the chain of stated relations that it follows from."""
DISTRACTORS = ("friend_of", "works_with", "married_to", "lives_in")
"""Relations that stand in no rule."""
_WOMEN = ("Ada", "Clara", "Edith", "Flora", "Greta", "Ida", "Judith", "Lena", "Maria", "Nora", "Rosa", "Vera")
_MEN = ("Albert", "Bruno", "Carl", "David", "Emil", "Felix", "Hugo", "Jonas", "Leo", "Max", "Oscar", "Paul")
_GENERATIONS = 4
_CHILDREN = (4, 5)  # of a couple
_OF_BOTH = 0.1  # of them; the others are of one of the two, so that marriage proves no parent
_BROTHERS_STATED = 0.6  # so that common parents prove no brother
_HELD_OUT = {"valid": 0.1, "test": 0.2}  # of the facts of each rule
EXPONENT = 2.2
MAX_DEGREE = 2_000
N_RELATIONS = 20
TRIPLES_PER_ENTITY = 5
_N_HELD_OUT = 2_000


@dataclass(frozen=True, eq=False)
class PlantedRules:
    """Stated facts, the facts that the rules derive from them, and what proves each of these."""

    stated: tuple[Fact, ...]
    proofs: Mapping[Fact, tuple[frozenset[Fact], ...]]  # every set of stated facts that proves a derived one
    splits: Mapping[str, tuple[Fact, ...]]  # the derived facts of train, valid and test
    name: str = "families"

    def dataset(self, derived_in_graph: bool = False) -> Dataset:
        """The graph of the stated facts, and the derived ones as the questions that are asked on it.

        Derived facts are no edges, so they are no shortcuts, and no other chain of up to four facts is sure: where a
        question has an answer, the best ones, which lead over brothers and sisters, are right three times in four.
        With `derived_in_graph` it is an ordinary dataset: derived facts of train are edges, so that a sister's
        grandparent is one more reason, and all facts are asked for in training.
        """
        train, valid, test = (self.splits[split] for split in SPLITS)
        whole = dataset_from_tuples([*self.stated, *train], valid, test, self.name)
        if derived_in_graph:
            return whole
        names = whole.graph.relation_names.names[: whole.graph.n_forward]
        stated, derived = np.split(whole.train, [len(self.stated)])
        return replace(
            whole, graph=KnowledgeGraph.from_ids(stated, whole.graph.entities, names), train=derived
        )

    def judge(self, fact: Fact, found: Collection[Fact]) -> tuple[float, float]:
        """Precision and recall of facts given as the reasons of a derived one.

        What stands in any proof is right; recall is that of the proof that was found best.
        """
        proofs, given = self.proofs[fact], frozenset(found)
        right = given & frozenset().union(*proofs)
        recall = max(len(proof & given) / len(proof) for proof in proofs)
        return len(right) / len(given) if given else 0.0, recall

    def right_share(self, fact: Fact, found: Mapping[Fact, float]) -> float:
        """Precision of reasons that count by their shares."""
        right = frozenset().union(*self.proofs[fact])
        total = sum(found.values())
        return sum(share for key, share in found.items() if key in right) / total if total else 0.0


def family_graph(n_families: int = 40, seed: int = 0) -> PlantedRules:
    """Families that marry into one another for four generations, their trades and towns, and what the rules derive.

    A family begins with a couple; a seed makes the same again.
    """
    if n_families < 2:
        raise DataError(
            f"nobody could marry into another family with {n_families}; ask for at least 2 families"
        )
    world = _World(np.random.default_rng(seed), [[] for _ in range(n_families)])
    world.add_generations()
    world.add_trades()
    world.add_distractors()
    stated = tuple(world.facts)
    proofs = {fact: sets for rule in RULES for fact, sets in proofs_of(rule, stated).items()}
    return PlantedRules(stated, proofs, _parted(proofs, world.rng), f"families-{n_families}-{seed}")


def proofs_of(rule: str, stated: Iterable[Fact]) -> dict[Fact, tuple[frozenset[Fact], ...]]:
    """All facts that a rule derives from stated ones, each with the chains that prove it."""
    edges: dict[tuple[str, str], list[str]] = defaultdict(list)
    for head, relation, tail in stated:
        edges[head, relation].append(tail)
    first, *rest = RULES[rule]
    chains: list[tuple[Fact, ...]] = [
        ((head, first, tail),)
        for (head, relation), tails in edges.items()
        if relation == first
        for tail in tails
    ]
    for relation in rest:
        chains = [
            (*chain, (chain[-1][2], relation, tail))
            for chain in chains
            for tail in edges[chain[-1][2], relation]
        ]
    proofs: dict[Fact, list[frozenset[Fact]]] = defaultdict(list)
    for chain in chains:
        proofs[chain[0][0], rule, chain[-1][2]].append(frozenset(chain))
    return {fact: tuple(sets) for fact, sets in proofs.items() if fact[0] != fact[2]}


def _parted(derived: Iterable[Fact], rng: np.random.Generator) -> dict[str, tuple[Fact, ...]]:
    """Part the facts of each rule between the splits."""
    parts: dict[str, list[Fact]] = {split: [] for split in SPLITS}
    by_rule: dict[str, list[Fact]] = defaultdict(list)
    for fact in derived:
        by_rule[fact[1]].append(fact)
    for facts in by_rule.values():
        order = [facts[i] for i in rng.permutation(len(facts))]
        for split, share in _HELD_OUT.items():
            count = round(share * len(facts))
            parts[split] += order[:count]
            order = order[count:]
        parts["train"] += order
    return {split: tuple(facts) for split, facts in parts.items()}


@dataclass(eq=False)
class _World:
    """People, places and the facts stated of them, as they are drawn."""

    rng: np.random.Generator
    families: list[list[str]]  # who was born into each
    facts: dict[Fact, None] = field(default_factory=dict)  # in order, each once
    people: list[str] = field(default_factory=list)
    family_of: dict[str, int] = field(default_factory=dict)

    def state(self, head: str, relation: str, tail: str) -> None:
        if head != tail:
            self.facts[head, relation, tail] = None

    def add_generations(self) -> None:
        """Founding couples, their children, and so on; both of a later couple have parents and may have brothers."""
        couples = [(self._person(i, man=True), self._person(i, man=False)) for i in range(len(self.families))]
        for _ in range(_GENERATIONS - 1):
            couples = self._couples([child for couple in couples for child in self._children(*couple)])

    def add_trades(self) -> None:
        """Masters, workshops and where they are; half of the masters and a third of the workshops lead nowhere."""
        n = len(self.people)
        masters = self._some(self.people, n // 3)
        workshops = [f"Workshop {i}" for i in range(n // 6)]
        for master in masters[::2]:
            self.state(master, "works_at", self._any(workshops))
        for at, workshop in enumerate(workshops):
            if at % 3:
                self.state(workshop, "located_in", self._any(self._towns))
        for person in self.people:
            for master in self._some(masters, 2):
                self.state(person, "apprenticed_to", master)

    def add_distractors(self) -> None:
        """Friends, half of them in the family, colleagues and homes."""
        for family in self.families:
            for person in family:
                self.state(person, "friend_of", self._any(family))
                self.state(person, "friend_of", self._any(self.people))
                self.state(person, "works_with", self._any(family))
                self.state(person, "works_with", self._any(self.people))
                self.state(person, "lives_in", self._any(self._towns))

    @property
    def _towns(self) -> list[str]:
        return [f"Town {i}" for i in range(max(len(self.people) // 4, 2))]

    def _couples(self, generation: list[str]) -> list[tuple[str, str]]:
        """Men and women of one generation at random; two of one family stay single."""
        people = self._some(generation, len(generation))
        men, women = ([person for person in people if _is_man(person) == man] for man in (True, False))
        pairs = zip(men, women, strict=False)
        return [(man, woman) for man, woman in pairs if self.family_of[man] != self.family_of[woman]]

    def _children(self, man: str, woman: str) -> list[str]:
        couple = self._some((man, woman), 2)
        self.state(couple[0], "married_to", couple[1])
        children = [self._person(self.family_of[man]) for _ in range(self._any(_CHILDREN))]
        for child in children:
            for parent in couple if self.rng.random() < _OF_BOTH else [self._any(couple)]:
                self.state(parent, "parent_of", child)
        for brother in filter(_is_man, children):
            for other in children:
                if self.rng.random() < _BROTHERS_STATED:
                    self.state(brother, "brother_of", other)
        return children

    def _person(self, family: int, man: bool | None = None) -> str:
        man = bool(self.rng.random() < 0.5) if man is None else man
        person = f"{self._any(_MEN if man else _WOMEN)} {len(self.people)}"
        self.people.append(person)
        self.families[family].append(person)
        self.family_of[person] = family
        return person

    def _any(self, among: Sequence[Any]) -> Any:
        return among[int(self.rng.integers(len(among)))]

    def _some(self, among: Sequence[str], count: int) -> list[str]:
        return [among[i] for i in self.rng.permutation(len(among))[:count]]


def _is_man(person: str) -> bool:
    return person.split()[0] in _MEN


def power_law_dataset(n_edges: int, seed: int = 0) -> Dataset:
    """A data set whose graph has about `n_edges` edges, inverses included.

    Both ends of a triple are drawn with weights from the same truncated power law whatever the size, so that what a
    query meets around its head does not depend on how large the graph is.
    """
    rng = np.random.default_rng(seed)
    n_triples = n_edges // 2
    n_entities = max(2, n_triples // TRIPLES_PER_ENTITY)
    weights = np.minimum((1 - rng.random(n_entities)) ** (-1 / (EXPONENT - 1)), MAX_DEGREE)
    bounds = np.cumsum(weights)
    ends = np.searchsorted(bounds, rng.random((2, n_triples)) * bounds[-1])
    relations = rng.integers(0, N_RELATIONS, n_triples)
    triples = np.unique(np.stack([ends[0], relations, ends[1]], 1).astype(np.int32), axis=0)
    triples = triples[rng.permutation(len(triples))]
    held_out, train = triples[:_N_HELD_OUT], triples[_N_HELD_OUT:]
    graph = KnowledgeGraph.from_ids(train, n_entities, N_RELATIONS)
    half = len(held_out) // 2
    return Dataset(
        f"synthetic-{n_edges}", graph, train, held_out[:half], held_out[half:], both_directions=True
    )
