"""What requests and answers hold, for checking the first and describing both."""

import json
from typing import Annotated, Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StringConstraints

from dpmpn.explain.explanation import Question
from dpmpn.serve.guard import LIMITS
from dpmpn.serve.problems import CODES, ErrorBody

Name = Annotated[str, StringConstraints(min_length=1, max_length=LIMITS.name_letters)]
Part = Annotated[float, Field(ge=0, le=1)]
Match = Literal["exact", "prefix", "inside"]
Used = Literal["head", "like", "other"]


def _written_whole(value: Any) -> Any:
    """In an address numbers are texts, and only digits are a whole number."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise ValueError("give a whole number, such as 10")
    return value


def _written_bool(value: Any) -> Any:
    """In an address truth values are texts."""
    if not isinstance(value, str):
        return value
    if value.lower() not in ("true", "false", "1", "0"):
        raise ValueError("give true or false")
    return value.lower() in ("true", "1")


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 3.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _count(most: int) -> Any:
    """From 1 to the most; limits come first, as those behind a function are not described."""
    return Annotated[StrictInt, Field(ge=1, le=most), BeforeValidator(_whole)]


def _written_count(least: int, most: int) -> Any:
    return Annotated[int, Field(ge=least, le=most), BeforeValidator(_written_whole)]


Truth = Annotated[bool, BeforeValidator(_written_bool)]


_MOST_CHANGED = 100  # facts


class _Given(BaseModel):
    """A request: fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


class AskedQuestion(_Given):
    """<head, relation, ?> or, with `inverse`, <?, relation, head>; names or labels, case does not matter."""

    head: Name = Field(examples=["Serbia"])
    relation: Name = Field(examples=["in_subregion"])
    inverse: StrictBool = Field(False, description="ask <?, relation, head> instead")


class AskBody(AskedQuestion):
    """A question to answer."""

    top: _count(LIMITS.top) = Field(10, description="how many answers")  # type: ignore[valid-type]
    new: StrictBool = Field(False, description="leave out answers that are known or held out")
    any_role: StrictBool = Field(False, description="show answers, too, that do not fit the relation")


class AskManyBody(_Given):
    """Questions to answer together."""

    questions: list[AskedQuestion] = Field(min_length=1, max_length=LIMITS.questions)
    top: _count(LIMITS.top_of_many) = Field(10, description="how many answers to each")  # type: ignore[valid-type]
    new: StrictBool = Field(False, description="leave out answers that are known or held out")
    any_role: StrictBool = Field(False, description="show answers, too, that do not fit the relation")


class ExplainBody(AskedQuestion):
    """A question and the answer to explain."""

    answer: Name | None = Field(
        None, description="the first one if none is named", examples=["Southern Europe"]
    )


class PictureBody(ExplainBody):
    """A question and the answer whose explanation is drawn."""

    full: StrictBool = Field(False, description="with the picture of all that was attended to")


class PatternsBody(_Given):
    """A relation of which it is asked what the model has learnt about it."""

    relation: Name = Field(examples=["in_subregion"])
    inverse: StrictBool = Field(False, description="what it has learnt about <?, relation, tail>")
    top: _count(LIMITS.top_of_many) = Field(10, description="how many patterns")  # type: ignore[valid-type]


class GivenFact(_Given):
    """A fact by names or labels."""

    head: Name = Field(examples=["Croatia"])
    relation: Name = Field(examples=["in_subregion"])
    tail: Name = Field(examples=["Southern Europe"])


class WhatIfBody(ExplainBody):
    """A question, one of its answers, and facts that the graph is to have more or fewer."""

    remove: list[GivenFact] = Field([], max_length=_MOST_CHANGED)
    add: list[GivenFact] = Field([], max_length=_MOST_CHANGED)


class WhyNotBody(AskedQuestion):
    """A question and an entity that is not its first answer."""

    candidate: Name = Field(examples=["Western Asia"])


class SearchQuery(_Given):
    """What a person typed."""

    q: str = Field(
        "", max_length=LIMITS.name_letters, description="part of a name or label", examples=["serb"]
    )
    limit: _written_count(1, LIMITS.found) = 10  # type: ignore[valid-type]


class EntityQuery(_Given):
    """Whose facts, and which of them."""

    name: Name = Field(examples=["Serbia"])
    limit: _written_count(1, LIMITS.facts) = 50  # type: ignore[valid-type]
    offset: _written_count(0, 2**31 - 1) = 0  # type: ignore[valid-type]


class RelationsQuery(_Given):
    """For whom relations are offered."""

    head: Name | None = Field(None, examples=["Serbia"])


class ExplanationQuery(ExplainBody):
    """The question and the answer of an explanation to download."""

    inverse: Truth = False


class Named(BaseModel):
    """A name and what to show for it."""

    name: str
    label: str


class FoundEntity(Named):
    """An entity that a search found."""

    description: str | None
    facts: int
    match: Match


class Fact(BaseModel):
    """A fact in the direction in which it was given."""

    head: Named
    relation: Named
    tail: Named


class Entity(Named):
    """An entity and a page of its facts."""

    description: str | None
    types: list[str]
    facts: list[Fact]
    total: int


