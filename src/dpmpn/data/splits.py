"""Splits of facts into train, valid and test: at random or by time, and nothing held out that train knows nothing of.

A transductive split holds out a fact only where its head, its tail and its relation have a training fact each. What
is drawn depends on the facts and the seed, not on the order of the rows.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from dpmpn.errors import ConfigError, DataError
from dpmpn.kernels import kernel
from dpmpn.wording import counted

TRAIN, VALID, TEST = 0, 1, 2
_DATES = ("%Y-%m-%d", "%Y-%m", "%Y")
_LOCAL_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
_ZONED_TIMES = tuple(form + "%#z" for form in _LOCAL_TIMES)
_MOMENT = pl.Datetime("us")
_ADVICE = "write a number, a year, or an ISO date such as 2020-05-17 or 2020-05-17T10:30:00Z"


@dataclass(frozen=True, eq=False)
class Split:
    """Where each fact goes, and why."""

    assignment: np.ndarray  # int8, one per fact: TRAIN, VALID or TEST
    wanted_valid: int  # facts that were asked for; fewer may be held out
    wanted_test: int
    returned_to_train: int  # facts that were drawn, but are the last of an entity or a relation
    sentence: str  # the choice in plain words


def random_split(
    triples: np.ndarray,
    n_entities: int,
    n_relations: int,
    valid_share: float,
    test_share: float,
    seed: int,
    transductive: bool = True,
) -> Split:
    """Draw valid and test at random: int32 n x 3 unique facts in, sizes as asked where enough facts can be held out.

    Facts come in the order of a hash of the seed and their ids; each that can be held out goes where more is missing.
    """
    wanted_valid, wanted_test = _wanted(len(triples), valid_share, test_share)
    how = (
        f"{100 * valid_share:.1f} % valid and {100 * test_share:.1f} % test drawn at random with seed {seed}"
    )
    if not wanted_valid + wanted_test:
        return _all_train(triples, how)
    order = _drawn_order(triples, seed)
    assignment, returned = _draw(
        triples, order, n_entities, n_relations, wanted_valid, wanted_test, transductive
    )
    return _made(assignment, wanted_valid, wanted_test, returned, how, transductive)


def time_split(
    triples: np.ndarray,
    times: np.ndarray,
    n_entities: int,
    n_relations: int,
    valid_share: float,
    test_share: float,
    transductive: bool = True,
) -> Split:
    """Hold out the latest facts: the last share is test, the share before it valid; `times` is a number per fact.

    Facts of one time stay together: a border goes to the nearest change of time, the later one of two equally near,
    as long as that makes the part at most half as large again or half as small. Otherwise facts of that time are on
    both sides, in the order of a hash of their ids. In a transductive split, facts go back to train from the earliest
    on, so that an entity's first fact makes room for its later ones.
    """
    wanted_valid, wanted_test = _wanted(len(triples), valid_share, test_share)
    how = f"the latest {100 * test_share:.1f} % are test and the {100 * valid_share:.1f} % before them valid"
    if not wanted_valid + wanted_test:
        return _all_train(triples, how)
    order = _drawn_order(triples, seed=0)
    order = order[np.argsort(times[order], kind="stable")]
    changes = np.flatnonzero(np.diff(times[order]) != 0) + 1
    test_start = _border(len(triples), wanted_test, changes)
    valid_start = _border(test_start, wanted_valid, changes)
    if valid_start <= 0:  # large shares, few times: nothing would be left for train
        test_start = len(triples) - wanted_test
        valid_start = test_start - wanted_valid
    assignment = np.zeros(len(triples), np.int8)
    assignment[order[valid_start:test_start]] = VALID
    assignment[order[test_start:]] = TEST
    borders = [at for at in {valid_start, test_start} if at < len(triples)]
    if not np.isin(borders, changes).all():
        how += " (so many facts share a time that some of it are on both sides of a border)"
    returned = 0
    if transductive:
        returned = _return_unseen(triples, order[valid_start:], assignment, n_entities, n_relations)
    return _made(assignment, wanted_valid, wanted_test, returned, how, transductive)


def _wanted(n_facts: int, valid_share: float, test_share: float) -> tuple[int, int]:
    """How many facts the shares are; none where train would be empty."""
    for name, share in (("valid", valid_share), ("test", test_share)):
        if not 0 <= share < 1:
            raise ConfigError(f"the {name} share must be from 0 to below 1, not {share:g}")
    if valid_share + test_share >= 1:
        raise ConfigError(
            f"valid and test shares of {valid_share:g} and {test_share:g} leave nothing to train on"
        )
    valid, test = round(n_facts * valid_share), round(n_facts * test_share)
    return (valid, test) if valid + test < n_facts else (0, 0)


def _border(stop: int, size: int, changes: np.ndarray) -> int:
    """Where the part before `stop` begins: at a change of time that makes it about this large."""
    wanted = stop - size
    possible = changes[np.abs(changes - wanted) <= size // 2][::-1]  # the latest first
    return int(possible[np.argmin(np.abs(possible - wanted))]) if len(possible) else wanted


def _drawn_order(triples: np.ndarray, seed: int) -> np.ndarray:
    """Rows in the order of a 64-bit hash of the seed and the fact: random, and the same whatever row a fact is in."""
    hashes = np.full(len(triples), seed & 0xFFFFFFFFFFFFFFFF, np.uint64)
    for column in range(3):
        hashes = _mixed(_mixed(hashes) + triples[:, column].astype(np.uint64))
    return np.argsort(hashes)


def _mixed(x: np.ndarray) -> np.ndarray:
    """Splitmix64: every input bit reaches every output bit."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed


