import gzip
import io
import os
import zipfile

import pytest
import zstandard

from dpmpn.data.sources import unpack
from dpmpn.data.sources.base import LONGEST_LINE, refuse_binary, text_chunks
from dpmpn.data.sources.unpack import Unpacked
from dpmpn.errors import DataError

TEXT = b"".join(b"Q%d\tP%d\tQ%d\n" % (i, i % 7, i * i) for i in range(30_000))


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)  # a date that is always the same
    return file.getvalue()


def write(folder, content, name="facts.tsv"):
    path = folder / name
    path.write_bytes(content)
    return path


def read_all(path):
    with Unpacked(path) as stream:
        return stream.read_full(1 << 30)


PACKED = {
    "facts.tsv": TEXT,
    "facts.tsv.gz": gzip.compress(TEXT),
    "two_members.tsv.gz": gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
    "facts.tsv.zst": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "two_frames.zst": b"".join(
        zstandard.ZstdCompressor().compress(part) for part in (TEXT[:999], TEXT[999:])
    ),
    "facts.zip": zipped(("inner.tsv", TEXT)),
    "folders.zip": zipped(("data/", b""), ("data/inner.tsv", TEXT), ("__MACOSX/._inner.tsv", b"x")),
    "not_really_packed.gz": TEXT,
}


@pytest.mark.parametrize("name", PACKED)
def test_what_was_packed_comes_out(tmp_path, name):
    path = write(tmp_path, PACKED[name], name)
    assert read_all(path) == TEXT
    assert read_all(write(tmp_path, PACKED[name], "named_like_nothing")) == TEXT


def test_the_name_inside_and_the_position_are_known(tmp_path):
    with Unpacked(write(tmp_path, PACKED["facts.zip"], "facts.zip")) as stream:
        assert stream.name == "inner.tsv"
    with Unpacked(write(tmp_path, PACKED["facts.tsv.gz"], "facts.tsv.gz")) as stream:
        assert stream.name == "facts.tsv"
        assert TEXT.startswith(stream.beginning) and len(stream.beginning) == 65536
        assert stream.read_full(10) == TEXT[:10]
        stream.read_full(1 << 30)
        assert stream.position() == (stream.size, stream.size)


@pytest.mark.parametrize("name", ["facts.tsv.gz", "facts.tsv.zst", "two_frames.zst"])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.999])
def test_a_cut_off_archive_says_how_far_it_got(tmp_path, name, keep):
    content = PACKED[name]
    path = write(tmp_path, content[: int(len(content) * keep)], name)
    with pytest.raises(
        DataError, match=r"cannot be read: it is cut off, after [\d,]+ unpacked bytes; get the"
    ):
        read_all(path)


