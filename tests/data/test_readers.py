import gzip
import re
import tempfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.readers import read_triples
from dpmpn.errors import DataError

field = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\r\n\ufeff\0"), min_size=1, max_size=6
).filter(str.strip)
rows = st.lists(st.tuples(field, field, field), min_size=1, max_size=20)


def write(folder, content, name="train.txt"):
    path = Path(folder) / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@given(rows, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["train.txt", "train.txt.gz"]))
@settings(max_examples=60)
def test_what_is_written_is_read(triples, line_end, name):
    content = "".join("\t".join(row) + line_end for row in triples).encode()
    with tempfile.TemporaryDirectory() as folder:
        assert read_triples(write(folder, content, name)).rows() == triples


@pytest.mark.parametrize(
    "content",
    [
        b"a\tr\tb\nc\tr\td",
        b"a\tr\tb\nc\tr\td\n\n",
        b"a\tr\tb\r\nc\tr\td\r\n\r\n",
        b"\xef\xbb\xbfa\tr\tb\nc\tr\td\n",
    ],
)
def test_line_ends_trailing_blank_lines_and_byte_order_mark_are_accepted(tmp_path, content):
    assert read_triples(write(tmp_path, content)).rows() == [("a", "r", "b"), ("c", "r", "d")]


def test_quotes_hashes_numbers_and_null_are_plain_names(tmp_path):
    content = b'"a\tNA\t#b"\n1\tnull\t 2 \n'
    assert read_triples(write(tmp_path, content)).rows() == [('"a', "NA", '#b"'), ("1", "null", " 2 ")]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a\tr\tb\nc d\n", 2, "1 column instead of 3 in 'c d'"),
        (b"a\tr\tb\tx\nc\td\n", 1, "4 columns instead of 3 in 'a\tr\tb\tx'"),
        (b"a\tr\tb\n\nc\tr\td\n", 2, "1 column instead of 3 in ''"),
        (b"a\tr\tb\n\t\td\n", 2, "empty head in '\t\td'"),
        (b"a\tr\tb\nc\tr\t\n", 2, "empty tail in 'c\tr\t'"),
        (b"a\tr\tb\nc\tr\td\nx\tr\t\xff\n", 3, r"byte 0xff at position 5 is not UTF-8 in 'x	r	�'"),
    ],
)
def test_a_wrong_line_is_named_with_its_value(tmp_path, content, line, message):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=re.escape(f"{path}, line {line}: {message}")):
        read_triples(path)


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\r\n"])
def test_an_empty_file_is_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"train\.txt: is empty"):
        read_triples(write(tmp_path, content))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"train\.txt: no such file"):
        read_triples(tmp_path / "train.txt")


def test_a_broken_archive_is_refused(tmp_path):
    path = write(tmp_path, b"a\tr\tb\n" * 100, "train.txt.gz")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"train\.txt\.gz: cannot be read"):
        read_triples(path)


def test_a_zstd_archive_is_read(tmp_path):
    path = tmp_path / "train.txt.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"a\tr\tb\n"))
    assert read_triples(path).rows() == [("a", "r", "b")]


def test_a_name_of_white_space_or_with_a_nul_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"line 1: empty tail in 'a\tr\t '"):
        read_triples(write(tmp_path, b"a\tr\t \n"))
    with pytest.raises(DataError, match="line 1: byte 0x00 at position 5"):
        read_triples(write(tmp_path, b"a\tr\t\0\n"))
