import re

import pytest

from dpmpn.data.tasks import read_candidates
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError


def test_candidates_are_read_in_order_and_unknown_entities_kept(tmp_path):
    path = tmp_path / "sort_test.pairs"
    path.write_text("thing$a,thing$b,c: +\nthing$a,thing$nobody: -\n")
    candidates = read_candidates(path, Vocabulary(["a", "b,c"]), relation=7)
    assert candidates.relation == 7 and len(candidates) == 2
    assert candidates.heads.tolist() == [0, 0]
    assert candidates.tails.tolist() == [1, -1]
    assert candidates.positive.tolist() == [True, False]


@pytest.mark.parametrize("line", ["thing$a,thing$b: ?", "a,b: +", "thing$a: +", ""])
def test_a_wrong_line_is_named_with_its_value(tmp_path, line):
    path = tmp_path / "sort_test.pairs"
    path.write_text(f"thing$a,thing$b: +\n{line}\nthing$a,thing$b: -\n")
    with pytest.raises(DataError, match=re.escape(f"{path}, line 2: '{line}' is not a candidate")):
        read_candidates(path, Vocabulary(["a", "b"]), 0)


def test_a_right_answer_is_not_a_wrong_one_too(tmp_path):
    path = tmp_path / "sort_test.pairs"
    path.write_text("thing$a,thing$b: -\nthing$a,thing$b: +\nthing$a,thing$c: -\nthing$b,thing$c: +\n")
    found = read_candidates(path, Vocabulary(["a", "b", "c"]), relation=0)
    assert list(zip(found.heads, found.tails, found.positive, strict=True)) == [
        (0, 1, True),
        (0, 2, False),
        (1, 2, True),
    ]
