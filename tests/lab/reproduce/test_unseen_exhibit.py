"""Trained on one graph, asked on another one."""

import pytest
from made_analysis import Made, files_of, made

from dpmpn.data.inductive import inductive_split
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.reproduce.strong import UNSEEN
from dpmpn.lab.reproduce.workshop import dataset_named
from dpmpn.train.run_folder import RunFolder


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(UNSEEN, tmp_path_factory.mktemp("exhibit") / "unseen")


def test_the_model_never_saw_the_entities_it_is_asked_about(exhibit):
    run = RunFolder.open(exhibit.folder / "runs/countries-train-seed0-strong")
    ask = inductive_split(dataset_named("countries")).ask
    assert not set(run.dataset().graph.entities.names) & set(ask.graph.entities.names)
    assert run.config.model.name == "strong"


def test_all_files_are_written_and_the_table_shows_both_graphs(exhibit):
    assert {f"unseen.{kind}" for kind in ("json", "csv", "md")} <= set(files_of(exhibit.folder))
    (found,) = exhibit.data()["results"].values()
    assert [cells[0] for cells in exhibit.cells()] == ["trained on", "never seen"]
    for cells, line, part in zip(exhibit.cells(), exhibit.csv_rows(), ("train", "ask"), strict=True):
        sizes, both = found["split"][part], found["asked"][part]["both"]
        assert cells[1] == f"{sizes['entities']:,}" and line["entities"] == str(sizes["entities"])
        assert found["asked"][part]["triples"] == sizes["test"] == int(cells[6].replace(",", ""))
        assert cells[7:11] == [f"{100 * both['realistic'][metric]:.1f}" for metric in TITLES]
        assert cells[11] == f"{100 * both['coverage']:.1f}"
        assert line["graph"] == part


def test_what_does_not_compare_is_said(exhibit):
    assert "do not compare one to one" in exhibit.text()


def test_another_graph_is_answered_better_than_by_chance(exhibit):
    (found,) = exhibit.data()["results"].values()
    assert (
        found["asked"]["ask"]["both"]["realistic"]["mrr"] > 0.05
    )  # 0.013 for a random order of 522 entities
