"""Missing facts as tables: found, the best of them, and described for people."""

import numpy as np
import polars as pl

from dpmpn.ask.reasoner import Reasoner
from dpmpn.complete.answers import NewAnswers, contains
from dpmpn.complete.calibration import Calibration
from dpmpn.complete.questions import FIRST_HEAD_GROUP, QuestionList
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import Path, fact_labels, strongest_paths

FACT = ["head", "relation", "tail"]
FACTS = {
    **dict.fromkeys(FACT, pl.Int32),  # in the direction of the file
    "probability": pl.Float64,  # null without calibration
    "attention": pl.Float64,
    "group": pl.Int8,  # of the question that found it
}
PATHS = 3  # chains of facts that are shown for a fact
_CHAINS_APART = " | "
_TRACED = (
    16  # questions; more at once take longer for each, as every reason looks through all that was traced
)


def found_facts(
    graph: KnowledgeGraph,
    calibration: Calibration | None,
    questions: QuestionList,
    found: NewAnswers,
) -> pl.DataFrame:
    """The answers as facts in the direction of the file."""
    asked, relation, group = (
        column[found.rows] for column in (questions.heads, questions.relations, questions.groups)
    )
    backwards = group >= FIRST_HEAD_GROUP
    unknown = np.full(len(group), np.nan)
    columns = {
        "head": np.where(backwards, found.entities, asked),
        "relation": np.where(backwards, graph.inverse[relation], relation),
        "tail": np.where(backwards, asked, found.entities),
        "probability": unknown
        if calibration is None
        else calibration.probability(found.attention, relation, group),
        "attention": found.attention,
        "group": group,
    }
    return pl.DataFrame(columns, schema_overrides=FACTS).fill_nan(None)


def best_facts(one: pl.DataFrame, other: pl.DataFrame, top: int) -> pl.DataFrame:
    """The most probable of both, ties by attention; of a fact that two questions found, the better."""
    keys = [pl.col("probability").fill_null(-1), pl.col("attention"), *map(pl.col, FACT), pl.col("group")]
    joined = pl.concat([one, other]).sort(keys, descending=[True, True, *[False] * 4])
    return joined.unique(FACT, keep="first", maintain_order=True).head(top)


def probable_facts(facts: pl.DataFrame, min_probability: float | None) -> pl.DataFrame:
    """Those that are probable enough."""
    return facts if min_probability is None else facts.filter(pl.col("probability") >= min_probability)


def as_text(facts: pl.DataFrame) -> pl.DataFrame:
    """The facts with the chains that support each as one text, for files that hold no lists."""
    return facts.with_columns(pl.col("support").list.join(_CHAINS_APART))


def described(
    reasoner: Reasoner, calibration: Calibration | None, held_out: bool, facts: pl.DataFrame, n_before: int
) -> pl.DataFrame:
    """The facts by name and rank, with what was measured on validation and the facts that support each."""
    graph = reasoner.graph
    right, of, low, high = (None, None, None, None)
    if calibration is not None:
        _, relation, _ = _asked(graph, facts)
        found = (facts["attention"].to_numpy(), relation, facts["group"].to_numpy())
        right, of = calibration.support(*found)
        low, high = calibration.interval(*found)
    columns = {
        "rank": pl.int_range(n_before + 1, n_before + len(facts) + 1, eager=True),
        **_names(graph, facts),
        "probability": facts["probability"],
        "probability_low": _column(low, len(facts), pl.Float64),
        "probability_high": _column(high, len(facts), pl.Float64),
        "attention": facts["attention"],
        "right": _column(right, len(facts), pl.Int64),
        "of": _column(of, len(facts), pl.Int64),
        "support": pl.Series(_support(reasoner, facts), dtype=pl.List(pl.String)),
        "through": _through(facts["group"]),
    }
    if held_out:
        columns["held_out"] = _held_out(reasoner, facts)
    return pl.DataFrame(columns)


def _names(graph: KnowledgeGraph, facts: pl.DataFrame) -> dict[str, pl.Series]:
    """Head, relation and tail by name; and by label, where there are labels."""
    columns = {}
    for column in FACT:
        columns[column] = _texts(facts[column], _vocabulary(graph, column).name)
    for column in FACT:
        if _vocabulary(graph, column).has_labels:
            columns[f"{column}_label"] = _texts(facts[column], _vocabulary(graph, column).label)
    return columns


def _vocabulary(graph: KnowledgeGraph, column: str) -> Vocabulary:
    return graph.relation_names if column == "relation" else graph.entities


def _texts(ids: pl.Series, text_of) -> pl.Series:  # type: ignore[no-untyped-def]
    return pl.Series([text_of(id) for id in ids.to_list()], dtype=pl.String)


def _column(values: np.ndarray | None, length: int, dtype: type[pl.DataType]) -> pl.Series:
    if values is None:
        return pl.Series([None] * length, dtype=dtype)
    if dtype == pl.Int64:
        values = np.round(values)
    return pl.Series(values, dtype=pl.Float64).fill_nan(None).cast(dtype)


def _asked(graph: KnowledgeGraph, facts: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The questions that found the facts: the entity and the relation that were asked, and the answer."""
    head, relation, tail, group = (facts[column].to_numpy() for column in (*FACT, "group"))
    backwards = group >= FIRST_HEAD_GROUP
    return (
        np.where(backwards, tail, head),
        np.where(backwards, graph.inverse[relation], relation),
        np.where(backwards, head, tail),
    )


def _support(reasoner: Reasoner, facts: pl.DataFrame) -> list[list[str]]:
    """For each fact the strongest chains of facts that carried attention to it, as text."""
    graph, engine = reasoner.graph, reasoner.engine
    texts = []
    for start in range(0, len(facts), _TRACED):
        heads, relations, answers = _asked(graph, facts.slice(start, _TRACED))
        trace = engine.trace(engine.asking_batch(heads, relations))[1]
        for query, answer in enumerate(answers.tolist()):
            flow = AnswerFlow.to(QueryFlow.of(trace, query), answer)
            paths = strongest_paths(flow, graph, PATHS)
            texts.append([_chain(graph, path) for path in paths if path.facts])
    return texts


def _chain(graph: KnowledgeGraph, path: Path) -> str:
    return f"{path.share:.0%} " + "; ".join(" ".join(fact) for fact in fact_labels(graph, path))


def _through(group: pl.Series) -> pl.Series:
    """The question that found each fact."""
    texts = ["<?, relation, tail>" if g >= FIRST_HEAD_GROUP else "<head, relation, ?>" for g in group]
    return pl.Series(texts, dtype=pl.String)


def _held_out(reasoner: Reasoner, facts: pl.DataFrame) -> pl.Series:
    """The split that holds each fact, null where none does."""
    head, relation, tail = (facts[column].to_numpy() for column in FACT)
    questions = QuestionList(head, relation, np.zeros(len(head), np.int8))
    found = np.full(len(head), None, object)
    for split in ("valid", "test"):
        known = KnownAnswers.from_triples(reasoner.dataset.split(split))
        rows = np.arange(len(head))
        found[contains(known, questions, rows, tail, reasoner.graph.n_entities)] = split
    return pl.Series(found.tolist(), dtype=pl.String)
