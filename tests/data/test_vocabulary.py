import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.vocabulary import Vocabulary, near_names
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
    assert vocabulary.id("bERLIN") == 0
    assert vocabulary.id("Paris") == 2
    assert "berlin" not in vocabulary
    with pytest.raises(UnknownName) as error:
        vocabulary.id("pAris")
    assert set(error.value.near) == {"paris", "Paris", "PARIS"}


def test_unknown_name_says_its_kind_and_near_names():
    vocabulary = Vocabulary(["located_in", "neighbour_of", "capital_of"])
    with pytest.raises(UnknownName, match="unknown relation 'locatedin'; did you mean 'located_in'"):
        vocabulary.id("locatedin", "relation")


def test_last_words_count_as_near():
    assert near_names("berln", ["concept_city_berlin", "concept_person_anna"]) == ["concept_city_berlin"]


def test_id_outside_is_refused():
    with pytest.raises(DataError, match=r"id -1 is outside 0\.\.1"):
        Vocabulary(["a", "b"]).name(-1)


def test_numbered_and_lazy_names():
    assert Vocabulary.numbered(3).names == ("0", "1", "2")
    vocabulary = Vocabulary.lazy(2, lambda: ["a", "b", "c"])
    assert len(vocabulary) == 2
    with pytest.raises(DataError, match="expected 2 names but read 3"):
        vocabulary.name(0)


def test_near_names_stay_fast_among_many():
    names = [f"concept_person_{i:06d}" for i in range(200_000)] + ["concept_city_Berlin"]
    start = time.process_time()
    assert near_names("concept_city_berln", names)[0] == "concept_city_Berlin"
    assert time.process_time() - start < 5
