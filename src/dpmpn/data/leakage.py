"""How much of valid and test stands in train already: duplicates, inverses and pairs that train joins anyway.

`leakage(dataset)` returns

- `valid`, `test`: None without facts, else
  - `facts`: how many there are;
  - `duplicate`: those that stand in train as they are;
  - `symmetric`: those (h, r, t) with (t, r, h) in train, h and t being two;
  - `inverse`: those with (t, s, h) in train, where s and r are an inverse pair below;
  - `same`: those with (h, s, t) in train, where s and r are a pair that says the same;
  - `leaked`: those that are any of these four;
  - `joined`: those whose head and tail any training fact joins, in either direction (multi-edge in the paper);
  - `unseen`: those with an entity or a relation that has no training fact;
  - `shares`: each of these counts as a fraction of `facts`;
  - `unseen_entities`, `unseen_relations`: how many entities and relations those are;
- `relation_pairs`: pairs of relations that repeat each other, most facts first: `kind` is "inverse" or "same",
  `relation` and `other` are names, `shared` counts the facts of one that stand for a fact of the other, `share` and
  `other_share` are that count as fractions of the facts of each. At least one of the two is 80 % or more, with 10
  facts or more. A held-out fact of one relation counts as leaked by the other only where 80 % of the other's facts
  stand for one of its own. Pairs are looked for in all splits: in FB15K a fifth of the facts is held out, so that
  relations that are each other's inverse without exception share only 81 % of their training facts.

Train means the facts the graph holds, in the direction of the file.
"""

from typing import Any, NamedTuple

import numpy as np

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph

MINIMAL_SHARE = 0.8
MINIMAL_FACTS = 10
_COUNTS = ("duplicate", "symmetric", "inverse", "same", "leaked", "joined", "unseen")


def leakage(dataset: Dataset) -> dict[str, Any]:
    """What of valid and test stands in train, and which relations repeat each other; the module says the keys."""
    facts = known_facts(dataset.graph)
    pairs = np.sort(pair_keys(facts, dataset.graph.n_entities))
    held_out = np.unique(np.concatenate([dataset.valid, dataset.test]), axis=0)
    new = held_out[dataset.graph.find_edges(*held_out.T) < 0]
    repeats = repeated_relations(np.concatenate([facts, new]), dataset.graph)
    report: dict[str, Any] = {
        split: _split_leakage(dataset.split(split), facts, pairs, repeats, dataset.graph)
        for split in ("valid", "test")
    }
    report["relation_pairs"] = _relation_pairs(repeats, dataset.graph)
    return report


def joined_pairs(dataset: Dataset) -> float | None:
    """Share of validation facts whose head and tail a training fact joins too, in either direction."""
    if not len(dataset.valid):
        return None
    n_entities = dataset.graph.n_entities
    pairs = np.sort(pair_keys(known_facts(dataset.graph), n_entities))
    return float(stand_in(pair_keys(dataset.valid, n_entities), pairs).mean())


def known_facts(graph: KnowledgeGraph) -> np.ndarray:
    """The facts of a graph in the direction of the file, inverses left out: int32, n x 3, sorted by head."""
    forward = ~graph.is_inverse[graph.relations]
    heads = graph.all_heads()
    return np.stack([heads[forward], graph.relations[forward].astype(np.int32), graph.tails[forward]], 1)


def pair_keys(triples: np.ndarray, n_entities: int) -> np.ndarray:
    """One number for the two ends of each triple, whichever of them is the head."""
    heads, tails = triples[:, 0].astype(np.int64), triples[:, 2].astype(np.int64)
    return np.minimum(heads, tails) * n_entities + np.maximum(heads, tails)


def stand_in(keys: np.ndarray, sorted_keys: np.ndarray) -> np.ndarray:
    """Whether each key is one of the sorted ones."""
    if not len(sorted_keys):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    found: np.ndarray = sorted_keys[at] == keys
    return found


class Repeats(NamedTuple):
    """Relations most of whose facts are facts of another, too; one row for each of the two directions of reading."""

    relation: np.ndarray
    other: np.ndarray
    inverse: np.ndarray  # bool: facts (h, relation, t) stand as (t, other, h), else as (h, other, t)
    shared: np.ndarray
    share: np.ndarray  # of the facts of `relation`
    other_share: np.ndarray


