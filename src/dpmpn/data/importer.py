"""From facts to a dataset, whatever they lie in: read, number, split, check for leaks, write whole, and report.

`load_dataset` takes a folder or a name, `dataset_from` files and objects in memory, `import_dataset` sources opened
as asked; all of them read with `sources` and number with `Encoder`: equal facts are equal datasets.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from dpmpn.arguments import typed
from dpmpn.data import storage
from dpmpn.data.dataset import (
    CANDIDATES_FILE,
    GRAPH,
    MANIFEST,
    SPLITS,
    Dataset,
    name_of_folder,
    open_dataset,
    read_candidates,
    write_dataset,
)
from dpmpn.data.fact_provenance import ProvenanceCollector
from dpmpn.data.graph import KnowledgeGraph, named_triples, sorted_unique
from dpmpn.data.labels import read_labels
from dpmpn.data.leakage import leakage
from dpmpn.data.numbering import Encoder, NumberedFacts
from dpmpn.data.registry import find_dataset, known_dataset
from dpmpn.data.sources.base import COLUMNS, PROVENANCE, TIME, ReadOptions, Source
from dpmpn.data.sources.formats import is_source, open_sources, source_of, split_files
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError
from dpmpn.files import whole_folder, write_json
from dpmpn.settings import MOST_SEED, checked_number, refusal

REPORT = "import.json"
Tick = Callable[[int, int | None, int], None]
"""Called with how much was read, how much there is (None where a source cannot tell), and how many facts that were."""

Sources = Mapping[str, Sequence[Source]]
"""Sources by split; those of "train" hold all facts where there are no others."""

_OPTION = re.compile(r"--[a-z]")


@dataclass(frozen=True)
class SplitChoice:
    """How facts are divided where no validation and test facts are given."""

    by: Literal["random", "time", "none"] = "random"
    valid_share: float = 0.05
    test_share: float = 0.05
    seed: int = 0
    transductive: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.by, str) or self.by not in ("random", "time", "none"):
            raise refusal("by", self.by, "'random', 'time' or 'none'")
        for share in ("valid_share", "test_share"):
            checked_number(share, getattr(self, share), float, at_least=0, at_most=1)
        checked_number("seed", self.seed, int, at_least=0, at_most=MOST_SEED)


@typed
def load_dataset(name_or_folder: str | Path, say: Any = None) -> Dataset:
    """Load a dataset from a folder (imported, or with a file train.*), by a name of the registry, or from a file.

    Of the facts of a file some are held out, as `dpmpn import` does; `say`, a function of a text, is told which.
    """
    folder = Path(name_or_folder)
    if is_source(name_or_folder):
        return _load_file(name_or_folder, SplitChoice(), say)
    if (folder / MANIFEST).is_file():
        return open_dataset(folder)
    if split_files(folder)["train"]:
        return _load_folder(folder, name_of_folder(folder))
    if folder.is_dir() and find_dataset(str(name_or_folder)) is None:
        raise without_train(folder)
    entry = known_dataset(
        str(name_or_folder), "there is no file or folder of this name; `dpmpn datasets` lists the datasets"
    )
    return _load_folder(entry.existing_folder(), entry.name)


def is_dataset(folder: Path) -> bool:
    """Whether a folder was imported, or has a file train.*."""
    return (folder / MANIFEST).is_file() or bool(split_files(folder)["train"])


def load_facts(facts: Any, say: Callable[[str], None] | None = None) -> Dataset:
    """The dataset that facts of any kind stand for, as they are: nothing is held out that is not held out already.

    Takes what `load_dataset` takes, and what `dataset_from` does: files, addresses, frames, graphs and rows of names,
    whose facts are all in the graph. Says of a file what was left out, and what may be wrong about how it was read.
    """
    if isinstance(facts, Dataset):
        return facts
    if not isinstance(facts, str | Path):
        return dataset_from(facts, split=SplitChoice("none"))
    if not is_source(facts):
        return load_dataset(facts)
    return _load_file(facts, SplitChoice("none"), say)


def _load_file(facts: str | Path, split: SplitChoice, say: Callable[[str], None] | None) -> Dataset:
    """The facts of a file or an address; says what was left out or may be wrong, and what was held out."""
    with _options_of_import("the file"):
        source = source_of(facts)
        dataset, report = read_dataset({"train": [source]}, name=_file_name(facts), split=split)
    account = source.account
    for sentence in (*(f"{n:,} left out: {reason}" for reason, n in account.skipped.items()), *account.notes):
        if say is not None:
            of_import = " (an option of `dpmpn import`)" if _OPTION.search(sentence) else ""
            say(f"{account.source}: {sentence}{of_import}")
    if say is not None and split.by != "none":
        say(f"{account.source}: {report['split']}")
    return dataset


def files_of(facts: str) -> list[Path]:
    """The files that say what `load_facts` reads of a text; none of an address."""
    if is_source(facts):
        return [Path(facts)]
    folder, entry = Path(facts), find_dataset(facts)
    if not folder.is_dir() and entry is not None:
        folder = entry.existing_folder()
    manifests = [folder / MANIFEST, folder / GRAPH / storage.MANIFEST]  # which have checksums of the rest
    return [*manifests, *(Path(file) for files in split_files(folder).values() for file in files)]


@typed
def dataset_from_tuples(
    train: Iterable[tuple[str, str, str]],
    valid: Iterable[tuple[str, str, str]] = (),
    test: Iterable[tuple[str, str, str]] = (),
    name: str = "mine",
) -> Dataset:
    """Make a dataset of (head, relation, tail) names."""
    given = {"train": train, "valid": valid, "test": test}
    rows = {split: named_triples(split, triples) for split, triples in given.items()}
    if not rows["train"]:
        raise DataError("train has no triples; give at least one")
    facts = _numbered({split: [source_of(some)] for split, some in rows.items()})
    return _dataset(facts.distinct(), name)


@typed
def dataset_from(
    facts: Any,
    valid: Any = None,
    test: Any = None,
    *,
    columns: Sequence[str] | None = None,  # of head, relation and tail: names, or positions from 1
    wide: bool | None = None,  # whether each row is an item, and the names of the other columns are relations
    cell_separator: str | None = None,  # between several values in a cell of a wide table
    sheet: str | None = None,  # of an Excel workbook; the first if none is named
    labels: Any = None,  # a path, or a polars frame with the columns of LABELS
    split: SplitChoice | None = None,
    name: str = "mine",
) -> Dataset:
    """A dataset of frames, graphs, tuples or files; where neither valid nor test is given, facts are held out.

    Takes frames of pandas, polars and pyarrow, graphs of networkx and rdflib, PyKEEN triples factories, rows of
    three names, paths and addresses. The graph with all facts and nothing held out: `SplitChoice("none")`. Of a wide
    table `columns` are that of the items, and those that are taken where not all are.
    """
    if facts is None:
        raise DataError(
            "there are no facts in None; give a data frame, rows of three names, or the path of a file"
        )
    given = {"train": facts, "valid": valid, "test": test}
    named = columns.split(",") if isinstance(columns, str) else columns
    chosen = None if named is None else tuple(str(column).strip() for column in named)
    options = ReadOptions(columns=chosen, wide=wide, cell_separator=cell_separator, sheet=sheet)
    known = read_labels(labels) if isinstance(labels, str | Path) else labels
    try:
        sources = {which: [source_of(some, options)] for which, some in given.items() if some is not None}
        return read_dataset(sources, name=name, labels=known, split=split)[0]
    except DataError as error:
        if type(error) is not DataError:
            raise
        raise DataError(_in_python(str(error))) from error


def _in_python(message: str) -> str:
    """A message with the options of `dpmpn import` that it advises as arguments of `dataset_from`."""
    message = re.sub(r"--columns ([\w.:-]+(?:,[\w.:-]+)+)", r"columns='\1'", message)
    return (
        message.replace("--columns", "columns")
        .replace("--no-wide", "wide=False")
        .replace("--wide", "wide=True")
    )


def import_dataset(
    sources: Sources,
    out: str | Path,
    *,
    name: str | None = None,
    labels: pl.DataFrame | None = None,  # columns of LABELS; they go before what the sources say
    split: SplitChoice | None = None,
    progress: Tick | None = None,
) -> dict[str, Any]:
    """Read sources into a dataset folder, which is there whole or not at all; the report lies in it, too."""
    started = time.perf_counter()
    out = Path(out)
    with whole_folder(out) as folder:
        dataset, report = read_dataset(
            sources, name=name or name_of_folder(out), labels=labels, split=split, progress=progress
        )
        write_dataset(dataset, folder)
        report["seconds"] = round(time.perf_counter() - started, 2)
        write_json(folder / REPORT, report)
    return report


def read_dataset(
    sources: Sources,
    *,
    name: str = "mine",
    labels: pl.DataFrame | None = None,
    split: SplitChoice | None = None,
    progress: Tick | None = None,
) -> tuple[Dataset, dict[str, Any]]:
    """Read sources into a dataset in memory, with a report of what was read, left out and why."""
    facts, sentence = _numbered(sources, progress), "as given"
    n_read = facts.n_facts
    if set(sources) == {"train"}:
        facts, sentence = _divided(facts, split or SplitChoice())
    else:
        facts = facts.distinct()
    dataset = _dataset(facts, name)
    known = _all_labels(labels, sources)
    dataset = dataset if known is None else replace(dataset, graph=dataset.graph.labelled(known))
    repeated = n_read - sum(len(dataset.split(which)) for which in SPLITS)
    respelled = dict(
        zip(
            ("entities", "relations"),
            ({**each._asdict(), "examples": dict(each.examples)} for each in facts.respelled),
            strict=True,
        )
    )
    return dataset, _report(dataset, sources, known, repeated, sentence) | {"respelled": respelled}


def without_train(folder: Path) -> DataError:
    """The error of a folder that holds no training facts."""
    return DataError(
        f"{folder}: has no file train.*, such as train.txt or train.csv.gz; put the training facts there, or name "
        "the files to `dpmpn import`"
    )


def _numbered(sources: Sources, progress: Tick | None = None) -> NumberedFacts:
    """The facts of all sources."""
    encoder, said = Encoder(), ProvenanceCollector()
    everything = [source for given in sources.values() for source in given]
    times: list[pl.Series] = []
    for which, given in sources.items():
        first = encoder.count
        for source in given:
            for batch in source.batches():
                if PROVENANCE in batch.columns:
                    said.add(which, encoder.count - first, batch[PROVENANCE])
                encoder.add(which, batch.select(COLUMNS))
                if TIME in batch.columns and which == "train":
                    times.append(batch[TIME])
                if progress is not None:
                    progress(*_position(everything), encoder.count)
    facts = encoder.finish()
    facts = facts._replace(provenance=said.finish(facts.triples))
    if not len(facts.triples.get("train", ())):
        raise DataError(_nothing_read(everything))
    if not times:
        return facts
    from dpmpn.data.splits import parse_times

    return facts._replace(times=parse_times(pl.concat(times)))


def _position(sources: Sequence[Source]) -> tuple[int, int | None]:
    positions = [source.position() for source in sources]
    totals = [total for _, total in positions if total is not None]
    return sum(done for done, _ in positions), sum(totals) if len(totals) == len(positions) else None


def _dataset(facts: NumberedFacts, name: str) -> Dataset:
    """A dataset whose graph is the training facts and their inverses."""
    none = np.empty((0, 3), np.int32)
    train, valid, test = (facts.triples.get(split, none) for split in SPLITS)
    graph = KnowledgeGraph.from_ids(train, facts.entities, facts.relations)
    graph = replace(graph, provenance=facts.provenance)
    return Dataset(name, graph, train, valid, test, both_directions=True)


def _load_folder(folder: Path, name: str) -> Dataset:
    files = split_files(folder)
    if not files["train"]:
        raise without_train(folder)
    is_task = bool(files["graph"]) and (folder / CANDIDATES_FILE).is_file()
    wanted = (*SPLITS, "graph") if is_task else SPLITS
    with _options_of_import("the folder"):
        sources = {which: open_sources(files[which], ReadOptions()) for which in wanted}
        facts = _numbered(sources).distinct()
    dataset = replace(_dataset(facts, name), folder=folder)
    return _as_task(dataset, facts) if is_task else dataset


@contextmanager
def _options_of_import(what: str) -> Iterator[None]:
    """Say whose options a reader's error advises, where nobody can give them."""
    try:
        yield
    except DataError as error:
        if not _OPTION.search(str(error)):
            raise
        advice = f"an option of `dpmpn import`, which makes a dataset of {what}"
        raise DataError(f"{error} ({advice})") from error


