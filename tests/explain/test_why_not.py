"""Why not another answer: each case is told apart as it happened."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from all_fit import AllFit

from dpmpn.ask.core import Answers
from dpmpn.ask.results import QueryResult
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import Horizon
from dpmpn.engine.trace import ReasoningTrace, TraceStep
from dpmpn.render.formats import WhyNot

# From a: b and c, then d behind b, e behind d; f is a neighbour of c; x and y are apart, z has no facts.
FACTS = [
    ("a", "likes", "b"),
    ("a", "likes", "c"),
    ("b", "knows", "d"),
    ("d", "knows", "e"),
    ("c", "knows", "f"),
    ("x", "likes", "y"),
]
NAMES = ["a", "b", "c", "d", "e", "f", "x", "y", "z"]

Sent = tuple[str, str, float]  # from, to and the transition


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    relations = ["knows", "likes"]
    triples = [(NAMES.index(h), relations.index(r), NAMES.index(t)) for h, r, t in FACTS]
    return KnowledgeGraph.from_ids(np.array(triples), NAMES, relations)


def asked(graph: KnowledgeGraph, *steps: Sequence[Sent], n1: int = 20, n3: int = 200) -> QueryResult:
    """A question about a: the steps' edges are given, the limits choose as the model would."""
    head, attention = NAMES.index("a"), {"a": 1.0}
    trace = ReasoningTrace(np.array([head]), np.array([0]))
    for edges in steps:
        assert list(attention) == list(dict.fromkeys(sender for sender, _, _ in edges)), (
            "not what is attended from"
        )
        trace.steps.append(_step(graph, attention, edges, n3))
        last = trace.steps[-1]
        kept = np.flatnonzero(last.attended_to)
        kept = kept[np.lexsort((kept, -last.slot_attention[kept]))][:n1]
        attention = {NAMES[last.slot_node[slot]]: last.slot_attention[slot] for slot in sorted(kept)}
    order = np.argsort(-last.slot_attention, kind="stable")
    horizon = Horizon(n1, 200, n3)
    return _question(graph, horizon, last.slot_node[order], last.slot_attention[order], trace)


def _question(
    graph: KnowledgeGraph,
    horizon: Horizon,
    nodes: np.ndarray,
    scores: np.ndarray,
    trace: ReasoningTrace,
) -> QueryResult:
    query = np.zeros(len(nodes), np.int64)
    columns = query, nodes, scores, np.zeros(len(nodes))
    reached = Answers(trace.heads, trace.relations, *columns, prior=None, trace=trace)
    return AllFit(graph, horizon, known=None, reached=reached, query=0, inverse=False)


def _step(graph: KnowledgeGraph, senders: dict[str, float], edges: Sequence[Sent], n3: int) -> TraceStep:
    counts = [sum(sender == name for sender, _, _ in edges) for name in senders]
    slots = sorted({target for _, target, _ in edges})
    slot = np.array([slots.index(target) for _, target, _ in edges])
    transition = np.array([part for _, _, part in edges])
    flow = transition * np.repeat(list(senders.values()), counts) / sum(senders.values())
    attention = np.bincount(slot, flow)
    attended_to = np.zeros(len(slots), bool)
    attended_to[np.lexsort((np.arange(len(slots)), -attention))[:n3]] = True
    return TraceStep(
        from_query=np.zeros(len(senders), np.int64),
        from_node=np.array([NAMES.index(name) for name in senders]),
        from_attention=np.array(list(senders.values())),
        attended_from=np.ones(len(senders), bool),
        edge_offsets=np.concatenate([[0], np.cumsum(counts)]),
        edge_relation=np.array([_relation(graph, source, target) for source, target, _ in edges]),
        edge_tail=np.array([NAMES.index(target) for _, target, _ in edges]),
        edge_slot=slot,
        flow=flow,
        slot_offsets=np.array([0, len(slots)]),
        slot_node=np.array([NAMES.index(name) for name in slots]),
        slot_attention=attention,
        slot_score=attention,
        attended_to=attended_to,
    )


