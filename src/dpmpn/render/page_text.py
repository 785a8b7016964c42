"""The sentences of the page: what pictures show, and what happened at each step of the reasoning."""

from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.subgraph import Edge, Node, Subgraph
from dpmpn.render.names import plain
from dpmpn.wording import counted, listed, percent

_SHOWN_NODES = 3
_WORTH_SAYING = 0.005  # parts below are not


def pruned_caption(explanation: ExplanationData) -> str:
    """What the pruned subgraph is."""
    entities = counted(len(explanation.pruned.nodes), "entity", "entities")
    return (
        f"{entities} and {counted(len(explanation.key_facts), 'fact')}: they carried "
        f"{percent(explanation.kept_share)} of the attention that ended at the answer."
    )


def full_caption(full: Subgraph, n_shown: int) -> str:
    """What the full subgraph is, and how many of its edges are drawn."""
    caption = (
        f"{counted(len(full.nodes), 'entity', 'entities')} and {counted(len(full.facts), 'fact')}: all that the "
        "model attended from, and the edges between consecutive steps."
    )
    n_edges = len(full.edges)
    return caption if n_shown >= n_edges else f"{caption} Of the {n_edges:,} edges {n_shown:,} are drawn."


def overview(explanation: ExplanationData) -> str:
    """What all steps did together."""
    head, answer = plain(explanation.question.head_label), plain(explanation.answer.label)
    steps, ended = counted(explanation.n_steps, "step"), percent(explanation.answer.probability)
    if explanation.question.head == explanation.answer.answer:
        return f"All steps at once: after {steps}, {ended} of the attention was at {head}, where it began."
    return f"All steps at once: the attention began at {head}; after {steps}, {ended} of it was at {answer}."


def fact_text(subgraph: Subgraph, edge: Edge) -> str:
    """The fact an edge stands for, as a sentence of labels."""
    head, tail = subgraph.ends(edge)
    return f"{plain(head.label)} {plain(edge.relation_label)} {plain(tail.label)}"


def step_texts(explanation: ExplanationData) -> list[str]:
    """A few sentences for each time t = 0 ... T."""
    head = plain(explanation.question.head_label)
    start = f"Start: all of the attention is at {head}, which the question is about."
    return [start, *(_step(explanation, t) for t in range(1, explanation.n_steps + 1))]


def _step(explanation: ExplanationData, t: int) -> str:
    full, last = explanation.full, explanation.n_steps
    answer = next(node for node in full.nodes if node.name == explanation.answer.answer)
    sentences = [f"Step {t}{', the last' if t == last else ''}: {_where(full.nodes, answer, t)}."]
    if full.edges:
        strongest = max(full.edges, key=lambda edge: edge.flow[t - 1])
        if strongest.flow[t - 1] >= _WORTH_SAYING:
            flow, source = percent(strongest.flow[t - 1]), plain(full.nodes[strongest.source].label)
            fact = fact_text(full, strongest)
            sentences.append(f"The strongest flow, {flow}, came from {source} along “{fact}”.")
    waited = sum(node.waited[t - 1] for node in full.nodes)
    if waited >= _WORTH_SAYING:
        sentences.append(f"{percent(waited)} stayed where it was.")
    return " ".join([*sentences, _arrived(answer, t, last)])


def _where(nodes: tuple[Node, ...], answer: Node, t: int) -> str:
    """Where most of the attention is."""
    order = sorted(nodes, key=lambda node: -node.attention[t])
    shown = [node for node in order[:_SHOWN_NODES] if node.attention[t] >= _WORTH_SAYING] or order[:1]
    first, *others = (
        (percent(node.attention[t]), plain(node.label) + (" (the answer)" if node is answer else ""))
        for node in shown
    )
    return listed(
        [f"{first[0]} of the attention is at {first[1]}", *(f"{part} at {name}" for part, name in others)]
    )


def _arrived(answer: Node, t: int, last: int) -> str:
    """How much the answer has, and how much of what it ends with is there."""
    if t == last:
        return f"The answer ends with {percent(answer.attention[t])}: its probability."
    if answer.attention[t] <= 0:
        return "The answer has none yet."
    part = percent(answer.share[t])
    return f"The answer has {percent(answer.attention[t])}; {part} of what it ends with is already there."
