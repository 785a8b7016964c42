"""Why a candidate is not the first answer, in a few sentences that end with what can be done about it."""

from dpmpn.explain.distance import FARTHEST
from dpmpn.explain.paths import PathGroup
from dpmpn.explain.rivals import Fork, Peak, Rival
from dpmpn.explain.why_not import Near, WhyNotData
from dpmpn.render.names import with_display_names
from dpmpn.wording import counted, listed, percent, plural, score_shown, sentence, small_percent

_SHOWN_NEAR = 3
_WORTH_TRYING = 8  # times a limit, at most, without a word of what that costs
_PEAK = 1.1  # times its last attention that a candidate must have had before,
_LEAST_PEAK = 0.001  # and at least so much, to be worth a sentence
_ABOUT_AS_MUCH = 0.9  # of the larger one: the smaller says nothing about what was preferred
_SMALL = 0.005  # a part that whole per cents do not tell from none
_TO_ADD = "with_facts in Python, --add on the command line"


def why_not_text(why: WhyNotData) -> str:
    """The reason, what it was lost to, and what to try."""
    sentences = {
        "unreachable": _unreachable,
        "not_sampled": _not_sampled,
        "not_attended_from": _not_attended_from,
        "not_attended_to": _not_attended_to,
        "does_not_fit": _does_not_fit,
        "out_competed": _out_competed,
        "first_answer": _first_answer,
    }[why.reason]
    return " ".join([*sentences(with_display_names(why)), *_advice(why)])


def _unreachable(why: WhyNotData) -> list[str]:
    x, head = why.label, why.head_label
    cases = (
        (
            why.candidate == why.head,
            f"{x} is what the question is about, and has no facts in the graph: attention cannot leave it, so there "
            "are no answers at all. Add facts about it",
        ),
        (
            not why.head_facts,
            f"{head} has no facts in the graph, so attention cannot leave it: neither {x} nor anything "
            f"else is an answer. Add facts about {head}",
        ),
        (not why.facts, f"{x} has no facts in the graph, so no attention can reach it. Add some"),
        (
            not why.connected,
            f"No chain of facts, however long, leads from {head} to {x}: they lie in parts of the graph that are not "
            "connected. Add a fact that connects them",
        ),
    )
    for holds, text in cases:
        if holds:
            return [f"{text}: {_TO_ADD}."]
    length = f"{why.distance}" if why.distance is not None else f"more than {FARTHEST}"
    too_far = (
        f"{x} is too far away: the shortest chain from {head} to it has {length} facts, and attention follows at most "
        f"{why.n_steps}, one in each step."
    )
    if why.distance is None:
        return [too_far]
    return [
        too_far,
        f"Add a fact that brings them nearer: {_TO_ADD}.",
        f"A model trained with {_setting('n_steps_in_agnn', why.distance)} could reach it.",
    ]


def _not_sampled(why: WhyNotData) -> list[str]:
    x, node = why.label, why.near[0]
    limit = f"{why.limit:,} {plural(why.limit or 0, 'is', 'are')} sampled in a step"
    near = node.distance == 1
    towards = f"to {x}" if near else f"on towards {x}, {node.distance} facts away,"
    none = f"none {'of those that lead' if near else 'that leads'} {towards} was"
    lead = none if node.leading > 1 else f"the one that leads {towards} was not"
    sentences = [
        f"{x} was never looked at, although {_facts_away(why)}.",
        f"Attention was at {node.label} in step {why.step}, but of its {node.facts:,} facts only {limit}, and {lead} "
        "among them.",
    ]
    more = why.near[1 : 1 + _SHOWN_NEAR]
    if more:
        others = len(why.near) - 1 - len(more)
        shown = [f"{near.label} ({near.facts:,} facts)" for near in more]
        sentences.append(f"The same happened at {listed([*shown, f'{others:,} more'] if others else shown)}.")
    return [*sentences, *_late(why)]


def _not_attended_from(why: WhyNotData) -> list[str]:
    x, node = why.label, why.near[0]
    if not node.distance:
        sentences = [
            f"{x} had attention {score_shown(node.attention)} after step {node.step}, {_rank(node)}, but step "
            f"{why.step} did not continue from it, and nothing led back to it."
        ]
    else:
        away = counted(node.distance, "fact")
        sentences = [
            f"{x} was never looked at, although {_facts_away(why)}.",
            f"Of the entities near it that were reached early enough, {node.label} ({away} from it) did best: it had "
            f"attention {score_shown(node.attention)} after step {node.step}, {_rank(node)}, but step {why.step} did "
            "not continue from it.",
        ]
    return [*sentences, _preferred(why, f"continues from {_nodes(why.limit)}"), *_late(why)]


