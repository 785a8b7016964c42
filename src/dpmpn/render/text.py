"""An explanation in sentences: as a text with the selected key edges as in the paper, and as pages say it."""

from collections.abc import Iterable, Sequence

from dpmpn.data.fact_provenance import Record
from dpmpn.explain.explanation import Edge, ExplanationData, Node, Prediction, Subgraph
from dpmpn.explain.paths import Fact
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.decisive_text import decisive_lines, prior_lines
from dpmpn.render.names import DisplayNames, plain
from dpmpn.render.patterns import named_patterns, record_text
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import (
    counted,
    interval_shown,
    listed,
    one_line,
    percent,
    probability_shown,
    score_shown,
    sentence,
)

SHOWN_PATTERNS = 5
SHOWN_PATHS = 5
SHOWN_KEY_FACTS = 20
SHOWN_RECORDS = 3  # of what tables say of a fact; JSON has all
_SHOWN_RELATIONS = 3  # between the same two entities
_SHOWN_NODES = 3  # in what is said of a step
_DIFFERS = 0.02  # between probabilities
_WORTH_SAYING = 0.005  # parts below are not
_NEGLIGIBLE = 0.0005  # parts that no percentage shows


def explanation_text(explanation: ExplanationData) -> str:
    """The explanation as sentences a domain expert can follow, and the query with its selected key edges."""
    question, answer = explanation.question, explanation.answer
    query = (question.head, question.relation, answer.answer)
    names = DisplayNames.of(explanation.pruned, question)
    lines = [
        *prior_lines(explanation),
        f"Question: {question.rendered(names.exact(question.head), names.relation(question.relation))}",
        *_answer_lines(explanation, names),
        *decisive_lines(explanation),
        "",
        *_pattern_lines(explanation),
        "",
        *_path_lines(explanation, names),
        "",
        f"Query: ({', '.join(names.exact_fact(query[::-1] if question.inverse else query))})",
        "",
        _key_edges_heading(explanation),
        *_key_edge_lines(explanation, names),
    ]
    return "\n".join(lines)


def full_text(explanation: ExplanationData, why_not: Sequence[WhyNotData] = ()) -> str:
    """The same as the text of a file, and why other candidates are not the answer."""
    reasons = (f"Why not {one_line(reason.label)}?\n{why_not_text(reason)}" for reason in why_not)
    return "\n\n".join([explanation_text(explanation), *reasons]) + "\n"


def _answer_lines(explanation: ExplanationData, names: DisplayNames) -> list[str]:
    answer = explanation.answer
    rank = "the first answer" if answer.rank == 1 else f"answer number {answer.rank:,}"
    if not explanation.fits:
        rank = f"number {answer.rank:,} of all that attention reached"
    score = f"score {score_shown(answer.score)}"
    if explanation.prior is None:
        score += " (the part of the model's attention that ended there)"
    lines = [f"Answer: {names.exact(answer.answer)}, {rank}, with {score}.", *_measured_lines(answer)]
    if not explanation.fits:
        question = explanation.question
        end, relation = "head" if question.inverse else "tail", names.relation(question.relation)
        lines.append(f"It is left out of lists: no similar entity is the {end} of any '{relation}' fact.")
    if explanation.prior is not None:
        lines.append(f"Before the first step, its relations alone gave it {score_shown(explanation.prior)}.")
    lines.append(_stated_line(explanation))
    if answer.through_unseen > 0:
        part = percent(answer.through_unseen)
        lines.append(
            f"Of its attention {part} came through entities the model was not trained on: trust it less."
        )
    return lines


def _measured_lines(answer: Prediction) -> list[str]:
    """How probable it is, if that was measured."""
    p, low, high = answer.probability, answer.probability_low, answer.probability_high
    if p is None or low is None or high is None:
        return []
    cases, given = counted(answer.cases or 0, "held-out case"), answer.probability_if_missing or p
    if_missing = f"; {probability_shown(given)} if the graph lacks an answer" * (given - p > _DIFFERS)
    return [
        f"Probability that it is right: {probability_shown(p)} ({interval_shown(low, high)}), measured on {cases} of "
        f"this relation{if_missing}."
    ]


def _stated_line(explanation: ExplanationData) -> str:
    known, held_out = explanation.answer.known, explanation.answer.held_out
    if (stated := explanation.with_fact) is not None:
        rank = "first" if stated.rank == 1 else f"number {stated.rank:,}"
        return (
            "The graph states this fact already. It was asked as if it did not: a fact does not explain itself. "
            f"With the fact, this answer is {rank}, with score {score_shown(stated.score)}."
        )
    if explanation.needs_itself:
        return "The graph states this fact already, and nothing else brings attention to this answer."
    if known:
        return "The graph already states this fact."
    if held_out:
        split = "validation" if held_out == "valid" else held_out
        return f"The graph does not state this fact; it is one of the {split} facts that were held out."
    return "This fact is new: neither the graph nor the held-out facts state it."