@kernel
def _draw(
    triples: np.ndarray,
    order: np.ndarray,
    n_entities: int,
    n_relations: int,
    wanted_valid: int,
    wanted_test: int,
    transductive: bool,
) -> tuple[np.ndarray, int]:
    """Hold out facts in order, keeping the last training fact of every entity and relation."""
    entity_facts, relation_facts = np.zeros(n_entities, np.int64), np.zeros(n_relations, np.int64)
    for i in range(len(triples)):
        _count_fact(triples[i], 1, entity_facts, relation_facts)
    assignment = np.zeros(len(triples), np.int8)
    n_valid, n_test, passed = 0, 0, 0
    for i in order:
        if n_valid == wanted_valid and n_test == wanted_test:
            break
        head, relation, tail = triples[i, 0], triples[i, 1], triples[i, 2]
        is_last = entity_facts[head] == 1 or entity_facts[tail] == 1 or relation_facts[relation] == 1
        if transductive and is_last:
            passed += 1
            continue
        _count_fact(triples[i], -1, entity_facts, relation_facts)
        # Both parts grow alike, so that both get their share where fewer facts than asked can be held out.
        if n_test * wanted_valid <= n_valid * wanted_test and n_test < wanted_test:
            assignment[i] = TEST
            n_test += 1
        else:
            assignment[i] = VALID
            n_valid += 1
    return assignment, passed


@kernel
def _return_unseen(
    triples: np.ndarray, held_out: np.ndarray, assignment: np.ndarray, n_entities: int, n_relations: int
) -> int:
    """Put facts back, in order, whose head, tail or relation train does not have; says how many."""
    entity_facts, relation_facts = np.zeros(n_entities, np.int64), np.zeros(n_relations, np.int64)
    for i in range(len(triples)):
        if assignment[i] == TRAIN:
            _count_fact(triples[i], 1, entity_facts, relation_facts)
    returned = 0
    for i in held_out:
        head, relation, tail = triples[i, 0], triples[i, 1], triples[i, 2]
        if entity_facts[head] == 0 or entity_facts[tail] == 0 or relation_facts[relation] == 0:
            _count_fact(triples[i], 1, entity_facts, relation_facts)
            assignment[i] = TRAIN
            returned += 1
    return returned


