"""What further columns say of a fact stays with it: from a table to the folder of a graph and to explanations."""

import pickle
import re

import jsonschema
import polars as pl
import pytest

import dpmpn
from dpmpn.data.dataset import open_dataset
from dpmpn.data.importer import SplitChoice, dataset_from, import_dataset
from dpmpn.data.sources.formats import source_of
from dpmpn.errors import DataError
from dpmpn.render.export import as_record, schema
from dpmpn.render.page import draw_page
from dpmpn.render.text import explanation_text

ROWS = [
    ("Ann", "knows", "Bo", "https://a.example/1", "2020-05-17"),
    ("Bo", "knows", "Cy", "", ""),
    ("Ann", "knows", "Bo", "https://a.example/2", ""),
    ("Cy", "likes", "Ann", 'a "quoted", text', "2021"),
]
COLUMNS = ("subject", "predicate", "object", "source", "as_of")
NONE = SplitChoice("none")


def frame() -> pl.DataFrame:
    return pl.DataFrame(ROWS, COLUMNS, orient="row")


def said(graph, head, relation, tail):
    names = graph.entities
    return graph.provenance.of(names.id(head), graph.relation_names.id(relation), names.id(tail))


def check(graph) -> None:
    assert said(graph, "Ann", "knows", "Bo") == [
        {"source": "https://a.example/1", "as_of": "2020-05-17"},
        {"source": "https://a.example/2"},
    ]
    assert said(graph, "Bo", "knows", "Cy") == []
    assert said(graph, "Cy", "likes", "Ann") == [{"source": 'a "quoted", text', "as_of": "2021"}]


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "xlsx", "polars", "pandas"])
def test_every_table_keeps_what_it_says_of_facts(tmp_path, form) -> None:
    path = tmp_path / f"facts.{form}"
    if form in ("csv", "tsv"):
        frame().write_csv(path, separator="," if form == "csv" else "\t", quote_style="always")
    elif form == "parquet":
        frame().write_parquet(path)
    elif form == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in (COLUMNS, *ROWS):
            book.active.append([cell or None for cell in row])
        book.save(path)
    facts = {"polars": frame, "pandas": lambda: frame().to_pandas()}.get(form, lambda: path)()
    check(dataset_from(facts, split=NONE).graph)


def test_it_is_kept_in_the_folder_in_copies_and_for_held_out_facts(tmp_path) -> None:
    path = tmp_path / "facts.csv"
    frame().write_csv(path)
    report = import_dataset({"train": [source_of(path)]}, tmp_path / "graph", split=NONE)
    assert "kept as provenance of each fact: 'source', 'as_of'" in report["sources"][0]["notes"]
    graph = open_dataset(tmp_path / "graph").graph
    for each in (graph, graph.in_memory(), pickle.loads(pickle.dumps(graph))):
        check(each)
    parts = dataset_from(frame()[:3], valid=frame()[3:])
    check(parts.graph)


def test_tables_without_further_columns_keep_nothing(tmp_path) -> None:
    dataset = dataset_from(frame().select(COLUMNS[:3]), split=NONE)
    assert dataset.graph.provenance is None
    dataset.graph.save(tmp_path / "graph")
    assert not list((tmp_path / "graph").glob("provenance*"))


def test_positions_outside_of_the_text_are_refused(tmp_path) -> None:
    graph = dataset_from(frame(), split=NONE).graph
    graph.provenance.spans[-1, 1] = 10**6
    graph.save(tmp_path / "graph")
    with pytest.raises(DataError, match=r"provenance_spans\.npy holds numbers outside"):
        dpmpn.KnowledgeGraph.open(tmp_path / "graph")


def test_relations_of_other_numbers_and_added_facts_keep_it() -> None:
    asked = dpmpn.Reasoner.pretrained().on(dataset_from(frame(), split=NONE))
    check(asked.graph)
    check(asked.with_facts([("Dee", "adores", "Ann")]).graph)


def test_explanations_tell_it_in_python_text_json_and_page() -> None:
    asked = dpmpn.Reasoner.pretrained().on(dataset_from(frame(), split=NONE))
    answers = asked.predict("Ann", "likes", inverse=True)
    path = next(path for path in answers.why("Cy") if ("Cy", "likes", "Ann") in path.facts)
    assert path.provenance[path.facts.index(("Cy", "likes", "Ann"))][0]["as_of"] == "2021"
    explanation = answers.explain("Cy", keep_fact=True)  # what it says of itself is looked at
    key = next(key for key in explanation.key_facts if key.provenance)
    assert key.provenance[0]["source"] in explanation_text(explanation)
    record = as_record(explanation)
    jsonschema.validate(record, schema())
    assert [dict(each) for each in key.provenance] in [fact.get("provenance") for fact in record["key_facts"]]
    assert "a &#34;quoted&#34;, text" in draw_page(explanation)


def test_only_web_addresses_become_links_and_all_is_escaped() -> None:
    rows = [
        ("Ann", "likes", "Bo", "https://a.example/?a=1&b=<2>", "javascript:alert(1)"),
        ("Bo", "likes", "Cy", "http://b.example", "<script>alert(2)</script>"),
        ("Cy", "likes", "Ann", "https://c.example onclick=x", "data:text/html,x"),
    ]
    facts = pl.DataFrame(rows, ("head", "relation", "tail", "url", "note"), orient="row")
    asked = dpmpn.Reasoner.pretrained().on(dataset_from(facts, split=NONE))
    pages = [draw_page(asked.predict(head, "likes").explain()) for head in ("Ann", "Bo", "Cy")]
    links = [link for page in pages for link in re.findall("<a href[^>]*>", page)]
    assert links and all(
        re.fullmatch('<a href="https?://[^" ]+" target="_blank" rel="noopener noreferrer">', link)
        for link in links
    )
    assert not any("<script>alert" in page or 'href="javascript' in page for page in pages)
    assert not any("c.example" in link for link in links)
