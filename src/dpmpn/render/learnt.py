"""What a model has learnt about relations, as sentences, records of plain values, tables and a drawing."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from dpmpn.explain.learnt import LearntPattern, LearntRelation
from dpmpn.render.export import as_pattern_record, pattern_row
from dpmpn.render.markup import FONTS, element, number, polygon, readable, text_line, text_width, title
from dpmpn.render.patterns import Pattern, PatternInstance, Sentences, record_text, relations_of, varying_of
from dpmpn.render.relation_words import readable_words
from dpmpn.render.shapes import ANSWER, HEAD, LITTLE, OUTLINE
from dpmpn.wording import counted, one_line, percent, six_digits

if TYPE_CHECKING:
    import polars as pl

FORMAT, VERSION = "dpmpn patterns", 1
_EXAMPLES = 3


class LearntPatterns(Sequence[LearntRelation]):
    """What a model has learnt about some relations, one entry for each: its strongest patterns and their records."""

    def __init__(self, relations: Sequence[LearntRelation]) -> None:
        self._relations = tuple(relations)

    def __getitem__(self, index: Any) -> Any:
        return self._relations[index]

    def __len__(self) -> int:
        return len(self._relations)

    def __iter__(self) -> Iterator[LearntRelation]:
        return iter(self._relations)

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Each pattern as a sentence with its weight, its record and an example."""
        return "\n\n".join("\n".join(_lines(relation)) for relation in self)

    def to_dict(self) -> dict[str, Any]:
        """All as plain values."""
        relations = [relation_record(relation) for relation in self]
        return {"format": FORMAT, "version": VERSION, "relations": relations}

    def to_frame(self) -> "pl.DataFrame":
        """A row for each pattern, as a polars data frame."""
        import polars as pl

        rows = [
            {
                "relation": claim,
                "inverse": inverse,
                "weight": row.pop("share"),
                "questions": found.questions,
                **row,
            }
            for relation in self
            for claim, inverse in [_asked(relation)]
            for at, (found, pattern) in enumerate(named(relation), 1)
            for row in [pattern_row(at, pattern)]
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def svg(self) -> str:
        """The patterns drawn as chains."""
        return draw_learnt(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre style='white-space: pre-wrap'>{escape(self.text())}</pre>{self.svg()}"


def named(relation: LearntRelation) -> list[tuple[LearntPattern, Pattern]]:
    """The patterns of a relation by names."""
    graph, found = relation.graph, [each.pattern for each in relation.patterns]
    hops = [hop.relation for pattern in found for hop in pattern.hops]
    sentences = Sentences.of(graph, found, [relation.asked, *hops])
    return [
        (
            each,
            Pattern(
                sentences.rule(relation.asked, each.pattern),
                each.pattern.share,
                relations_of(graph, each.pattern.hops),
                tuple(PatternInstance.of(graph, instance) for instance in each.pattern.instances[:_EXAMPLES]),
                varying_of(each.pattern, sentences),
                each.record,
            ),
        )
        for each in relation.patterns
    ]


def relation_record(relation: LearntRelation) -> dict[str, Any]:
    """What was learnt about a relation as plain values."""
    name, inverse = _asked(relation)
    patterns = []
    for found, pattern in named(relation):
        record = as_pattern_record(pattern)
        for left_out in ("varies", "n_instances", "instances"):
            record.pop(left_out)
        examples = [asdict(instance) for instance in pattern.instances]
        weight = record.pop("share")
        patterns.append({"weight": weight, "questions": found.questions, **record, "examples": examples})
    return dict(
        six_digits(
            {
                "relation": name,
                "label": relation.graph.relation_names.label(
                    relation.graph.relation_names.id(name, "relation")
                ),
                "inverse": inverse,
                "questions": relation.questions,
                "reached": relation.reached,
                "found": relation.kinds,
                "patterns": patterns,
            }
        )
    )


def heading(relation: LearntRelation) -> str:
    """What was asked about a relation, in a sentence."""
    name, inverse = _asked(relation)
    label = one_line(relation.graph.relation_names.label(relation.graph.relation_names.id(name, "relation")))
    question = f"<?, {label}, Y>" if inverse else f"<X, {label}, ?>"
    if not relation.questions:
        return f"{question}: the graph states no such fact, so none could be asked for."
    facts = counted(relation.questions, "fact")
    return (
        f"{question}: {facts} asked for, each hidden; attention reached {relation.reached:,} of them along "
        f"{counted(relation.kinds, 'pattern')}."
    )


def _asked(relation: LearntRelation) -> tuple[str, bool]:
    """The name of a relation as facts have it, and whether it was asked backwards."""
    graph = relation.graph
    inverse = bool(graph.is_inverse[relation.asked])
    forward = int(graph.inverse[relation.asked]) if inverse else relation.asked
    return graph.relation_names.name(forward), inverse


def _lines(relation: LearntRelation) -> Iterator[str]:
    yield heading(relation)
    for _, pattern in named(relation):
        yield f"  {percent(pattern.share):>4} {one_line(pattern.sentence)}"
        if record := record_text(pattern.record):
            yield f"       {record}"
        yield f"       For example: {example(pattern)}"


def example(pattern: Pattern) -> str:
    """The entities of the strongest example."""
    return " → ".join(one_line(label) for label in pattern.instances[0].labels)


# ---- The drawing: a row for each pattern, its chain from X to Y, its weight as a bar, its confidence beside it

_SIZE, _ROW, _LEFT, _LINK, _RADIUS = 12.0, 58.0, 150.0, 34.0, 7.0
_BAR = 90.0


def draw_learnt(relations: Sequence[LearntRelation]) -> str:
    """The patterns of relations as an SVG."""
    parts: list[str] = []
    y, width = 16.0, 640.0
    for relation in relations:
        y += _SIZE
        parts.append(text_line(readable(heading(relation)), 12, y, _SIZE, bold=True))
        width = max(width, 24 + text_width(readable(heading(relation)), _SIZE, True))
        y += 10
        for _, pattern in named(relation):
            drawn, right = _row(pattern, y)
            parts.append(drawn)
            width, y = max(width, right + 12), y + _ROW
        y += 14
    ground = element("rect", width=width, height=y, fill="#ffffff")
    inside = ground + "".join(parts)
    size = f'width="{number(width)}" height="{number(y)}" viewBox="0 0 {number(width)} {number(y)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}" role="img">{inside}</svg>\n'


def _row(pattern: Pattern, y: float) -> tuple[str, float]:
    """One pattern at a height, and where it ends."""
    middle = y + _ROW / 2
    confidence = None if pattern.record is None else pattern.record.graph.confidence
    parts = [
        title(pattern.sentence),
        element("rect", x=12, y=middle - 5, width=_BAR, height=10, fill=LITTLE),
        element(
            "rect", x=12, y=middle - 5, width=max(_BAR * min(pattern.share, 1.0), 0.6), height=10, fill=ANSWER
        ),
        text_line(percent(pattern.share), 12 + _BAR + 6, middle + 4, _SIZE),
    ]
    x = _LEFT
    parts.append(_disc(x, middle, HEAD, "X"))
    for at, relation in enumerate(pattern.relations, 1):
        label = readable(" ".join(readable_words(one_line(relation.label))))
        start, x = x + _RADIUS + 2, x + 2 * (_RADIUS + 2) + _LINK + text_width(label, _SIZE)
        end = x - _RADIUS - 2
        parts.append(
            element("line", x1=start, y1=middle, x2=end, y2=middle, stroke=OUTLINE, stroke_width=1.4)
        )
        if not relation.inverse:
            parts.append(_arrow(end, middle, 1))
        if relation.inverse or relation.either_way:
            parts.append(_arrow(start, middle, -1))
        parts.append(text_line(label, (start + end) / 2, middle - 6, _SIZE, "middle"))
        is_last = at == len(pattern.relations)
        parts.append(_disc(x, middle, ANSWER if is_last else "#ffffff", "Y" if is_last else ""))
    if confidence is not None:
        words = f"{percent(confidence)} of what it leads to is stated"
        parts.append(text_line(words, x + 2 * _RADIUS + 8, middle + 4, _SIZE - 1))
        x += 2 * _RADIUS + 8 + text_width(words, _SIZE - 1)
    return element("g", "".join(parts)), x


def _disc(x: float, y: float, colour: str, letter: str) -> str:
    disc = element("circle", cx=x, cy=y, r=_RADIUS, fill=colour, stroke=OUTLINE, stroke_width=1.2)
    return disc + (text_line(letter, x, y + _RADIUS + 13, _SIZE - 1, "middle") if letter else "")


def _arrow(x: float, y: float, towards: int) -> str:
    return polygon([(x, y), (x - towards * 8, y - 4), (x - towards * 8, y + 4)], fill=OUTLINE)
