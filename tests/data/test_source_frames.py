import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.importer import SplitChoice, dataset_from
from dpmpn.data.names import normal
from dpmpn.data.sources import formats, frames
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.frames import frame_source
from dpmpn.errors import DataError


def facts_of(obj, options=None):
    """All facts of an object in memory; a path is none."""
    frame_source(obj, options)
    return formats.facts_of(obj, options).drop(formats.PLACE)


ROWS = [("a", "p", "b"), ("b", "p", "c"), ("c", "q", "a")]
NAMES = ["head", "relation", "tail"]
COLUMNS = {name: [row[i] for row in ROWS] for i, name in enumerate(NAMES)}


def reordered():
    return {name: COLUMNS[name] for name in ("tail", "head", "relation")}


FRAMES = {
    "polars": lambda: pl.DataFrame(reordered()),
    "polars lazy": lambda: pl.LazyFrame(reordered()),
    "polars categories": lambda: pl.DataFrame(reordered()).cast(pl.Categorical),
    "pandas": lambda: pd.DataFrame(reordered(), index=[7, 7, 9]),
    "pandas objects": lambda: pd.DataFrame(reordered(), dtype=object),
    "pandas categories": lambda: pd.DataFrame(reordered(), dtype="category"),
    "pandas of arrow": lambda: pd.DataFrame(reordered(), dtype=pd.ArrowDtype(pa.string())),
    "pyarrow table": lambda: pa.table(reordered()),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(reordered()),
    "tuples": lambda: ROWS,
    "generator": lambda: (list(row) for row in ROWS),
    "numpy": lambda: np.array(ROWS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_and_rows(kind):
    source = frame_source(FRAMES[kind]())
    batches = list(source.batches())
    assert pl.concat(batches).rows() == ROWS
    assert batches[0].columns == NAMES
    assert source.account.read == 3
    assert source.position()[0] == 3
    assert source.labels().height == 0


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, lambda d: pa.table(d)])
def test_numbers_become_text(make):
    frame = make({"s": [1, 2], "p": [0.5, 2.0], "o": [True, False], "year": [1815, 1816]})
    facts = facts_of(frame, ReadOptions(time_column="year"))
    assert facts.select("head", "relation", "time").rows() == [("1", "0.5", "1815"), ("2", "2", "1816")]
    assert facts["tail"].to_list() == ["true", "false"]


def test_whole_numbers_with_gaps_stay_whole():
    frame = pd.DataFrame({"s": [1, None, 3], "p": ["x", "x", "x"], "o": [10**15, 2, 3]})
    assert frame.dtypes["s"].kind == "f"
    assert facts_of(frame, ReadOptions(on_error="skip")).rows() == [
        ("1", "x", "1000000000000000"),
        ("3", "x", "3"),
    ]
    frame["s"] = frame["s"].astype("Int64")
    assert facts_of(frame, ReadOptions(on_error="skip")).get_column("head").to_list() == ["1", "3"]


def with_gap(value):
    return {"head": ["a", "b", "c"], "relation": ["p", "p", "p"], "tail": ["x", value, "z"]}


@pytest.mark.parametrize(
    "make",
    [
        pl.DataFrame,
        pl.LazyFrame,
        pd.DataFrame,
        pa.table,
        lambda d: list(zip(*d.values(), strict=True)),
    ],
)
@pytest.mark.parametrize("value", [None, "", " ", "x\0"])
def test_rows_without_a_value_are_named_or_counted(make, value):
    frame = make(with_gap(value))
    with pytest.raises(DataError, match=r"row 2: the tail (is empty or not text|holds a NUL) in 'b, p, "):
        facts_of(frame)
    source = frame_source(frame, ReadOptions(on_error="skip"))
    assert [row for batch in source.batches() for row in batch.rows()] == [("a", "p", "x"), ("c", "p", "z")]
    assert source.account.skipped == {"empty tail": 1}
    assert source.account.read == 3


def test_rows_over_several_batches_keep_their_numbers(monkeypatch):
    monkeypatch.setattr(frames, "_BATCH", 1000)
    rows = [("a", "p", str(i)) for i in range(2500)]
    assert facts_of(rows).rows() == rows
    rows[2004] = ("a", "", "b")
    with pytest.raises(DataError, match="row 2,005: the relation is empty"):
        facts_of(rows)
    with pytest.raises(DataError, match="row 2,005: the relation is empty"):
        facts_of(pd.DataFrame(rows, columns=NAMES))