def _relation(graph: KnowledgeGraph, source: str, target: str) -> int:
    if source == target:
        return graph.self_loop
    head, tail = NAMES.index(source), NAMES.index(target)
    (relation,) = [r for r in range(graph.n_relations) if graph.has_edge(head, r, tail)]
    return relation


def reason(question: QueryResult, candidate: str) -> WhyNot:
    """Why not the candidate; what it says can be written as JSON and read again."""
    why = question.why_not(NAMES.index(candidate))
    record = why.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["text"] == why.text() == str(why)
    assert not set(why.text().split()) & {"None", "nan"}
    return why


TWO_STEPS = (
    [("a", "a", 0.2), ("a", "b", 0.5), ("a", "c", 0.3)],
    [
        *[("a", "a", 0.2), ("a", "b", 0.5), ("a", "c", 0.3)],
        *[("b", "a", 0.1), ("b", "b", 0.1), ("b", "d", 0.8)],
        *[("c", "a", 0.1), ("c", "c", 0.7), ("c", "f", 0.2)],
    ],
)


def test_what_lies_too_far_away_is_unreachable_and_its_distance_is_said(graph: KnowledgeGraph) -> None:
    why = reason(asked(graph, *TWO_STEPS), "e")
    assert (why.reason, why.distance, why.connected, why.facts) == ("unreachable", 3, True, 1)
    assert "from a to it has 3 facts, and attention follows at most 2, one in each step" in why.text()
    assert "--n-steps-in-agnn 3" in why.text()


def test_what_is_not_connected_or_has_no_facts_is_unreachable(graph: KnowledgeGraph) -> None:
    question = asked(graph, *TWO_STEPS)
    apart, bare = reason(question, "x"), reason(question, "z")
    assert (apart.reason, apart.distance, apart.connected) == ("unreachable", None, False)
    assert "not connected" in apart.text()
    assert (bare.reason, bare.facts) == ("unreachable", 0)
    assert bare.text() == (
        "z has no facts in the graph, so no attention can reach it. Add some: with_facts in Python, --add on the "
        "command line."
    )


def test_a_head_without_facts_answers_nothing(graph: KnowledgeGraph) -> None:
    z = NAMES.index("z")
    step = _step(graph, {"z": 1.0}, [("z", "z", 1.0)], 200)
    trace = ReasoningTrace(np.array([z]), np.array([0]), [step])
    question = _question(graph, Horizon(), np.array([z]), np.ones(1), trace)
    other, itself = (reason(question, name) for name in "bz")
    assert other.reason == itself.reason == "unreachable"
    assert other.text().startswith("z has no facts in the graph, so attention cannot leave it")
    assert "there are no answers at all" in itself.text()


def test_the_first_answer_is_said_to_be_it(graph: KnowledgeGraph) -> None:
    why = reason(asked(graph, *TWO_STEPS), "d")
    assert (why.reason, why.rank, why.by, why.first_way) == ("first_answer", 1, (), None)
    assert why.text() == (
        "d is the first answer, with score 0.400. The strongest path to d, a > b > d, carried 100% of its "
        "attention."
    )


def test_out_competed_says_by_what_and_where_the_paths_part(graph: KnowledgeGraph) -> None:
    why = reason(asked(graph, *TWO_STEPS), "f")
    assert (why.reason, why.rank, why.score) == ("out_competed", 5, pytest.approx(0.06))
    assert [(rival.name, rival.attention) for rival in why.by] == [
        ("d", pytest.approx(0.4)),
        ("c", pytest.approx(0.27)),
        ("b", pytest.approx(0.15)),
    ]
    assert why.way and why.way.hops == ((("a", "likes", "c"),), (("c", "knows", "f"),))
    assert why.first_way and why.first_way.entities == ("a", "b", "d")
    fork = why.parted
    assert fork and (fork.name, fork.step, fork.towards.name, fork.other.name) == ("a", 1, "c", "b")
    assert (fork.towards.attention, fork.other.attention) == (pytest.approx(0.3), pytest.approx(0.5))
    assert "ahead of it are d (0.400), c (0.270), b (0.150) and 1 more." in why.text()
    assert (
        "They part at a, which in step 1 sent 50% of its attention to b and 30% to c; further on c, "
        in why.text()
    )


