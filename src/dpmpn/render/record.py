"""An explanation as values that JSON can hold, of a versioned format: explanation.schema.json describes it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import DataError
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.paths import Edge, Walk, fact_of
from dpmpn.explain.subgraph import Subgraph
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import six_digits

FORMAT, VERSION = "dpmpn explanation", 2


def as_record(explanation: ExplanationData, why_not: Sequence[WhyNotData] = ()) -> dict[str, Any]:
    """The explanation as plain values, with why other candidates were not the answer where that was asked."""
    graph, attention = explanation.graph, explanation.flow.query.attention
    if not np.isfinite([explanation.answer.probability, explanation.prior or 0.0, attention.sum()]).all():
        raise DataError("the model's attention is not a finite number; train it again")
    record = {
        "format": FORMAT,
        "version": VERSION,
        "question": asdict(explanation.question),
        "answer": asdict(explanation.answer),
        "prior": explanation.prior,
        "steps": explanation.n_steps,
        "horizon": asdict(explanation.horizon),
        "kept_share": explanation.kept_share,
        "paths": [{"share": walk.share, "facts": labelled_walk(graph, walk)} for walk in explanation.walks],
        "key_facts": [
            {**labelled_fact(graph, fact), "share": share} for fact, share in explanation.fact_shares.items()
        ],
        "full": _subgraph_record(explanation.full),
        "pruned": _subgraph_record(explanation.pruned),
    }
    if why_not:
        record["why_not"] = [why_not_record(reason) for reason in why_not]
    return dict(six_digits(record))


def why_not_record(why: WhyNotData) -> dict[str, Any]:
    """Why a candidate is not the answer as plain values."""
    settings = {"settings": dict(why.settings), "settings_now": dict(why.settings_now)}
    return dict(six_digits({**asdict(why), **settings, "text": why_not_text(why)}))


def schema() -> dict[str, Any]:
    """The JSON Schema of the records this program writes."""
    return dict(json.loads((files("dpmpn.render") / "explanation.schema.json").read_text("utf-8")))


def json_text(record: dict[str, Any]) -> str:
    """A record as JSON, one line for each path, fact, node and edge: a person can read it, and `diff` can, too."""
    return f"{{\n{_json_members(record, '  ')}\n}}\n"


def labelled_fact(graph: KnowledgeGraph, fact: Edge) -> dict[str, Any]:
    """The names of a fact's ids, and what to show for them."""
    head, relation, tail = fact
    entities, relations = graph.entities, graph.relation_names
    return {
        "head": entities.name(head),
        "relation": relations.name(relation),
        "tail": entities.name(tail),
        "head_label": entities.label(head),
        "relation_label": relations.label(relation),
        "tail_label": entities.label(tail),
    }


def labelled_walk(graph: KnowledgeGraph, walk: Walk) -> list[dict[str, Any]]:
    """The facts of a walk, and whether attention went along each from its tail to its head."""
    facts = ((fact_of(graph, edge), edge) for edge in walk.edges)
    return [{**labelled_fact(graph, fact), "inverse": fact[0] != edge[0]} for fact, edge in facts]


def _subgraph_record(subgraph: Subgraph) -> dict[str, Any]:
    nodes = subgraph.nodes
    return {
        "nodes": [node._asdict() for node in nodes],
        "edges": [
            {**edge._asdict(), "source": nodes[edge.source].name, "target": nodes[edge.target].name}
            for edge in subgraph.edges
        ],
    }


def _json_members(record: dict[str, Any], indent: str) -> str:
    return ",\n".join(
        f"{indent}{_compact(key)}: {_json_value(value, indent)}" for key, value in record.items()
    )


def _json_value(value: Any, indent: str) -> str:
    """A list of objects, or an object that holds some, over several lines; all else on one."""
    deeper = indent + "  "
    if isinstance(value, dict) and any(_is_list_of_objects(each) for each in value.values()):
        return f"{{\n{_json_members(value, deeper)}\n{indent}}}"
    if _is_list_of_objects(value):
        return "[\n" + ",\n".join(deeper + _compact(each) for each in value) + f"\n{indent}]"
    return _compact(value)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
