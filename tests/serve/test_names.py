"""Entities are found as a look through all names and labels finds them, and names in requests by their labels."""

import asyncio
import time
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.serve.bodies import AskedQuestion
from dpmpn.serve.names import EntitySearch, Found, Naming, folded, folded_text
from dpmpn.serve.problems import Problem
from dpmpn.serve.queues import Ids, WorkQueue
from dpmpn.serve.status import Metrics

TEXT = st.text("aAbB_ éÉßsΣσςı한中🙂\x00\n'\u0301\u200b", min_size=1, max_size=6)
NEEDLE = TEXT | st.text(max_size=8) | st.sampled_from(["", " ", "\ud800", "a" * 5000, "\u0301"])


LABELS = {"id": ["q1", "q2", "q3", "r1"], "name": ["Bank", "bank", "River", "lies at"]}


@st.composite
def labelled_graphs(draw: Callable) -> KnowledgeGraph:
    """Graphs of a few entities with odd names; labels are often those of others, or their names."""
    names = sorted(draw(st.sets(TEXT, min_size=1, max_size=8)))
    entity = st.integers(0, len(names) - 1)
    facts = draw(st.lists(st.tuples(entity, st.just(0), entity), max_size=12))
    triples = np.array(facts, np.int64).reshape(-1, 3)
    graph = KnowledgeGraph.from_ids(triples, names, 1, add_inverses=draw(st.booleans()))
    labels = draw(
        st.lists(st.none() | TEXT | st.sampled_from(names), min_size=len(names), max_size=len(names))
    )
    return _labelled(graph, labels)


def _labelled(graph: KnowledgeGraph, labels: list[str | None]) -> KnowledgeGraph:
    nothing = [None] * len(labels)
    frame = {"id": graph.entities.names, "name": labels, "description": nothing, "type": nothing}
    return graph.labelled(pl.DataFrame(frame, dict.fromkeys(frame, pl.String)))


def _slowly(graph: KnowledgeGraph, text: str, limit: int) -> list[Found]:
    """The same search, one entity after the other."""
    if "\ud800" in text:
        return []
    needle = folded_text(text)
    degree = np.diff(graph.offsets)
    if graph.inverse[0] < 0:
        degree = degree + np.bincount(graph.tails, minlength=graph.n_entities)
    kinds: dict[str, list[int]] = {"exact": [], "prefix": [], "inside": []}
    for entity in sorted(range(graph.n_entities), key=lambda entity: (-degree[entity], entity)):
        label = graph.entities.labels["name"][entity] if graph.entities.labels is not None else None
        texts = [folded_text(text) for text in (graph.entities.name(entity), label) if text is not None]
        if needle and needle in texts:
            kinds["exact"].append(entity)
        elif any(text.startswith(needle) for text in texts):
            kinds["prefix"].append(entity)
        elif any(needle in text for text in texts):
            kinds["inside"].append(entity)
    return [Found(entity, kind) for kind, found in kinds.items() for entity in found][:limit]


@settings(max_examples=40)
@given(labelled_graphs(), st.lists(NEEDLE, min_size=1, max_size=8), st.integers(1, 10))
def test_search_finds_what_a_look_through_all_finds(
    graph: KnowledgeGraph, needles: list[str], limit: int
) -> None:
    index = EntitySearch(graph)
    for text in needles:
        assert index.search(text, limit) == _slowly(graph, text, limit)


@settings(max_examples=40)
@given(labelled_graphs(), st.data())
def test_parts_of_names_and_labels_are_found(graph: KnowledgeGraph, data: st.DataObject) -> None:
    index = EntitySearch(graph)
    for entity in range(graph.n_entities):
        whole = folded_text(
            data.draw(st.sampled_from([graph.entities.name(entity), graph.entities.label(entity)]))
        )
        start = data.draw(st.integers(0, len(whole)))
        part = whole[start : data.draw(st.integers(start, len(whole)))]
        found = index.search(part, graph.n_entities)
        assert found == _slowly(graph, part, graph.n_entities)
        assert entity in [hit.entity for hit in found]


