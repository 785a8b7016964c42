"""An explanation: what was asked and answered, and what carried the attention to the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from dpmpn.ask.results import Prediction
from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.naming import one_line
from dpmpn.explain.paths import Fact, Path, fact_of, named_fact, named_paths
from dpmpn.explain.subgraph import Subgraph, full_subgraph, pruned_subgraph
from dpmpn.explain.walks import strongest_walks

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]

    from dpmpn.explain.why_not import WhyNot

KEPT_SHARE = 0.9  # of the answer's attention: the paths of the pruned subgraph bring at least that much,
KEPT_PATHS = 50  # if so many are enough


@dataclass(frozen=True)
class Question:
    """What was asked: <head, relation, ?> or, with `inverse`, <?, relation, head>; names and what to show for them."""

    head: str
    relation: str
    inverse: bool
    head_label: str
    relation_label: str

    def __str__(self) -> str:
        return self.shown(one_line(self.head_label), one_line(self.relation_label))

    def shown(self, head: str, relation: str) -> str:
        """The question with other words for its head and its relation."""
        return f"<?, {relation}, {head}>" if self.inverse else f"<{head}, {relation}, ?>"


@dataclass(frozen=True)
class KeyFact:
    """A fact of the pruned subgraph and the part of the answer's attention that its paths with this fact brought."""

    fact: Fact
    share: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an answer was given, read from the trace of one forward pass."""

    question: Question
    answer: Prediction
    horizon: Horizon
    graph: KnowledgeGraph
    flow: AnswerFlow
    prior: float | None = None  # what the model gave the answer before any step; None where it has no prior

    def __repr__(self) -> str:
        answer = self.answer
        return f"Explanation({self.question} {one_line(answer.label)}, rank {answer.rank}, {answer.probability:.3g})"

    @property
    def n_steps(self) -> int:
        """T: how often attention moved on."""
        return len(self.flow.query.steps)

    @cached_property
    def _walks(self) -> list:
        return strongest_walks(self.flow, KEPT_PATHS, KEPT_SHARE)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The strongest paths from head to answer; the pruned subgraph is made of them."""
        return tuple(named_paths(self.graph, self._walks))

    @property
    def kept_share(self) -> float:
        """The part of the answer's attention that came along these paths; the rest came along weaker ones."""
        return sum(path.share for path in self.paths)

    @cached_property
    def full(self) -> Subgraph:
        """All that was attended from, and the edges between consecutive steps."""
        return full_subgraph(self.flow, self.graph, self.horizon.max_attending_from_per_step)

    @cached_property
    def pruned(self) -> Subgraph:
        """What carried attention to this answer: the edges of the strongest paths."""
        return pruned_subgraph(self.flow, self.graph, (edge for walk in self._walks for edge in walk.edges))

    @cached_property
    def key_facts(self) -> tuple[KeyFact, ...]:
        """The facts of the pruned subgraph, those with the largest share first."""
        shares: dict[tuple[int, int, int], float] = {}
        for walk in self._walks:
            for fact in {fact_of(self.graph, edge): None for edge in walk.edges}:
                shares[fact] = shares.get(fact, 0.0) + walk.share
        order = sorted(shares, key=lambda fact: (-shares[fact], fact))
        return tuple(KeyFact(named_fact(self.graph, fact), shares[fact]) for fact in order)

    def text(self) -> str:
        """The explanation in sentences."""
        from dpmpn.explain.text import told

        return told(self)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as values that JSON can hold; docs/explanation-format.md describes them."""
        from dpmpn.explain.record import as_record

        return as_record(self)

    def to_networkx(self, full: bool = False) -> "networkx.MultiDiGraph":
        """The pruned subgraph, or the full one, for networkx; edges point the way attention went."""
        from dpmpn.explain.export import as_networkx

        return as_networkx(self, full)

    def svg(self) -> str:
        """The picture of both subgraphs as SVG."""
        from dpmpn.render.svg import draw_svg

        return draw_svg(self)

    def png(self) -> bytes:
        """The picture of both subgraphs as PNG."""
        from dpmpn.render.png import draw_png

        return draw_png(self)

    def html(self) -> str:
        """A page of its own that plays the reasoning step by step."""
        from dpmpn.render.page import draw_page

        return draw_page(self)

    def save(
        self,
        folder: str | FilePath,
        formats: Sequence[str] = ("text", "json", "csv", "svg", "html", "dot"),
        why_not: "Sequence[WhyNot]" = (),
    ) -> list[FilePath]:
        """Write it to files of a folder; formats are text, json, csv, svg, png, html and dot."""
        from dpmpn.explain.save import save_explanation

        return save_explanation(self, folder, formats, why_not)

    def _repr_html_(self) -> str:
        """What a notebook shows: the text and the picture."""
        from html import escape

        return f"<pre style='white-space: pre-wrap'>{escape(self.text())}</pre>{self.svg()}"