def test_columns_are_chosen_or_asked_for():
    frame = pd.DataFrame({"x": ["a"], "y": ["p"], "z": ["b"], "note": ["n"]})
    with pytest.raises(DataError, match="pandas frame: has 4 columns"):
        facts_of(frame)
    assert facts_of(frame, ReadOptions(columns=("z", "y", "x"))).rows() == [("b", "p", "a")]
    assert facts_of(frame, ReadOptions(columns=("3", "2", "1"))).rows() == [("b", "p", "a")]
    assert facts_of([("a", "p", "b", 1815)], ReadOptions(time_column="4")).rows() == [("a", "p", "b", "1815")]
    assert facts_of(pd.DataFrame([("a", "p", "b")])).rows() == [("a", "p", "b")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "p", "b"), ("a", "p")], "row 2: has 2 values where row 1 has 3"),
        ([("a", "p")], "row 1: has 2 columns"),
        (["abc", "def"], "row 1: is of type str"),
        ([5], "row 1: is of type int"),
        ([("a", "p", b"b")], "row 1: the tail is of type bytes"),
        ([("a", "p", "b"), ("a", "p", "\ud800")], "row 2: the tail '.ud800' is not Unicode"),
        ([("a", "p", "b"), ("a", ["p"], "b")], "row 2: the relation is of type list"),
        (pl.DataFrame({"head": [["a"]], "relation": ["p"], "tail": ["b"]}), "'head' holds List"),
        (pd.DataFrame({"head": [{}], "relation": ["p"], "tail": ["b"]}), "row 1: the head is of type dict"),
        ("facts.tsv", "object of type str"),
        ({"a": "b"}, "object of type dict"),
        (5, "object of type int"),
        (None, "object of type NoneType"),
        (pl.LazyFrame({"a": [1]}).select("b"), "polars frame: cannot be computed"),
    ],
)
def test_what_holds_no_facts(rows, message):
    with pytest.raises(DataError, match=message):
        facts_of(rows)


def test_nothing_gives_no_facts():
    for empty in (
        [],
        iter(()),
        nx.DiGraph(),
        rdflib.Graph(),
        pl.DataFrame(schema=dict.fromkeys(NAMES, pl.String)),
    ):
        assert facts_of(empty).shape == (0, 3)


NAME = st.text(min_size=1, max_size=5).filter(lambda text: normal(text) and "\0" not in text)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(NAME, NAME, NAME), max_size=8))
def test_frames_of_any_names_agree(rows):
    expected = [tuple(map(normal, row)) for row in rows]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}
    schema = dict.fromkeys(NAMES, pl.String)
    assert facts_of(rows).rows() == expected
    assert facts_of(pl.DataFrame(columns, schema=schema)).rows() == expected
    assert facts_of(pd.DataFrame(columns, dtype=object)).rows() == expected
    assert facts_of(pl.DataFrame(columns, schema=schema).to_arrow()).rows() == expected


# networkx


def test_networkx_relations_of_keys_and_attributes():
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", key="p")
    graph.add_edge("a", "b", key="q", type="not this")
    graph.add_edge("b", 3, relation="r")
    graph.add_edge("b", "c", label="s", year=1815)
    assert facts_of(graph).rows() == [("a", "p", "b"), ("a", "q", "b"), ("b", "r", "3"), ("b", "s", "c")]
    source = frame_source(graph, ReadOptions(time_column="year", on_error="skip"))
    assert [row for batch in source.batches() for row in batch.rows()] == [("b", "s", "c", "1815")]
    assert source.position() == (4, 4)


def test_networkx_undirected_edges_are_read_once():
    graph = nx.Graph()
    graph.add_edge("b", "a", predicate="p")
    graph.add_edge("b", "b", predicate="p")
    assert facts_of(graph).rows() == [("b", "p", "a"), ("b", "p", "b")]


def test_networkx_nodes_give_labels():
    graph = nx.DiGraph()
    graph.add_node(1, name="one", description="a number", type=["odd", "small"])
    graph.add_node(2, label="two")
    graph.add_node(3, colour="red")
    graph.add_edge(1, 2, relation="less than")
    source = frame_source(graph)
    assert source.labels().rows() == [("1", "one", "a number", "odd | small"), ("2", "two", None, None)]


