"""With and without the inattentive GNN."""

import pytest
from made_analysis import Made, files_of, made, scored

from dpmpn.lab.reproduce.figure_4 import IGNN
from dpmpn.lab.reproduce.workshop import Request
from dpmpn.train.run_folder import RunFolder


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(IGNN, tmp_path_factory.mktemp("exhibit") / "ignn")


def test_the_two_runs_differ_in_the_steps_of_the_ignn_alone(exhibit):
    with_it, without = (
        RunFolder.open(exhibit.folder / "runs" / label).config
        for label in ("countries-seed0", "countries-seed0-without-ignn")
    )
    assert with_it.model.n_steps_in_ignn == 2
    assert with_it.replace(n_steps_in_ignn=0) == without


def test_all_files_are_written_and_the_table_shows_the_results(exhibit):
    assert {f"ignn.{kind}" for kind in ("json", "csv", "md", "svg", "png")} <= set(files_of(exhibit.folder))
    data = exhibit.data()
    assert [cells[0] for cells in exhibit.cells()] == ["with IGNN", "without IGNN"]
    for cells, result, line in zip(
        exhibit.cells(), data["results"].values(), exhibit.csv_rows(), strict=True
    ):
        scores = result["scores"]["both"]["realistic"]
        assert cells[1] == str(result["n_steps_in_ignn"]) == line["n_steps_in_ignn"]
        assert cells[5] == f"{100 * scores['mrr']:.1f}"
        assert float(line["hits_at_1"]) == scores["hits_at_1"]
    assert "nothing here compares with the paper" in exhibit.text()


def test_made_again_nothing_is_done_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(IGNN, exhibit.folder).said == ["2 of 2 pieces of work are done already"]
    assert files_of(exhibit.folder) == before


@pytest.mark.parametrize(
    ("queries", "told"),
    [
        ((1000, 1000), "Each training saw 1,000 queries, one epoch, as in the paper."),
        ((150, 150), "Each training saw 150 queries, 0.15 epochs; the paper's saw one epoch."),
        (
            (100, 150),
            "Trainings saw from 100 to 150 queries, 0.1 to 0.15 epochs, where --max-minutes 2 ended them; "
            "the paper's saw one epoch.",
        ),
    ],
)
def test_what_was_shortened_is_told(queries, told):
    results = {
        form: scored(0.4, count, form=form, n_steps_in_ignn=steps)
        for form, count, steps in zip(("with", "without"), queries, (2, 0), strict=True)
    }
    limit = 2 if len(set(queries)) > 1 else None
    assert told in IGNN.show(Request(max_minutes=limit), results).text
