"""Are the patterns that a model follows the rules that the graph holds? Compares them with rules that are counted.

    python benchmarks/patterns.py RUN --sample 50 --top 50 --threads 1 --json FILE

For each relation, rules are found bottom-up, as AnyBURL finds them: facts are drawn, chains of up to three other facts
from the head to the tail are walked at random, and each becomes a rule by its relations. All rules are then counted on
the graph in one way, that of `dpmpn patterns`, also the model's patterns, and ranked by confidence with five answers
added to the denominator, as AnyBURL does. The best of each list are looked up in all of the other one. This is no run
of AnyBURL: rules with constants are left out, and what is drawn is less.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpmpn
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.learnt import LearntRelation
from dpmpn.explain.patterns import Hops, hops_of
from dpmpn.explain.record import PatternRecord, pattern_record
from dpmpn.files import write_whole
from dpmpn.learnt import facts_to_ask, learnt_relations, relations_asked
from dpmpn.render.patterns import relations_of

LONGEST = 3  # facts of a rule's body
RULES_FROM, WALKS = 200, 100  # facts from which rules are walked, and walks from each
UNSEEN = 5  # answers that a rule is taken to have wrong beyond those that were counted
LEAST_SUPPORT = 2
ALL = 100_000  # patterns of a relation


def walked_rules(graph: KnowledgeGraph, facts: np.ndarray, random: np.random.Generator) -> set[Hops]:
    """The relations of random chains that lead from the heads of facts to their tails, without these facts."""
    found: set[Hops] = set()
    for head, relation, tail in facts.tolist():
        back = int(graph.inverse[relation])
        for length in random.integers(1, LONGEST + 1, WALKS).tolist():
            path = _walk(graph, head, relation, tail, back, length, random)
            if path:
                found.add(hops_of(graph, path))
    return found


def _walk(
    graph: KnowledgeGraph,
    head: int,
    asked: int,
    tail: int,
    back: int,
    length: int,
    random: np.random.Generator,
) -> list[int]:
    """The relations of one chain of distinct entities from head to tail; empty where it ended elsewhere.

    The last fact is looked for, not drawn: a walk that is one fact away from the tail need not be lucky.
    """
    path, visited, relations = head, {head}, []
    for step in range(length):
        edges = np.arange(graph.offsets[path], graph.offsets[path + 1])
        tails = graph.tails[edges]
        hidden = (graph.relations[edges] == asked) & (tails == tail) & (path == head)
        hidden |= (graph.relations[edges] == back) & (tails == head) & (path == tail)
        is_last = step == length - 1
        fits = ~hidden & ((tails == tail) if is_last else ~np.isin(tails, [*visited, tail]))
        if not fits.any():
            return []
        edge = int(random.choice(edges[fits]))
        path = int(graph.tails[edge])
        visited.add(path)
        relations.append(int(graph.relations[edge]))
    return relations


def quality(record: PatternRecord | None) -> float:
    """Confidence as AnyBURL ranks by it; -1 for what supports nothing."""
    if record is None or record.graph.support < LEAST_SUPPORT:
        return -1.0
    return record.graph.support / (record.graph.answers + UNSEEN)


def best(rules: dict[Hops, PatternRecord | None], top: int) -> list[Hops]:
    """The rules of the highest confidence, equal ones by support."""
    good = [hops for hops, record in rules.items() if quality(record) > 0]

    def key(hops: Hops) -> tuple[float, int, Hops]:
        record = rules[hops]
        return -quality(record), -(record.graph.support if record else 0), hops

    return sorted(good, key=key)[:top]


def compared(
    graph: KnowledgeGraph, learnt: LearntRelation, counted: dict[Hops, PatternRecord | None], top: int
) -> dict[str, Any]:
    """How many of the best of each list the other one has."""
    ours = {each.pattern.hops: each.record for each in learnt.patterns if len(each.pattern.hops) <= LONGEST}
    strongest = [hops for hops, record in ours.items() if quality(record) > 0][:top]
    theirs, ours_best = best(counted, top), best(ours, top)
    confidences = [record.graph.confidence for hops in strongest if (record := ours[hops]) is not None]
    return {
        "relation": relations_name(graph, learnt.asked),
        "inverse": bool(graph.is_inverse[learnt.asked]),
        "facts_asked": learnt.questions,
        "patterns": len(ours),
        "longer_patterns": len(learnt.patterns) - len(ours),
        "counted_rules": len(counted),
        "best_counted": len(theirs),
        "best_counted_among_ours": sum(hops in ours for hops in theirs),
        "best_patterns": len(ours_best),
        "best_patterns_among_counted": sum(hops in counted for hops in ours_best),
        "strongest_patterns": len(strongest),
        "strongest_patterns_among_counted": sum(hops in counted for hops in strongest),
        "strongest_patterns_among_best_counted": sum(hops in theirs for hops in strongest),
        "mean_confidence_of_strongest": round(float(np.mean(confidences)), 4) if confidences else None,
        "missed": [shown(graph, hops) for hops in theirs if hops not in ours][:5],
        "only_ours": [shown(graph, hops) for hops in strongest if hops not in counted][:5],
    }


def relations_name(graph: KnowledgeGraph, relation: int) -> str:
    """The name of a relation as facts have it."""
    return graph.relation_names.name(int(graph.inverse[relation]) if graph.is_inverse[relation] else relation)


def shown(graph: KnowledgeGraph, hops: Hops) -> str:
    """The relations of a rule: ^ goes backwards, ~ either way."""
    signs = ["~" if each.either_way else "^" if each.inverse else "" for each in relations_of(graph, hops)]
    names = [each.relation for each in relations_of(graph, hops)]
    return ", ".join(sign + name for sign, name in zip(signs, names, strict=True))


def total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all relations together, and the shares that matter."""
    sums: dict[str, Any] = {
        key: sum(row[key] for row in rows) for key, value in rows[0].items() if type(value) is int
    }
    for part, whole in (
        ("best_counted_among_ours", "best_counted"),
        ("best_patterns_among_counted", "best_patterns"),
        ("strongest_patterns_among_counted", "strongest_patterns"),
    ):
        sums[f"share_of_{part}"] = round(sums[part] / sums[whole], 4) if sums[whole] else None
    return sums


