"""The page: one HTML file that plays the reasoning without network, and the piece of it that the explorer shows."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpmpn.explain.explanation import ExplanationData, Subgraph
from dpmpn.explain.paths import Fact, PathGroup, fact_of, named_fact
from dpmpn.explain.patterns import Hops, hops_of
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.decisive_text import decisive_text
from dpmpn.render.layout import lay_out_full, lay_out_pruned
from dpmpn.render.markup import FONTS
from dpmpn.render.names import displayed, plain
from dpmpn.render.panel import Panel, draw_subgraph
from dpmpn.render.patterns import named_patterns, record_text
from dpmpn.render.shapes import ANSWER, HEAD, LITTLE, OUTLINE, Layout, node_colour
from dpmpn.render.text import fact_text, full_caption, overview, pruned_caption, step_texts
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import counted, percent, score_shown, small_percent

_HOW_TO_PLAY = "Press Play, or move the slider, to follow it step by step."
_SHOWN_PATTERNS, _SHOWN_PATHS = 3, 8
_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f\\]{1,2000}", re.IGNORECASE)  # nothing else becomes a link
_HEIGHT = 0.62  # of a picture, for its width
_ROOM = 1500.0  # for each node of the full subgraph
_MOST_LINES = 400  # of a picture: more can be neither distinguished nor drawn quickly
_MOST_LINE_LABELS = 30  # the others are shown when a pointer rests on them
_MORE_LABELS = 20  # of nodes in the full picture that did not lead to the answer


_Hop = tuple[str, Fact]  # where attention came from, and the fact it passed


class Fragment(NamedTuple):
    """HTML, in which all names are escaped, and what `player.js` shows in it."""

    html: str
    data: dict[str, Any]


class _Figure(NamedTuple):
    view: str
    title: str
    panel: Panel
    caption: str


def draw_page(explanation: ExplanationData, why_not: Sequence[WhyNotData] = ()) -> str:
    """The explanation as the text of an HTML file; with `why_not` it says where others lost their attention."""
    explanation = displayed(explanation)
    css, script = (
        Markup(_page_file(f"player.{suffix}") + _page_file(f"page.{suffix}"))  # files of this package
        for suffix in ("css", "js")
    )
    html, data = _fragment(explanation, why_not, with_full=True)
    page = _rendered(
        "page.html",
        policy=_policy(css, script),
        css=css,
        script=script,
        question=explanation.question,
        answer=explanation.answer,
        verdict=verdict(explanation),
        decides=decisive_text(explanation),
        reasoning=html,
        data=_embedded(data),
    )
    return str(page)


def draw_fragment(
    explanation: ExplanationData, why_not: Sequence[WhyNotData] = (), with_full: bool = True
) -> Fragment:
    """Pictures, controls, patterns, paths, steps and tables; without the full picture it takes about half the time."""
    html, data = _fragment(displayed(explanation), why_not, with_full)
    return Fragment(str(html), data)


def verdict(explanation: ExplanationData) -> Markup:
    """How sure the answer is, and was before any step, and who else states it, in HTML."""
    e = explanation
    stated = {"with_fact": e.with_fact, "needs_itself": e.needs_itself}
    return _rendered("verdict.html", answer=e.answer, prior=e.prior, **stated)


def _fragment(
    explanation: ExplanationData, why_not: Sequence[WhyNotData], with_full: bool
) -> tuple[Markup, dict[str, Any]]:
    full, pruned, n_steps = explanation.full, explanation.pruned, explanation.n_steps
    groups, steps = explanation.path_groups, step_texts(explanation)
    colours = [node_colour(1.0, t / n_steps) for t in range(n_steps + 1)]
    relations = list(dict.fromkeys(edge.relation_label for edge in (*pruned.edges, *full.edges)))
    patterns, of_patterns = named_patterns(explanation, plain), _hops_of_patterns(explanation)
    shown = [*map(_hops_of_group, groups), *of_patterns]  # what a press of a button shows alone
    small = _small_layout(explanation)
    figures = [_pruned(explanation, small)]
    views = {"pruned": _view(pruned, shown, relations, small)}
    if with_full:  # what led to the answer stays in its place
        large = lay_out_full(full, pruned, small, small.width)
        figures.append(_full(explanation, large))
        views["full"] = _view(full, shown, relations, large)
    html = _rendered(
        "reasoning.html",
        figures=figures,
        fonts=FONTS,
        n_steps=n_steps,
        overview=overview(explanation),
        colours=colours,
        answer=explanation.answer,
        kept_share=explanation.kept_share,
        patterns=[
            (number if of_patterns[number - len(groups)] else None, pattern, record_text(pattern.record))
            for number, pattern in enumerate(patterns, len(groups))
            if pattern.relations
        ],
        paths=[(group.share, _group_facts(pruned, group)) for group in groups if explanation.key_facts],
        stated=[
            (key.fact, [[*map(_field, record.items())] for record in key.provenance])
            for key in explanation.key_facts
            if key.provenance
        ],
        why_not=[(why.label, why_not_text(why)) for why in why_not],
        steps=steps,
        nodes=sorted(pruned.nodes, key=lambda node: -max(node.attention)),
        edges=[
            (fact_text(pruned, edge), edge.flow, pruned.nodes[edge.source].label)
            for edge in sorted(pruned.edges, key=lambda edge: -sum(edge.share))
        ],
        times=[f"t = {t}" for t in range(n_steps + 1)],
        step_names=[f"step {t}" for t in range(1, n_steps + 1)],
    )
    data = {
        "steps": n_steps,
        "overview": f"{overview(explanation)} {_HOW_TO_PLAY}",
        "told": steps,
        "colours": colours,
        "relations": [plain(relation) for relation in relations],
        "views": views,
    }
    return html, data


def _field(field: tuple[str, str]) -> tuple[str, str, bool]:
    """A column's name, what it says, and whether that is an address a reader may follow."""
    name, value = field
    return name, value, _ADDRESS.fullmatch(value) is not None


