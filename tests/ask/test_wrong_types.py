"""Public functions of Python: what is given in another type than they take is refused by a sentence that names it."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmpn
from dpmpn import (
    Config,
    Dataset,
    DpmpnError,
    KnowledgeGraph,
    Reasoner,
    SplitChoice,
    dataset_from,
    dataset_from_tuples,
    load_dataset,
    load_preset,
)
from dpmpn.errors import ConfigError, DataError, WrongType

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(5)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(5)),
    *((f"child{i}", "father", f"father{i}") for i in range(4)),
]
SETTINGS = {"model": "strong", "n_dims": 4, "threads": 1, "n_steps_in_agnn": 2, "n_epochs": 0.5}
ODD: list[Any] = [
    *(
        5,
        2.5,
        None,
        True,
        -1,
        0,
        10**23,
        10**5000,
        float("nan"),
        float("inf"),
        b"child4",
        "",
        "x\ud800",
        "a\0b",
    ),
    *(
        ["child4"],
        ("a", "b"),
        {},
        {"a": 1},
        object(),
        len,
        Dataset,
        pd.NA,
        pd.NaT,
        np.float64(1),
        np.int64(3),
    ),
    *(np.array(["child4"]), np.array(5), pd.Series(["child4"]), pd.DataFrame({"a": [1]}), [FACTS[0], 5]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.fixture(scope="module")
def reasoner(folder: Path) -> Reasoner:
    return Reasoner(**SETTINGS).fit(dataset_from_tuples(FACTS, FACTS[-1:], FACTS[:1]), folder / "run")


def calls(reasoner: Reasoner) -> dict[str, Callable[[Any], Any]]:
    """Every public function with one argument open."""
    found, dataset = reasoner.predict("child4", "father"), reasoner.dataset
    explanation, fact = found.explain(), FACTS[0]
    return {
        "Config model": Config,
        "Config run": lambda x: Config(run=x),
        "Config.replace": lambda x: Config().replace(n_dims=x),
        "Dataset.split": dataset.split,
        "Dataset.queries": dataset.queries,
        "Explanation.save": lambda x: explanation.save(x, "text"),
        "Explanation.save formats": lambda x: explanation.save("explained", x),
        "KnowledgeGraph.open": KnowledgeGraph.open,
        "KnowledgeGraph.from_tuples": KnowledgeGraph.from_tuples,
        "KnowledgeGraph.save": dataset.graph.save,
        "Predictions.why": found.why,
        "Predictions.why top": lambda x: found.why(top=x),
        "Predictions.explain": found.explain,
        "Predictions.why_not": found.why_not,
        "Predictions.is_reached": found.is_reached,
        "Reasoner": Reasoner,
        "Reasoner setting": lambda x: Reasoner(strategy=x),
        "Reasoner.load": Reasoner.load,
        "Reasoner.load setting": lambda x: Reasoner.load("run", seed=x),
        "Reasoner.fit": lambda x: Reasoner(**SETTINGS).fit(x),
        "Reasoner.fit out": lambda x: Reasoner(**SETTINGS).fit(dataset, x) if x is not None else None,
        "Reasoner.predict": lambda x: reasoner.predict(x, "father"),
        "Reasoner.predict relation": lambda x: reasoner.predict("child4", x),
        "Reasoner.predict top": lambda x: reasoner.predict("child4", "father", x),
        "Reasoner.predict inverse": lambda x: reasoner.predict("father4", "father", inverse=x),
        "Reasoner.predict new": lambda x: reasoner.predict("child4", "father", new=x),
        "Reasoner.predict any_role": lambda x: reasoner.predict("child4", "father", any_role=x),
        "Reasoner.calibrate": reasoner.calibrate,
        "Reasoner.calibrate again": lambda x: reasoner.calibrate(again=x),
        "Reasoner.calibrate relation": lambda x: reasoner.calibrate(relation=x),
        "Reasoner.explain": lambda x: reasoner.explain("child4", "father", x),
        "Reasoner.why_not": lambda x: reasoner.why_not("child4", "father", x),
        "Reasoner.patterns": reasoner.patterns,
        "Reasoner.evaluate": reasoner.evaluate,
        "Reasoner.evaluate limit": lambda x: reasoner.evaluate(limit=x),
        "Reasoner.with_facts": reasoner.with_facts,
        "Reasoner.with_facts one": lambda x: reasoner.with_facts([x]),
        "Reasoner.with_facts name": lambda x: reasoner.with_facts([("child4", x, "father4")]),
        "Reasoner.with_facts remove": lambda x: reasoner.with_facts(remove=x),
        "Reasoner.with_labels": reasoner.with_labels,
        "Reasoner.on": reasoner.on,
        "Reasoner.save": reasoner.save,
        "SplitChoice": SplitChoice,
        "SplitChoice share": lambda x: SplitChoice(valid_share=x),
        "SplitChoice seed": lambda x: SplitChoice(seed=x),
        "dataset_from": dataset_from,
        "dataset_from split": lambda x: dataset_from(FACTS, split=x),
        "dataset_from_tuples": dataset_from_tuples,
        "dataset_from_tuples valid": lambda x: dataset_from_tuples(FACTS, x),
        "dataset_from_tuples one": lambda x: dataset_from_tuples([fact, x]),
        "dataset_from_tuples name": lambda x: dataset_from_tuples([fact, (x, "mother", "mother0")]),
        "load_dataset": load_dataset,
        "load_preset": load_preset,
    }


def test_every_public_name_is_called(reasoner: Reasoner) -> None:
    made = {"PredictionBatch", "Explanation", "Prediction", "Predictions", "WhyNot"}  # not by a person
    made |= {"Pattern", "LearntPatterns"}
    errors = {name for name in dpmpn.__all__ if name.endswith(("Error", "UnknownName"))}
    assert {name.split(".")[0].split()[0] for name in calls(reasoner)} | made | errors == set(dpmpn.__all__)


@pytest.mark.parametrize("number", range(len(ODD)))
def test_what_is_odd_is_taken_or_refused_in_a_sentence(
    reasoner: Reasoner, folder: Path, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, call in calls(reasoner).items():
        with contextlib.suppress(DpmpnError):
            try:
                call(ODD[number])
            except DpmpnError as error:
                assert 10 < len(str(error)) < 500, name
                raise
            except Exception as error:
                pytest.fail(f"{name}: {error!r:.300}")


def test_the_sentence_names_the_argument_and_what_it_is(reasoner: Reasoner) -> None:
    with pytest.raises(
        TypeError, match=r"Reasoner.predict: 'head' must be a text or several of them, not 5 \(int\)"
    ):
        reasoner.predict(5, "father")  # type: ignore[arg-type]
    with pytest.raises(WrongType, match=r"'answer' must be a text or None, not \['child4'\] \(list\)"):
        reasoner.explain("child4", "father", ["child4"])  # type: ignore[arg-type]
    with pytest.raises(WrongType, match="'inverse' must be True or False, not 1"):
        reasoner.predict("child4", "father", inverse=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'top' must be a whole number from 1 to 1,000,000,000, not 0"):
        reasoner.predict("child4", "father", top=0)
    with pytest.raises(WrongType, match="'sample' must be a whole number or None, not 'all'"):
        reasoner.calibrate("all")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'relation' must be a whole number from 0 to 5, not 6"):
        reasoner.calibrate(relation=6)
    with pytest.raises(DataError, match="cannot be a path"):
        Reasoner.load("a\0b")
    with pytest.raises(WrongType, match=r"entity names are texts, not 3 \(int\)"):
        reasoner.graph.entities.id(3)  # type: ignore[arg-type]


def test_scalars_of_numpy_are_what_they_look_like(reasoner: Reasoner) -> None:
    switches = {"inverse": np.bool_(False), "any_role": np.bool_(True)}
    asked = reasoner.predict(np.str_("child4"), np.str_("father"), np.int64(3), **switches)
    expected = reasoner.predict("child4", "father", 3, any_role=True)
    assert len(asked) == 3 and [answer.answer for answer in asked] == [a.answer for a in expected]
