"""Looks for small sets of facts with a property that can only be asked for: greedily, then leaving out what can go."""

from collections.abc import Callable, Iterator, Sequence

from dpmpn.decisive.variants import Facts, Variants, carriers
from dpmpn.explain.decisive import Outcome

_WIDTH = 24  # facts tried one by one in a round: those along which most attention came
_COMMITTED = (
    4  # facts that go at a time: then the question is asked again, and other facts carry the attention
)
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)

Test = Callable[[Sequence[Facts]], list[tuple[bool, float]]]
"""For each of some sets, asked together, whether it has the property, and how far it is from losing it."""


def removals(
    variants: Variants, most: int, is_enough: Callable[[Outcome], bool]
) -> Iterator[tuple[Facts, Outcome]]:
    """Growing sets of facts that the answer loses by, up to the first that is enough, and what becomes of it without.

    What is tried follows the attention as it flows without the facts that went before: where evidence is parallel, the
    rest takes over, and only asking again shows it.
    """
    removed: Facts = ()
    while len(removed) < most:
        gone = set(removed)
        left = [fact for fact in carriers(variants.flow_without(removed), variants.graph) if fact not in gone]
        room, left = most - len(removed), left[:_WIDTH]
        if not left:
            return
        singles = [(*removed, fact) for fact in left]
        lost = variants.without(singles)
        by_loss = sorted(range(len(left)), key=lambda at: lost[at].score)
        orders = left, [left[at] for at in by_loss]
        sizes = [size for size in _SIZES if 1 < size <= min(room, len(left))]
        several = list(dict.fromkeys((*removed, *order[:size]) for size in sizes for order in orders))
        tried = [*zip(singles, lost, strict=True), *zip(several, variants.without(several), strict=True)]
        if enough := [one for one in tried if is_enough(one[1])]:
            yield min(enough, key=lambda one: (len(one[0]), one[1].score))
            return
        within = [one for one in tried if len(one[0]) <= len(removed) + _COMMITTED]
        removed, outcome = min(within, key=lambda one: one[1].score)
        yield removed, outcome


def smaller(facts: Facts, test: Test) -> Iterator[Facts]:
    """Ever smaller parts of a set that still have its property, until no fact can be left out of the last one."""
    while len(facts) > 1:
        found = test([facts[:at] + facts[at + 1 :] for at in range(len(facts))])
        spare = sorted((at for at, (holds, _) in enumerate(found) if holds), key=lambda at: -found[at][1])
        if not spare:
            return
        sizes = [size for size in _SIZES if 1 < size <= len(spare) and size < len(facts)]
        parts = [tuple(f for at, f in enumerate(facts) if at not in spare[:size]) for size in sizes]
        kept = [part for part, (holds, _) in zip(parts, test(parts) if parts else [], strict=True) if holds]
        facts = kept[-1] if kept else facts[: spare[0]] + facts[spare[0] + 1 :]
        yield facts


def enough_alone(pools: Sequence[Facts], test: Test) -> Facts | None:
    """The shortest beginning of a list of facts that has a property; of several lists the shortest, if any has."""
    sizes = [[*(size for size in _SIZES if size < len(pool)), len(pool)] for pool in pools if pool]
    pools = [pool for pool in pools if pool]
    tried = list(dict.fromkeys(pool[:size] for pool, of in zip(pools, sizes, strict=True) for size in of))
    holding = [facts for facts, (holds, _) in zip(tried, test(tried), strict=True) if holds]
    return min(holding, key=len, default=None)
