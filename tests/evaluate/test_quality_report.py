"""The report of a model's scores: ties only where they matter, relations from best to worst, what to expect."""

from typing import Any

from dpmpn.evaluate.report import Report


def summary(mrr: float, queries: int = 400, ties: float = 0.0) -> dict[str, Any]:
    def scores(shift: float) -> dict[str, float]:
        return {key: mrr + shift for key in ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")}

    ways = {"realistic": scores(0), "optimistic": scores(ties), "pessimistic": scores(-ties)}
    return {**ways, "coverage": 1.0, "queries": queries}


def report(ties: float = 0.0, split: str = "test", n_facts: int = 200, **relations: float) -> Report:
    scores = {
        "split": split,
        "triples": 200,
        "queries": 400,
        "unseen": 0,
        "both": summary(0.5, ties=ties),
        "tail": summary(0.6, ties=ties),
        "head": summary(0.4, ties=ties),
        "per_relation": {name: {"both": summary(mrr, 50)} for name, mrr in relations.items()},
    }
    return Report(scores, {name: name.upper() for name in relations}, n_facts)


def test_ties_have_rows_only_where_they_matter() -> None:
    assert "pessimistic" not in report(ties=0.001).table()
    assert report(ties=0.001).table().count("\n") == 3
    assert "pessimistic" in report(ties=0.02).table()
    assert "pessimistic" in report(ties=0.0).table(all_ties=True)


def test_of_many_relations_the_best_and_the_worst_are_shown() -> None:
    many = report(**{f"r{i}": i / 10 for i in range(1, 9)})
    names = [line.split()[0] for line in many.relation_table().splitlines()]
    assert names == ["relation", "R8", "R7", "R6", "...", "R3", "R2", "R1"]
    assert len(many.relation_table(every=True).splitlines()) == 9


def test_it_says_what_to_expect() -> None:
    text = report(good=0.9, bad=0.01).text()
    assert "Of 100 first answers, expect about 50 to be right." in text
    assert "Questions <?, relation, tail> are harder (MRR 40.0) than <head, relation, ?> (MRR 60.0)." in text
    assert "'BAD' can hardly be predicted" in text and "'GOOD'" not in text


def test_it_says_of_what_the_figures_are() -> None:
    assert report().heading() == "200 test facts; 400 questions"
    assert report(n_facts=5000).heading().startswith("200 of 5,000 test facts, drawn at random")
    assert "Validation facts also selected the model" in report(split="valid").text()