def test_a_candidate_on_the_way_to_the_first_answer_sent_its_attention_on(graph: KnowledgeGraph) -> None:
    why = reason(asked(graph, *TWO_STEPS), "b")
    fork, peak = why.parted, why.peak
    assert fork and (fork.name, fork.step, fork.towards.name, fork.other.name) == ("b", 2, "b", "d")
    assert peak and (peak.step, peak.attention, peak.attended_from) == (1, pytest.approx(0.5), True)
    assert [(rival.name, rival.attention) for rival in peak.sent] == [
        ("d", pytest.approx(0.8)),
        ("a", pytest.approx(0.1)),
    ]
    assert "which in step 2 sent 80% of its attention to d and kept 10%" in why.text()
    assert "After step 1 b still had 0.500, of which step 2 sent 80% to d and 10% to a." in why.text()


def test_a_first_answer_on_the_way_to_the_candidate_kept_its_attention(graph: KnowledgeGraph) -> None:
    steps = (
        [("a", "b", 1.0)],
        [("b", "b", 0.7), ("b", "d", 0.3)],
        [("b", "b", 0.99), ("b", "d", 0.01), ("d", "d", 0.5), ("d", "e", 0.5)],
    )
    why = reason(asked(graph, *steps), "e")
    fork = why.parted
    assert fork and (fork.name, fork.step, fork.towards.name, fork.other.name) == ("b", 2, "d", "b")
    assert "They part at b, which in step 2 kept 70% of its attention and sent 30% to d." in why.text()


def test_the_head_can_be_asked_about_like_any_other(graph: KnowledgeGraph) -> None:
    why = reason(asked(graph, *TWO_STEPS), "a")
    assert (why.reason, why.distance) == ("out_competed", 0)
    assert "The strongest path to a, a > b > a, carried 42% of its attention" in why.text()
    stays = ([("a", "a", 0.4), ("a", "b", 0.6)], [("a", "a", 1.0), ("b", "b", 0.1), ("b", "d", 0.9)])
    why = reason(asked(graph, *stays), "a")
    assert why.way and why.way.hops == ()
    assert "The strongest path to a is to stay there, which kept 100% of its attention" in why.text()


def test_a_way_that_was_preferred_where_the_paths_part_was_lost_further_on(graph: KnowledgeGraph) -> None:
    steps = (
        [("a", "a", 0.1), ("a", "b", 0.4), ("a", "c", 0.5)],
        [
            *[("a", "a", 1.0)],
            *[("b", "d", 1.0)],
            *[("c", "a", 0.1), ("c", "c", 0.7), ("c", "f", 0.2)],
        ],
    )
    why = reason(asked(graph, *steps), "f")
    assert why.narrowest and (why.narrowest.name, why.narrowest.towards.name) == ("c", "f")
    assert "did not prefer d: it sent 50% of its attention to c and 40% to b" in why.text()
    assert "but further on c, in step 2, kept 70% of its attention and sent 20% to f." in why.text()


