"""Facts by the name of a dataset, a folder, a file or an object: all of them, and nothing held out of what is given."""

from pathlib import Path

import pytest

from dpmpn.data.importer import files_of, load_facts
from dpmpn.errors import DataError, UnknownName

ROWS = "a,likes,b\nb,likes,c\nc,knows,a\n"


def test_a_file_is_all_graph(tmp_path: Path) -> None:
    file = tmp_path / "facts.csv"
    file.write_text(ROWS)
    dataset = load_facts(str(file))
    assert dataset.name == "facts.csv" and len(dataset.train) == 3
    assert not len(dataset.valid) and not len(dataset.test)


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    file = tmp_path / "facts.csv"
    file.write_text(f"{ROWS}\n# a comment\n{ROWS}")
    said: list[str] = []
    assert len(load_facts(file, said.append).train) == 3
    assert said and all(sentence.startswith(f"{file}: ") for sentence in said)
    assert any("left out" in sentence for sentence in said)


def test_a_folder_keeps_its_splits(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(ROWS)
    (tmp_path / "test.csv").write_text("b,knows,new\n")
    dataset = load_facts(tmp_path)
    assert len(dataset.train) == 3 and len(dataset.test) == 1 and "new" in dataset.graph.entities


def test_names_and_datasets_are_as_ever() -> None:
    countries = load_facts("countries")
    assert countries.name == "countries" and len(countries.test) and load_facts(countries) is countries


def test_a_file_named_like_nothing_goes_before_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("countries").write_text("a\tr\tb\n")
    assert len(load_facts("countries").train) == 1


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"facts\.csv: no such file"):
        load_facts(tmp_path / "facts.csv")
    with pytest.raises(UnknownName, match=r"'countris'; did you mean 'countries'.*no file or folder"):
        load_facts("countris")
    with pytest.raises(DataError, match=r"has no file train\.\*"):
        load_facts(tmp_path)


def test_an_option_that_is_advised_is_one_of_import(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("a,b,c,d\n1,2,3,4\n5,6,7,8\n")
    with pytest.raises(DataError, match=r"--columns.*an option of `dpmpn import`"):
        load_facts(tmp_path / "odd.csv")


def test_the_files_behind_facts(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(ROWS)
    assert tmp_path / "train.csv" in files_of(str(tmp_path))
    assert files_of(str(tmp_path / "train.csv")) == [tmp_path / "train.csv"]
    assert any(file.name == "train.txt" for file in files_of("countries"))