def _view(
    subgraph: Subgraph, shown: Sequence[Sequence[_Hop]], relations: list[str], layout: Layout
) -> dict[str, Any]:
    numbers = {relation: at for at, relation in enumerate(relations)}
    return {
        "head": layout.head,
        "answer": layout.answer,
        "nodes": [
            {"name": plain(node.name), "label": plain(node.label), "attention": _short(node.attention)}
            for node in subgraph.nodes
        ],
        "edges": [  # source, target, relation, whether inverse, flow at each step: many, so without names
            [edge.source, edge.target, numbers[edge.relation_label], int(edge.inverse), *_short(edge.flow)]
            for edge in subgraph.edges
        ],
        "paths": _edges_of(subgraph, shown),
    }


def _edges_of(subgraph: Subgraph, hops: Sequence[Sequence[_Hop]]) -> list[list[int]]:
    """For each list of hops the indices of their edges; attention went in the direction of the paths."""
    index = {
        (subgraph.nodes[edge.source].name, subgraph.fact(edge)): at for at, edge in enumerate(subgraph.edges)
    }
    return [[index[hop] for hop in each if hop in index] for each in hops]


def _hops_of_group(group: PathGroup) -> list[_Hop]:
    return [(source, fact) for source, hop in zip(group.entities, group.hops, strict=False) for fact in hop]


def _hops_of_patterns(explanation: ExplanationData) -> list[list[_Hop]]:
    """What the listed paths of each pattern pass."""
    graph = explanation.graph
    found: dict[Hops, list[_Hop]] = {pattern.hops: [] for pattern in explanation.hop_patterns}
    for walk in explanation.walks:
        hops = hops_of(graph, [relation for _, relation, _ in walk.edges])
        passed = (
            (graph.entities.name(edge[0]), named_fact(graph, fact_of(graph, edge))) for edge in walk.edges
        )
        found.get(hops, []).extend(passed)
    return list(found.values())