def _pattern_lines(explanation: ExplanationData) -> list[str]:
    """The strongest patterns as sentences, each with its record."""
    patterns = named_patterns(explanation)
    shown = [
        pattern
        for at, pattern in enumerate(patterns[:SHOWN_PATTERNS])
        if not at or pattern.share > _WORTH_SAYING
    ]
    lines = ["Reasons, as patterns of relations, and how often each holds:"]
    for pattern in shown:
        lines.append(f"  {percent(pattern.share):>4} {pattern.sentence}")
        if record := record_text(pattern.record):
            lines.append(f"       {record}")
    if rest := patterns[len(shown) :]:
        lines.append(
            f"  {percent(sum(pattern.share for pattern in rest)):>4} {counted(len(rest), 'weaker pattern')}."
        )
    return lines


def _path_lines(explanation: ExplanationData, names: DisplayNames) -> list[str]:
    """The strongest paths as sentences, and what they carried together."""
    head, answer = explanation.question.head, explanation.answer.answer
    steps = counted(explanation.n_steps, "step")
    groups = explanation.path_groups[:SHOWN_PATHS]
    if head == answer:
        lines = [
            f"In {steps}, attention came back to {names.entity(head)}, where it began, along these paths:"
        ]
    else:
        ends = f"from {names.entity(head)} to {names.entity(answer)}"
        lines = [f"In {steps}, attention moved {ends} along these paths:"]
    for group in groups:
        facts = ", then ".join(_hop(hop, names) for hop in group.hops)
        said = sentence(facts) if facts else "never left."
        lines.append(f"  {percent(group.share):>4} {said}")
    together = sum(group.share for group in groups)
    these = "Together they" if len(groups) > 1 else "This path"
    if together > 1 - _NEGLIGIBLE:
        return [*lines, f"{these} carried all of it."]
    carried = f"{these} carried {percent(together)} of it"
    return [*lines, f"{carried}; weaker paths carried the other {percent(1 - together)}."]


def _hop(facts: Iterable[Fact], names: DisplayNames) -> str:
    """The facts between two entities: relations of one direction together, and those that go both ways said once."""
    stated = list(facts)
    clauses: dict[tuple[str, str, bool], list[str]] = {}
    for head, relation, tail in stated:
        both_ways = (tail, relation, head) in stated
        if not (both_ways and relation in clauses.get((tail, head, True), ())):
            clauses.setdefault((head, tail, both_ways), []).append(relation)
    return " and ".join(
        f"{names.entity(head)} {_first_few([names.relation(relation) for relation in relations])} "
        f"{names.entity(tail)}{' (both ways)' if both_ways else ''}"
        for (head, tail, both_ways), relations in clauses.items()
    )


def _first_few(texts: list[str]) -> str:
    """Some texts in a row, the first few where they are many."""
    more = len(texts) - _SHOWN_RELATIONS
    return listed([*texts[:_SHOWN_RELATIONS], f"{more} more"] if more > 0 else texts)


def _key_edges_heading(explanation: ExplanationData) -> str:
    """The heading: shares of key edges are of what the explanation's paths carried, not of all paths."""
    count, carried = len(explanation.paths), percent(min(explanation.kept_share, 1.0))
    paths = "the strongest path" if count == 1 else f"the {count} strongest paths"
    return f"Selected key edges, from {paths}, which carried {carried}:"


def _key_edge_lines(explanation: ExplanationData, names: DisplayNames) -> list[str]:
    key_facts = explanation.key_facts
    if not key_facts:
        return ["  none: this attention never left the head"]
    lines = [
        f"  {percent(key.share):>4} {', '.join(names.exact_fact(key.fact))}"
        + "".join(f"\n       {provenance_text(record)}" for record in key.provenance[:SHOWN_RECORDS])
        for key in key_facts[:SHOWN_KEY_FACTS]
    ]
    more = len(key_facts) - len(lines)
    return [*lines, f"  and {more} more"] if more else lines


def provenance_text(record: Record) -> str:
    """What one row of a table says of its fact, on one line."""
    return "; ".join(f"{one_line(name)}: {one_line(value)}" for name, value in record.items())


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
    steps, ended = counted(explanation.n_steps, "step"), percent(explanation.answer.score)
    if explanation.question.head == explanation.answer.answer:
        return f"All steps at once: after {steps}, {ended} of the attention was at {head}, where it began."
    began = f"All steps at once: attention began at {head}"
    return sentence(f"{began}; after {steps}, {ended} of it was at {answer}")


def fact_text(subgraph: Subgraph, edge: Edge) -> str:
    """The fact an edge stands for, as a sentence of labels."""
    head, tail = subgraph.ends(edge)
    return f"{plain(head.label)} {plain(edge.relation_label)} {plain(tail.label)}"


def step_texts(explanation: ExplanationData) -> list[str]:
    """A few sentences for each time t = 0 ... T."""
    head = plain(explanation.question.head_label)
    start = f"Start: all of the attention is at {head}, the entity the question is about."
    return [start, *(_step_text(explanation, t) for t in range(1, explanation.n_steps + 1))]


def _step_text(explanation: ExplanationData, t: int) -> str:
    full, last = explanation.full, explanation.n_steps
    answer = next(node for node in full.nodes if node.name == explanation.answer.answer)
    sentences = [sentence(f"Step {t}{', the last' if t == last else ''}: {_where(full.nodes, answer, t)}")]
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
        return f"The answer ends with {percent(answer.attention[t])}: its score."
    if answer.attention[t] <= 0:
        return "The answer has none yet."
    part = percent(answer.share[t])
    return f"The answer has {percent(answer.attention[t])}; {part} of what it ends with is already there."