def _not_attended_to(why: WhyNotData) -> list[str]:
    node = why.near[0]
    got = f"was looked at in step {node.step} and got attention {score_shown(node.attention)}, {_rank(node)}"
    if not node.distance:
        sentences = [f"{why.label} {got}, but was not kept, and later steps did not return to it."]
    else:
        away = counted(node.distance, "fact")
        sentences = [
            f"{why.label} was never looked at, although {_facts_away(why)}.",
            f"Of the entities near it that were reached early enough, {node.label} ({away} from it) {got}, but was not "
            "kept.",
        ]
    return [*sentences, _preferred(why, f"keeps {_nodes(why.limit)}"), *_late(why)]


def _preferred(why: WhyNotData, keeps: str) -> str:
    """What the limit preferred."""
    from dpmpn.engine.frontier import ATTENTION_FLOOR  # imports torch

    if why.near[0].attention <= ATTENTION_FLOOR:
        return f"Attention below {ATTENTION_FLOOR:.0e} counts as none, and is not followed."
    if why.chosen_by == "random":
        return f"A step {keeps}, chosen at random, and it was not among them."
    kept = [_with_attention(rival) for rival in why.by]
    last = why.weakest_kept
    if last is None or last in why.by:
        return f"A step {keeps} at most: here {listed(kept)}."
    return f"A step {keeps} at most: here {', '.join(kept)} and so on down to {_with_attention(last)}."


def _late(why: WhyNotData) -> list[str]:
    late = why.late
    if late is None:
        return []
    left = why.n_steps - late.step
    steps = f"only {counted(left, 'step')} {plural(left, 'was', 'were')} left" if left else "no step was left"
    return [
        f"{late.label}, {counted(late.distance, 'fact')} from it, was looked at only in step {late.step}, when "
        f"{steps}."
    ]


def _out_competed(why: WhyNotData) -> list[str]:
    x, first = why.label, why.by[0]
    if why.rank is None:
        return [
            f"{x} was looked at in the last step, but its attention is too small to be told from zero; "
            f"{_with_attention(first)} is the first answer."
        ]
    return [sentence(f"{x} is answer number {_place(why)}"), *_paths_compared(why, first.label)]


def _does_not_fit(why: WhyNotData) -> list[str]:
    x = why.label
    hidden = f"{x} is not shown among the answers, because no similar entity answers such a question in this graph."
    first = why.first_way.labels[-1] if why.first_way else ""
    return [
        hidden,
        sentence(f"Of all that attention reached, it is number {_place(why)}"),
        *_paths_compared(why, first),
    ]


def _place(why: WhyNotData) -> str:
    """Its rank and score, and what is before it."""
    rank = why.rank or 1
    more = rank - 1 - len(why.by)
    before = [*map(_with_attention, why.by), *([f"{more:,} more"] if more else [])]
    place = f"{rank:,}, with score {score_shown(why.score)}"
    return f"{place}; ahead of it {plural(rank - 1, 'is', 'are')} {listed(before)}" if before else place


def _paths_compared(why: WhyNotData, first: str) -> list[str]:
    """How attention came to the candidate and to the first answer, and where it went apart."""
    x, sentences = why.label, []
    if why.way and why.first_way:
        sentences.append(f"{_strongest(why.way, x)}; {_strongest(why.first_way, first, again=True)}.")
    worth_saying = max(_PEAK * why.score, _LEAST_PEAK)
    peak = why.peak if why.peak and why.peak.attention > worth_saying else None
    if why.parted:
        # What became of the candidate's own attention is said with its peak.
        narrow = None if why.narrowest and peak and why.narrowest.name == why.candidate else why.narrowest
        sentences.append(_parted(why.parted, narrow, first, peak is not None))
    return [*sentences, _peak(peak, x)] if peak else sentences


