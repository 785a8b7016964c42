"""Wide tables: one row an item, names of columns are relations; and which reading of a table is taken."""

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmpn
from dpmpn.data.sources.base import COLUMNS, ReadOptions
from dpmpn.data.sources.formats import facts_of, source_of
from dpmpn.errors import DataError

PRODUCTS = """product,category,region,price,tags
P-1,chairs,north,9.50,red; soft
P-2,tables,,12.00,red
P-3,chairs,south,7.25,
"""
FACTS = {
    ("P-1", "category", "chairs"),
    ("P-1", "region", "north"),
    ("P-1", "tags", "red"),
    ("P-1", "tags", "soft"),
    ("P-2", "category", "tables"),
    ("P-2", "tags", "red"),
    ("P-3", "category", "chairs"),
    ("P-3", "region", "south"),
}


def read(given, **options):
    source = source_of(given, ReadOptions(**options))
    facts = [row for batch in source.batches() for row in batch.select(COLUMNS).iter_rows()]
    assert len(set(facts)) == len(facts)
    return set(facts), source.account


@pytest.fixture
def products(tmp_path):
    path = tmp_path / "products.csv"
    path.write_text(PRODUCTS)
    return path


def test_a_wide_table_is_recognised_and_what_was_decided_is_said(products):
    facts, account = read(products)
    assert facts == FACTS
    said = " ".join(account.notes)
    assert "wide table" in said and "--no-wide" in said
    assert "'price' (numbers)" in said and "--columns product,category,price" in said
    assert "'tags' were split at ';'" in said and "--cell-separator none" in said


@pytest.mark.parametrize("kind", ["tsv", "parquet", "pandas", "polars", "arrow"])
def test_every_kind_of_table_gives_the_same_facts(products, kind, tmp_path):
    frame = pl.read_csv(products)
    given = {"polars": frame, "pandas": pd.read_csv(products), "arrow": frame.to_arrow()}.get(kind)
    if given is None:
        given = tmp_path / f"f.{kind}"
        frame.write_parquet(given) if kind == "parquet" else frame.write_csv(given, separator="\t")
    assert read(given)[0] == FACTS


def test_rows_of_the_facts_are_known(products):
    facts = facts_of(products)
    places = {(row["head"], row["place"].rpartition(" ")[2]) for row in facts.iter_rows(named=True)}
    assert places == {("P-1", "2"), ("P-2", "3"), ("P-3", "4")}


def test_columns_choose_the_item_and_what_is_taken(products):
    facts, account = read(products, wide=True, columns=("product", "price"))
    assert facts == {("P-1", "price", "9.50"), ("P-2", "price", "12.00"), ("P-3", "price", "7.25")}
    assert "left out" not in " ".join(account.notes)
    assert ("chairs", "region", "north") in read(products, wide=True, columns=("category",))[0]


def test_cells_are_split_as_asked(products):
    whole, _ = read(products, cell_separator="none")
    assert ("P-1", "tags", "red; soft") in whole
    products.write_text(PRODUCTS.replace("red; soft", "red/soft"))
    assert ("P-1", "tags", "soft") in read(products, cell_separator="/")[0]


def test_it_can_be_forbidden(products):
    with pytest.raises(DataError, match=r"not clear.*--columns .*--wide"):
        read(products, wide=False)


def test_an_unclear_table_says_both_readings(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("product,category,region,shop\nP-1,chairs,north,A\nP-1,chairs,south,B\n")
    with pytest.raises(
        DataError, match=r"if each row is a fact, .*--columns .*; if each row is an item.*--wide"
    ):
        read(path)
    assert len(read(path, columns=("1", "2", "3"))[0]) == 2


def test_a_header_is_needed(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("P-1,chairs,north\nP-2,tables,south\n")
    with pytest.raises(DataError, match="needs the names of its columns"):
        read(path, wide=True, header=False)


def test_two_rows_with_a_header_are_no_three_facts(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("product,category,region\nP-0001,Chairs,North\nP-0002,Tables,South\n")
    facts, account = read(path)
    assert "product" not in {name for fact in facts for name in fact}
    assert any("--no-header" in note for note in account.notes)


def test_further_columns_beside_the_usual_names_are_clear(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(
        "subject,predicate,object,source,as_of\nAnn,knows,Bo,diary,2020\nBo,knows,Cy,diary,2021\n"
    )
    facts, _ = read(path)
    assert facts == {("Ann", "knows", "Bo"), ("Bo", "knows", "Cy")}
    frame = pd.read_csv(path)
    assert len(dpmpn.dataset_from(frame, split=dpmpn.SplitChoice("none")).train) == 2
    other = frame.rename(columns={"subject": "who", "object": "whom"})
    chosen = dpmpn.dataset_from(other, columns=("who", "predicate", "whom"), split=dpmpn.SplitChoice("none"))
    assert len(chosen.train) == 2


CELL = st.text("abcXYZ", max_size=4)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=8))
def test_each_cell_that_is_not_empty_is_a_fact(rows):
    names = ["item", "colour", "shape", "maker"]
    frame = pl.DataFrame([(f"i{at}", *row) for at, row in enumerate(rows)], schema=names, orient="row")
    facts, _ = read(frame, wide=True)
    expected = {
        (f"i{at}", name, cell)
        for at, row in enumerate(rows)
        for name, cell in zip(names[1:], row, strict=True)
        if cell
    }
    assert facts == expected


def test_a_dataset_of_a_file_holds_facts_out_and_says_so(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text("head,relation,tail\n" + "".join(f"a{i},r,a{(i * 7 + 1) % 40}\n" for i in range(40)) * 1)
    said: list[str] = []
    dataset = dpmpn.data.importer.load_dataset(path, said.append)
    assert len(dataset.valid) and len(dataset.test)
    assert "train" in said[-1] and "test" in said[-1]
