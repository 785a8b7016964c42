import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.data.leakage import joined_pairs, known_facts, leakage
from dpmpn.data.registry import DATASETS, ROOT_VARIABLE

name, few = st.sampled_from("abcdef"), st.sampled_from("abcd")
facts = st.lists(st.tuples(name, st.sampled_from("rst"), name), max_size=25)
COUNTS = ("duplicate", "symmetric", "inverse", "same", "leaked", "joined", "unseen")


def parents(n=20):
    """Facts of two relations that are each other's inverse."""
    return [(f"p{i}", "parent", f"c{i}") for i in range(n)] + [(f"c{i}", "child", f"p{i}") for i in range(n)]


def shown(pairs):
    return {(pair["kind"], pair["relation"], pair["other"]) for pair in pairs}


@settings(deadline=None)
@given(facts.filter(bool), facts, facts)
def test_counts_agree_with_sets(train, valid, test):
    report = leakage(dataset_from_tuples(train, valid, test))
    known = set(train)
    seen = {entity for h, _, t in train for entity in (h, t)}
    for split, held_out in (("valid", set(valid)), ("test", set(test))):
        if not held_out:
            assert report[split] is None
            continue
        found = report[split]
        ends = {frozenset((h, t)) for h, _, t in train}
        assert found["facts"] == len(held_out)
        assert found["duplicate"] == len(held_out & known)
        assert found["symmetric"] == sum((t, r, h) in known and h != t for h, r, t in held_out)
        assert found["joined"] == sum(frozenset((h, t)) in ends for h, _, t in held_out)
        unseen = {e for h, _, t in held_out for e in (h, t)} - seen
        new_relations = {r for _, r, _ in held_out} - {r for _, r, _ in train}
        assert found["unseen_entities"] == len(unseen)
        assert found["unseen_relations"] == len(new_relations)
        assert found["unseen"] == sum(bool({h, t} & unseen) or r in new_relations for h, r, t in held_out)
        assert found["leaked"] >= max(found[key] for key in ("duplicate", "symmetric", "inverse", "same"))
        assert found["leaked"] <= found["joined"]
        assert found["shares"] == {key: found[key] / len(held_out) for key in COUNTS}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(few, st.sampled_from("rst"), few), min_size=30, unique=True), facts)
def test_relation_pairs_agree_with_sets(train, test):
    report = leakage(dataset_from_tuples(train, test=test))
    every = set(train) | set(test)
    facts_of = {r: {(h, t) for h, s, t in every if s == r} for r in "rst"}
    expected = {}
    for kind in ("inverse", "same"):
        for r in "rst":
            for s in "rst":
                # A fact from an entity to itself says the same; it is nobody's inverse.
                turned = {(t, h) for h, t in facts_of[s] if h != t} if kind == "inverse" else facts_of[s]
                shared = len(facts_of[r] & turned)
                if r != s and shared >= 10 and shared >= 0.8 * len(facts_of[r]):
                    expected[kind, r, s] = shared
    rows = {(pair["kind"], pair["relation"], pair["other"]): pair for pair in report["relation_pairs"]}
    assert set(rows) <= set(expected)
    for (kind, r, s), shared in expected.items():
        pair = rows.get((kind, r, s)) or rows[kind, s, r]
        assert pair["shared"] == shared
        assert pair["share"] == shared / len(facts_of[pair["relation"]]) >= pair["other_share"]


def test_inverse_relations_are_found_although_many_facts_are_held_out():
    every = parents()
    held_out = [*every[:6], every[30]]  # (c10, child, p10) leaks, too
    report = leakage(dataset_from_tuples([fact for fact in every if fact not in held_out], test=held_out))
    assert shown(report["relation_pairs"]) == {("inverse", "child", "parent")}
    (pair,) = report["relation_pairs"]
    assert (pair["shared"], pair["share"], pair["other_share"]) == (20, 1.0, 1.0)
    assert report["test"]["inverse"] == report["test"]["leaked"] == report["test"]["joined"] == 7
    assert report["test"]["shares"]["inverse"] == 1.0
    assert report["valid"] is None


def test_a_narrow_relation_tells_of_a_wide_one_but_not_the_other_way_round():
    wide = [(f"a{i}", "knows", f"b{i}") for i in range(40)]
    narrow = [(f"a{i}", "married to", f"b{i}") for i in range(12)]
    train = [*wide[1:], *narrow[:11]]
    report = leakage(dataset_from_tuples(train, valid=wide[:1], test=narrow[11:]))
    assert shown(report["relation_pairs"]) == {("same", "married to", "knows")}
    assert report["valid"]["same"] == report["valid"]["leaked"] == 1
    assert report["test"]["same"] == 0 and report["test"]["joined"] == 1


def test_few_facts_in_common_are_no_pair():
    assert leakage(dataset_from_tuples(parents(9)))["relation_pairs"] == []
    assert len(leakage(dataset_from_tuples(parents(10)))["relation_pairs"]) == 1


def test_the_report_is_plain_json():
    report = leakage(dataset_from_tuples(parents(), test=[("p0", "parent", "c0"), ("p0", "parent", "c1")]))
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_a_task_counts_the_facts_of_its_graph_and_not_its_inverses(tmp_path):
    task = {
        "train": [("a", "asked", "c")],
        "dev": [("a", "asked", "c")],
        "test": [("a", "asked", "b"), ("b", "asked", "d")],
        "graph": [("a", "r", "b"), ("b", "r_inv", "a"), ("a", "asked", "c")],
    }
    for stem, rows in task.items():
        (tmp_path / f"{stem}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    (tmp_path / "sort_test.pairs").write_text("thing$b,thing$d: +\n")
    dataset = load_dataset(tmp_path)
    assert len(known_facts(dataset.graph)) == 2
    report = leakage(dataset)
    assert report["valid"]["duplicate"] == 1
    assert (report["test"]["joined"], report["test"]["unseen"]) == (1, 1)


@given(facts.filter(bool), facts)
def test_joined_pairs_is_the_share_of_valid(train, valid):
    dataset = dataset_from_tuples(train, valid)
    report = leakage(dataset)["valid"]
    assert joined_pairs(dataset) == (report["shares"]["joined"] if report else None)


@pytest.mark.skipif(not os.environ.get(ROOT_VARIABLE), reason=f"${ROOT_VARIABLE} names no data folder")
@pytest.mark.parametrize(
    ("dataset", "leaked"), [("WN18", 0.9386), ("WN18RR", 0.3465), ("FB15K", 0.7554), ("FB15K-237", 0.0)]
)
def test_leakage_of_published_datasets(dataset, leaked):
    if not DATASETS[dataset].folder().is_dir():
        pytest.skip(f"{DATASETS[dataset].folder()} is not there")
    report = leakage(load_dataset(dataset))
    assert np.isclose(report["test"]["shares"]["leaked"], leaked, atol=5e-5)
    if dataset == "WN18":
        pairs = shown(report["relation_pairs"])
        assert ("inverse", "_hypernym", "_hyponym") in pairs and len(pairs) == 7