def _parted(fork: Fork, narrow: Fork | None, first: str, goes_on: bool) -> str:
    even = _is_even(fork)
    favoured = fork.towards.attention > fork.other.attention and not even
    preferred = f"did not prefer {first}: it " if favoured else ""
    parts = f"They part at {fork.label}, which in step {fork.step} {preferred}{_sent(fork)}"
    if narrow:
        but = "but " if favoured or even else ""
        return sentence(f"{parts}; {but}further on {narrow.label}, in step {narrow.step}, {_lost(narrow)}")
    if (favoured or even) and not goes_on:
        return f"{parts}; what made the difference came further on, in other steps or along other paths."
    return sentence(parts)


def _is_even(fork: Fork) -> bool:
    """Whether a node sent about as much each way, or so that whole per cents do not differ."""
    less, more = sorted((fork.towards.attention, fork.other.attention))
    return less >= _ABOUT_AS_MUCH * more or (less >= _SMALL and percent(less) == percent(more))


def _sent(fork: Fork) -> str:
    """What a node did with its attention: the larger part first."""
    less, more = sorted((fork.towards, fork.other), key=lambda rival: rival.attention)
    verb, again = ("kept" if rival.name == fork.name else "sent" for rival in (more, less))
    to, also = ("" if rival.name == fork.name else f" to {rival.label}" for rival in (more, less))
    much, little = small_percent(more.attention), small_percent(less.attention) if less.attention else "none"
    if _is_even(fork):
        as_ = "as" if again == verb else f"as it {again}"
        return f"{verb} about as much of its attention{to} ({much}) {as_}{also} ({little})"
    return f"{verb} {much} of its attention{to} and {'' if again == verb else f'{again} '}{little}{also}"


def _lost(fork: Fork) -> str:
    """How little a node sent towards the candidate, and what it preferred, if it preferred any one."""
    if fork.towards.attention < fork.other.attention and not _is_even(fork):
        return _sent(fork)
    verb, to = ("kept", "") if fork.towards.name == fork.name else ("sent", f" to {fork.towards.label}")
    return f"{verb} only {small_percent(fork.towards.attention)} of its attention{to}"


def _peak(peak: Peak, x: str) -> str:
    had = f"After step {peak.step} {x} still had {score_shown(peak.attention)}"
    if not peak.attended_from:
        return f"{had}, but step {peak.step + 1} did not continue from it."
    worth_saying = [rival for rival in peak.sent if rival.attention >= _SMALL] or peak.sent[:1]
    sent = [f"{percent(rival.attention)} to {rival.label}" for rival in worth_saying]
    return sentence(f"{had}, of which step {peak.step + 1} sent {listed(sent)}" if sent else had)


def _first_answer(why: WhyNotData) -> list[str]:
    sentences = [f"{why.label} is the first answer, with score {score_shown(why.score)}."]
    return [*sentences, f"{_strongest(why.way, why.label)}."] if why.way else sentences


def _strongest(path: PathGroup, label: str, again: bool = False) -> str:
    whose = f"that of {label}" if again else f"The strongest path to {label}"
    if len(path.labels) == 1:
        return f"{whose} is to stay there, which kept {percent(path.share)} of its attention"
    return f"{whose}, {' > '.join(path.labels)}, carried {percent(path.share)} of its attention"


def _facts_away(why: WhyNotData) -> str:
    away, steps = counted(why.distance or 0, "fact"), counted(why.n_steps, "step")
    return f"it lies {away} from {why.head_label} and there {plural(why.n_steps, 'was', 'were')} {steps}"


def _rank(node: Near) -> str:
    return f"number {node.rank:,} of the {node.scanned:,} that were looked at"


def _with_attention(rival: Rival) -> str:
    return f"{rival.label} ({score_shown(rival.attention)})"


def _nodes(limit: int | None) -> str:
    return "one node" if limit == 1 else f"{limit:,} nodes"


def _advice(why: WhyNotData) -> list[str]:
    """Which settings would follow the candidate further, and what they cost where that is much."""
    if not why.settings:
        return []
    settings = listed([_setting(key, value) for key, value in why.settings])
    now = dict(why.settings_now)
    times = max(value / now[key] for key, value in why.settings)
    if times <= _WORTH_TRYING:
        return [f"To follow it further, try {settings}."]
    return [f"Following it further would take {settings}: up to {times:,.0f} times the work in each step."]


def _setting(key: str, value: int) -> str:
    """A setting as Python and as the command line name it."""
    return f"{key} = {value} (--{key.replace('_', '-')} {value})"
