"""Two datasets of one: no common entity, the same relations, most neighbourhoods whole, all decided by the seed."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.cli.datasets import inductive
from dpmpn.data.dataset import SPLITS, Dataset, write_dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.data.inductive import InductiveSplit, inductive_split, partition, with_relations_of
from dpmpn.errors import ConfigError, DataError, UnknownName


def named(dataset: Dataset) -> set[tuple[str, str, str]]:
    """The facts of all splits by their names."""
    entities, relations = dataset.graph.entities.names, dataset.graph.relation_names.names
    triples = np.concatenate([dataset.split(split) for split in SPLITS]).tolist()
    return {(entities[h], relations[r], entities[t]) for h, r, t in triples}


def entities_of(dataset: Dataset) -> set[str]:
    return {name for head, _, tail in named(dataset) for name in (head, tail)}


def random_facts(seed: int, n_entities: int = 60, n_facts: int = 240) -> list[tuple[str, str, str]]:
    drawn = np.random.default_rng(seed).integers(0, [n_entities, 3, n_entities], (n_facts, 3))
    return [(f"e{head:02}", f"r{relation}", f"e{tail:02}") for head, relation, tail in drawn.tolist()]


def random_dataset(seed: int = 0) -> Dataset:
    facts = list(dict.fromkeys(random_facts(seed)))
    return dataset_from_tuples(facts[20:], facts[:10], facts[10:20], name="random")


def ring_of_cliques(n_cliques: int = 40, size: int = 5) -> list[tuple[str, str, str]]:
    """Villages in a ring: a cut between two of them costs little, one through a village much."""
    within = [
        (f"v{v:02}-{a}", f"r{(a + b) % 3}", f"v{v:02}-{b}")
        for v in range(n_cliques)
        for a in range(size)
        for b in range(a)
    ]
    roads = [(f"v{v:02}-0", "road", f"v{(v + 1) % n_cliques:02}-0") for v in range(n_cliques)]
    return [*within, *roads]


@given(seed=st.integers(0, 1000), share=st.sampled_from([0.3, 0.5, 0.7]))
def test_no_common_entity_and_no_fact_made_up(seed: int, share: float) -> None:
    whole = random_dataset(seed)
    parted = inductive_split(whole, share, seed)
    train, ask = named(parted.train), named(parted.ask)
    assert not entities_of(parted.train) & entities_of(parted.ask)
    assert train | ask <= named(whole)
    # Nothing is lost but what joins the parts, or has a relation nobody could learn.
    for part, facts in ((parted.train, train), (parted.ask, ask)):
        inside = entities_of(part)
        learnt = {relation for _, relation, _ in train}
        assert {f for f in named(whole) if {f[0], f[2]} <= inside and f[1] in learnt} == facts


@given(seed=st.integers(0, 1000))
def test_what_is_held_out_has_other_facts_in_its_graph(seed: int) -> None:
    parted = inductive_split(random_dataset(seed), seed=seed)
    for part in (parted.train, parted.ask):
        for split in ("valid", "test"):
            held_out = part.split(split)
            assert np.isin(held_out[:, [0, 2]], part.train[:, [0, 2]]).all()
            assert np.isin(held_out[:, 1], part.train[:, 1]).all()
        total = sum(len(part.split(split)) for split in SPLITS)
        assert len(part.valid) == len(part.test) == round(total / 10)
        assert part.graph.n_edges == 2 * len(part.train)
        assert (np.diff(part.graph.offsets) > 0).all()


def test_relations_have_the_same_ids_and_strange_ones_are_left_out() -> None:
    # Two towns without a road: one of them is asked about, and its own relation cannot be learnt.
    towns = [
        [(f"{town}{i:02}", "next", f"{town}{(i + 1) % 30:02}") for i in range(30)] for town in ("a", "b")
    ]
    own = [[(f"{town}00", f"only {town}", f"{town}05")] for town in ("a", "b")]
    facts = [fact for group in (*towns, *own) for fact in group]
    parts = [inductive_split(dataset_from_tuples(facts, name="towns"), seed=seed) for seed in range(10)]
    for parted in parts:
        assert parted.train.graph.relation_names.names == parted.ask.graph.relation_names.names
        used = {relation for _, relation, _ in named(parted.train)}
        assert set(parted.train.graph.relation_names.names[: parted.train.graph.n_forward]) == used
        assert {relation for _, relation, _ in named(parted.ask)} <= used
        others = parted.report["other_relations"]
        assert set(others) <= {"only a", "only b"} - used
        assert parted.report["facts_of_other_relations"] == len(others)
    assert any(parted.report["other_relations"] for parted in parts)


def as_arrays(parted: InductiveSplit) -> list[list]:
    return [part.split(split).tolist() for part in (parted.train, parted.ask) for split in SPLITS]


def test_the_seed_decides() -> None:
    first, again, other = (inductive_split(random_dataset(), seed=seed) for seed in (3, 3, 4))
    assert as_arrays(first) == as_arrays(again) and first.report == again.report
    assert as_arrays(first) != as_arrays(other)


def test_neighbourhoods_stay_whole() -> None:
    dataset = dataset_from_tuples(ring_of_cliques(), name="villages")
    facts = dataset.train
    part = partition(facts, dataset.graph.n_entities, dataset.graph.n_relations, share=0.5, seed=0)
    kept = (part[facts[:, 0]] == part[facts[:, 2]]).mean()
    assert kept > 0.8  # random halves keep a half
    assert abs((part == 0).mean() - 0.5) <= 0.011
    for relation in range(3):  # and each part has its share of a relation
        of_relation = facts[facts[:, 1] == relation]
        inside = [(part[of_relation[:, [0, 2]]] == side).all(1).sum() for side in range(2)]
        assert max(inside) < 2 * min(inside)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_share_is_that_of_the_entities_to_train_on(share: float) -> None:
    parted = inductive_split(dataset_from_tuples(ring_of_cliques()), share)
    sizes = [part.graph.n_entities for part in (parted.train, parted.ask)]
    assert sizes[0] / sum(sizes) == pytest.approx(share, abs=0.03)


def test_the_report_counts() -> None:
    whole = random_dataset()
    parted = inductive_split(whole)
    report = parted.report
    assert report["whole"]["facts"] == len(named(whole))
    for name, part in (("train", parted.train), ("ask", parted.ask)):
        assert report[name]["entities"] == part.graph.n_entities
        assert report[name]["facts"] == len(named(part)) == sum(report[name][split] for split in SPLITS)
        assert report[name]["mean_degree"] == round(2 * len(named(part)) / part.graph.n_entities, 2)
    counted = report["train"]["facts"] + report["ask"]["facts"]
    lost = report["facts_between"] + report["facts_of_other_relations"]
    assert counted + lost == report["whole"]["facts"]


def test_labels_go_along() -> None:
    whole = random_dataset()
    names = [*whole.graph.entities.names, "r0"]
    labels = pl.DataFrame({"id": names, "name": [name.upper() for name in names]}).with_columns(
        description=pl.lit(None, pl.String), type=pl.lit(None, pl.String)
    )
    labelled = Dataset("labelled", whole.graph.labelled(labels), whole.train, whole.valid, whole.test, True)
    for part in (inductive_split(labelled).train, inductive_split(labelled).ask):
        entities = part.graph.entities
        assert all(entities.label(i) == entities.name(i).upper() for i in range(len(entities)))
        assert part.graph.relation_names.label(part.graph.relation_names.id("r0")) == "R0"


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan")])
def test_a_share_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        inductive_split(random_dataset(), share)


def test_too_small_a_graph_is_refused() -> None:
    with pytest.raises(DataError, match="'tiny' is too small"):
        inductive_split(dataset_from_tuples([("a", "r", "b")], name="tiny"))


def test_a_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    (tmp_path / "graph.txt").write_text("a\tr\tb\nb\ts\ta\n")
    (tmp_path / "sort_test.pairs").write_text("thing$a,thing$b: +")
    with pytest.raises(DataError, match="one relation"):
        inductive_split(load_dataset(tmp_path))


def test_the_command_writes_two_datasets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "whole").mkdir()
    write_dataset(random_dataset(), tmp_path / "whole")
    out = tmp_path / "my parts"
    inductive(str(tmp_path / "whole"), out, share=0.4, seed=7)
    train, ask = (load_dataset(out / name) for name in ("train", "ask"))
    expected = inductive_split(random_dataset(), 0.4, 7)
    assert as_arrays(InductiveSplit(train, ask, {})) == as_arrays(expected)
    assert train.name == "random-train" and ask.name == "random-ask"
    assert json.loads((out / "inductive.json").read_text()) == expected.report
    shown = capsys.readouterr().out
    assert f"--on '{out / 'ask'}'" in shown and "between the two graphs" in shown


fact = st.tuples(st.sampled_from("abcd"), st.sampled_from(["p", "q", "r", "s"]), st.sampled_from("abcd"))


def edges_of(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    heads = graph.edge_heads(np.arange(graph.n_edges))
    entity, relation = graph.entities.name, graph.relation_names.name
    rows = zip(heads.tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True)
    return {(entity(head), relation(r), entity(tail)) for head, r, tail in rows}


def facts_of(dataset: Dataset, split: str) -> list[tuple[str, str, str]]:
    entity, relation = dataset.graph.entities.name, dataset.graph.relation_names.name
    return [(entity(head), relation(r), entity(tail)) for head, r, tail in dataset.split(split).tolist()]


@given(
    train=st.lists(fact, min_size=1, max_size=12),
    test=st.lists(fact, max_size=4),
    order=st.permutations("pqrs"),
)
def test_the_same_facts_by_name(train, test, order) -> None:
    dataset = dataset_from_tuples(train, test=test)
    known = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, ["z", *order])
    read = with_relations_of(dataset, known)
    assert edges_of(read.graph) == edges_of(dataset.graph)
    assert all(facts_of(read, split) == facts_of(dataset, split) for split in SPLITS)
    assert read.graph.relation_names is known.relation_names
    assert np.array_equal(read.graph.inverse, known.inverse) and read.graph.n_forward == known.n_forward
    assert read.both_directions
    # Sorted and found as in any graph.
    assert (read.graph.find_edges(*read.train.T) >= 0).all()
    assert (read.graph.find_edges(*read.queries("train").T) >= 0).all()


def test_the_dataset_itself_stays_as_it_was() -> None:
    dataset = dataset_from_tuples([("a", "q", "b")], test=[("a", "p", "b")])
    before = dataset.train.tolist(), dataset.test.tolist()
    with_relations_of(dataset, KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, ["q", "p"]))
    assert (dataset.train.tolist(), dataset.test.tolist()) == before


def test_an_unknown_relation_is_named_with_near_ones() -> None:
    known = KnowledgeGraph.from_tuples([("x", "mother", "y")])
    with pytest.raises(UnknownName, match=r"'mothers'.*'mother'.*did not learn it;") as refused:
        with_relations_of(dataset_from_tuples([("a", "mothers", "b"), ("a", "mother", "b")]), known)
    assert refused.value.near == ["mother"]
    several = dataset_from_tuples([("a", f"odd{i}", "b") for i in range(4)], name="odd")
    with pytest.raises(UnknownName, match=r"'odd0'.*nor 3 more of 'odd'"):
        with_relations_of(several, known)
    held_out = dataset_from_tuples([("a", "mother", "b")], test=[("a", "employer", "b")])
    with pytest.raises(UnknownName, match="'employer'"):
        with_relations_of(held_out, known)


def test_a_relation_of_the_users_own_that_is_called_an_inverse() -> None:
    facts = [("a", "r", "b"), ("b", "r_inv", "c")]
    dataset = dataset_from_tuples(facts)
    known = KnowledgeGraph.from_tuples([("x", "r_inv", "y"), ("x", "r", "y"), ("x", "s", "y")])
    read = with_relations_of(dataset, known)
    assert facts_of(read, "train") == facts
    assert edges_of(read.graph) == edges_of(dataset.graph)


def task(folder: Path) -> Dataset:
    """Its graph has inverses of its own, of some relations."""
    (folder / "train.txt").write_text("a\tr\tb\n")
    (folder / "graph.txt").write_text("a\tr\tb\nb\tr_inv\ta\nb\ts\ta\n")
    (folder / "sort_test.pairs").write_text("thing$a,thing$b: +")
    return load_dataset(folder)


def test_a_task_on_a_graph_with_added_inverses(tmp_path: Path) -> None:
    known = KnowledgeGraph.from_tuples([("x", "s", "y"), ("x", "a", "y"), ("x", "r", "y")])
    read = with_relations_of(task(tmp_path), known)
    assert edges_of(read.graph) == {
        ("a", "r", "b"),
        ("b", "r_inv", "a"),
        ("b", "s", "a"),
        ("a", "s_inv", "b"),
    }
    assert known.relation_names.name(read.candidates.relation) == "r"
    assert not read.both_directions


def test_relations_without_an_inverse_where_the_model_learnt_none(tmp_path: Path) -> None:
    known = task(tmp_path).graph  # r has an inverse, s has none
    read = with_relations_of(dataset_from_tuples([("c", "r", "d"), ("c", "s", "d")]), known)
    assert edges_of(read.graph) == {("c", "r", "d"), ("d", "r_inv", "c"), ("c", "s", "d")}
    assert not read.both_directions
    assert with_relations_of(dataset_from_tuples([("c", "r", "d")]), known).both_directions