def _short(amounts: tuple[float, ...]) -> list[float]:
    return [float(f"{amount:.5g}") if amount >= 5e-5 else 0 for amount in amounts]


def _group_facts(pruned: Subgraph, group: PathGroup) -> list[tuple[str, str, str, bool]]:
    """The labels of a group's facts; one that holds both ways is written once, and that is said."""
    entities = {node.name: node.label for node in pruned.nodes}
    relations = {edge.relation: edge.relation_label for edge in pruned.edges}
    return [
        (entities[head], relations[relation], entities[tail], (tail, relation, head) in hop[at + 1 :])
        for hop in group.hops
        for at, (head, relation, tail) in enumerate(hop)
        if (tail, relation, head) not in hop[:at]
    ]


def _small_layout(explanation: ExplanationData) -> Layout:
    """Of the pruned subgraph, in a field that grows with what has to stand in it, here or in the full one."""
    full, pruned = explanation.full, explanation.pruned
    width = 640.0 + 10.0 * min(40, len(pruned.nodes))
    height = width * _HEIGHT
    least = min(height, len(full.nodes) * _ROOM / width)
    ends = explanation.question.head, explanation.answer.answer
    # Where there are so many lines that only some can have labels, no room is left for those.
    n_lines = len({frozenset((edge.source, edge.target)) for edge in pruned.edges})
    return lay_out_pruned(pruned, *ends, width, height, least, keyed=n_lines > _MOST_LINE_LABELS)


def _pruned(explanation: ExplanationData, layout: Layout) -> _Figure:
    shares = [sum(edge.share) for edge in explanation.pruned.edges]
    labels = _MOST_LINES, _MOST_LINE_LABELS
    panel = draw_subgraph(explanation.pruned, layout, shares, most_lines=_MOST_LINES, most_labels=labels)
    return _Figure("pruned", "What led to the answer", panel, pruned_caption(explanation))


def _full(explanation: ExplanationData, layout: Layout) -> _Figure:
    full, pruned = explanation.full, explanation.pruned
    flows, labels = [sum(edge.flow) for edge in full.edges], (len(pruned.nodes) + _MORE_LABELS, 0)
    panel = draw_subgraph(full, layout, flows, most_lines=_MOST_LINES, most_labels=labels, kept=pruned)
    return _Figure("full", "All that was attended to", panel, full_caption(full, panel.shown_edges))


def _rendered(template: str, **values: Any) -> Markup:
    return Markup(_templates().get_template(template).render(values))


@cache
def _templates() -> Environment:
    """The templates of pages, which escape whatever is no markup already."""
    templates = Environment(
        loader=PackageLoader("dpmpn.render", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {
        "counted": counted,
        "name": _name_html,
        "percent": percent,
        "plain": plain,
        "short": lambda number: f"{number:g}",
        "small_percent": small_percent,
        "score": score_shown,
    }
    templates.globals |= {
        "HEAD": HEAD,
        "ANSWER": ANSWER,
        "LITTLE": LITTLE,
        "OUTLINE": OUTLINE,
        "SHOWN_PATHS": _SHOWN_PATHS,
        "SHOWN_PATTERNS": _SHOWN_PATTERNS,
    }
    return templates


def _name_html(name: str) -> Markup:
    """A name; a long one may be broken where its parts meet."""
    parts = re.split(r"(?<=[^_/][_/])(?=[^_/])|(?=\.\D)", plain(name))
    return Markup("<bdi>{}</bdi>").format(Markup("<wbr>").join(parts))


def _page_file(name: str) -> str:
    """A file that pages are made of."""
    return (files("dpmpn.render") / "page" / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> Markup:
    """Data as JSON that ends no script element, whatever the names hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text))


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded or run but the page's own style and script."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