def command(options: argparse.Namespace) -> str:
    """The command that makes the same report of any run, without the paths of a machine."""
    own = {str(options.run): "RUN", str(options.json): "FILE"}
    words = (word if word == "demo" else own.get(word, word) for word in sys.argv[1:])
    return " ".join(["python benchmarks/patterns.py", *words])


def main() -> None:
    """Compare each relation and write all of them to one file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder of a run, or demo")
    parser.add_argument("--on", help="facts to ask about, for the model any-graph")
    parser.add_argument("--relation", nargs="*", help="only these")
    parser.add_argument("--relations", type=int, help="at most so many, those with the most facts")
    parser.add_argument(
        "--sample", type=int, default=50, help="facts of each relation that the model is asked for"
    )
    parser.add_argument("--top", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    reasoner = dpmpn.Reasoner.load(options.run, threads=options.threads)
    reasoner = reasoner if options.on is None else reasoner.on(options.on)
    graph = reasoner.graph
    asked = [
        id for id in relations_asked(reasoner, options.relation, False) if graph.heads_of(np.array([id])).size
    ]
    asked.sort(key=lambda id: -int(np.count_nonzero(graph.relations == id)))
    rows = []
    for id in asked[: options.relations]:
        name = graph.relation_names.name(id)
        (learnt,) = learnt_relations(reasoner, [name], options.sample, ALL)
        facts = facts_to_ask(reasoner, id, RULES_FROM)
        rules = walked_rules(graph, facts, np.random.default_rng(id))
        counted = {hops: pattern_record(graph, id, hops) for hops in sorted(rules)}
        row = compared(graph, learnt, counted, options.top)
        rows.append(row)
        print(
            f"{name}: {row['best_counted_among_ours']} of the best {row['best_counted']} counted rules are among our "
            f"{row['patterns']} patterns; {row['best_patterns_among_counted']} of our best {row['best_patterns']} are "
            f"among the {row['counted_rules']} counted",
            flush=True,
        )
        if options.json:  # after each, so that what is finished is not lost
            report = {
                "command": command(options),
                "dataset": reasoner.dataset.name,
                "all": total(rows),
                "relations": rows,
            }
            text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
            write_whole(options.json, lambda file, text=text: file.write(text.encode()))
    print(json.dumps(total(rows), indent=2))


if __name__ == "__main__":
    main()
