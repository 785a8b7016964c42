"""What people are given: an explanation, or why not another answer, that can be written in every format."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.export import as_networkx
from dpmpn.render.formats import PLAIN, save_explanation
from dpmpn.render.page import draw_page
from dpmpn.render.record import as_record, why_not_record
from dpmpn.render.svg import draw_png, draw_svg
from dpmpn.render.text import explanation_text
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import one_line

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]


class WhyNot(WhyNotData):
    """Where the attention of a candidate was lost; steps are counted from 1, and fields that say nothing are empty."""

    def text(self) -> str:
        """The reason in a few sentences."""
        return why_not_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON holds it."""
        return why_not_record(self)

    def __str__(self) -> str:
        return self.text()


class Explanation(ExplanationData):
    """Why an answer was given, read from the trace of one forward pass."""

    def __repr__(self) -> str:
        answer = self.answer
        return f"Explanation({self.question} {one_line(answer.label)}, rank {answer.rank}, {answer.probability:.3g})"

    def text(self) -> str:
        """The explanation in sentences."""
        return explanation_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as values that JSON can hold; docs/explanation-format.md describes them."""
        return as_record(self)

    def to_networkx(self, full: bool = False) -> "networkx.MultiDiGraph":
        """The pruned subgraph, or the full one, for networkx; edges point the way attention went."""
        return as_networkx(self, full)

    def svg(self) -> str:
        """The picture of both subgraphs as SVG."""
        return draw_svg(self)

    def png(self) -> bytes:
        """The picture of both subgraphs as PNG."""
        return draw_png(self)

    def html(self) -> str:
        """A page of its own that plays the reasoning step by step."""
        return draw_page(self)

    def save(
        self, folder: str | Path, formats: str | Sequence[str] = PLAIN, why_not: Sequence[WhyNotData] = ()
    ) -> list[Path]:
        """Write it to files of a folder, in the formats that `dpmpn explain --format` has."""
        return save_explanation(self, folder, formats, why_not)

    def _repr_html_(self) -> str:
        """What a notebook shows: the text and the picture."""
        return f"<pre style='white-space: pre-wrap'>{escape(self.text())}</pre>{self.svg()}"