def test_an_entity_whose_name_and_label_both_fit_leaves_room_for_others() -> None:
    graph = KnowledgeGraph.from_tuples([("xa1", "r", "xb2"), ("xa1", "r", "xc3"), ("xb2", "r", "xd4")])
    prefixes = [Found(0, "prefix"), Found(1, "prefix")]
    assert EntitySearch(_labelled(graph, ["X one", "X two", "X three", "X 4"])).search("x", 2) == prefixes
    exact = EntitySearch(_labelled(graph, ["X one", "X two", "X three", "X"])).search("x", 3)
    assert exact == [Found(3, "exact"), *prefixes]


def test_a_needle_does_not_reach_from_one_text_into_the_next() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("a", "r", "long name")])
    assert EntitySearch(graph).search("a\nb") == EntitySearch(graph).search("\xff") == []


@pytest.mark.parametrize("before", range(6))
def test_long_names_are_searched_to_their_end(before: int) -> None:
    names = ["x" * (4096 - before) + "zebra", "y" * 3 * 4096 + "end"]
    index = EntitySearch(KnowledgeGraph.from_ids(np.array([[0, 0, 0]]), names, 1))
    assert index.search("zebra") == index.search("xzeb") == [Found(0, "inside")]
    assert index.search("yend") == index.search("y" * 2 * 4096 + "e") == [Found(1, "inside")]
    assert index.search(names[1]) == [Found(1, "exact")]
    started = time.process_time()
    assert index.search("y" * 4096 + "x") == []
    assert time.process_time() - started < 0.1  # measured: 1 ms


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("École", "ecole"),
        ("ŁÓDŹ", "lodz"),
        ("Straße", "strasse"),
        ("ΟΔΟΣ", "οδοσ"),
        ("İstanbul", "istanbul"),
        ("ﬁn", "fin"),
        ("_also_see", "also see"),
        ("हिन्दी", "हिन्दी"),
        ("  a\tb \n", "a\tb"),
        ("\x1fa", "\x1fa"),
    ],
)
def test_case_accents_and_underscores_do_not_matter(text: str, plain: str) -> None:
    assert folded_text(text) == plain


@given(st.lists(st.text(max_size=5) | st.none(), max_size=5))
def test_a_column_is_folded_as_its_texts_are(texts: list[str | None]) -> None:
    alone = [text if text is None else folded_text(text) for text in texts]
    assert folded(pl.Series(texts, dtype=pl.String)).to_list() == alone


def test_the_better_connected_of_many_come_first() -> None:
    # Far more prefixes than are looked at one by one; the best connected are anywhere in the alphabet.
    rng = np.random.default_rng(0)
    names = sorted(f"{'ab'[i % 2]}{i:05}" for i in range(40_000))
    triples = np.stack([(40_000 * rng.random(60_000) ** 4).astype(int), np.zeros(60_000, int)] * 2, 1)[:, :3]
    triples[:, 0] = rng.permutation(40_000)[triples[:, 0]]
    graph = KnowledgeGraph.from_ids(triples, names, 1)
    index, degree = EntitySearch(graph), np.diff(graph.offsets)
    for prefix in ("a", "b", "b1"):
        among = [i for i, name in enumerate(names) if name.startswith(prefix)]
        best = sorted(among, key=lambda i: (-degree[i], i))[:3]
        assert index.search(prefix, 3) == [Found(i, "prefix") for i in best]


def test_many_with_the_same_label_are_told_by_their_degree() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", f"x{i}") for i in range(30)] + [("x7", "r", "x9")])
    graph = _labelled(graph, ["Same"] * graph.n_entities)
    found = EntitySearch(graph).search("same", 3)
    assert [(graph.entities.name(hit.entity), hit.match) for hit in found] == [
        ("a", "exact"), ("x7", "exact"), ("x9", "exact"),
    ]  # fmt: skip


def test_a_graph_without_entities_has_nothing_to_find() -> None:
    index = EntitySearch(KnowledgeGraph.from_ids(np.empty((0, 3), np.int64), 0, 1))
    assert index.search("") == index.search("a") == []


