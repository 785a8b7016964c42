"""A table that ends whoever decodes it is refused in a sentence, and the next one is read."""

from pathlib import Path

import polars as pl
import pytest

from dpmpn.data.sources import probe
from dpmpn.data.sources.formats import facts_of
from dpmpn.errors import DataError

FACTS = pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    FACTS.write_parquet(tmp_path / "f.parquet")
    return tmp_path / "f.parquet"


def test_one_process_decodes_all_tables(table: Path) -> None:
    assert facts_of(table).select(FACTS.columns).equals(FACTS)
    first = probe._other_process()
    assert first is not None and first.poll() is None
    FACTS.write_ipc(table.with_name("f.arrow"))
    assert len(facts_of(table.with_name("f.arrow"))) == 1
    assert probe._other_process() is first


@pytest.mark.parametrize(
    "accident", ["import os; os.abort()", "raise pl.exceptions.PanicException('damaged')"]
)
def test_what_ends_the_decoder_is_a_sentence_here(
    table: Path, accident: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = probe._PROGRAM.replace("table.slice(start, step).collect()", accident)
    with monkeypatch.context() as patch:
        patch.setattr(probe, "_PROGRAM", program)
        probe._other_process.cache_clear()
        for _ in range(2):
            with pytest.raises(DataError, match=r"f.parquet: cannot be read \(it is damaged\)"):
                facts_of(table)
    probe._other_process.cache_clear()
    assert len(facts_of(table)) == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("executable", ["", "/no/such/program", "/bin/false"])
def test_without_another_process_tables_are_read(
    table: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe.sys, "executable", executable)
    probe._other_process.cache_clear()
    try:
        assert len(facts_of(table)) == 1
    finally:
        probe._other_process.cache_clear()
