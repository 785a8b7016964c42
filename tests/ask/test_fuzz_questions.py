"""Files of questions against anything at all: questions come out, or a sentence that names the file."""

import io
import json
import tempfile
from pathlib import Path

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.ask.question_files import read_queries
from dpmpn.errors import DataError

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PIECES = (
    b'head relation inverse direction subject true tail , ; \t " "" \n \r\n \r \0 \xff \xef\xbb\xbf \xff\xfe { } [ ] : '
    b'null 1e999 NaN {"head":"a","relation":"r"} sep=; \'=a a b'
).split(b" ")
anything = st.one_of(
    st.binary(max_size=200), st.lists(st.sampled_from([b" ", *PIECES]), max_size=40).map(b"".join)
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
columns = st.sampled_from(
    ["head", "relation", "inverse", "direction", "note", "Head ", "rank", "subject", ""]
)


def read_or_refused(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            for frame in read_queries(path):
                assert frame.columns[:4] == ["query", "head", "relation", "inverse"]
                assert not any(frame[name].null_count() for name in frame.columns[:4])
        except DataError as error:
            assert str(path) in str(error) and "\n" not in str(error)


@quick
@given(anything, st.sampled_from(["q.csv", "q.tsv", "q.txt", "q.jsonl", "q.parquet", "q.csv.gz", "q"]))
def test_anything_gives_questions_or_a_data_error(content: bytes, name: str) -> None:
    read_or_refused(name, content)


@quick
@given(st.lists(st.dictionaries(columns, values, max_size=4), min_size=1, max_size=4))
def test_any_objects_give_questions_or_a_data_error(objects: list[dict[str, object]]) -> None:
    asked = [{"head": "a", "relation": "r", **each} for each in objects]
    read_or_refused("q.jsonl", "".join(json.dumps(each) + "\n" for each in asked).encode())


@quick
@given(st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(1, 255)), min_size=1, max_size=4))
def test_a_damaged_table_gives_questions_or_a_data_error(changes: list[tuple[int, int]]) -> None:
    file = io.BytesIO()
    pl.DataFrame({"head": ["a", "é"], "relation": ["r", "s"], "inverse": [True, None]}).write_parquet(file)
    content = bytearray(file.getvalue())
    for at, bits in changes:
        content[at % len(content)] ^= bits
    read_or_refused("q.parquet", bytes(content))
