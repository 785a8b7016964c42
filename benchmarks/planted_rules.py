"""Do key facts find the planted reasons? Trains on families, explains every test answer and looks its facts up.

    python benchmarks/planted_rules.py --seed 10 11 12 --derived-in-graph 10 --threads 2 --json FILE

Settings were chosen by the validation accuracy of seed 0. A fact counts as right if it stands in a planted proof; with
derived facts in the graph a reason that leads over one of them counts as wrong, sound as it may be.
"""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from synthetic import RULES, Fact, PlantedRules, family_graph

import dpmpn
from dpmpn.errors import DataError
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE
from dpmpn.explain.paths import Path as FactPath
from dpmpn.explain.paths import named_fact, named_paths, strongest_walks
from dpmpn.explain_eval.fidelity import Evidence
from dpmpn.files import write_whole
from dpmpn.render.formats import Explanation

SETTINGS = {
    "model": "paper",
    **{"n_dims": 32, "n_dims_att": 16, "n_steps_in_ignn": 0, "n_steps_in_agnn": 5, "batch_size": 32},
    **{"learning_rate": 0.005, "n_epochs": 10, "validation_queries": 0},
}
# Other ways to prune: enough attention, and the least share of a path beside the strongest one.
PRUNINGS = [(0.5, 0.0), (0.8, 0.0), (0.95, 0.0), (0.99, 0.0), (0.9, 0.05), (0.9, 0.2)]

Found = Mapping[Fact, float]  # facts and their shares


def questions(planted: PlantedRules) -> Iterator[tuple[Fact, str, str, bool]]:
    """The test facts asked both ways: fact, what is asked about, answer, and whether the relation is inverse."""
    for head, relation, tail in planted.splits["test"]:
        yield (head, relation, tail), head, tail, False
        yield (head, relation, tail), tail, head, True


def facts_of(paths: list[FactPath]) -> dict[Fact, float]:
    """The facts of paths, each with the shares of its paths."""
    shares: dict[Fact, float] = defaultdict(float)
    for path in paths:
        for fact in set(path.facts):
            shares[fact] += path.share
    return shares


def kept(paths: list[FactPath], enough: float, least: float) -> list[FactPath]:
    """The strongest paths until they bring enough; none that is weaker than a part of the strongest."""
    brought = np.cumsum([0.0, *(path.share for path in paths)])
    return [
        path
        for path, before in zip(paths, brought, strict=False)
        if before < enough and path.share >= least * paths[0].share
    ]


def evidence_for(explanation: Explanation, random: np.random.Generator) -> Iterator[tuple[str, Found]]:
    """What each way to explain an answer names as its reasons."""
    graph = explanation.graph
    yield "key facts", {key.fact: key.share for key in explanation.key_facts}
    yield "strongest path", facts_of(list(explanation.paths[:1]))
    evidence = Evidence(explanation, KEPT_PATHS, KEPT_SHARE, random)
    for kind in ("shortest", "random"):  # as many facts as the explanation has
        yield f"{kind} facts", {named_fact(graph, fact): 1.0 for fact in evidence.facts(kind)}
    yield "full subgraph", dict.fromkeys(explanation.full.facts, 1.0)
    paths = named_paths(graph, strongest_walks(explanation.flow, 200, 0.999))
    for enough, least in PRUNINGS:
        yield f"enough {enough}, path {least}", facts_of(kept(paths, enough, least))


def explained(reasoner: dpmpn.Reasoner, planted: PlantedRules) -> list[tuple[Fact, str, Explanation]]:
    """Why each test fact holds, asked both ways; answers that attention did not reach have no explanation."""
    found = []
    for fact, head, answer, inverse in questions(planted):
        try:
            found.append((fact, head, reasoner.explain(head, fact[1], answer, inverse)))
        except DataError:
            continue
    return found


def measured(
    planted: PlantedRules, explanations: list[tuple[Fact, str, Explanation]]
) -> dict[str, dict[str, dict[str, float]]]:
    """Mean precision, precision by share, recall and number of facts: for each way, of each rule and of all."""
    random = np.random.default_rng(0)
    rows: dict[str, dict[str, list[tuple[float, ...]]]] = defaultdict(lambda: defaultdict(list))
    for fact, _, explanation in explanations:
        for way, found in evidence_for(explanation, random):
            precision, recall = planted.judge(fact, found)
            row = (precision, planted.right_share(fact, found), recall, float(len(found)))
            for rule in ("all", fact[1]):
                rows[way][rule].append(row)
    columns = ("precision", "precision_by_share", "recall", "facts")
    return {
        way: {
            rule: dict(zip(columns, np.mean(values, 0).round(4).tolist(), strict=True))
            | {"explained": len(values)}
            for rule, values in of_rule.items()
        }
        for way, of_rule in rows.items()
    }


