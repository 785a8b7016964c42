import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.near_names import NearNames, near_names
from dpmpn.data.sources.base import LABELS
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName


@given(st.lists(st.text(max_size=8), unique=True))
def test_names_and_ids_are_inverse(names):
    vocabulary = Vocabulary(names)
    assert [vocabulary.id(name) for name in names] == list(range(len(vocabulary)))
    assert [vocabulary.name(i) for i in range(len(vocabulary))] == names == list(vocabulary.names)


def test_a_name_twice_is_refused_with_its_ids():
    with pytest.raises(DataError, match=r"'b' occurs twice \(ids 1 and 3\)"):
        Vocabulary(["a", "b", "c", "b"])


def test_case_is_forgiven_where_one_name_fits():
    vocabulary = Vocabulary(["Berlin", "paris", "Paris", "PARIS"])
    assert vocabulary.id("bERLIN") == 0 and vocabulary.id(" Berlin ") == 0
    assert vocabulary.id("Paris") == 2
    assert "berlin" not in vocabulary
    with pytest.raises(UnknownName) as error:
        vocabulary.id("pAris")
    assert set(error.value.near) == {"paris", "Paris", "PARIS"}


def test_unknown_name_says_its_kind_and_near_names():
    vocabulary = Vocabulary(["located_in", "neighbour_of", "capital_of"])
    with pytest.raises(UnknownName, match="unknown relation 'locatedin'; did you mean 'located_in'"):
        vocabulary.id("locatedin", "relation")


def test_only_the_first_names_are_suggested_where_asked():
    vocabulary = Vocabulary(["likes", "knows", "likes_inv", "knows_inv"])
    assert vocabulary.near("like") == ["likes", "likes_inv"]
    assert vocabulary.near("like", 2) == ["likes"]
    with pytest.raises(UnknownName) as error:
        vocabulary.id("know", "relation", 2)
    assert error.value.near == ["knows"]


def test_last_words_count_as_near():
    assert near_names("berln", ["concept_city_berlin", "concept_person_anna"]) == ["concept_city_berlin"]


def test_id_outside_is_refused():
    with pytest.raises(DataError, match=r"id -1 is outside 0\.\.1"):
        Vocabulary(["a", "b"]).name(-1)


def test_numbered_names():
    assert Vocabulary.numbered(3).names == ("0", "1", "2")


def test_many_ids_at_once():
    vocabulary = Vocabulary(["b", "a", "ü"])
    assert vocabulary.ids(pl.Series(["ü", "x", "b", "b"])).tolist() == [2, -1, 0, 0]


def labelled():
    vocabulary = Vocabulary(["Q1", "Q2", "Q3", "Q4"])
    frame = pl.DataFrame(
        [
            ("Q2", "Berlin", "capital of Germany", "city"),
            ("Q3", "berlin", "town in Ohio", "town"),
            ("Q1", "Germany", "", "country"),
            ("Q1", "Deutschland", "a federal state", "member"),
            ("Q9", "nobody", None, None),
        ],
        LABELS,
        orient="row",
    )
    return vocabulary.labelled(frame)


def test_labels_are_shown_and_typed():
    vocabulary = labelled()
    assert [vocabulary.label(i) for i in range(4)] == ["Germany", "Berlin", "berlin", "Q4"]
    assert vocabulary.describe(0) == "a federal state" and vocabulary.describe(3) is None
    assert vocabulary.id("germany") == 0 and vocabulary.id("Berlin") == 1 and vocabulary.id("q4") == 3
    with pytest.raises(UnknownName, match="did you mean 'Germany'"):
        vocabulary.id("Germani")
    extended = vocabulary.extended(["Q5"])
    assert extended.id("Germany") == 0 and extended.label(4) == "Q5"


def test_a_label_of_several_asks_for_the_identifier():
    with pytest.raises(
        DataError, match=r"Q2 \(capital of Germany\), Q3 \(town in Ohio\); give the identifier"
    ):
        labelled().id("BERLIN")
    assert labelled().is_ambiguous("BERLIN")
    assert not any(labelled().is_ambiguous(text) for text in ("Berlin", "q4", "Rome"))


def test_types():
    vocabulary = labelled()
    assert vocabulary.of_type("City").tolist() == [1]
    assert vocabulary.of_type("member").tolist() == [0]
    with pytest.raises(UnknownName, match="unknown type 'countri'; did you mean 'country'"):
        vocabulary.of_type("countri")
    with pytest.raises(UnknownName, match="'x'; the most frequent types are 'city', 'country', 'member'"):
        vocabulary.of_type("x")
    with pytest.raises(DataError, match="has no types"):
        Vocabulary(["a"]).of_type("city")


def test_near_names_stay_fast_among_many():
    names = [f"concept_person_{i:06d}" for i in range(200_000)] + ["concept_city_Berlin"]
    start = time.process_time()
    near = NearNames(names)
    assert near.find("concept_city_berln")[0] == "concept_city_Berlin"
    assert time.process_time() - start < 5
    start = time.process_time()
    for i in range(20):
        assert near.find(f"concept_persn_{i:06d}")[0] == f"concept_person_{i:06d}"
    assert (time.process_time() - start) / 20 < 0.1  # measured: 0.02 s; going through all names takes 0.15


@given(st.lists(st.text("aAbé_ \n\0", max_size=8), min_size=201, max_size=300, unique=True), st.data())
def test_near_names_find_what_differs_in_case_alone(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in names if len(name) > 2] or ["aaa"]))
    folded = name.upper().lower().replace("_", " ")
    if name in names and len(folded) > 2:
        found = [each.lower().replace("_", " ") for each in near_names(name.upper(), names)]
        assert found and (folded in found or all(folded in each for each in found))
