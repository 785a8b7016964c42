"""Why a candidate is not the first answer, in a few sentences that end with what can be done about it."""

from collections.abc import Sequence

from dpmpn.explain.distance import FARTHEST
from dpmpn.explain.reason import Near, WhyNot
from dpmpn.explain.rivals import Fork, Peak, Rival, Way
from dpmpn.explain.text import percent
from dpmpn.explain.told_apart import told_apart
from dpmpn.model.frontier import ATTENTION_FLOOR

_SHOWN_NEAR = 3
_WORTH_TRYING = 8  # times a limit
_WORTH_SAYING = 1.1  # times its last attention that a candidate must have had before


def sentences(why: WhyNot) -> list[str]:
    """The reason, what it was lost to, and what to try."""
    told = {
        "unreachable": _unreachable,
        "not_sampled": _not_sampled,
        "not_attended_from": _not_attended_from,
        "not_attended_to": _not_attended_to,
        "out_competed": _out_competed,
        "first_answer": _first_answer,
    }[why.reason]
    return [*told(told_apart(why)), *_try(why)]


def _unreachable(why: WhyNot) -> list[str]:
    x, head = why.label, why.head_label
    if why.candidate == why.head:
        return [
            f"{x} is what the question is about, and has no facts in the graph: attention cannot leave it, so there "
            "are no answers at all.",
            "Add facts about it with --add.",
        ]
    if not why.head_facts:
        return [
            f"{head} has no facts in the graph to go along, so attention cannot leave it: neither {x} nor anything "
            "else is an answer.",
            f"Add facts about {head} with --add.",
        ]
    if not why.facts:
        return [f"{x} has no facts in the graph, so no attention can come to it.", "Add some with --add."]
    if not why.connected:
        return [
            f"No chain of facts, however long, leads from {head} to {x}: they lie in parts of the graph that are "
            "not connected.",
            "A fact that connects them can be added with --add.",
        ]
    length = f"{why.distance}" if why.distance is not None else f"more than {FARTHEST}"
    sentence = (
        f"{x} is too far away: the shortest chain of facts from {head} to it has {length}, and attention goes along "
        f"at most {_counted(why.n_steps, 'fact')}, one in each step."
    )
    if why.distance is None:
        return [sentence]
    return [
        sentence,
        f"A fact that brings them nearer can be added with --add; a model trained with --n-steps-in-agnn "
        f"{why.distance} could reach it.",
    ]


def _not_sampled(why: WhyNot) -> list[str]:
    x, node = why.label, why.near[0]
    limit = f"{why.limit:,} {'is' if why.limit == 1 else 'are'} drawn by chance in a step"
    if node.distance == 1:
        lead = (
            f"none of those that lead to {x} was"
            if node.leading > 1
            else f"the one that leads to {x} was not"
        )
    else:
        lead = (
            f"none that leads on towards {x}, {node.distance} facts away, was"
            if node.leading > 1
            else f"the one that leads on towards {x}, {node.distance} facts away, was not"
        )
    told = [
        f"{x} was never looked at, although {_facts_away(why)}.",
        f"Attention was at {node.label} in step {why.step}, but of its {node.facts:,} facts only {limit}, and {lead} "
        "among them.",
    ]
    more = why.near[1 : 1 + _SHOWN_NEAR]
    if more:
        others = len(why.near) - 1 - len(more)
        shown = [f"{near.label} ({near.facts:,} facts)" for near in more]
        told.append(f"The same happened at {_and([*shown, f'{others:,} more'] if others else shown)}.")
    return [*told, *_late(why)]


def _not_attended_from(why: WhyNot) -> list[str]:
    x, node = why.label, why.near[0]
    if not node.distance:
        told = [
            f"{x} had attention {_amount(node.attention)} after step {node.step}, {_place(node)}, but step "
            f"{why.step} did not go on from it, and nothing led back to it.",
        ]
    else:
        away = _counted(node.distance, "fact")
        told = [
            f"{x} was never looked at, although {_facts_away(why)}.",
            f"Of what came near it early enough, {node.label} ({away} from it) did best: it had attention "
            f"{_amount(node.attention)} after step {node.step}, {_place(node)}, but step {why.step} did not go on "
            "from it.",
        ]
    return [*told, _kept(why, f"goes on from {_nodes(why.limit)}"), *_late(why)]


def _not_attended_to(why: WhyNot) -> list[str]:
    node = why.near[0]
    return [
        f"{why.label} was looked at in step {node.step} and got attention {_amount(node.attention)}, {_place(node)}, "
        "but was not kept, and later steps did not come back to it.",
        _kept(why, f"keeps {_nodes(why.limit)}"),
    ]


def _kept(why: WhyNot, keeps: str) -> str:
    """What the limit preferred."""
    if why.near[0].attention <= ATTENTION_FLOOR:
        return f"Attention below {ATTENTION_FLOOR:.0e} counts as none, and is not followed."
    if why.chosen_by == "random":
        return f"A step {keeps}, chosen by chance, and it was not among them."
    kept = [_with_attention(rival) for rival in why.by]
    last = why.weakest_kept
    if last is None or last in why.by:
        return f"A step {keeps} at most: here {_and(kept)}."
    return f"A step {keeps} at most: here {', '.join(kept)} and so on down to {_with_attention(last)}."


