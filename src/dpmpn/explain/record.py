"""An explanation as values that JSON can hold, of a versioned format: explanation.schema.json describes it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import DataError
from dpmpn.explain.explanation import Explanation
from dpmpn.explain.naming import entity_label, relation_label
from dpmpn.explain.paths import Fact, Path
from dpmpn.explain.subgraph import Subgraph
from dpmpn.explain.ways import entities_along

if TYPE_CHECKING:
    from dpmpn.explain.why_not import WhyNot

FORMAT, VERSION = "dpmpn explanation", 2
_DIGITS = 6  # significant ones


def as_record(explanation: Explanation, why_not: "Sequence[WhyNot]" = ()) -> dict[str, Any]:
    """The explanation as plain values, with why other candidates were not the answer where that was asked."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "question": asdict(explanation.question),
        "answer": asdict(explanation.answer),
        "prior": explanation.prior,
        "steps": explanation.n_steps,
        "horizon": asdict(explanation.horizon),
        "kept_share": explanation.kept_share,
        "paths": [
            {"share": path.share, "facts": labelled_path(explanation, path)} for path in explanation.paths
        ],
        "key_facts": [
            {**labelled_fact(explanation.graph, key.fact), "share": key.share}
            for key in explanation.key_facts
        ],
        "full": _subgraph(explanation.full),
        "pruned": _subgraph(explanation.pruned),
    }
    if why_not:
        record["why_not"] = [reason.to_dict() for reason in why_not]
    return _rounded(record)


def schema() -> dict[str, Any]:
    """The JSON Schema of the records this program writes."""
    return json.loads(files("dpmpn.explain").joinpath("explanation.schema.json").read_text("utf-8"))


def json_text(record: dict[str, Any]) -> str:
    """A record as JSON, one line for each path, fact, node and edge: a person can read it, and `diff` can, too."""
    return f"{{\n{_members(record, '  ')}\n}}\n"


def labelled_fact(graph: KnowledgeGraph, fact: Fact) -> dict[str, Any]:
    """A fact's names and what to show for them."""
    head, relation, tail = fact
    return {
        "head": head,
        "relation": relation,
        "tail": tail,
        "head_label": entity_label(graph, head),
        "relation_label": relation_label(graph, relation),
        "tail_label": entity_label(graph, tail),
    }


def labelled_path(explanation: Explanation, path: Path) -> list[dict[str, Any]]:
    """The facts of a path, and whether attention went along each from its tail to its head."""
    entities = entities_along(explanation.question.head, path)
    return [
        {**labelled_fact(explanation.graph, fact), "inverse": fact[0] != at}
        for fact, at in zip(path.facts, entities, strict=False)
    ]


def _subgraph(subgraph: Subgraph) -> dict[str, Any]:
    nodes = subgraph.nodes
    return {
        "nodes": [node._asdict() for node in nodes],
        "edges": [
            {**edge._asdict(), "source": nodes[edge.source].name, "target": nodes[edge.target].name}
            for edge in subgraph.edges
        ],
    }


def _rounded(value: Any) -> Any:
    """The value with tuples as lists and numbers of so many digits as mean something."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, float):
        if not isfinite(value):
            raise DataError("the model's attention is not a finite number; train it again")
        return float(f"{value:.{_DIGITS}g}")
    return value


def _members(record: dict[str, Any], indent: str) -> str:
    return ",\n".join(f"{indent}{_compact(key)}: {_value(value, indent)}" for key, value in record.items())


def _value(value: Any, indent: str) -> str:
    """A list of objects, or an object that holds some, over several lines; all else on one."""
    deeper = indent + "  "
    if isinstance(value, dict) and any(_is_list_of_objects(each) for each in value.values()):
        return f"{{\n{_members(value, deeper)}\n{indent}}}"
    if _is_list_of_objects(value):
        return "[\n" + ",\n".join(deeper + _compact(each) for each in value) + f"\n{indent}]"
    return _compact(value)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