@kernel
def _count_fact(
    triple: np.ndarray, change: int, entity_facts: np.ndarray, relation_facts: np.ndarray
) -> None:
    """Add or take away a fact; one from an entity to itself counts once."""
    head, relation, tail = triple[0], triple[1], triple[2]
    entity_facts[head] += change
    if tail != head:
        entity_facts[tail] += change
    relation_facts[relation] += change


def _all_train(triples: np.ndarray, how: str) -> Split:
    sentence = f"too few facts to hold any out, so all are used for training (asked for: {how})"
    return Split(np.zeros(len(triples), np.int8), 0, 0, 0, sentence)


def _made(
    assignment: np.ndarray, wanted_valid: int, wanted_test: int, returned: int, how: str, transductive: bool
) -> Split:
    valid, test = int((assignment == VALID).sum()), int((assignment == TEST).sum())
    sentence = f"{how}: {len(assignment) - valid - test:,} train, {valid:,} valid, {test:,} test"
    if not transductive:
        sentence += "; held-out facts may have entities and relations that no training fact has"
    elif returned:
        facts = counted(returned, "fact")
        sentence += (
            f"; transductive: {facts} went back to train, where an entity or the relation has no other"
        )
    else:
        sentence += "; transductive: every held-out entity and relation has a training fact"
    if valid + test == 0:
        sentence += "; nothing could be held out"
    return Split(assignment, wanted_valid, wanted_test, returned, sentence)


def parse_times(times: pl.Series) -> np.ndarray:
    """Times as numbers: numbers as they are, ISO dates and times as microseconds since 1970, UTC where none is named.

    Text is read as whole numbers (years, seconds), else as numbers, else as dates; "2020" or "2020-05" among dates is
    the first moment of that year or month.
    """
    if times.dtype == pl.String:
        return _parse_text(times.str.strip_chars())
    if times.dtype in (pl.Date, pl.Datetime):
        return _all_read(times, times.cast(_MOMENT).to_physical())
    if not times.dtype.is_numeric():
        raise DataError(f"times of type {times.dtype} cannot be used; {_ADVICE}")
    return _all_read(times, _finite(times))


def _parse_text(times: pl.Series) -> np.ndarray:
    numbers = _finite(times.cast(pl.Float64, strict=False))
    for read in (times.cast(pl.Int64, strict=False), numbers):
        if not read.null_count():
            return read.to_numpy()
    moments = _parse_dates(times).to_physical()
    # Name what is neither number nor date, if anything is; otherwise the two are mixed.
    neither = moments.is_null() & numbers.is_null()
    return _all_read(times, moments.set(~neither, 0) if neither.any() else moments)


def _parse_dates(times: pl.Series) -> pl.Series:
    """Moments in UTC, null for what is no date."""
    text = pl.col("time").str.replace(" ", "T", literal=True)
    readings = [
        *(text.str.to_date(form, strict=False).cast(_MOMENT) for form in _DATES),
        *(text.str.to_datetime(form, strict=False, time_unit="us") for form in _LOCAL_TIMES),
        *(
            text.str.to_datetime(form, strict=False, time_unit="us").dt.replace_time_zone(None)
            for form in _ZONED_TIMES
        ),
    ]
    return times.alias("time").to_frame().select(pl.coalesce(readings)).to_series()


def _finite(numbers: pl.Series) -> pl.Series:
    """Numbers with null for those that are infinite or not a number."""
    return numbers.set(~numbers.is_finite(), None) if numbers.dtype.is_float() else numbers


def _all_read(times: pl.Series, read: pl.Series) -> np.ndarray:
    """The numbers; or an error that names the first time that is none."""
    if read.null_count():
        row = int(read.is_null().arg_true()[0])
        what = "is missing" if times[row] is None else f"'{times[row]}' cannot be read"
        raise DataError(f"the time of fact {row + 1:,} {what}; {_ADVICE}")
    return read.to_numpy()