def _file_name(source: str | Path) -> str:
    """What the facts of a file are called; of an address, which may hold a password, only its kind is told."""
    kind, is_address, _ = str(source).partition("://")
    return kind if is_address else name_of_folder(Path(source))


def _as_task(dataset: Dataset, facts: NumberedFacts) -> Dataset:
    """A NELL-995 task: the graph is its own file, inverses included, and one relation is asked one way."""
    assert dataset.folder is not None
    asked = np.unique(dataset.train[:, 1])
    if len(asked) != 1:
        raise DataError(
            f"{dataset.folder}: a task with {CANDIDATES_FILE} asks one relation, but its training file has "
            f"{len(asked)}, such as '{facts.relations.name(int(asked[0]))}'; remove {CANDIDATES_FILE} to load it as "
            "a plain dataset"
        )
    graph = KnowledgeGraph.from_ids(
        facts.triples["graph"], facts.entities, facts.relations, add_inverses=False
    )
    candidates = read_candidates(dataset.folder / CANDIDATES_FILE, facts.entities, int(asked[0]))
    return replace(dataset, graph=graph, both_directions=False, candidates=candidates)


def _divided(facts: NumberedFacts, choice: SplitChoice) -> tuple[NumberedFacts, str]:
    """Training facts by split, each once, and the sentence that says how they were divided."""
    from dpmpn.data.splits import Split, random_split, time_split

    triples, times, sizes = facts.triples["train"], facts.times, (len(facts.entities), len(facts.relations))
    if times is None:
        triples = np.stack(sorted_unique(triples, *sizes), axis=1, dtype=np.int32, casting="unsafe")
    else:
        triples, times = _earliest(triples, times)
    shares = choice.valid_share, choice.test_share
    if choice.by == "none":
        nothing = np.zeros(len(triples), np.int8)
        split = Split(nothing, 0, 0, 0, "all facts are for training; nothing is held out")
    elif choice.by == "random":
        split = random_split(triples, *sizes, *shares, choice.seed, transductive=choice.transductive)
    elif times is None:
        raise DataError("splitting by time needs a column of times; name it with --time-column")
    else:
        split = time_split(triples, times, *sizes, *shares, transductive=choice.transductive)
    parts = {which: triples[split.assignment == number] for number, which in enumerate(SPLITS)}
    return facts._replace(triples=parts), split.sentence


