"""Labels for WN18 and WN18RR: what the synsets are called, from the database files of WordNet 3.0.

    npm pack WNdb@3.0.0 && tar xzf WNdb-3.0.0.tgz    # Debian's wordnet-base has other places for verbs
    python benchmarks/wordnet_labels.py --wordnet package/dict --out synsets.tsv
    dpmpn explain runs/wn18rr-0 criminal_negligence.n.01 _synset_domain_topic_of --labels synsets.tsv

An identifier is the place of a synset in its file, without saying in which of the four files; where two files
use a place (232 entities of WN18RR), the label names both.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from dpmpn.files import write_whole

FILES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def senses(folder: Path, file: str) -> dict[tuple[str, str], int]:
    """Which sense of a word each synset is, counted from 1, the most frequent first."""
    found = {}
    for line in (folder / f"index.{file}").read_text("utf-8").splitlines():
        if line.startswith(" "):  # the licence
            continue
        word, _, n_synsets, *rest = line.split()
        for sense, place in enumerate(rest[-int(n_synsets) :], start=1):
            found[word, place] = sense
    return found


def synsets(folder: Path, file: str) -> Iterator[tuple[str, str, str]]:
    """Identifier, name such as dog.n.01, and definition of each synset of a file."""
    sense = senses(folder, file)
    for line in (folder / f"data.{file}").read_text("utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields, _, definition = line.partition(" | ")
        place, _, _, _, word, *_ = fields.split()
        word = word.partition("(")[0]  # adjectives say where they stand: galore(ip)
        number = sense.get((word.lower(), place), 1)
        yield place, f"{word}.{FILES[file]}.{number:02d}", definition.partition(";")[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of data.noun")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    named: dict[str, tuple[str, str, str]] = {}
    for file in FILES:
        for place, name, definition in synsets(options.wordnet, file):
            if place in named:
                _, other, also = named[place]
                name, definition = f"{other} or {name}", f"{also}; or: {definition}"
            named[place] = (place, name, definition)
    lines = ["id\tname\tdescription", *("\t".join(row) for row in named.values())]
    write_whole(options.out, lambda path: path.write_text("\n".join(lines) + "\n", "utf-8"))
    print(f"{len(named):,} synsets in {options.out}")


if __name__ == "__main__":
    main()