def test_networkx_edges_without_relation():
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", key="p")
    graph.add_edge("b", "c", weight=1)
    with pytest.raises(DataError, match=r"networkx MultiDiGraph, edge 'b' -> 'c': has no relation"):
        facts_of(graph)
    source = frame_source(graph, ReadOptions(on_error="skip"))
    assert [row for batch in source.batches() for row in batch.rows()] == [("a", "p", "b")]
    assert source.account.read == 2
    assert sum(source.account.skipped.values()) == 1


def test_networkx_nodes_of_one_name():
    graph = nx.DiGraph()
    graph.add_edge(1, "1", relation="same as")
    with pytest.raises(DataError, match="the nodes 1 and '1' have the same name"):
        facts_of(graph)


# rdflib

TURTLE = """
@prefix e: <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:ada e:born_in e:london ; e:age 36 ; e:motto "ad \\"astra\\"\\n"@la , "x"^^<http://www.w3.org/2001/XMLSchema#string> ;
  a e:Person ; rdfs:label "Ada\\tLovelace"@en ; e:knows _:someone .
"""


@pytest.mark.parametrize("literals", ["drop", "keep"])
@pytest.mark.parametrize("kind", [rdflib.Graph, rdflib.Dataset])
def test_rdflib_says_the_same_as_the_file(tmp_path, literals, kind):
    from dpmpn.data.sources.rdf import RdfSource

    (tmp_path / "a.ttl").write_text(TURTLE.replace("_:someone", "<http://e/someone>"))
    file = RdfSource(tmp_path / "a.ttl", ReadOptions(literals=literals), "ttl")
    graph = kind()
    graph.parse(tmp_path / "a.ttl")
    source = frame_source(graph, ReadOptions(literals=literals))
    found = pl.concat(source.batches()).sort(NAMES).rows()
    assert found == pl.concat(file.batches()).sort(NAMES).rows()
    assert source.labels().rows() == file.labels().rows()
    assert source.account.skipped == file.account.skipped
    assert source.position()[0] == 7


def test_rdflib_blank_nodes():
    graph = rdflib.Graph()
    graph.add((rdflib.BNode("x"), rdflib.URIRef("http://e/p"), rdflib.BNode("y")))
    assert facts_of(graph).rows() == [("_:x", "http://e/p", "_:y")]


def test_rdflib_has_no_time():
    with pytest.raises(DataError, match="no time column 'year'"):
        facts_of(rdflib.Graph(), ReadOptions(time_column="year"))


# PyKEEN


def test_pykeen_triples_factory():
    from pykeen.triples import CoreTriplesFactory, TriplesFactory

    factory = TriplesFactory.from_labeled_triples(np.array(ROWS), create_inverse_triples=True)
    assert sorted(facts_of(factory).rows()) == sorted(ROWS)
    bare = CoreTriplesFactory(factory.mapped_triples, num_entities=3, num_relations=2)
    with pytest.raises(DataError, match="knows no names"):
        facts_of(bare)


def test_no_package_is_imported_to_recognise_objects():
    code = (
        "import sys; from dpmpn.data.sources.formats import facts_of; facts_of([('a', 'p', 'b')]);"
        "print([m for m in ('pandas', 'networkx', 'rdflib', 'pykeen', 'pyoxigraph', 'sqlalchemy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_mistakes_are_told_in_the_words_of_python() -> None:
    frame = pl.DataFrame([["a", "r", "b", "x"], ["c", "r", "d", "y"]], ["p", "q", "r2", "t"], orient="row")
    with pytest.raises(
        DataError, match=r"say it with columns, such as columns='[^']+'; .* give wide=True$"
    ) as told:
        dataset_from(frame)
    assert "--" not in str(told.value)
    chosen = {"split": SplitChoice("none")}
    by_text = dataset_from(frame, columns="p, q, r2", **chosen)
    assert by_text.train.tolist() == dataset_from(frame, columns=["p", "q", "r2"], **chosen).train.tolist()
    with pytest.raises(DataError, match="no facts in None"):
        dataset_from(None)