def _earliest(triples: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triple once, sorted, and the earliest of its times."""
    order = np.lexsort((times, *triples.T[::-1]))
    triples, times = triples[order], times[order]
    first = np.ones(len(triples), bool)
    first[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return triples[first], times[first]


def _all_labels(given: pl.DataFrame | None, sources: Sources) -> pl.DataFrame | None:
    """The labels that were given, before those that the sources hold; None where there are none."""
    held = [source.labels() for group in sources.values() for source in group]
    frames = [frame for frame in ([] if given is None else [given]) + held if frame.height]
    return pl.concat(frames) if frames else None


def _nothing_read(sources: Sequence[Source]) -> str:
    accounts = [source.account for source in sources]
    skipped = [f"{count} left out: {reason}" for one in accounts for reason, count in one.skipped.items()]
    names = ", ".join(account.source for account in accounts)
    why = f" ({'; '.join(skipped[:3])})" if skipped else ""
    return (
        f"no facts were read from {names}{why}; check that there are rows below the header, and the format, the "
        "columns and the query"
    )


def _report(
    dataset: Dataset, sources: Sources, labels: pl.DataFrame | None, repeated: int, sentence: str
) -> dict[str, Any]:
    graph = dataset.graph
    return {
        "name": dataset.name,
        "sources": [
            {"split": which, **asdict(source.account)} for which, given in sources.items() for source in given
        ],
        "entities": graph.n_entities,
        "relations": graph.n_forward,
        **{which: len(dataset.split(which)) for which in SPLITS},
        "duplicates": repeated,
        "labels": {"entities": _labelled(graph.entities), "relations": _labelled(graph.relation_names)},
        "labels_given": labels["id"][0] if labels is not None else None,  # an identifier that was given one
        "split": sentence,
        "leakage": leakage(dataset),
    }


def _labelled(vocabulary: Vocabulary) -> int:
    return 0 if vocabulary.labels is None else len(vocabulary) - vocabulary.labels["name"].null_count()
