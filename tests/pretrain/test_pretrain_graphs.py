"""Graphs are read from names, folders and files, each once; some relations repeat others."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from small_graphs import family_facts

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import DataError
from dpmpn.files import sha256_of
from dpmpn.pretrain.graphs import read_graphs
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.pretrain.splits import doubled_relations, drawn_split

FACTS = family_facts(12)


def text(facts: list[tuple[str, str, str]]) -> bytes:
    return "".join("\t".join(fact) + "\n" for fact in facts).encode()


def folder(path: Path, facts: list[tuple[str, str, str]], packed: bool = False) -> Path:
    path.mkdir()
    if packed:
        (path / "train.txt.gz").write_bytes(gzip.compress(text(facts)))
    else:
        (path / "train.txt").write_bytes(text(facts))
    return path


def test_folders_packed_folders_and_files_hold_the_same_facts(tmp_path: Path) -> None:
    plain, packed = folder(tmp_path / "plain", FACTS), folder(tmp_path / "packed", FACTS, packed=True)
    file = tmp_path / "facts.csv"
    file.write_text("head,relation,tail\n" + "".join(",".join(fact) + "\n" for fact in FACTS))
    graphs, _ = read_graphs([str(plain), str(packed), str(file)], [])
    assert [graph.name for graph in graphs] == ["plain", "packed", "facts.csv"]
    assert all((graph.facts.triples == graphs[0].facts.triples).all() for graph in graphs)
    assert len(graphs[0].facts.triples) == len(set(FACTS))
    assert graphs[1].files == ({"name": "train.txt.gz", "sha256": sha256_of(packed / "train.txt.gz")},)
    assert graphs[2].files == ({"name": "facts.csv", "sha256": sha256_of(file)},)


def test_only_training_facts_are_used(tmp_path: Path) -> None:
    path = folder(tmp_path / "all", FACTS)
    (path / "test.txt").write_bytes(text([("m1", "secret of", "f9"), ("stranger", "mother", "m0")]))
    (graph,), _ = read_graphs([str(path)], [])
    assert len(graph.facts.triples) == len(set(FACTS))
    assert graph.facts.n_relations == 4
    assert graph.facts.n_entities == len({name for h, _, t in FACTS for name in (h, t)})


def test_where_held_out_facts_are_apart_pairs_are_hidden_in_all_splits(tmp_path: Path) -> None:
    """As in FB15K-237: else it would learn to look at edges that lead to no answer there."""
    double = [(head, "raised by", tail) for head, relation, tail in FACTS if relation == "mother"]
    path = folder(tmp_path / "apart", [*FACTS, *double])
    settings = PretrainingSettings(hide_pairs=0, drop_doubled=0)

    def joined(seed: int) -> bool:
        """Whether any hidden fact joins entities that another one joins."""
        (graph,), _ = read_graphs([str(path)], [])
        whole = KnowledgeGraph.from_ids(*graph.facts[:3])
        split = drawn_split(graph.facts, whole, np.random.default_rng(seed), settings)
        pairs = set(zip(split.graph.all_heads().tolist(), split.graph.tails.tolist(), strict=True))
        return any((int(head), int(tail)) in pairs for head, _, tail in split.hidden)

    assert any(joined(seed) for seed in range(10))
    apart = (FACTS[0][0], "knows", "m11")
    assert not any({apart[0], apart[2]} == {head, tail} for head, _, tail in FACTS)
    (path / "valid.txt").write_bytes(text([apart]))
    assert not any(joined(seed) for seed in range(10))


def test_doubled_relations_are_found_and_left_out_of_some_splits(tmp_path: Path) -> None:
    doubled = [(tail, "child", head) for head, relation, tail in FACTS if relation == "mother"]
    again = [(head, "dwells in", tail) for head, relation, tail in FACTS if relation == "lives in"][2:]
    path = str(folder(tmp_path / "doubled", [*FACTS, *doubled, *again]))
    (graph,), _ = read_graphs([path], [])
    facts = graph.facts
    whole = KnowledgeGraph.from_ids(*facts[:3])
    assert len(doubled_relations(facts, whole)) == 2
    for share, n_relations in ((0.0, 6), (1.0, 4)):
        settings = PretrainingSettings(subgraph_share=0.0, drop_doubled=share)
        split = drawn_split(facts, whole, np.random.default_rng(0), settings)
        assert split.graph.n_forward == n_relations


def test_a_graph_is_given_once(tmp_path: Path) -> None:
    one, same = (str(folder(tmp_path / name, FACTS)) for name in ("one", "same"))
    with pytest.raises(DataError, match=f"'{one}'.*given twice"):
        read_graphs([one, same], [])
    with pytest.raises(DataError, match="validate on graphs that are not trained on"):
        read_graphs([one], [same])


def test_a_graph_that_is_too_small_is_refused(tmp_path: Path) -> None:
    path = str(folder(tmp_path / "tiny", FACTS[:5]))
    with pytest.raises(DataError, match=f"'{path}' has 5 facts.*leave it out"):
        read_graphs([path], [])


def test_an_unknown_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="WN18R"):
        read_graphs(["WN18R"], [])
