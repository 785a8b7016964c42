"""The page: one HTML file that plays the reasoning from t = 0 to T, without any other file and without network."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dpmpn.drawing.colours import node_colour
from dpmpn.drawing.layout import Layout, lay_out_full, lay_out_pruned
from dpmpn.drawing.markup import FONTS
from dpmpn.drawing.page_parts import (
    answer_told,
    caption_of_full,
    caption_of_pruned,
    legend,
    path_list,
    paths_told,
    question_told,
    step_list,
    tables,
    why_not_section,
)
from dpmpn.drawing.panel import Panel, draw_subgraph
from dpmpn.drawing.plain import plain
from dpmpn.drawing.steps_told import told_overview, told_steps
from dpmpn.explain.explanation import Explanation
from dpmpn.explain.subgraph import Subgraph
from dpmpn.explain.text import Way, ways_of

if TYPE_CHECKING:
    from dpmpn.explain.why_not import WhyNot

_HOW_TO_PLAY = "Press Play, or move the slider, to follow it step by step."
_HEIGHT = 0.62  # of a picture, for its width
_ROOM = 1500.0  # for each node of the full subgraph
_MOST_LINES = 400  # of a picture: more are neither told apart nor drawn quickly
_MOST_LINE_LABELS = 30  # the others tell when a pointer rests on them
_MORE_LABELS = 20  # of nodes in the full picture that did not lead to the answer


def draw_page(explanation: Explanation, why_not: "Sequence[WhyNot]" = ()) -> str:
    """The explanation as the text of an HTML file; with `why_not` it says where others lost their attention."""
    ways, steps = ways_of(explanation), told_steps(explanation)
    layouts = _layouts(explanation)
    panels = _panels(explanation, layouts)
    css, script = _part("page.css"), _part("page.js")
    return _filled(
        _part("page.html"),
        {
            "policy": _policy(css, script),
            "css": css,
            "script": script,
            "title": escape(plain(f"{explanation.question} {explanation.answer.label}")),
            "question": question_told(explanation.question),
            "answer": f"<bdi>{escape(plain(explanation.answer.label))}</bdi>",
            "verdict": answer_told(explanation.answer),
            "pruned": _picture(panels[1], "What led to the answer"),
            "pruned_caption": caption_of_pruned(explanation),
            "full": _picture(panels[0], "All that was attended"),
            "full_caption": caption_of_full(explanation, panels[0].shown_edges),
            "n_steps": str(explanation.n_steps),
            "overview": escape(told_overview(explanation)),
            "legend": legend(_colours(explanation)),
            "paths_told": paths_told(explanation, ways),
            "paths": path_list(explanation, ways),
            "why_not": why_not_section(why_not),
            "steps": step_list(steps),
            "tables": tables(explanation),
            "data": _embedded(_data(explanation, ways, steps, layouts)),
        },
    )


def _data(
    explanation: Explanation, ways: list[Way], steps: list[str], layouts: tuple[Layout, Layout]
) -> dict[str, Any]:
    """What the script shows."""
    full, pruned = explanation.full, explanation.pruned
    relations = list(dict.fromkeys(edge.relation_label for edge in (*pruned.edges, *full.edges)))
    places = {relation: at for at, relation in enumerate(relations)}
    return {
        "steps": explanation.n_steps,
        "overview": f"{told_overview(explanation)} {_HOW_TO_PLAY}",
        "told": steps,
        "colours": _colours(explanation),
        "relations": [plain(relation) for relation in relations],
        "views": {
            "full": _view(full, ways, places, layouts[0]),
            "pruned": _view(pruned, ways, places, layouts[1]),
        },
    }


def _view(subgraph: Subgraph, ways: list[Way], relations: dict[str, int], layout: Layout) -> dict[str, Any]:
    return {
        "head": layout.head,
        "answer": layout.answer,
        "nodes": [
            {"name": plain(node.name), "label": plain(node.label), "attention": _short(node.attention)}
            for node in subgraph.nodes
        ],
        "edges": [  # source, target, relation, whether inverse, flow at each step: many, so without names
            [edge.source, edge.target, relations[edge.relation_label], int(edge.inverse), *_short(edge.flow)]
            for edge in subgraph.edges
        ],
        "paths": _edges_of_ways(subgraph, ways),
    }


def _edges_of_ways(subgraph: Subgraph, ways: list[Way]) -> list[list[int]]:
    """For each way the places of its edges; attention went the way's direction."""
    places = {
        (subgraph.nodes[edge.source].name, subgraph.fact(edge)): at for at, edge in enumerate(subgraph.edges)
    }
    hops = (
        [(source, fact) for source, hop in zip(way.entities, way.hops, strict=False) for fact in hop]
        for way in ways
    )
    return [[places[hop] for hop in found if hop in places] for found in hops]


def _short(amounts: tuple[float, ...]) -> list[float]:
    return [float(f"{amount:.5g}") if amount >= 5e-5 else 0 for amount in amounts]


def _colours(explanation: Explanation) -> list[str]:
    """The colour of each time."""
    return [node_colour(1.0, t / explanation.n_steps) for t in range(explanation.n_steps + 1)]


def _layouts(explanation: Explanation) -> tuple[Layout, Layout]:
    """Of the full and the pruned subgraph, in a field that grows with what has to stand in it."""
    full, pruned = explanation.full, explanation.pruned
    head, answer = explanation.question.head, explanation.answer.answer
    width = 640.0 + 10.0 * min(40, len(pruned.nodes))
    height = width * _HEIGHT
    least = min(height, len(full.nodes) * _ROOM / width)
    small = lay_out_pruned(pruned, head, answer, width, height, least, keyed=_is_crowded(pruned))
    return lay_out_full(full, pruned, small, head, answer, width), small


def _is_crowded(pruned: Subgraph) -> bool:
    """Whether there are so many lines that only some can have labels."""
    return len({frozenset((edge.source, edge.target)) for edge in pruned.edges}) > _MOST_LINE_LABELS


def _panels(explanation: Explanation, layouts: tuple[Layout, Layout]) -> tuple[Panel, Panel]:
    full, pruned = explanation.full, explanation.pruned
    flows, shares = [sum(edge.flow) for edge in full.edges], [sum(edge.share) for edge in pruned.edges]
    labelled = len(pruned.nodes) + _MORE_LABELS
    return (
        draw_subgraph(
            full, layouts[0], flows, most_lines=_MOST_LINES, most_labels=(labelled, 0), kept=pruned
        ),
        draw_subgraph(
            pruned, layouts[1], shares, most_lines=_MOST_LINES, most_labels=(_MOST_LINES, _MOST_LINE_LABELS)
        ),
    )


def _picture(panel: Panel, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label="{title}" '
        f'viewBox="0 0 {panel.width:g} {panel.height:g}" font-family="{FONTS}">{panel.svg}</svg>'
    )


def _embedded(data: dict[str, Any]) -> str:
    """Data as JSON that ends no script element, whatever the names hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded or run but the page's own style and script."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return (files("dpmpn.drawing") / "page" / name).read_text(encoding="utf-8")


def _filled(template: str, values: dict[str, str]) -> str:
    """The template with its places filled, all at once: what a value holds is never a place."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: values[place[1]], template)
