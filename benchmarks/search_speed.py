"""How fast entities are found by what a person types, on a graph with many labelled entities.

    python benchmarks/search_speed.py --entities 1000000 --json benchmarks/results/search.json

Also measures which relations are offered for a hub, and a page of its facts. Times are the median and the slowest of
several rounds.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.serve.lookups import RelationOffers, facts_of
from dpmpn.serve.names import EntitySearch

_LETTERS = np.array(list("eeeeaaaaiiiooonnnrrrsssttllddmkgbvphuczäéšł"))
_NEEDLES = {
    "one letter": ["e", "a", "z", "q", "7", "~", "é", "ж", "中"],
    "common": ["an", "ren", "12", "entity", "q1", "ne e"],
    "two letters, rare or absent": ["zq", "xx", "q~", "7e", "zž", "cc"],
    "three letters, rare or absent": ["zqz", "aeq", "vvv", "zzz", "czh", "7 e"],
    "rare": ["99999", "q1234567", "zvkz", "hz zh", "pavel novak", "7654321"],
    "absent, of frequent letters": ["eneneneneneq", "ananananan", "eses eses", "rrrrrrrrrrrr", "e a e a e a"],
    "absent": ["pneumonoultramicroscopic", "Sofia the First", "xylophone", "~~~~"],
    "very long": ["ana" * 100, "e" * 10_000, "\u0301" * 10_000, "q" + "é" * 20_000],
    "odd characters": ["\x00", "\n", "'; DROP TABLE", "%_%", "\ud800", "🙂", "\u202e", ".*", "\\", "\xff"],
    "empty": ["", "   "],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    graph = _graph(arguments.entities, arguments.edges // 2)
    index, building = _timed(lambda: EntitySearch(graph))
    results: dict[str, Any] = {
        "command": f"python benchmarks/search_speed.py --entities {arguments.entities} --edges {arguments.edges}",
        "entities": graph.n_entities,
        "edges": graph.n_edges,
        "text_bytes": sum(_text_bytes(graph)),
        "index": {
            **building,
            "bytes": index.nbytes,
            "bytes_an_entity": round(index.nbytes / graph.n_entities),
        },
        "search": {
            kind: _times([lambda text=text: index.search(text) for text in texts], arguments.rounds)
            for kind, texts in _all_needles(graph).items()
        },
    }
    offers, building = _timed(lambda: RelationOffers(graph))
    hubs = np.argsort(-np.diff(graph.offsets), kind="stable")[:5].tolist()
    some = [*hubs, *np.linspace(0, graph.n_entities - 1, 20).astype(int).tolist()]
    results["relation_offers"] = {
        "building": building,
        **_times([lambda head=head: offers.offered(head) for head in some], arguments.rounds),
    }
    results["facts_of"] = {
        "most_facts": facts_of(graph, hubs[0], 0)[1],
        **_times(
            [lambda entity=entity: facts_of(graph, entity, 50, 20) for entity in some], arguments.rounds
        ),
    }
    results["cores"] = os.cpu_count()
    results["load_average"] = round(os.getloadavg()[0], 1)
    text = json.dumps(results, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")


def _graph(n_entities: int, n_facts: int) -> KnowledgeGraph:
    """Entities named like Q1234567 with labels of two words, half of them typed, and one with 10^5 facts."""
    rng = np.random.default_rng(0)
    letters = rng.choice(_LETTERS, (20_000, 10))
    words = pl.Series(
        ["".join(row[:size]) for row, size in zip(letters, rng.integers(3, 10, 20_000), strict=True)]
    )
    drawn = (words.gather((20_000 * rng.random(n_entities) ** 2).astype(int)) for _ in range(2))
    names = pl.Series(np.sort(rng.choice(10 * n_entities, n_entities, replace=False))).cast(pl.String)
    names = ("Q" + names).sort()
    ends = (n_entities * rng.random((2, n_facts)) ** 2).astype(np.int64)
    ends[0, : n_facts // 50] = n_entities // 2
    relations = (500 * rng.random(n_facts) ** 3).astype(np.int64)
    graph = KnowledgeGraph.from_ids(np.stack([ends[0], relations, ends[1]], 1), names, 500)
    types = pl.Series([f"type {i}" for i in range(300)]).gather(rng.integers(0, 300, n_entities))
    labels = (next(drawn) + " " + next(drawn)).str.to_titlecase()
    half = pl.Series(rng.random(n_entities) < 0.5)
    frame = {"id": names, "name": labels, "description": [None] * n_entities, "type": types.set(half, None)}
    return graph.labelled(pl.DataFrame(frame, schema_overrides={"description": pl.String}))


def _text_bytes(graph: KnowledgeGraph) -> tuple[int, int]:
    return len(graph.entities.packed.text), int(graph.entities.labels["name"].str.len_bytes().sum())


def _all_needles(graph: KnowledgeGraph) -> dict[str, list[str]]:
    """The chosen needles, and parts of labels and names as people would type them."""
    rng = np.random.default_rng(1)
    whole = [graph.entities.label(int(id)) for id in rng.integers(0, graph.n_entities, 200)]
    starts = rng.integers(0, 6, len(whole))
    sizes = rng.integers(2, 7, len(whole))
    parts = [text[at : at + size] for text, at, size in zip(whole, starts, sizes, strict=True)]
    shuffled = ["".join(rng.permutation(list(text[:size]))) for text, size in zip(whole, sizes, strict=True)]
    pairs = [
        "".join(pair)
        for pair in rng.choice(np.array(list("abcdefghijklmnopqrstuvwxyz0123456789 ~")), (200, 2))
    ]
    triples = [
        "".join(group) for group in rng.choice(np.array(list("abcdefghijklmnoprstuvz0179 ")), (200, 3))
    ]
    drawn = {
        "labels": whole,
        "parts of labels": parts,
        "shuffled": shuffled,
        "pairs": pairs,
        "triples": triples,
    }
    return {**_NEEDLES, **{f"200 {kind}": texts for kind, texts in drawn.items()}}


def _timed(run: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    started, cpu = time.perf_counter(), time.process_time()
    result = run()
    return result, {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }


def _times(runs: list[Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Milliseconds: the median, and of the slowest case its median and its CPU time."""
    wall, cpu = np.zeros((rounds, len(runs))), np.zeros((rounds, len(runs)))
    for turn in range(rounds):
        for case, run in enumerate(runs):
            started, cpu_started = time.perf_counter(), time.process_time()
            run()
            wall[turn, case] = time.perf_counter() - started
            cpu[turn, case] = time.process_time() - cpu_started
    milliseconds = {
        "median_ms": np.median(wall),
        "slowest_case_median_ms": np.median(wall, 0).max(),
        "slowest_case_cpu_ms": np.median(cpu, 0).max(),
        "p99_ms": np.quantile(wall, 0.99),
    }
    return {name: round(1000 * float(seconds), 3) for name, seconds in milliseconds.items()}


if __name__ == "__main__":
    main()
