"""An explanation for other programs: JSON of a versioned format, a networkx graph, Graphviz text, and tables."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import ConfigError, DataError
from dpmpn.explain.decisive import DecisiveSet, Outcome
from dpmpn.explain.explanation import Edge, ExplanationData, Node, Subgraph
from dpmpn.explain.paths import EdgeIds, Walk, fact_of, provenance_of
from dpmpn.explain.record import Tally
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.names import DisplayNames
from dpmpn.render.patterns import Pattern, named_patterns
from dpmpn.render.shapes import ANSWER, HEAD, gained, node_colour, strengths
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import DIGITS, in_json, one_line, percent, six_digits

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]
    import polars as pl

LISTED_INSTANCES = 10
"""Of a pattern; all are counted."""
FORMAT, VERSION = "dpmpn explanation", 4


def as_record(explanation: ExplanationData, why_not: Sequence[WhyNotData] = ()) -> dict[str, Any]:
    """The explanation as plain values, with why other candidates were not the answer where that was asked."""
    graph, attention = explanation.graph, explanation.flow.query.attention
    if not np.isfinite([explanation.answer.score, explanation.prior or 0.0, attention.sum()]).all():
        raise DataError("the model's attention is not a finite number; train it again")
    record = {
        "format": FORMAT,
        "version": VERSION,
        "question": asdict(explanation.question),
        "answer": asdict(explanation.answer),
        "prior": explanation.prior,
        "steps": explanation.n_steps,
        "horizon": asdict(explanation.horizon),
        "patterns": [as_pattern_record(pattern) for pattern in named_patterns(explanation)],
        "kept_share": explanation.kept_share,
        "paths": [{"share": walk.share, "facts": labelled_walk(graph, walk)} for walk in explanation.walks],
        "key_facts": [
            {**labelled_fact(graph, fact), "share": share} for fact, share in explanation.fact_shares.items()
        ],
        "full": _subgraph_record(explanation.full),
        "pruned": _subgraph_record(explanation.pruned),
    }
    if (stated := explanation.with_fact) is not None:
        record["with_fact"] = {"rank": stated.rank, "score": stated.score}
    record |= _decisive_record(explanation)
    if why_not:
        record["why_not"] = [why_not_record(reason) for reason in why_not]
    return dict(six_digits(record))


def as_pattern_record(pattern: Pattern) -> dict[str, Any]:
    """A pattern as plain values; of many instances the strongest."""
    record = pattern.record
    return {
        "sentence": pattern.sentence,
        "share": pattern.share,
        "relations": [asdict(relation) for relation in pattern.relations],
        **(_NO_TALLY if record is None else _tally_record(record.graph)),
        "validation": None
        if record is None or record.validation is None
        else _tally_record(record.validation),
        "varies": [asdict(varying) for varying in pattern.varies],
        "n_instances": len(pattern.instances),
        "instances": [asdict(instance) for instance in pattern.instances[:LISTED_INSTANCES]],
    }


def _tally_record(tally: Tally) -> dict[str, Any]:
    return {
        "heads": tally.heads,
        "answers": tally.answers,
        "support": tally.support,
        "confidence": tally.confidence,
        "pca_confidence": tally.pca_confidence,
        "confidence_low": tally.low,
        "confidence_high": tally.high,
        "exact": tally.is_exact,
    }


_NO_TALLY = dict.fromkeys(_tally_record(Tally(0, 0, 0, None)))


def _decisive_record(explanation: ExplanationData) -> dict[str, Any]:
    """What decides, where that was asked for: sets of facts, or null with a reason, and what became of the answer."""
    found = explanation.decisive
    if found is None:
        return {}
    graph = explanation.graph
    return {
        "necessary": _set_record(found.necessary, graph),
        "sufficient": _set_record(found.sufficient, graph),
        "decisive": {
            "before": _outcome(found.before, graph),
            "without_necessary": _outcome(found.necessary.outcome, graph),
            "necessary_reason": found.necessary.reason or None,
            "necessary_is_smallest": found.necessary.is_smallest,
            "sufficient_alone": _outcome(found.sufficient.outcome, graph),
            "sufficient_reason": found.sufficient.reason or None,
            "sufficient_is_smallest": found.sufficient.is_smallest,
            "isolated": _outcome(found.isolated, graph),
            "prior_decides": found.is_prior,
            "as_unknown": found.as_unknown,
            "questions": found.questions,
        },
    }


def _set_record(found: DecisiveSet, graph: KnowledgeGraph) -> list[dict[str, Any]] | None:
    return None if found.facts is None else [labelled_fact(graph, fact) for fact in found.facts]


def _outcome(outcome: Outcome | None, graph: KnowledgeGraph) -> dict[str, Any] | None:
    if outcome is None:
        return None
    first = None if outcome.first is None else graph.entities.name(outcome.first)
    return {"score": outcome.score, "rank": outcome.rank, "first": first}


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


def labelled_fact(graph: KnowledgeGraph, fact: EdgeIds) -> dict[str, Any]:
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
    } | ({"provenance": said} if (said := provenance_of(graph, fact)) else {})


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
    return in_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


_THIN, _THICK = 0.5, 5.0  # points


def as_networkx(explanation: ExplanationData, full: bool = False) -> "networkx.MultiDiGraph":
    """The pruned subgraph, or the full one; edges point the way attention went, and their keys name what it went along.

    An edge's key is its relation, or the graph's name of the inverse relation where attention went against the fact.
    Attributes are texts and numbers, so that every format of networkx can be written, GraphML too unless a name has
    control characters, which XML cannot hold: attention_0 ... attention_T,
    flow_1 ... flow_T and so on, as the columns of `as_tables` are named.
    """
    try:
        import networkx
    except ImportError as error:
        raise ConfigError("a graph of networkx needs networkx: pip install networkx") from error
    subgraph = explanation.full if full else explanation.pruned
    question, answer = explanation.question, explanation.answer
    graph = networkx.MultiDiGraph(
        question=str(question), head=question.head, answer=answer.answer, score=answer.score
    )
    for node in subgraph.nodes:
        graph.add_node(node.name, label=node.label, role=_role(explanation, node), **_node_numbers(node))
    for edge in subgraph.edges:
        graph.add_edge(
            subgraph.nodes[edge.source].name,
            subgraph.nodes[edge.target].name,
            key=_went_along(explanation.graph, edge),
            relation=edge.relation,
            label=edge.relation_label,
            inverse=edge.inverse,
            **_edge_numbers(edge),
        )
    return graph


def as_dot(explanation: ExplanationData, full: bool = False) -> str:
    """The pruned subgraph, or the full one, as Graphviz text.

    Ranks go the way attention went, arrows the way facts are stated; lines are as thick as they brought the answer
    attention.
    """
    subgraph = explanation.full if full else explanation.pruned
    question, answer = explanation.question, explanation.answer
    names = DisplayNames.of(subgraph, question)
    title = f"{names.question(question)} {names.entity(answer.answer)}"
    lines = [
        "digraph explanation {",
        f"  graph [rankdir=LR, labelloc=t, label={_quoted(title)}];",
        '  node [shape=ellipse, style=filled, fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
        *_dot_nodes(explanation, subgraph, names),
        *(_dot_edge(edge, names) for edge in subgraph.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


def as_tables(explanation: ExplanationData) -> "dict[str, pl.DataFrame]":
    """The tables patterns, paths, key_facts, nodes and edges; key_facts can be imported again."""
    import polars as pl

    subgraphs = {"full": explanation.full, "pruned": explanation.pruned}
    rows = {
        "patterns": [
            pattern_row(number, pattern) for number, pattern in enumerate(named_patterns(explanation), 1)
        ],
        # Attention that stayed at the head passed no facts, so it has no rows.
        "paths": [
            {"path": number, "step": step, **fact, "share": walk.share}
            for number, walk in enumerate(explanation.walks, 1)
            for step, fact in enumerate(labelled_walk(explanation.graph, walk), 1)
        ],
        "key_facts": [
            {**labelled_fact(explanation.graph, fact), "share": share}
            for fact, share in explanation.fact_shares.items()
        ],
        "nodes": [
            {"subgraph": which, "name": node.name, "label": node.label, **_node_numbers(node)}
            for which, subgraph in subgraphs.items()
            for node in subgraph.nodes
        ],
        "edges": [
            {"subgraph": which, **_edge_columns(subgraph, edge)}
            for which, subgraph in subgraphs.items()
            for edge in subgraph.edges
        ],
    }
    for table in (rows["paths"], rows["key_facts"]):
        for row in table:
            row.pop("provenance", None)  # no cell holds several records: they are in the JSON
    return {
        name: pl.DataFrame(table, schema=_schema(name, explanation.n_steps)).with_columns(
            pl.col(pl.Float64).round_sig_figs(DIGITS)
        )
        for name, table in rows.items()
    }


def pattern_row(number: int, pattern: Pattern) -> dict[str, Any]:
    """A pattern as a row of a table: its relations in one cell, ^ before those that are passed backwards."""
    record = as_pattern_record(pattern)
    held = record["validation"] or dict.fromkeys(_NO_TALLY)
    return {
        "pattern": number,
        "share": pattern.share,
        "sentence": pattern.sentence,
        "relations": ", ".join("^" * relation.inverse + relation.relation for relation in pattern.relations),
        "n_instances": record["n_instances"],
        **{name: record[name] for name in _NO_TALLY},
        **{f"validation_{name}": held[name] for name in ("answers", "support", "confidence")},
    }


def _numbered(first: int, **series: Iterable[float]) -> dict[str, float]:
    """Numbers over time by the names of their columns."""
    return {f"{name}_{t}": value for name, values in series.items() for t, value in enumerate(values, first)}


def _node_numbers(node: Node) -> dict[str, float]:
    return {**_numbered(0, attention=node.attention, share=node.share), **_numbered(1, waited=node.waited)}


def _edge_numbers(edge: Edge) -> dict[str, float]:
    return _numbered(1, flow=edge.flow, share=edge.share)


def _edge_columns(subgraph: Subgraph, edge: Edge) -> dict[str, Any]:
    return {
        "source": subgraph.nodes[edge.source].name,
        "relation": edge.relation,
        "target": subgraph.nodes[edge.target].name,
        "relation_label": edge.relation_label,
        "inverse": edge.inverse,
        **_edge_numbers(edge),
    }


def _schema(table: str, n_steps: int) -> dict[str, Any] | None:
    """The columns of a table that may have no rows; there are always nodes."""
    import polars as pl

    text, number = pl.String, pl.Float64
    fact = dict.fromkeys(("head", "relation", "tail", "head_label", "relation_label", "tail_label"), text)
    ends = dict.fromkeys(("subgraph", "source", "relation", "target", "relation_label"), text)
    steps = range(n_steps)
    tally = dict.fromkeys(("heads", "answers", "support"), pl.Int64) | dict.fromkeys(
        ("confidence", "pca_confidence", "confidence_low", "confidence_high"), number
    )
    return {
        "patterns": {
            **{"pattern": pl.Int64, "share": number, "sentence": text, "relations": text},
            **{"n_instances": pl.Int64, **tally, "exact": pl.Boolean},
            **{f"validation_{name}": tally[name] for name in ("answers", "support", "confidence")},
        },
        "paths": {"path": pl.Int64, "step": pl.Int64, **fact, "inverse": pl.Boolean, "share": number},
        "key_facts": {**fact, "share": number},
        "edges": {
            **ends,
            "inverse": pl.Boolean,
            **dict.fromkeys(_numbered(1, flow=steps, share=steps), number),
        },
    }.get(table)


def _went_along(graph: KnowledgeGraph, edge: Edge) -> str:
    """The name of an edge's own relation; that of an inverse one is the graph's, which no relation of the file has."""
    names = graph.relation_names
    if not edge.inverse:
        return edge.relation
    return names.name(int(graph.inverse[names.id(edge.relation, "relation")]))


def _role(explanation: ExplanationData, node: Node) -> str:
    """What a node is to the question; an entity that answers a question about itself is its answer."""
    if node.name == explanation.answer.answer:
        return "answer"
    return "head" if node.name == explanation.question.head else ""


def _dot_nodes(explanation: ExplanationData, subgraph: Subgraph, names: DisplayNames) -> list[str]:
    roles = [_role(explanation, node) for node in subgraph.nodes]
    apart = tuple(at for at, role in enumerate(roles) if role)
    lines = []
    for at, (node, role, strength) in enumerate(
        zip(subgraph.nodes, roles, strengths(subgraph, apart), strict=True)
    ):
        colour = {"head": HEAD, "answer": ANSWER}.get(role) or node_colour(strength, gained(node)[1])
        large = ", fontsize=20" if role else ""
        white = ', fontcolor="white"' if role == "answer" else ""
        times = (f"{value:.3g} at {t}" for t, value in enumerate(node.attention) if value > 0)
        tooltip = f"{node.name}: {', '.join(times)}"
        lines.append(
            f'  n{at} [label={_quoted(names.entity(node.name))}, fillcolor="{colour}", '
            f"tooltip={_quoted(tooltip)}{large}{white}];"
        )
    return lines


def _dot_edge(edge: Edge, names: DisplayNames) -> str:
    share = max(edge.share, default=0.0)
    width = _THIN + (_THICK - _THIN) * share
    back = ", dir=back" if edge.inverse else ""
    tooltip = f"at most {percent(share)} of the answer's attention in one step"
    return (
        f"  n{edge.source} -> n{edge.target} [label={_quoted(names.relation(edge.relation))}, penwidth={width:.3g}, "
        f"tooltip={_quoted(tooltip)}{back}];"
    )


def _quoted(text: str) -> str:
    """A text as Graphviz takes it literally: backslashes and quotes would mean something."""
    return '"' + one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