class Relation(Named):
    """A relation that can be asked; `count` are the head's facts where it is used with the head, else all."""

    inverse: bool
    used: Used
    count: int


class Answer(Named):
    """One answer; `held_out` is the split that states it where the graph does not, or empty."""

    score: Part = Field(description="what the model gives it, which ranks the answers")
    probability: Part | None = Field(description="that it is right, measured; null if known or not measured")
    probability_low: Part | None = Field(description="lower end of the 95 % interval")
    probability_high: Part | None = Field(description="upper end of the 95 % interval")
    probability_if_missing: Part | None = Field(description="the same, given that the graph lacks an answer")
    cases: int | None = Field(description="held-out cases of the relation that were measured")
    rank: int
    known: bool
    held_out: Literal["", "valid", "test"]
    through_unseen: Part


class Answered(BaseModel):
    """A question and its answers."""

    question: Question
    answers: list[Answer]
    notes: list[str] = Field(description="what limits the answers, if anything does")


class TimedAnswered(Answered):
    """A question, its answers, and how long they took."""

    milliseconds: float


class Unanswered(BaseModel):
    """A question of several that cannot be asked."""

    question: AskedQuestion
    error: ErrorBody


class ManyAnswered(BaseModel):
    """Results in the order of the questions."""

    results: list[Answered | Unanswered]


class Explained(BaseModel):
    """An explanation as data and in sentences."""

    explanation: dict[str, Any]
    text: str


class Learnt(BaseModel):
    """What the model has learnt about a relation, as data (as `dpmpn patterns --json` writes it) and in sentences."""

    learnt: dict[str, Any]
    text: str


class Decided(BaseModel):
    """The facts that decide about an answer, as data and in sentences."""

    necessary: list[dict[str, Any]] | None
    sufficient: list[dict[str, Any]] | None
    decisive: dict[str, Any]
    text: str


class WhatIf(BaseModel):
    """An answer before and after a change of the graph; null where no attention reached it."""

    before: Answer | None
    after: Answer | None
    first_after: Answer | None
    text: str


class Picture(BaseModel):
    """An explanation as the page shows it; what `html` and `data` hold may change with the page."""

    answer: Named
    description: str | None
    verdict: str
    html: str
    data: dict[str, Any]
    files: list[str] = Field(description="what it can be downloaded as, by suffix")
    names: dict[str, list[str]]


class WhyNot(BaseModel):
    """Where a candidate lost its attention, as data and in sentences."""

    why_not: dict[str, Any]
    text: str


class Served(BaseModel):
    """The dataset; counts of facts are those of the graph as it is served, edges with their inverses."""

    name: str
    entities: int
    relations: int
    edges: int
    train: int
    valid: int
    test: int
    has_labels: bool
    facts_added: int
    facts_removed: int


class Versions(BaseModel):
    """What the model was trained with, and what serves it."""

    trained_with: dict[str, str]
    served_with: dict[str, str]


Answering = Literal["any-graph", "tuned", "trained"]
"""The model for any graph; that one tuned to this graph; or one that was trained on this graph alone."""


class Tuning(BaseModel):
    """Which model answers, and how far tuning it to the graph has come; fields of what is not known are left out."""

    model: Answering
    state: Literal["off", "tuning", "done", "failed"]
    done: int = Field(0, description="questions that were trained on")
    total: int = Field(0, description="questions to train on at most")
    eta_seconds: float | None = Field(None, description="until then, at most")
    mrr: float | None = Field(None, description="validation MRR of the model for any graph")
    tuned_mrr: float | None = Field(None, description="validation MRR of the best tuned model")
    message: str | None = Field(None, description="what went wrong")


class ModelInfo(BaseModel):
    """What is served."""

    model: Answering
    dataset: Served
    configuration: dict[str, dict[str, Any]]
    metrics: dict[str, Any] = Field(description="of the validation that chose the model; empty without one")
    versions: Versions
    examples: list[Question] = Field(description="questions to begin with")
    limits: dict[str, float]


class Health(BaseModel):
    """Whether it is alive, or ready."""

    status: Literal["alive", "ready"]


def describe(app: FastAPI, has_token: bool) -> None:
    """Complete the description of an application: the format of explanations, the codes, the token."""
    plain = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(plain(), has_token)
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]


def _completed(description: dict[str, Any], has_token: bool) -> dict[str, Any]:
    from dpmpn.render.export import schema

    schemas = description["components"]["schemas"]
    # The parts of the format keep their names; references to them move along.
    record = json.loads(json.dumps(schema()).replace("#/$defs/", "#/components/schemas/explanation_"))
    for name, part in record.pop("$defs").items():
        schemas[f"explanation_{name}"] = part
    for key in ("$schema", "$id"):
        record.pop(key, None)
    schemas["explanation"] = record
    schemas["Explained"]["properties"]["explanation"] = {"$ref": "#/components/schemas/explanation"}
    schemas["WhyNot"]["properties"]["why_not"] = {"$ref": "#/components/schemas/explanation_why_not"}
    schemas["ErrorBody"]["properties"]["code"] = {"type": "string", "enum": sorted(CODES)}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    if has_token:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in description["paths"].items():
            if path.startswith("/api") or path == "/metrics":
                for operation in methods.values():
                    operation["security"] = [{"token": []}]
    return description