@pytest.mark.parametrize("name", ["facts.tsv.gz", "facts.tsv.zst", "facts.zip"])
def test_a_changed_byte_is_noticed(tmp_path, name):
    for at in range(40, len(PACKED[name]) - 120, len(PACKED[name]) // 20):
        content = bytearray(PACKED[name])
        content[at] ^= 0x10
        with pytest.raises(DataError, match="cannot be read"):
            read_all(write(tmp_path, bytes(content), name))


def bombs():
    zeros = b"\0" * (4 << 20)
    return {"b.gz": gzip.compress(zeros), "b.zst": zstandard.compress(zeros), "b.zip": zipped(("b", zeros))}


@pytest.mark.parametrize("name", ["b.gz", "b.zst", "b.zip"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, name, monkeypatch):
    monkeypatch.setattr(unpack, "HARMLESS_SIZE", 1 << 20)
    with pytest.raises(DataError, match=rf"{name}: unpacks to more than 250 times its size"):
        read_all(write(tmp_path, bombs()[name], name))


@pytest.mark.parametrize("name", ["b.gz", "b.zst", "b.zip"])
def test_small_files_may_pack_well(tmp_path, name):
    assert len(read_all(write(tmp_path, bombs()[name], name))) == 4 << 20


def test_a_zip_header_that_declares_an_absurd_size_is_refused(tmp_path):
    content = bytearray(zipped(("b", b"x" * 100)))
    at = content.index(b"PK\x01\x02") + 24  # the unpacked size in the central directory
    content[at : at + 4] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(DataError, match="unpacks to more than 250 times its size"):
        Unpacked(write(tmp_path, bytes(content), "b.zip"))


def test_a_zstd_window_that_needs_absurd_memory_is_refused(tmp_path):
    header = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00"
    with pytest.raises(DataError, match=r"too much memory"):
        read_all(write(tmp_path, header, "w.zst"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped(("a", b"1"), ("b", b"2")), r"holds 2 files \(a, b\) instead of one"),
        (zipped(), "holds 0 files instead of one"),
        (zipped(("[Content_Types].xml", b"1"), ("xl/workbook.xml", b"2")), "looks like an Office file"),
        (zipped(("a", b"1" * 99), method=zipfile.ZIP_LZMA), "packed in a way that is not read here"),
        (zipped(("a", b"1" * 99))[:60], "cannot be read"),
    ],
    ids=["two files", "no file", "office", "lzma", "cut off"],
)
def test_a_zip_without_one_readable_file_is_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_all(write(tmp_path, content, "facts.zip"))


def test_a_folder_a_pipe_an_empty_and_a_missing_file_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name, message in {
        "": "is a folder",
        "pipe": "is a pipe",
        "empty": "is empty",
        "x": "no such file",
    }.items():
        with pytest.raises(DataError, match=message):
            Unpacked(tmp_path / name)
    with pytest.raises(DataError, match="cannot be read"):
        Unpacked("a\0b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"PAR1\x15\x04\x15\0\0\0",
            "looks like a Parquet file, not like lines of facts; use --format parquet",
        ),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        (b"%PDF-1.7\n1 0 obj", "a PDF document"),
        (b"PK\x03\x04\x14\0", "an Excel table"),
        (b"SQLite format 3\0\x10\0", "an SQLite database"),
        ("a\tr\tb\n".encode("utf-16-le"), "UTF-16 text, not like lines of facts; save the file as UTF-8"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"x" * 500 + bytes(20), "holds NUL bytes and is not a text file"),
        (b"a\tr\tb\rc\tr\td\r", "end with CR alone"),
    ],
)
def test_what_is_not_text_is_named(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        refuse_binary(tmp_path / "facts.tsv", content)


@pytest.mark.parametrize(
    "content", [b"PAR1\tr\tb\n", b"GIF89a\tr\tb\n", b"BZh\tr\tb\n", "ÿþ\tr\tb\n".encode()]
)
def test_text_may_begin_like_something_else(tmp_path, content):
    refuse_binary(tmp_path / "facts.tsv", content)


@pytest.mark.parametrize("size", [1, 5, 1000, 1 << 20])
def test_chunks_are_whole_lines_with_their_numbers(tmp_path, size):
    content = b"one\n\nthree\r\nfour\nfive"
    with Unpacked(write(tmp_path, b"\xef\xbb\xbf" + content)) as stream:
        chunks = list(text_chunks(stream, size))
    assert b"".join(chunk.content for chunk in chunks) == content
    for chunk in chunks[:-1]:
        assert chunk.content.endswith(b"\n")
    assert [chunk.first for chunk in chunks] == [
        1 + b"".join(chunk.content for chunk in chunks[:i]).count(b"\n") for i in range(len(chunks))
    ]


def test_a_huge_line_is_named(tmp_path):
    short = b"a\tr\tb\n" * 6
    with Unpacked(write(tmp_path, short + b"x" * LONGEST_LINE + b"\n")) as stream:
        assert sum(len(chunk.content) for chunk in text_chunks(stream)) == len(short) + LONGEST_LINE + 1
    for end in (b"\n", b"\na\tr\tb\n", b""):
        with (
            Unpacked(write(tmp_path, short + b"x" * (LONGEST_LINE + 1) + end)) as stream,
            pytest.raises(
                DataError, match=r"facts\.tsv, line 7: is longer than 1 MiB; is this a text file\?"
            ),
        ):
            list(text_chunks(stream))
