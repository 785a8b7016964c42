"""The words of the page in HTML: question, answer, captions, legend, paths, steps and tables."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from dpmpn.explain.explanation import ExplanationData, Question
from dpmpn.explain.paths import Fact, PathGroup
from dpmpn.explain.reason import WhyNotData
from dpmpn.explain.subgraph import Subgraph
from dpmpn.render.colours import ANSWER, HEAD, LITTLE, OUTLINE
from dpmpn.render.names import plain
from dpmpn.render.steps_told import fact_told
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import percent

_SHOWN_PATHS = 8
_Labels = tuple[dict[str, str], dict[str, str]]  # of entities and of relations


def question_told(question: Question) -> str:
    """The question, with the place of its answer open."""
    parts = [_name(question.head_label), f"<i>{_name(question.relation_label)}</i>", "?"]
    return " ".join(reversed(parts) if question.inverse else parts)


def answer_told(explanation: ExplanationData) -> str:
    """How sure the answer is, and was before any step, and who else states it."""
    answer, prior = explanation.answer, explanation.prior
    place = "the model’s first answer" if answer.rank == 1 else f"the model’s answer number {answer.rank:,}"
    probability = _small_percent(answer.probability)
    sentences = [f"This is {place}, with a probability of <strong>{probability}</strong>."]
    if prior is not None:
        sentences.append(f"Before any step, without any path, it had {_small_percent(prior)}.")
    if answer.known:
        sentences.append("The graph states it already.")
    elif answer.held_out:
        split = "validation" if answer.held_out == "valid" else answer.held_out
        sentences.append(
            f"It is right: one of the {split} facts, which were held out of the graph, states it."
        )
    else:
        sentences.append("The graph does not state it.")
    if answer.through_unseen > 0:
        part = percent(answer.through_unseen)
        sentences.append(f"Of its attention {part} came through entities the model was not trained on.")
    return " ".join(sentences)


def _small_percent(part: float) -> str:
    return f"{100 * part:.1g}%" if part < 0.005 else percent(part)


def caption_of_pruned(explanation: ExplanationData) -> str:
    """What the pruned subgraph is."""
    n_nodes, n_facts = len(explanation.pruned.nodes), len(explanation.key_facts)
    return (
        f"{_count(n_nodes, 'entity', 'entities')} and {_count(n_facts, 'fact')}: they carried "
        f"{percent(explanation.kept_share)} of the attention that ended at the answer."
    )


def caption_of_full(explanation: ExplanationData, n_shown: int) -> str:
    """What the full subgraph is."""
    full = explanation.full
    told = (
        f"{_count(len(full.nodes), 'entity', 'entities')} and {_count(len(full.facts), 'fact')}: all that the model "
        "attended from, and the edges between consecutive steps."
    )
    n_edges = len(full.edges)
    return told if n_shown >= n_edges else f"{told} Of the {n_edges:,} edges {n_shown:,} are drawn."


def legend(colours: Sequence[str]) -> str:
    """What colours, sizes and lines mean."""
    times = "".join(_dot(9 + 11 * at, 6, 5, colour) for at, colour in enumerate(colours))
    width = 18 + 11 * (len(colours) - 1)
    parts = [
        (_small(18, _dot(9, 6, 5.5, HEAD, OUTLINE)), "the question starts here"),
        (_small(18, _dot(9, 6, 5.5, ANSWER, OUTLINE)), "the answer"),
        (_small(width, times), f"attention gained early … late (t = 0 … {len(colours) - 1})"),
        (_small(18, _dot(9, 6, 4, LITTLE)), "little attention"),
        (_small(30, _dot(6, 6, 2.5, "currentColor") + _dot(20, 6, 5.5, "currentColor")), "more attention"),
        (_small(34, _line(3.5, 1) + _line(9, 4)), "more flow"),
    ]
    return "".join(f"<span>{drawn}{words}</span>" for drawn, words in parts)


def paths_told(explanation: ExplanationData, ways: Sequence[PathGroup]) -> str:
    """What all paths together brought."""
    if not explanation.key_facts:
        return "No facts carried it: the attention stayed where it began."
    these = f"These {len(ways)} paths" if len(ways) > 1 else "This path"
    return (
        f"{these} brought {percent(explanation.kept_share)} of the attention that ended at "
        f"{_name(explanation.answer.label)}."
    )


def path_list(explanation: ExplanationData, ways: Sequence[PathGroup]) -> str:
    """The paths, strongest first, as buttons that show them in the picture."""
    labels = _labels(explanation.pruned)
    items = [_path(labels, at, way) for at, way in enumerate(ways) if explanation.key_facts]
    shown, more = items[:_SHOWN_PATHS], items[_SHOWN_PATHS:]
    rest = f"<details><summary>{_count(len(more), 'more path')}</summary><ol>{''.join(more)}</ol></details>"
    return f"<ol>{''.join(shown)}</ol>{rest if more else ''}"


def _labels(subgraph: Subgraph) -> _Labels:
    """What its entities and relations are called."""
    return (
        {node.name: node.label for node in subgraph.nodes},
        {edge.relation: edge.relation_label for edge in subgraph.edges},
    )


def _path(labels: _Labels, at: int, way: PathGroup) -> str:
    bar = f'<rect width="{100 * way.share:.3g}" height="6"/>'
    facts = "".join(f"<span>{fact}</span>" for hop in way.hops for fact in _facts(labels, hop))
    return (
        f'<li><button type="button" data-path="{at}" aria-pressed="false"><span><b>{percent(way.share)}</b> '
        f'<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bar}</svg></span>'
        f"{facts}</button></li>"
    )


def _facts(labels: _Labels, hop: Sequence[Fact]) -> list[str]:
    """The facts between two entities; of one that holds both ways only the first is written."""
    entities, relations = labels
    told = []
    for at, (head, relation, tail) in enumerate(hop):
        if (tail, relation, head) in hop[:at]:
            continue
        ends = _name(entities[head]), _name(entities[tail])
        fact = f"{ends[0]} <i>{_name(relations[relation])}</i> {ends[1]}"
        told.append(f"{fact} (both ways)" if (tail, relation, head) in hop[at + 1 :] else fact)
    return told


def step_list(told: Sequence[str]) -> str:
    """What happened at each time."""
    return "".join(f'<li data-t="{t}">{escape(words)}</li>' for t, words in enumerate(told))


def why_not_section(why_not: Sequence[WhyNotData]) -> str:
    """Where other candidates lost their attention."""
    told = "".join(
        f'<h3>Why not {_name(why.label)}?</h3><p class="why-not">{escape(plain(why_not_text(why)))}</p>'
        for why in why_not
    )
    return f'<section aria-label="Why not another answer">{told}</section>' if told else ""


def tables(explanation: ExplanationData) -> str:
    """The numbers of the pruned subgraph: attention of each entity at each time, and flow of each edge at each step."""
    pruned, n_steps = explanation.pruned, explanation.n_steps
    nodes = sorted(pruned.nodes, key=lambda node: -max(node.attention))
    edges = sorted(pruned.edges, key=lambda edge: -sum(edge.share))
    attention = _table(
        "Attention of each entity",
        ["entity", *(f"t = {t}" for t in range(n_steps + 1))],
        ((_name(node.label), node.attention) for node in nodes),
    )
    flow = _table(
        "Attention that went along each fact",
        ["fact", *(f"step {t}" for t in range(1, n_steps + 1)), "from"],
        (
            (escape(fact_told(pruned, edge)), edge.flow, _name(pruned.nodes[edge.source].label))
            for edge in edges
        ),
    )
    return attention + flow


def _table(caption: str, columns: Sequence[str], rows: Iterable[tuple]) -> str:  # type: ignore[type-arg]
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{percent(amount)}</td>" for amount in amounts)}'
        f"{''.join(f'<td>{text}</td>' for text in more)}</tr>"
        for name, amounts, *more in rows
    )
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _name(name: str) -> str:
    """A name; a long one may be broken where its parts meet."""
    parts = re.split(r"(?<=[^_/][_/])(?=[^_/])|(?=\.\D)", plain(name))
    return f"<bdi>{'<wbr>'.join(map(escape, parts))}</bdi>"


def _count(n: int, one: str, many: str = "") -> str:
    return f"1 {one}" if n == 1 else f"{n:,} {many or one + 's'}"


def _small(width: float, drawn: str) -> str:
    return f'<svg width="{width:g}" height="12" viewBox="0 0 {width:g} 12" aria-hidden="true">{drawn}</svg>'


def _dot(x: float, y: float, radius: float, colour: str, outline: str = "none") -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour}" stroke="{outline}"/>'


def _line(y: float, width: float) -> str:
    return f'<path d="M2 {y:g}H32" stroke="currentColor" stroke-width="{width:g}"/>'