def roundabout(
    planted: PlantedRules, explanations: list[tuple[Fact, str, Explanation]]
) -> list[tuple[str, int]]:
    """The strongest paths that are no planted proof: what was asked, the relations they took, and how often."""
    ways: Counter[str] = Counter()
    for fact, head, explanation in explanations:
        facts = explanation.paths[0].facts
        if frozenset(facts) in planted.proofs[fact]:
            continue
        at, relations = head, []
        for start, relation, end in facts:
            relations.append(relation if start == at else f"{relation} backwards")
            at = end if start == at else start
        asked = fact[1] + (" backwards" if explanation.question.inverse else "")
        ways[f"{asked}: {', '.join(relations)}"] += 1
    return ways.most_common(10)


def answered(reasoner: dpmpn.Reasoner, split: str) -> dict[str, float]:
    """H@1 on the facts of a split, both directions, of each rule and of all."""
    report = reasoner.evaluate(split, per_relation=True)
    by_rule = {"all": report, **{rule: report["per_relation"][rule] for rule in RULES}}
    return {rule: round(scores["both"]["realistic"]["hits_at_1"], 4) for rule, scores in by_rule.items()}


def run(settings: dict[str, Any], n_families: int, derived_in_graph: bool) -> dict[str, Any]:
    """Make the families of the settings' seed, train, explain every test answer and judge the reasons."""
    planted = family_graph(n_families, settings["seed"])
    dataset = planted.dataset(derived_in_graph)
    # An ordinary dataset asks for its stated facts too: as many questions in all make fewer epochs.
    share = len(planted.splits["train"]) / len(dataset.train)
    settings = {**settings, "n_epochs": round(settings["n_epochs"] * share, 2)}
    started = time.perf_counter()
    reasoner = dpmpn.Reasoner(**settings).fit(dataset)
    trained = time.perf_counter()
    explanations = explained(reasoner, planted)
    return {
        "dataset": dataset.name,
        "derived_in_graph": derived_in_graph,
        "entities": dataset.graph.n_entities,
        "stated_facts": len(planted.stated),
        "derived_facts": {split: len(facts) for split, facts in planted.splits.items()},
        "settings": settings,
        "training_seconds": round(trained - started, 1),
        "hits_at_1_valid": answered(reasoner, "valid"),
        "hits_at_1": answered(reasoner, "test"),
        "questions": 2 * len(planted.splits["test"]),
        "explained": len(explanations),  # attention did not reach the others' answers
        "evidence": measured(planted, explanations),
        "roundabout": roundabout(planted, explanations),
    }


def show(report: dict[str, Any]) -> None:
    """Print the report of a run as a table."""
    edges = "derived facts are edges" if report["derived_in_graph"] else "stated facts only"
    print(f"{report['dataset']}, {edges}: trained in {report['training_seconds']:.0f} s")
    print(f"H@1 {report['hits_at_1']}, valid {report['hits_at_1_valid']['all']}")
    print(f"{report['explained']} of {report['questions']} right answers were reached and explained")
    print(f"{'':24}{'rule':16}precision  by share  recall  facts")
    for way, of_rule in report["evidence"].items():
        for rule, row in of_rule.items():
            if rule == "all" or not way.startswith("enough"):
                print(f"{way:24}{rule:16}{row['precision']:9.3f}{row['precision_by_share']:10.3f}", end="")
                print(f"{row['recall']:8.3f}{row['facts']:7.1f}")
    for way, count in report["roundabout"]:
        print(f"{count:4}  strongest path for {way}", flush=True)


def write(path: Path, reports: list[dict[str, Any]]) -> None:
    """Write all reports and the command that made them."""
    text = json.dumps({"command": " ".join(["python", *sys.argv]), "runs": reports}, indent=2) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def main() -> None:
    """Run each seed and write all reports to one file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", type=int, default=50)
    parser.add_argument("--seed", type=int, nargs="*", default=[0], help="of the families and of the model")
    parser.add_argument(
        "--derived-in-graph",
        type=int,
        nargs="*",
        default=[],
        metavar="SEED",
        help="seeds for which the derived training facts are stated too",
    )
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--epochs", type=float, default=SETTINGS["n_epochs"])
    parser.add_argument("--steps", type=int, default=SETTINGS["n_steps_in_agnn"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = {"n_epochs": options.epochs, "n_steps_in_agnn": options.steps, "threads": options.threads}
    wanted = [(seed, False) for seed in options.seed] + [(seed, True) for seed in options.derived_in_graph]
    reports = []
    for seed, derived_in_graph in wanted:
        reports.append(run({**SETTINGS, **chosen, "seed": seed}, options.families, derived_in_graph))
        show(reports[-1])
        if options.json:  # after each, so that what is finished is not lost
            write(options.json, reports)


if __name__ == "__main__":
    main()
