"""Facts in Excel workbooks (.xlsx), one sheet of them, read row by row; formulas count as the value saved with them."""

import datetime
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from dpmpn.data.sources.base import FileSource
from dpmpn.data.sources.columns import names_shown, texts_of_values, whole_rows
from dpmpn.data.sources.layout import find_table
from dpmpn.data.sources.shape import SAMPLED, rows_of
from dpmpn.data.sources.unpack import HARMLESS_SIZE, LARGEST_RATIO, check_file
from dpmpn.errors import DataError
from dpmpn.wording import one_line

_BATCH = 50_000  # rows
_WORKBOOK, _BINARY_WORKBOOK = "xl/workbook.xml", "xl/workbook.bin"
_PROLOGUE = 4096  # bytes of a member, in which a document type would stand
_ERRORS = {
    "#DIV/0!",
    "#N/A",
    "#NAME?",
    "#NULL!",
    "#NUM!",
    "#REF!",
    "#VALUE!",
    "#GETTING_DATA",
    "#SPILL!",
    "#CALC!",
}
_MIDNIGHT = datetime.time()
_Row = tuple[int, list[Any]]  # its number in the sheet, from 1, and its cells


def is_workbook(path: Path) -> bool:
    """Whether a file is a workbook, whatever its name is."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not {_WORKBOOK, _BINARY_WORKBOOK}.isdisjoint(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


class ExcelSource(FileSource):
    """A sheet of a workbook."""

    unit = "row"
    _done = 0

    def _batches(self) -> Iterator[pl.DataFrame]:
        with self._errors_as_sentences():
            _check_archive(self._path)
            load = _openpyxl().load_workbook
            # Of a path openpyxl would believe the suffix.
            with (
                self._path.open("rb") as file,
                closing(load(file, read_only=True, data_only=True, keep_links=False)) as book,
            ):
                yield from self._sheet_batches(self._sheet(book))

    def position(self) -> tuple[int, int | None]:
        """Rows read; how many there are is not known."""
        return self._done, None

    def _sheet_batches(self, sheet: Any) -> Iterator[pl.DataFrame]:
        rows = self._rows(sheet)
        first = list(islice(rows, SAMPLED))
        if not first:
            return
        width = max(at + 1 for _, cells in first for at, cell in enumerate(cells) if cell is not None)
        texts = [texts_of_values([_at(cells, at) for _, cells in first]).column for at in range(width)]
        sampled = [[cell or "" for cell in row] for row in rows_of(texts)]
        start = first[0][0] - 1
        table = find_table(self._path, self.unit, [(start, sampled[0])], start, sampled, self._options)
        self.account.notes += table.notes
        shape = table.shape
        facts_from = chain(first if table.header is None else first[1:], rows)
        while part := list(islice(facts_from, _BATCH)):
            columns = [texts_of_values([_at(cells, at) for _, cells in part]) for at in shape.all_positions]
            numbers = [number for number, _ in part]
            optional = shape.all_names[len(shape.names) :]
            whole, numbers_left = whole_rows(
                columns, self.account, self._options, numbers, shape.names, optional
            )
            facts, self._numbers = shape.facts(whole, numbers_left)
            yield facts

    def _rows(self, sheet: Any) -> Iterator[_Row]:
        """The rows that are not blank."""
        sheet.reset_dimensions()  # what programs write there may be wrong
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            self._done = number
            row = [_cell(value) for value in cells]
            if any(value is not None for value in row):
                yield number, row
            else:
                self.account.read += 1
                self.account.skip("blank row", example=f"{self._path}, row {number:,}")

    def _sheet(self, book: Any) -> Any:
        """The sheet that was asked for, or the first that is not hidden."""
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        wanted = self._options.sheet
        if wanted is not None and wanted not in sheets:
            raise DataError(
                f"{self._path}: has no sheet '{one_line(wanted)}'; it has {names_shown(list(sheets))}"
            )
        shown = [title for title, sheet in sheets.items() if sheet.sheet_state == "visible"] or list(sheets)
        if not shown:
            raise DataError(f"{self._path}: has no sheet with cells; name another file")
        chosen = shown[0] if wanted is None else wanted
        if len(shown) > 1 and wanted is None:
            self.account.notes.append(
                f"the sheet '{one_line(chosen)}' was read; give --sheet for another one "
                f"({names_shown([title for title in shown if title != chosen])})"
            )
        return sheets[chosen]

    @contextmanager
    def _errors_as_sentences(self) -> Iterator[None]:
        """What openpyxl raises at a damaged file, which may be any error, as one sentence."""
        try:
            yield
        except (DataError, GeneratorExit, KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            reason = one_line(str(error)[:200]) or type(error).__name__
            raise DataError(
                f"{self._path}: cannot be read as an Excel table ({reason}); save it again, or save it as CSV"
            ) from error


def _openpyxl() -> Any:
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError as error:
        raise DataError(
            "reading an Excel table needs the extra 'excel': pip install 'dpmpn[excel]'; or save it as CSV"
        ) from error
    # It warns of what it leaves out, such as drop-down lists, none of which is a value.
    warnings.filterwarnings("ignore", module="openpyxl")
    return openpyxl


def _check_archive(path: Path) -> None:
    """Refuse what is no workbook, and one that unfolds to far more than its file holds."""
    size = check_file(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        if _BINARY_WORKBOOK in names:
            raise DataError(f"{path}: is a binary Excel table; save it as .xlsx or CSV")
        if _WORKBOOK not in names:
            raise DataError(f"{path}: is not an Excel table; give its --format")
        # No member gives more bytes than it says here.
        if sum(member.file_size for member in members) > max(HARMLESS_SIZE, LARGEST_RATIO * size):
            raise DataError(
                f"{path}: unpacks to more than {LARGEST_RATIO} times its size, which facts do not; save it as CSV"
            )
        for member in members:
            with archive.open(member) as file:
                if b"<!DOCTYPE" in file.read(
                    _PROLOGUE
                ):  # the only place for entities, which Excel writes none of
                    raise DataError(f"{path}: {member.filename} declares a document type; save it again")


def _cell(value: Any) -> Any:
    """The value of a cell: nothing for blanks and errors, a day where a date has no time of the day."""
    if isinstance(value, str):
        return None if not value.strip() or value in _ERRORS else value
    if isinstance(value, datetime.datetime):
        return value.date() if value.time() == _MIDNIGHT else value.isoformat(" ", "seconds")
    return value


def _at(cells: list[Any], position: int) -> Any:
    """A cell of a row, which may be shorter than others."""
    return cells[position] if position < len(cells) else None