def test_where_the_paths_part_counts_the_step_in_which_the_candidates_attention_passed(
    graph: KnowledgeGraph,
) -> None:
    # Most of what comes to b leaves a in the last step, when it is too late for e.
    steps = (
        [("a", "a", 0.5), ("a", "b", 0.2), ("a", "c", 0.3)],
        [("a", "a", 1.0), ("b", "d", 1.0), ("c", "c", 1.0)],
        [("a", "b", 0.1), ("a", "c", 0.9), ("c", "c", 1.0), ("d", "d", 0.7), ("d", "e", 0.3)],
    )
    why = reason(asked(graph, *steps), "e")
    assert why.first_way and why.first_way.entities == ("a", "c")
    assert why.parted and (why.parted.name, why.parted.step) == ("a", 1)
    assert why.narrowest and (why.narrowest.name, why.narrowest.step) == ("d", 3)
    assert (
        "They part at a, which in step 1 sent 30% of its attention to c and 20% to b; further on d, in step 3, kept "
        "70% of its attention and sent 30% to e."
    ) in why.text()


def test_where_the_paths_part_the_step_counts_that_brought_attention_to_both(graph: KnowledgeGraph) -> None:
    # Most of what ends at c leaves a in the last step, when it is too late for d.
    steps = (
        [("a", "a", 0.5), ("a", "b", 0.3), ("a", "c", 0.2)],
        [("a", "b", 0.5), ("a", "c", 0.5), ("b", "d", 1.0), ("c", "c", 0.1), ("c", "f", 0.9)],
    )
    why = reason(asked(graph, *steps), "c")
    assert why.first_way and why.first_way.entities == ("a", "b", "d")
    assert "They part at a, which in step 1 sent 30% of its attention to b and 20% to c" in why.text()


@pytest.mark.parametrize(
    ("first_step", "told"),
    [
        (
            [("a", "b", 0.5), ("a", "c", 0.5)],
            "sent about as much of its attention to b (50%) as to c (50%); but",
        ),
        (
            [("a", "b", 0.48), ("a", "c", 0.52)],
            "sent about as much of its attention to c (52%) as to b (48%); but",
        ),
        ([("a", "b", 0.54), ("a", "c", 0.46)], "sent 54% of its attention to b and 46% to c"),
        (
            [("a", "b", 0.4), ("a", "c", 0.6)],
            "did not prefer d: it sent 60% of its attention to c and 40% to b; but",
        ),
    ],
)
def test_parts_that_hardly_differ_are_no_preference(
    graph: KnowledgeGraph, first_step: list[Sent], told: str
) -> None:
    last = [("b", "d", 1.0), *(("c", to, 1 / 3) for to in "acf")]
    why = reason(asked(graph, first_step, last), "f")
    assert f"They part at a, which in step 1 {told}" in why.text()
    assert "further on c, in step 2, sent only 33% of its attention to f." in why.text()


def test_keeping_about_as_much_as_sending_on_is_no_preference_either(graph: KnowledgeGraph) -> None:
    steps = ([("a", "b", 1.0)], [("b", "b", 0.49), ("b", "d", 0.51)])
    why = reason(asked(graph, *steps), "b")
    assert "in step 2 sent about as much of its attention to d (51%) as it kept (49%)" in why.text()
    assert "prefer" not in why.text()


def test_a_peak_of_next_to_nothing_is_not_worth_a_sentence(graph: KnowledgeGraph) -> None:
    steps = (
        [("a", "b", 0.9995), ("a", "c", 0.0005)],
        [("b", "b", 1.0), ("c", "c", 0.1), ("c", "f", 0.9)],
    )
    why = reason(asked(graph, *steps), "c")
    assert why.peak and why.peak.attention == pytest.approx(0.0005)
    assert "still had" not in why.text()


def test_much_larger_limits_are_told_with_what_they_cost(graph: KnowledgeGraph) -> None:
    steps = (TWO_STEPS[0], [("b", "a", 0.1), ("b", "b", 0.1), ("b", "d", 0.8)])
    why = reason(asked(graph, *steps, n1=1), "c")
    assert (why.settings, why.settings_now) == (
        (("ask_attending_from_per_step", 2),),
        (("ask_attending_from_per_step", 1),),
    )
    keys = "ask_attending_from_per_step", "ask_attending_to_per_step"

    def advice(*values: int) -> str:
        settings = tuple(zip(keys, values, strict=True))
        return replace(why, settings=settings, settings_now=((keys[0], 40), (keys[1], 2000))).text()

    assert "To follow it further, try " in advice(320, 16000)
    assert advice(2560, 4000).endswith(
        "Following it further would take ask_attending_from_per_step = 2560 (--ask-attending-from-per-step 2560) and "
        "ask_attending_to_per_step = 4000 (--ask-attending-to-per-step 4000): up to 64 times the work in each step."
    )


