"""Texts as they are compared in a search: without case and accents, an underscore as good as a space."""

import polars as pl

_ACCENTS = "[\u0300-\u036f]"  # not all marks: those of other scripts are vowels
_ASCII_BLANKS = " \t\n\v\f\r"  # Python takes some separators for blanks, too; polars does not
_LETTERS = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i",
    "ς": "σ",  # which one a capital becomes depends on the letter after it
}  # fmt: skip


def folded(texts: pl.Series) -> pl.Series:
    """Each text folded; null stays null."""
    plain = texts.str.len_bytes() == texts.str.len_chars()
    if not plain.all():
        # Decomposing 10^6 texts takes a second: only those that need it.
        texts = texts.zip_with(plain.fill_null(True), _decomposed(texts.set(plain, "")))
    return texts.str.to_lowercase().str.replace_all("_", " ", literal=True).str.strip_chars()


def folded_text(text: str) -> str:
    """One text folded in the same way."""
    if text.isascii():
        # As good as always: a column of one waits for polars' threads, on a busy machine for milliseconds.
        return text.lower().replace("_", " ").strip(_ASCII_BLANKS)
    return folded(pl.Series([text], dtype=pl.String))[0]


def _decomposed(texts: pl.Series) -> pl.Series:
    bare = texts.str.normalize("NFKD").str.replace_all(_ACCENTS, "").str.to_lowercase()
    return bare.str.replace_many(list(_LETTERS), list(_LETTERS.values()))
