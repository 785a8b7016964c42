"""How names are spelled: one form for what reads the same, whether it is imported, added or asked for."""

from unicodedata import normalize

import polars as pl

# White space as polars strips it (str.strip() would take a few control characters more), and a byte order mark that
# became part of a name.
AROUND = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def normal(name: str) -> str:
    """A name in Unicode's composed form (NFC), without white space and byte order marks around it.

    An é may be one character or two, an e and its accent; nobody sees which, and both are the same name.
    """
    return (name if name.isascii() else normalize("NFC", name)).strip(AROUND)


def normal_names(names: pl.Series) -> pl.Series:
    """Many names, each as `normal` has it; null stays null."""
    stripped = names.str.strip_chars(AROUND)
    others = (stripped.str.len_bytes() != stripped.str.len_chars()).arg_true()
    if not len(others):
        return stripped
    return stripped.scatter(others, [normal(name) for name in stripped.gather(others)])
