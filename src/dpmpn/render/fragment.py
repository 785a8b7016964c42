"""The reasoning as a piece of HTML and the data that its player moves: in a page of its own and in the explorer."""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.paths import PathGroup
from dpmpn.explain.reason import WhyNotData
from dpmpn.explain.subgraph import Subgraph
from dpmpn.render.colours import node_colour
from dpmpn.render.layout import Layout, lay_out_full, lay_out_pruned
from dpmpn.render.markup import FONTS
from dpmpn.render.names import DisplayNames, plain, renamed
from dpmpn.render.page_parts import (
    caption_of_full,
    caption_of_pruned,
    legend,
    path_list,
    paths_told,
    step_list,
    tables,
    why_not_section,
)
from dpmpn.render.panel import Panel, draw_subgraph
from dpmpn.render.steps_told import told_overview, told_steps

_HOW_TO_PLAY = "Press Play, or move the slider, to follow it step by step."
_HEIGHT = 0.62  # of a picture, for its width
_ROOM = 1500.0  # for each node of the full subgraph
_MOST_LINES = 400  # of a picture: more are neither told apart nor drawn quickly
_MOST_LINE_LABELS = 30  # the others tell when a pointer rests on them
_MORE_LABELS = 20  # of nodes in the full picture that did not lead to the answer


class Fragment(NamedTuple):
    """HTML, in which all names are escaped, and what `player.js` shows in it."""

    html: str
    data: dict[str, Any]


def draw_fragment(
    explanation: ExplanationData, why_not: Sequence[WhyNotData] = (), with_full: bool = True
) -> Fragment:
    """Pictures, controls, paths, steps and tables; without the full picture it takes about half the time."""
    explanation = told_apart(explanation)
    ways, steps = explanation.path_groups, told_steps(explanation)
    small = _small_layout(explanation)
    figures, views = (
        _pruned(explanation, small),
        {"pruned": _view(explanation, explanation.pruned, ways, small)},
    )
    if with_full:
        big = _big_layout(explanation, small)
        figures += _full(explanation, big)
        views["full"] = _view(explanation, explanation.full, ways, big)
    html = filled(
        part("reasoning.html"),
        {
            "figures": figures,
            "n_steps": str(explanation.n_steps),
            "overview": escape(told_overview(explanation)),
            "legend": legend(_colours(explanation)),
            "paths_told": paths_told(explanation, ways),
            "paths": path_list(explanation, ways),
            "why_not": why_not_section(why_not),
            "steps": step_list(steps),
            "tables": tables(explanation),
        },
    )
    return Fragment(html, _data(explanation, steps, views))


def told_apart(explanation: ExplanationData) -> ExplanationData:
    """The explanation with identifiers in all labels that two of its entities or two of its relations share."""
    question, answer = explanation.question, explanation.answer
    names = DisplayNames.of(explanation.full, question)
    head, relation = names.entity(question.head), names.relation(question.relation)
    shown = copy(explanation)  # with all that was found out already
    shown.__dict__.update(
        question=replace(question, head_label=head, relation_label=relation),
        answer=replace(answer, label=names.entity(answer.answer)),
        full=renamed(explanation.full, names),
        pruned=renamed(explanation.pruned, names),
    )
    return shown


def part(name: str) -> str:
    """A file that pages are made of."""
    return (files("dpmpn.render") / "page" / name).read_text(encoding="utf-8")


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its places filled, all at once: what a value holds is never a place."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: values[place[1]], template)


def _data(explanation: ExplanationData, steps: list[str], views: dict[str, Any]) -> dict[str, Any]:
    """What the player shows."""
    return {
        "steps": explanation.n_steps,
        "overview": f"{told_overview(explanation)} {_HOW_TO_PLAY}",
        "told": steps,
        "colours": _colours(explanation),
        "relations": [plain(relation) for relation in _relations(explanation)],
        "views": views,
    }


def _view(
    explanation: ExplanationData, subgraph: Subgraph, ways: Sequence[PathGroup], layout: Layout
) -> dict[str, Any]:
    relations = {relation: at for at, relation in enumerate(_relations(explanation))}
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


def _relations(explanation: ExplanationData) -> list[str]:
    edges = (*explanation.pruned.edges, *explanation.full.edges)
    return list(dict.fromkeys(edge.relation_label for edge in edges))


def _edges_of_ways(subgraph: Subgraph, ways: Sequence[PathGroup]) -> list[list[int]]:
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


def _colours(explanation: ExplanationData) -> list[str]:
    """The colour of each time."""
    return [node_colour(1.0, t / explanation.n_steps) for t in range(explanation.n_steps + 1)]


def _small_layout(explanation: ExplanationData) -> Layout:
    """Of the pruned subgraph, in a field that grows with what has to stand in it, here or in the full one."""
    full, pruned = explanation.full, explanation.pruned
    width = 640.0 + 10.0 * min(40, len(pruned.nodes))
    height = width * _HEIGHT
    least = min(height, len(full.nodes) * _ROOM / width)
    ends = explanation.question.head, explanation.answer.answer
    return lay_out_pruned(pruned, *ends, width, height, least, keyed=_is_crowded(pruned))


def _big_layout(explanation: ExplanationData, small: Layout) -> Layout:
    """Of the full subgraph: what led to the answer stays in its place."""
    full, pruned = explanation.full, explanation.pruned
    return lay_out_full(
        full, pruned, small, explanation.question.head, explanation.answer.answer, small.width
    )


def _is_crowded(pruned: Subgraph) -> bool:
    """Whether there are so many lines that only some can have labels."""
    return len({frozenset((edge.source, edge.target)) for edge in pruned.edges}) > _MOST_LINE_LABELS


def _pruned(explanation: ExplanationData, layout: Layout) -> str:
    shares = [sum(edge.share) for edge in explanation.pruned.edges]
    labels = _MOST_LINES, _MOST_LINE_LABELS
    panel = draw_subgraph(explanation.pruned, layout, shares, most_lines=_MOST_LINES, most_labels=labels)
    return _figure("pruned", panel, "What led to the answer", caption_of_pruned(explanation))


def _full(explanation: ExplanationData, layout: Layout) -> str:
    full, pruned = explanation.full, explanation.pruned
    flows, labels = [sum(edge.flow) for edge in full.edges], (len(pruned.nodes) + _MORE_LABELS, 0)
    panel = draw_subgraph(full, layout, flows, most_lines=_MOST_LINES, most_labels=labels, kept=pruned)
    return _figure("full", panel, "All that was attended", caption_of_full(explanation, panel.shown_edges))


def _figure(view: str, panel: Panel, title: str, caption: str) -> str:
    return (
        f'<figure data-view="{view}"><div class="stage" tabindex="0" role="group" aria-label="{title}: the picture">'
        f'<svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label="{title}" '
        f'viewBox="0 0 {panel.width:g} {panel.height:g}" font-family="{FONTS}">{panel.svg}</svg></div>\n'
        f"<figcaption>{caption}</figcaption></figure>\n"
    )
