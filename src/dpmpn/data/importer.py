"""From sources of facts to a dataset on disk: read, number, split, check for leaks, write whole, and report."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.dataset_folder import write_dataset
from dpmpn.data.graph import KnowledgeGraph, sorted_unique
from dpmpn.data.labels import read_labels
from dpmpn.data.leakage import leakage
from dpmpn.data.sources.base import COLUMNS, TIME, Source
from dpmpn.data.sources.choose import source_of
from dpmpn.data.splits import Split, parse_times, random_split, time_split
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError
from dpmpn.files import whole_folder, write_json

REPORT = "import.json"
Tick = Callable[[int, int | None, int], None]
"""Told how much was read, how much there is (None where a source cannot tell), and how many facts that were."""


@dataclass(frozen=True)
class SplitChoice:
    """How facts are divided where no validation and test facts are given."""

    by: Literal["random", "time", "none"] = "random"
    valid_share: float = 0.05
    test_share: float = 0.05
    seed: int = 0
    transductive: bool = True


class Encoder:
    """Collects batches of named facts; in the end ids follow the sorted names, whatever the order of reading."""

    def __init__(self) -> None:
        # Polars keeps one table of names for all batches and gives each name a number when it first meets it.
        entities, relations = (pl.Categorical(pl.Categories.random(physical=pl.UInt32)) for _ in range(2))
        self._types = dict(zip(COLUMNS, (entities, relations, entities), strict=True))
        # A table lasts only while a column uses it.
        self._alive = [pl.Series([""], dtype=kind) for kind in (entities, relations)]
        self._codes: dict[str, list[np.ndarray]] = {}
        self.count = 0

    def add(self, which: str, facts: pl.DataFrame) -> None:
        """Take a batch of head, relation and tail for a split."""
        codes = facts.select(pl.col(c).cast(kind).to_physical() for c, kind in self._types.items())
        self._codes.setdefault(which, []).append(codes.to_numpy(order="c"))  # n x 3, uint32
        self.count += facts.height

    def finish(self) -> tuple[Vocabulary, Vocabulary, dict[str, np.ndarray]]:
        """Entities and relations in sorted order, and the facts of each split as int32 ids, n x 3."""
        triples = {which: np.concatenate(batches) for which, batches in self._codes.items()}
        self._codes.clear()
        entities, entity_ids = self._sorted(
            "head", [t[:, column] for t in triples.values() for column in (0, 2)]
        )
        relations, relation_ids = self._sorted("relation", [t[:, 1] for t in triples.values()])
        for which, codes in triples.items():
            ids = np.empty(codes.shape, np.int32)
            for column, number in enumerate((entity_ids, relation_ids, entity_ids)):
                ids[:, column] = number[codes[:, column]]
            triples[which] = ids
        return entities, relations, triples

    def _sorted(self, column: str, codes: list[np.ndarray]) -> tuple[Vocabulary, np.ndarray]:
        """The names of a column in sorted order, and the id of each code."""
        used = np.zeros(max((int(c.max()) + 1 for c in codes if len(c)), default=0), bool)
        for some in codes:
            used[some] = True
        met = np.flatnonzero(used).astype(np.uint32)  # polars leaves gaps
        names = pl.Series(met).cat.to(self._types[column]).cast(pl.String)
        order = names.arg_sort().to_numpy()
        ids = np.empty(len(used), np.int32)
        ids[met[order]] = np.arange(len(met), dtype=np.int32)
        return Vocabulary(names.gather(order)), ids


def import_dataset(
    sources: Mapping[
        str, Sequence[Source]
    ],  # by split; those of "train" hold all facts where others are missing
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
            sources, name=name or out.resolve().name, labels=labels, split=split, progress=progress
        )
        write_dataset(dataset, folder)
        report["seconds"] = round(time.perf_counter() - started, 2)
        write_json(folder / REPORT, report)
    return report


def dataset_from(
    facts: Any,
    valid: Any = None,
    test: Any = None,
    *,
    labels: Any = None,  # a path, or a polars frame with the columns of LABELS
    split: SplitChoice | None = None,
    name: str = "mine",
) -> Dataset:
    """A dataset of frames, graphs, tuples or files; where neither valid nor test is given, facts are held out.

    Takes frames of pandas, polars and pyarrow, graphs of networkx and rdflib, PyKEEN triples factories, rows of
    three names, paths and addresses. The graph with all facts and nothing held out: `SplitChoice("none")`.
    """
    given = {"train": facts, "valid": valid, "test": test}
    sources = {which: [source_of(some)] for which, some in given.items() if some is not None}
    known = read_labels(labels) if isinstance(labels, str | Path) else labels
    return read_dataset(sources, name=name, labels=known, split=split)[0]


def read_dataset(
    sources: Mapping[str, Sequence[Source]],
    *,
    name: str = "mine",
    labels: pl.DataFrame | None = None,
    split: SplitChoice | None = None,
    progress: Tick | None = None,
) -> tuple[Dataset, dict[str, Any]]:
    """Read sources into a dataset in memory, with a report of what was read, left out and why."""
    encoder = Encoder()
    times = _read(encoder, sources, progress)
    entities, relations, triples = encoder.finish()
    counted = {which: len(rows) for which, rows in triples.items()}
    if not counted.get("train"):
        raise DataError(_nothing_read([source for given in sources.values() for source in given]))
    if set(sources) == {"train"}:
        triples, sentence = _divided(triples["train"], times, entities, relations, split or SplitChoice())
    else:
        triples = {which: _distinct(rows, entities, relations) for which, rows in triples.items()}
        sentence = "as given"
    repeated = sum(counted.values()) - sum(map(len, triples.values()))
    graph = KnowledgeGraph.from_ids(triples["train"], entities, relations)
    known = _all_labels(labels, sources)
    graph = graph if known is None else graph.labelled(known)
    none = np.empty((0, 3), np.int32)
    train, valid, test = (triples.get(which, none) for which in SPLITS)
    dataset = Dataset(name, graph, train, valid, test, both_directions=True)
    return dataset, _report(dataset, sources, known, repeated, sentence)


def _read(
    encoder: Encoder, sources: Mapping[str, Sequence[Source]], progress: Tick | None
) -> np.ndarray | None:
    """Read all sources; the times of the training facts where there are any."""
    everything = [source for given in sources.values() for source in given]
    times: list[pl.Series] = []
    for which in SPLITS:
        for source in sources.get(which, ()):
            for batch in source.batches():
                encoder.add(which, batch.select(COLUMNS))
                if TIME in batch.columns and which == "train":
                    times.append(batch[TIME])
                if progress is not None:
                    progress(*_position(everything), encoder.count)
    if not times:
        return None
    return parse_times(pl.concat(times))


def _position(sources: Sequence[Source]) -> tuple[int, int | None]:
    positions = [source.position() for source in sources]
    totals = [total for _, total in positions]
    return sum(done for done, _ in positions), None if None in totals else sum(totals)  # type: ignore[arg-type]


def _distinct(triples: np.ndarray, entities: Vocabulary, relations: Vocabulary) -> np.ndarray:
    """Each triple once, sorted."""
    columns = sorted_unique(triples, len(entities), len(relations))
    return np.stack(columns, axis=1, dtype=np.int32, casting="unsafe")


def _earliest(triples: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triple once, sorted, and the earliest of its times."""
    order = np.lexsort((times, *triples.T[::-1]))
    triples, times = triples[order], times[order]
    first = np.ones(len(triples), bool)
    first[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return triples[first], times[first]


def _divided(
    facts: np.ndarray,
    times: np.ndarray | None,
    entities: Vocabulary,
    relations: Vocabulary,
    choice: SplitChoice,
) -> tuple[dict[str, np.ndarray], str]:
    """Facts by split, each once, and the sentence that says how they were divided."""
    if times is None:
        facts = _distinct(facts, entities, relations)
    else:
        facts, times = _earliest(facts, times)
    chosen = _split(facts, times, entities, relations, choice)
    return {which: facts[chosen.assignment == number] for number, which in enumerate(SPLITS)}, chosen.sentence


def _split(
    triples: np.ndarray,
    times: np.ndarray | None,
    entities: Vocabulary,
    relations: Vocabulary,
    choice: SplitChoice,
) -> Split:
    sizes = len(entities), len(relations)
    shares = choice.valid_share, choice.test_share
    if choice.by == "none":
        return Split(
            np.zeros(len(triples), np.int8), 0, 0, 0, "all facts are for training; nothing is held out"
        )
    if choice.by == "time":
        if times is None:
            raise DataError("splitting by time needs a column of times; name it with --time-column")
        return time_split(triples, times, *sizes, *shares, transductive=choice.transductive)
    return random_split(triples, *sizes, *shares, choice.seed, transductive=choice.transductive)


def _all_labels(given: pl.DataFrame | None, sources: Mapping[str, Sequence[Source]]) -> pl.DataFrame | None:
    """The labels that were given, before those that the sources hold; None where there are none."""
    held = [source.labels() for group in sources.values() for source in group]
    frames = [frame for frame in ([] if given is None else [given]) + held if frame.height]
    return pl.concat(frames) if frames else None


def _nothing_read(sources: Sequence[Source]) -> str:
    skipped = [
        f"{count} left out: {reason}"
        for source in sources
        for reason, count in source.account.skipped.items()
    ]
    names = ", ".join(source.account.source for source in sources)
    why = f" ({'; '.join(skipped[:3])})" if skipped else ""
    return f"no facts were read from {names}{why}; check the format, the columns and the query"


def _report(
    dataset: Dataset,
    sources: Mapping[str, Sequence[Source]],
    labels: pl.DataFrame | None,
    repeated: int,
    sentence: str,
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
    return 0 if vocabulary.labels is None else len(vocabulary) - vocabulary.labels.name.null_count()
