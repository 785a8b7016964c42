"""Excel tables: sheets, dates, formulas, blank rows; long and wide like CSV; damaged and hostile ones are refused."""

import datetime
import subprocess
import sys
import zipfile

import openpyxl
import pytest
from test_source_wide import FACTS, PRODUCTS, read

import dpmpn
from dpmpn.data.sources.formats import facts_of
from dpmpn.errors import DataError

LONG = [
    ["subject", "predicate", "object"],
    ["Ann", "born_on", datetime.datetime(2020, 5, 17)],
    ["Ann", "age", 7.0],
]


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.fixture
def long(tmp_path):
    return workbook(
        tmp_path / "facts.xlsx", facts=LONG, other=[["head", "relation", "tail"], ["a", "r", "b"]]
    )


def test_a_long_table_is_read_with_dates_and_numbers_as_text(long) -> None:
    facts, account = read(long)
    assert facts == {("Ann", "born_on", "2020-05-17"), ("Ann", "age", "7")}
    assert account.notes == ["the sheet 'facts' was read; give --sheet for another one ('other')"]


def test_a_sheet_is_chosen_by_its_name(long) -> None:
    assert read(long, sheet="other")[0] == {("a", "r", "b")}
    with pytest.raises(DataError, match="has no sheet 'none'; it has 'facts', 'other'"):
        read(long, sheet="none")


def test_a_wide_table_is_read_like_the_csv(tmp_path) -> None:
    rows = [[cell or None for cell in line.split(",")] for line in PRODUCTS.splitlines()]
    facts, account = read(workbook(tmp_path / "products.xlsx", all=rows))
    assert facts == FACTS
    assert any("read as a wide table" in note for note in account.notes)


def test_blank_rows_are_counted_and_facts_know_their_rows(tmp_path) -> None:
    rows = [[], LONG[0], [], ["Ann", "knows", "Bo"], [None, " "], ["Bo", "knows", "Cy"]]
    path = workbook(tmp_path / "gaps.xlsx", all=rows)
    assert facts_of(path)["place"].to_list() == [f"{path}, row 4", f"{path}, row 6"]
    assert read(path)[1].skipped == {"blank row": 3}


def test_formulas_are_not_computed_and_a_bad_row_is_named(tmp_path) -> None:
    path = workbook(tmp_path / "sums.xlsx", all=[LONG[0], ["Ann", "knows", "Bo"], ["Ann", "age", "=3+4"]])
    with pytest.raises(DataError, match="row 3: the tail is empty"):
        read(path)
    assert read(path, on_error="skip")[0] == {("Ann", "knows", "Bo")}


def test_a_workbook_is_known_by_its_content_and_other_files_are_not(tmp_path, long) -> None:
    named_wrongly = tmp_path / "facts.csv"
    named_wrongly.write_bytes(long.read_bytes())
    assert read(named_wrongly)[0] == read(long)[0]
    text = tmp_path / "text.xlsx"
    text.write_text("a\tr\tb\n")
    with pytest.raises(DataError, match="is named like a xlsx file and is none"):
        read(text)


@pytest.mark.parametrize("cut", [100, 3000, -30])
def test_a_damaged_workbook_is_refused_in_one_sentence(tmp_path, long, cut) -> None:
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(long.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"broken\.xlsx"):
        read(broken, format="xlsx")


def test_a_workbook_with_entities_is_refused(tmp_path, long) -> None:
    hostile = tmp_path / "hostile.xlsx"
    with zipfile.ZipFile(long) as whole, zipfile.ZipFile(hostile, "w") as changed:
        for member in whole.infolist():
            content = whole.read(member)
            if member.filename.endswith("sheet1.xml"):
                content = b'<!DOCTYPE x [<!ENTITY a "b">]>' + content
            changed.writestr(member, content)
    with pytest.raises(DataError, match="declares a document type"):
        read(hostile)


def test_without_the_extra_the_error_names_it(monkeypatch, long) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"needs the extra 'excel': pip install 'dpmpn\[excel\]'"):
        read(long)


def test_import_and_python_take_a_sheet(tmp_path, long) -> None:
    out = tmp_path / "g"
    command = [
        sys.executable,
        "-m",
        "dpmpn",
        "import",
        long,
        "--sheet",
        "other",
        "--split",
        "none",
        "--out",
        out,
    ]
    subprocess.run(command, check=True, capture_output=True)
    dataset = dpmpn.dataset_from(long, sheet="other", split=dpmpn.SplitChoice("none"))
    assert len(dataset.train) == len(dpmpn.load_dataset(out).train) == 1