def test_labels_stay_in_their_line(graph: KnowledgeGraph) -> None:
    names = {"a": "evil\x1b[31mred\nline2", "b": "b\u2028", "c": "evil\x1b[31mred\nline2"}
    labels = pl.DataFrame({"id": [*names], "name": [*names.values()], "description": None, "type": None})
    labelled = graph.labelled(labels.with_columns(pl.col("description", "type").cast(pl.String)))
    question = replace(asked(graph, *TWO_STEPS), graph=labelled)
    texts = [str(question.question), *(reason(question, name).text() for name in "abcdefxyz")]
    assert all(text.isprintable() and len(text.splitlines()) == 1 for text in texts)
    assert "evil\\x1b[31mred\\nline2 (a)" in texts[1]


def test_a_candidate_that_is_not_gone_on_from_is_out_ranked_by_those_that_are(graph: KnowledgeGraph) -> None:
    question = asked(graph, TWO_STEPS[0], [("b", "a", 0.1), ("b", "b", 0.1), ("b", "d", 0.8)], n1=1)
    why = reason(question, "c")
    (node,) = why.near
    assert (why.reason, why.step, why.limit) == ("not_attended_from", 2, 1)
    assert (node.name, node.distance, node.step, node.rank, node.scanned) == ("c", 0, 1, 2, 3)
    assert node.attention == pytest.approx(0.3)
    assert why.by == (why.weakest_kept,) and why.by[0].name == "b"
    assert why.settings == (("ask_attending_from_per_step", 2),)
    assert why.text().endswith(
        "A step continues from one node at most: here b (0.500). To follow it further, try "
        "ask_attending_from_per_step = 2 (--ask-attending-from-per-step 2)."
    )


def test_among_equals_the_one_that_comes_first_in_the_graph_is_gone_on_from(graph: KnowledgeGraph) -> None:
    question = asked(graph, [("a", "b", 0.5), ("a", "c", 0.5)], [("b", "b", 0.2), ("b", "d", 0.8)], n1=1)
    why = reason(question, "c")
    assert (why.reason, why.near[0].rank, why.by[0].name) == ("not_attended_from", 2, "b")


def test_a_candidate_never_looked_at_points_at_the_nearest_node_that_was_left_out(
    graph: KnowledgeGraph,
) -> None:
    question = asked(graph, TWO_STEPS[0], [("b", "a", 0.1), ("b", "b", 0.1), ("b", "d", 0.8)], n1=1)
    why = reason(question, "f")
    (node,) = why.near
    assert (why.reason, why.distance, node.name, node.distance, node.rank) == (
        "not_attended_from",
        2,
        "c",
        1,
        2,
    )
    assert (why.attention, why.late) == ((0.0, 0.0, 0.0), None)
    assert "c (1 fact from it) did best: it had attention 0.300 after step 1, number 2 of the 3" in why.text()


def test_what_comes_near_too_late_is_no_reason_but_is_said(graph: KnowledgeGraph) -> None:
    # Attention dallies at a, so that d is looked at when no step is left for e.
    stays = [("a", "a", 0.6), ("a", "b", 0.4)]
    steps = (stays, [("a", "a", 0.1), ("a", "b", 0.9)], [("b", "b", 0.5), ("b", "d", 0.5)])
    why = reason(asked(graph, *steps, n1=1), "e")
    (node,) = why.near
    assert (why.reason, why.step) == ("not_attended_from", 2)
    assert (node.name, node.distance, node.step) == ("b", 2, 1)
    assert why.late and (why.late.name, why.late.distance, why.late.step) == ("d", 1, 3)
    assert "d, 1 fact from it, was looked at only in step 3, when no step was left." in why.text()


