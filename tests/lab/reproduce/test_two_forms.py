"""Two forms side by side: with and without the IGNN, what a batch must not see, and how often edges are drawn."""

import numpy as np
import pytest
from made_analysis import Made, files_of, made, scored

from dpmpn.engine.batch import SampledEdges
from dpmpn.engine.engine import Engine
from dpmpn.lab.reproduce.drawn_engine import DrawnEngine
from dpmpn.lab.reproduce.two_forms import IGNN, IGNN_DRAWS, LEAK_REMOVAL
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


@pytest.fixture(scope="module")
def leaks(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(LEAK_REMOVAL, tmp_path_factory.mktemp("exhibit") / "leak-removal")


def test_what_is_hidden_is_all_that_differs(leaks):
    names = sorted(path.name for path in (leaks.folder / "runs").iterdir())
    assert names == ["countries-seed0", "countries-seed0-triples-hidden"]
    own, triples = (RunFolder.open(leaks.folder / "runs" / name).config for name in names)
    assert own.training.leak_removal == "pairs"  # as its facts ask for
    assert own.replace(leak_removal="triples") == triples
    assert [cells[1] for cells in leaks.cells()] == ["pairs", "triples"]
    found = leaks.data()["results"]
    assert {name: result["leak_removal"] for name, result in found.items()} == {
        "countries-seed0-pairs-hidden": "pairs",
        "countries-seed0-triples-hidden": "triples",
    }
    mrr = [result["scores"]["both"]["realistic"]["mrr"] for result in found.values()]
    assert mrr[0] != mrr[1]
    assert made(LEAK_REMOVAL, leaks.folder).said == ["2 of 2 pieces of work are done already"]


@pytest.fixture(scope="module")
def draws(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(IGNN_DRAWS, tmp_path_factory.mktemp("exhibit") / "ignn-draws")


def test_one_model_is_asked_with_several_draws_of_each_kind(draws):
    assert [path.name for path in (draws.folder / "runs").iterdir()] == ["countries-seed0"]
    assert [cells[0] for cells in draws.cells()] == ["drawn once", "drawn anew for each batch"]
    assert all("(" in cells[-1] for cells in draws.cells())  # spread over the draws
    rows = draws.csv_rows()
    assert sorted((row["form"], row["draw"]) for row in rows) == [
        (form, str(draw)) for form in ("anew", "once") for draw in range(3)
    ]
    assert len({row["mrr"] for row in rows}) == len(rows)
    assert "Scores are means (standard deviations) of 3 draws for one model." in draws.text()
    assert made(IGNN_DRAWS, draws.folder).said == ["6 of 6 pieces of work are done already"]


def test_edges_are_drawn_once_or_for_each_batch(draws):
    run = RunFolder.open(draws.folder / "runs" / "countries-seed0")
    arguments = run.model(), run.dataset().graph, run.config.replace(threads=1, max_sampling_per_step=50)
    arguments[0].settings = arguments[2].model
    heads, relations = np.arange(3), np.zeros(3, np.int64)

    def drawn(draw: int, anew: bool) -> list[tuple[SampledEdges, ...]]:
        engine = DrawnEngine(*arguments, draw=draw, anew=anew)
        return [engine.asking_batch(heads, relations).ignn_edges for _ in range(2)]

    def differ(one: tuple[SampledEdges, ...], other: tuple[SampledEdges, ...]) -> bool:
        return not any(
            np.array_equal(a.heads, b.heads) and np.array_equal(a.tails, b.tails)
            for a, b in zip(one, other, strict=True)
        )

    (once, again), (first, second), other = drawn(0, False), drawn(0, True), drawn(1, False)[0]
    assert not differ(once, again) and differ(first, second) and differ(once, other)
    usual = Engine(*arguments).asking_batch(heads, relations)
    assert all(len(edges.heads) == 50 for edges in (*first, *usual.ignn_edges))