def _late(why: WhyNot) -> list[str]:
    late = why.late
    if late is None:
        return []
    left = why.n_steps - late.step
    steps = (
        "no step was left"
        if not left
        else f"only {_counted(left, 'step')} {'was' if left == 1 else 'were'} left"
    )
    return [
        f"{late.label}, {_counted(late.distance, 'fact')} from it, was looked at only in step {late.step}, when "
        f"{steps}."
    ]


def _out_competed(why: WhyNot) -> list[str]:
    x, first = why.label, why.by[0]
    if why.rank is None:
        return [
            f"{x} was looked at in the last step, but got no attention that a number could tell from none; "
            f"{_with_attention(first)} is the first answer."
        ]
    more = why.rank - 1 - len(why.by)
    before = [*map(_with_attention, why.by), *([f"{more:,} more"] if more else [])]
    told = [
        f"{x} is answer number {why.rank:,}, with probability {_amount(why.probability)}; before it "
        f"{'is' if why.rank == 2 else 'are'} {_and(before)}."
    ]
    if why.way and why.first_way:
        told.append(f"{_strongest(why.way, x)}; {_strongest(why.first_way, first.label, again=True)}.")
    peak = why.peak if why.peak and why.peak.attention > _WORTH_SAYING * why.probability else None
    if why.parted:
        # What became of the candidate's own attention is said with its peak.
        narrow = None if why.narrowest and peak and why.narrowest.name == why.candidate else why.narrowest
        told.append(_parted(why.parted, narrow, first.label, peak is not None))
    return [*told, _peak(peak, x)] if peak else told


def _parted(fork: Fork, narrow: Fork | None, first: str, goes_on: bool) -> str:
    parts = f"They part at {fork.label}, which in step {fork.step}"
    favoured = fork.towards.attention >= fork.other.attention
    if favoured:
        parts += f" did not prefer {first}: it {_sent(fork, fork.towards, fork.other)}"
    else:
        parts += f" {_sent(fork, fork.other, fork.towards)}"
    if narrow:
        return (
            f"{parts}; {'but ' if favoured else ''}further on {narrow.label}, in step {narrow.step}, "
            f"{_sent(narrow, narrow.other, narrow.towards)}."
        )
    more = "; but more came to it in other steps or along other paths" if favoured and not goes_on else ""
    return f"{parts}{more}."


def _sent(fork: Fork, more: Rival, less: Rival) -> str:
    """What a node did with its attention: the larger part first."""
    verbs = ["kept" if rival.name == fork.name else "sent" for rival in (more, less)]
    targets = ["" if rival.name == fork.name else f" to {rival.label}" for rival in (more, less)]
    little = percent(less.attention) if less.attention else "none"
    again = f"{verbs[1]} " if verbs[1] != verbs[0] else ""
    return (
        f"{verbs[0]} {percent(more.attention)} of its attention{targets[0]} and {again}{little}{targets[1]}"
    )


def _peak(peak: Peak, x: str) -> str:
    had = f"After step {peak.step} {x} still had {_amount(peak.attention)}"
    if not peak.attended_from:
        return f"{had}, but step {peak.step + 1} did not go on from it."
    sent = [f"{percent(rival.attention)} to {rival.label}" for rival in peak.sent]
    return f"{had}, of which step {peak.step + 1} sent {_and(sent)}." if sent else f"{had}."


def _first_answer(why: WhyNot) -> list[str]:
    told = [f"{why.label} is the first answer, with probability {_amount(why.probability)}."]
    return [*told, f"{_strongest(why.way, why.label)}."] if why.way else told


def _strongest(way: Way, label: str, again: bool = False) -> str:
    whose = f"that of {label}" if again else f"The strongest path to {label}"
    if len(way.labels) == 1:
        return f"{whose} is to stay there, which kept {percent(way.share)} of its attention"
    return f"{whose}, {' > '.join(way.labels)}, brought {percent(way.share)} of its attention"


def _facts_away(why: WhyNot) -> str:
    return f"it lies {_counted(why.distance or 0, 'fact')} from {why.head_label} and there were {_steps(why.n_steps)}"


def _place(node: Near) -> str:
    return f"number {node.rank:,} of the {node.scanned:,} that were looked at"


def _with_attention(rival: Rival) -> str:
    return f"{rival.label} ({_amount(rival.attention)})"


def _amount(attention: float) -> str:
    return f"{attention:.3f}" if attention >= 0.0005 or not attention else f"{attention:.1g}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _steps(number: int) -> str:
    return _counted(number, "step")


def _nodes(limit: int | None) -> str:
    return "one node" if limit == 1 else f"{limit:,} nodes"


def _and(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)


def _try(why: WhyNot) -> list[str]:
    flags = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in why.settings)
    if not flags:
        return []
    if max(value for _, value in why.settings) <= _WORTH_TRYING * (why.limit or 1):
        return [f"To follow it further, try {flags}."]
    return [f"To follow it further would take {flags}, and time."]