def test_edges_that_were_not_drawn_are_the_reason_where_attention_was_next_to_the_candidate(
    graph: KnowledgeGraph,
) -> None:
    steps = (TWO_STEPS[0], [("a", "a", 1.0), ("b", "b", 1.0), ("c", "c", 0.8), ("c", "a", 0.2)])
    why = reason(replace(asked(graph, *steps), horizon=Horizon(20, 1, 200)), "f")
    (node,) = why.near
    assert (why.reason, why.step, why.limit) == ("not_sampled", 2, 1)
    assert (node.name, node.distance, node.facts, node.leading) == ("c", 1, 2, 1)
    assert why.settings == (("ask_sampling_per_node", 2),)
    assert (
        "Attention was at c in step 2, but of its 2 facts only 1 is sampled in a step, and the one that "
        "leads to f was not among them."
    ) in why.text()


def test_edges_that_were_not_drawn_further_away_are_the_reason_too(graph: KnowledgeGraph) -> None:
    steps = ([("a", "a", 0.5), ("a", "b", 0.5)], [("a", "a", 1.0), ("b", "b", 1.0)])
    why = reason(replace(asked(graph, *steps), horizon=Horizon(20, 1, 200)), "f")
    assert (why.reason, why.near[0].name, why.near[0].distance, why.step) == ("not_sampled", "a", 2, 1)
    assert "the one that leads on towards f, 2 facts away, was not among them" in why.text()


def test_a_candidate_that_is_not_kept_is_told_what_was(graph: KnowledgeGraph) -> None:
    steps = (TWO_STEPS[0], [("b", "a", 0.1), ("b", "b", 0.1), ("b", "d", 0.8)])
    why = reason(asked(graph, *steps, n3=1), "c")
    (node,) = why.near
    assert (why.reason, why.step, why.limit) == ("not_attended_to", 1, 1)
    assert (node.distance, node.rank, node.attention) == (0, 2, pytest.approx(0.3))
    assert why.weakest_kept and why.weakest_kept.name == "b"
    assert why.settings == (("ask_attending_to_per_step", 2),)
    assert why.text() == (
        "c was looked at in step 1 and got attention 0.300, number 2 of the 3 that were looked at, but was not kept, "
        "and later steps did not return to it. A step keeps one node at most: here b (0.500). To follow it "
        "further, try ask_attending_to_per_step = 2 (--ask-attending-to-per-step 2)."
    )


def test_limits_that_choose_by_chance_are_said_to(graph: KnowledgeGraph) -> None:
    steps = (TWO_STEPS[0], [("b", "a", 0.1), ("b", "b", 0.1), ("b", "d", 0.8)])
    question = asked(graph, *steps, n1=1)
    why = reason(replace(question, horizon=Horizon(1, 200, 200, "nodes")), "c")
    assert (why.reason, why.chosen_by) == ("not_attended_from", "random")
    assert why.settings == (("ask_attending_from_per_step", 2),)
    assert "chosen at random, and it was not among them" in why.text()


def test_entities_that_share_a_label_are_told_apart(graph: KnowledgeGraph) -> None:
    labels = pl.DataFrame({"id": ["b", "d"], "name": ["twin", "twin"], "description": None, "type": None})
    labelled = graph.labelled(labels.with_columns(pl.col("description", "type").cast(pl.String)))
    why = reason(replace(asked(graph, *TWO_STEPS), graph=labelled), "b")
    assert (why.candidate, why.label) == ("b", "twin")
    assert why.text().startswith(
        "twin (b) is answer number 3, with score 0.150; ahead of it are twin (d) (0.4"
    )
    assert "twin" in why.by[0].label and "(d)" not in why.by[0].label