def test_any_needle_is_quick_and_memory_is_in_proportion() -> None:
    n_entities = 100_000
    rng = np.random.default_rng(0)
    labels = pl.Series(["".join(row) for row in rng.choice(list("aeinrst "), (n_entities, 16))])
    graph = KnowledgeGraph.from_ids(rng.integers(0, 1, (10, 3)), n_entities, 1)
    index = EntitySearch(_labelled(graph, labels.to_list()))
    texts = int(graph.entities.packed.offsets[-1]) + n_entities * 17
    assert index.nbytes < 2.3 * texts + 2 * 16 * n_entities + 100_000
    for needle in ("a", "zq", "~", "999", "ananananan", "e" * 50, "tin tin tin", "", "\x00", "é"):
        started = time.process_time()
        index.search(needle)
        assert time.process_time() - started < 0.05, needle  # measured: 5 ms


@pytest.fixture
def queue() -> Iterator[WorkQueue]:
    queue = WorkQueue("lookups", 1, 5, Metrics())
    yield queue
    queue.close()


def banks(add_inverses: bool = True) -> KnowledgeGraph:
    facts = [("q1", "r1", "q3"), ("q2", "r1", "q3")]
    frame = pl.DataFrame({**LABELS, "description": ["a slope", "a house", None, None], "type": [None] * 4})
    return KnowledgeGraph.from_tuples(facts, add_inverses).labelled(
        frame.with_columns(pl.col("type").cast(pl.String))
    )


def found(naming: Naming, head: str, relation: str, inverse: bool = False) -> Ids:
    return asyncio.run(naming.question(AskedQuestion(head=head, relation=relation, inverse=inverse)))


def test_labels_in_any_case_and_the_inverse(queue: WorkQueue) -> None:
    naming = Naming(banks(), queue)
    assert found(naming, "river", "LIES AT") == found(naming, "q3", "r1") == (2, 0, False)
    assert found(naming, "q3", "r1", inverse=True) == (2, 1, True)
    assert found(naming, "Bank", "r1")[0] == 0  # written exactly so, only one has it


@pytest.mark.parametrize(
    ("head", "relation", "code", "near"),
    [
        ("BANK", "r1", "ambiguous_name", ["q1", "q2"]),
        ("rivver", "r1", "unknown_entity", ["River"]),
        ("q1", "lies on", "unknown_relation", ["lies at"]),
    ],
)
def test_what_is_wrong_with_a_name(
    queue: WorkQueue, head: str, relation: str, code: str, near: list[str]
) -> None:
    with pytest.raises(Problem) as refused:
        found(Naming(banks(), queue), head, relation)
    assert refused.value.code == code and refused.value.near == near


def test_swapped_head_and_relation_are_noticed(queue: WorkQueue) -> None:
    with pytest.raises(
        Problem, match="'lies at' is a relation and 'River' an entity; swap head and relation"
    ):
        found(Naming(banks(), queue), "lies at", "River")


def test_a_relation_without_an_inverse(queue: WorkQueue) -> None:
    with pytest.raises(Problem) as refused:
        found(Naming(banks(add_inverses=False), queue), "q3", "r1", inverse=True)
    assert refused.value.code == "no_inverse" and refused.value.status == 400


def test_many_unknown_names_are_searched_for_only_a_few_times(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    plain = Vocabulary.near

    def near(names: Vocabulary, name: str, among: int | None = None) -> list[str]:
        searched.append(name)
        return plain(names, name, among)

    monkeypatch.setattr(Vocabulary, "near", near)
    heads = ["rivver", "q1", "rivver", *(f"riverr{i}" for i in range(20)), "BANK"]
    asked = [AskedQuestion(head=head, relation="r1") for head in heads]
    asked += [
        AskedQuestion(head="q1", relation="lies on"),
        AskedQuestion(head="q3", relation="r1", inverse=True),
    ]
    found = asyncio.run(Naming(banks(), queue).questions(asked))
    assert searched == ["rivver", "riverr0", "riverr1"]
    assert found[1] == (0, 0, False) and found[-1] == (2, 1, True)
    told = [(each.code, each.near) for each in found if isinstance(each, Problem)]
    assert told[0] == told[1] == ("unknown_entity", ["River"]) and told[4] == ("unknown_entity", [])
    assert told[-2:] == [("ambiguous_name", []), ("unknown_relation", [])]


def test_near_names_of_a_very_long_one_are_not_searched_for(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Vocabulary, "near", lambda *_: pytest.fail("searched"))
    with pytest.raises(Problem) as refused:
        found(Naming(banks(), queue), "x" * 4000, "r1")
    assert refused.value.code == "unknown_entity" and "/api/v1/entities" in str(refused.value)