def repeated_relations(facts: np.ndarray, graph: KnowledgeGraph, least_facts: int = MINIMAL_FACTS) -> Repeats:
    """The pairs of relations of which one repeats the other, or its inverse, in so many facts or more."""
    keys = pair_keys(facts, graph.n_entities)
    order = np.argsort(keys, kind="stable")
    keys, relations = keys[order], facts[order, 1].astype(np.int64)
    turned = (facts[:, 0] > facts[:, 2])[order]
    n = graph.n_relations
    found, counts = _co_occurrences(keys, relations * 2 + turned, n)
    first, second = np.divmod(found, 2 * n)
    second, inverse = np.divmod(second, 2)
    # A pair is read both ways: the second's facts repeat the first's, and the first's the second's.
    relation, other = np.concatenate([first, second]), np.concatenate([second, first])
    inverse, shared = np.tile(inverse.astype(bool), 2), np.tile(counts, 2)
    size = np.maximum(np.bincount(relations, minlength=n), 1)
    share, other_share = shared / size[relation], shared / size[other]
    kept = (shared >= least_facts) & (np.maximum(share, other_share) >= MINIMAL_SHARE)
    return Repeats(*(column[kept] for column in (relation, other, inverse, shared, share, other_share)))


def _co_occurrences(keys: np.ndarray, sides: np.ndarray, n_relations: int) -> tuple[np.ndarray, np.ndarray]:
    """How often two relations join the same two entities: distinct (first, second, whether reversed) and counts.

    `sides` is 2 * relation + turned. Equal keys stand together; each is compared with the one 1, 2, ... places
    after it for as long as any two are equal, which makes every pair of equal keys once.
    """
    found, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    here, distance = np.arange(len(keys)), 0
    while len(here):
        distance += 1
        here = here[here + distance < len(keys)]
        here = here[keys[here] == keys[here + distance]]
        one, two = sides[here], sides[here + distance]
        low, high = np.minimum(one // 2, two // 2), np.maximum(one // 2, two // 2)
        different = low != high
        code = (low * n_relations + high) * 2 + ((one ^ two) & 1)
        values, times = np.unique(code[different], return_counts=True)
        found.append(values)
        counts.append(times)
    distinct, at = np.unique(np.concatenate(found), return_inverse=True)
    totals = np.bincount(at, np.concatenate(counts), len(distinct)).astype(np.int64)
    return distinct, totals


def _split_leakage(
    triples: np.ndarray, facts: np.ndarray, pairs: np.ndarray, repeats: Repeats, graph: KnowledgeGraph
) -> dict[str, Any] | None:
    if not len(triples):
        return None
    heads, relations, tails = triples.T
    marks = {
        "duplicate": graph.find_edges(heads, relations, tails) >= 0,
        "symmetric": (graph.find_edges(tails, relations, heads) >= 0) & (heads != tails),
        "inverse": _repeated(triples, repeats, True, graph),
        "same": _repeated(triples, repeats, False, graph),
    }
    marks["leaked"] = np.logical_or.reduce(list(marks.values()))
    marks["joined"] = stand_in(pair_keys(triples, graph.n_entities), pairs)
    new_entity = np.ones(graph.n_entities, bool)
    new_entity[facts[:, 0]] = new_entity[facts[:, 2]] = False
    new_relation = np.ones(graph.n_relations, bool)
    new_relation[facts[:, 1]] = False
    marks["unseen"] = new_entity[heads] | new_entity[tails] | new_relation[relations]
    ends = np.unique(np.concatenate([heads, tails]))
    return {
        "facts": len(triples),
        **{name: int(marks[name].sum()) for name in _COUNTS},
        "shares": {name: float(marks[name].mean()) for name in _COUNTS},
        "unseen_entities": int(new_entity[ends].sum()),
        "unseen_relations": int(new_relation[np.unique(relations)].sum()),
    }


def _repeated(triples: np.ndarray, repeats: Repeats, inverse: bool, graph: KnowledgeGraph) -> np.ndarray:
    """Whether each triple stands in the graph under a relation most of whose facts repeat its own relation's."""
    telling = np.flatnonzero((repeats.inverse == inverse) & (repeats.share >= MINIMAL_SHARE))
    telling = telling[np.argsort(repeats.other[telling], kind="stable")]
    start = np.searchsorted(repeats.other[telling], triples[:, 1], "left")
    count = np.searchsorted(repeats.other[telling], triples[:, 1], "right") - start  # triples
    row = np.repeat(np.arange(len(triples)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    relation = repeats.relation[telling[start[row] + nth]]
    heads, tails = triples[row, 0], triples[row, 2]
    if inverse:
        heads, tails = tails, heads
    marked = np.zeros(len(triples), bool)
    marked[row[graph.find_edges(heads, relation, tails) >= 0]] = True
    return marked


def _relation_pairs(repeats: Repeats, graph: KnowledgeGraph) -> list[dict[str, Any]]:
    """Each pair once, the relation with the larger share first."""
    name = graph.relation_names.name
    rows = [
        {
            "kind": "inverse" if inverse else "same",
            "relation": name(int(relation)),
            "other": name(int(other)),
            "shared": int(shared),
            "share": float(share),
            "other_share": float(other_share),
        }
        for relation, other, inverse, shared, share, other_share in zip(*repeats, strict=True)
        if (share, -relation) > (other_share, -other)
    ]
    return sorted(rows, key=lambda row: (-row["shared"], row["relation"], row["other"], row["kind"]))
