import pytest

from dpmpn.data.importer import load_dataset
from dpmpn.data.registry import DATASETS, ROOT_VARIABLE, find_dataset, known_dataset, list_datasets
from dpmpn.errors import DataError, UnknownName


@pytest.fixture(autouse=True)
def no_fetched_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("FB15K-237", "FB15K-237"),
        ("fb15k_237", "FB15K-237"),
        ("wn 18 rr", "WN18RR"),
        ("NELL995", "NELL-995"),
        ("athleteplaysforteam", "NELL-995/athleteplaysforteam"),
        ("nell995/AthletePlaysForTeam", "NELL-995/athleteplaysforteam"),
        ("NELL-995-tasks/worksfor", "NELL-995/worksfor"),
        ("countries-s1", "Countries_S1"),
        ("Countries", "countries"),
    ],
)
def test_spellings_are_forgiven(spelling, name):
    assert find_dataset(spelling) is DATASETS[name]


def test_presets():
    presets = {name: DATASETS[name].preset for name in ("FB15K-237", "YAGO3-10", "NELL-995/worksfor", "UMLS")}
    assert presets == {
        "FB15K-237": "fb15k-237",
        "YAGO3-10": "yago3-10",
        "NELL-995/worksfor": "nell995",
        "UMLS": None,
    }


def test_unknown_dataset_names_near_ones():
    with pytest.raises(UnknownName) as error:
        known_dataset("wn18r")
    assert error.value.near[0] == "WN18RR"
    assert "dpmpn datasets" in str(error.value)


def test_without_the_root_the_error_says_to_set_it(monkeypatch):
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    with pytest.raises(DataError, match=r"\$DPMPN_DATA is not set.*'WN18RR'"):
        load_dataset("wn18rr")


def test_a_missing_dataset_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    with pytest.raises(DataError) as error:
        load_dataset("YAGO3-10")
    assert str(tmp_path / "YAGO3-10") in str(error.value)
    assert "YAGO3-10-quarter exists as a scale set only" in str(error.value)


def test_a_dataset_is_found_below_the_root(monkeypatch, tmp_path):
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    (tmp_path / "UMLS").mkdir()
    (tmp_path / "UMLS" / "train.txt").write_text("a\tr\tb\n")
    dataset = load_dataset("umls")
    assert (dataset.name, dataset.folder) == ("UMLS", tmp_path / "UMLS")
    found = {row.name: row.folder for row in list_datasets()}
    assert found["UMLS"] == tmp_path / "UMLS" and found["WN18"] is None


def test_a_folder_of_the_same_name_without_triples_does_not_hide_a_dataset(monkeypatch, tmp_path):
    (tmp_path / "data" / "UMLS").mkdir(parents=True)
    (tmp_path / "data" / "UMLS" / "train.txt").write_text("a\tr\tb\n")
    (tmp_path / "umls").mkdir()
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    assert load_dataset("umls").name == "UMLS"


def test_the_bundled_dataset_needs_no_root(monkeypatch):
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    dataset = load_dataset("countries")
    assert dataset.name == "countries" and dataset.graph.n_edges > 0
