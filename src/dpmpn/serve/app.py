"""The routes of the HTTP API: what can be asked, and what answers it."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Query
from fastapi.responses import Response

from dpmpn.ask.reasoner import Reasoner
from dpmpn.ask.results import QueryResult
from dpmpn.render.formats import FORMATS, Format
from dpmpn.serve import bodies, replies
from dpmpn.serve.guard import LIMITS, Guard, Limits
from dpmpn.serve.lookups import Lookups
from dpmpn.serve.metrics import Metrics
from dpmpn.serve.model_info import model_info
from dpmpn.serve.names import Naming
from dpmpn.serve.page_files import add_page
from dpmpn.serve.problems import CODES, Problem, answer_problems, refusals
from dpmpn.serve.queues import EngineQueue, WorkQueue
from dpmpn.serve.replies import json_reply

_DESCRIPTION = """\
Names of entities and relations travel in bodies and queries, never in paths: they may hold anything. Where a name is
expected, its label will do, and so will another spelling of its case.

Every error has the same shape: `{"error": {"code", "message", "near"}}`. The message says what to do; `near` holds
names that were perhaps meant. After 503 with the code `overloaded`, try again when `Retry-After` says so."""

_API = "/api/v1"
_FEW = 100  # answers that are written sooner than another thread is woken


class Explorer:
    """A model and all that answers requests about it."""

    def __init__(self, reasoner: Reasoner, run_dir: Path, limits: Limits = LIMITS) -> None:
        self.reasoner, self.limits, self.metrics = reasoner, limits, Metrics()
        self.info = model_info(reasoner, run_dir, limits)
        reasoner.known.index()  # once, for all questions
        _warm_up(reasoner)
        self.engine = EngineQueue(reasoner, self.metrics, limits.waiting_questions)
        self.quick = WorkQueue("lookups", 2, limits.waiting_lookups, self.metrics)
        # One thread: writing and drawing hold the interpreter's lock, and the engine needs it, too.
        self.slow = WorkQueue("explanations", 1, limits.waiting_explanations, self.metrics)
        self.lookups = Lookups(reasoner.graph)
        self.naming = Naming(reasoner.graph, self.quick)

    async def asked(
        self, question: bodies.AskedQuestion | bodies.ExplanationQuery, answer: str | None
    ) -> tuple[QueryResult, int | None]:
        """A question asked so that it can be explained, and the id of the answer to explain."""
        ids = await self.naming.question(question)
        entity = None if answer is None else await self.naming.entity(answer)
        return await self.engine.ask(ids, traced=True), entity

    def close(self) -> None:
        """Finish what was begun, and end all threads."""
        self.engine.close()
        self.quick.close()
        self.slow.close()


def _warm_up(reasoner: Reasoner) -> None:
    """Ask and explain something, so that the first person need not wait for kernels and helper processes."""
    graph = reasoner.graph
    edges = np.linspace(0, graph.n_edges - 1, min(16, graph.n_edges)).astype(np.int64)
    heads, relations = graph.edge_heads(edges).tolist(), graph.relations[edges].tolist()
    questions = [(head, relation, False) for head, relation in zip(heads, relations, strict=True)]
    reasoner.ask(questions, traced=False)
    for result in reasoner.ask(questions[:1]):
        replies.explanation(result, None)


def make_app(
    explorer: Explorer, token: str | None = None, is_meant: Callable[[str], bool] = lambda _: True
) -> Guard:
    """The application that serves a model; it closes the explorer when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        explorer.close()

    app = FastAPI(
        title="dpmpn",
        summary="Answers questions on a knowledge graph and shows why.",
        description=_DESCRIPTION,
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    answer_problems(app)
    _add_lookups(app, explorer)
    _add_questions(app, explorer)
    _add_explanations(app, explorer)
    guard = Guard(app, explorer.metrics, set(), token, is_meant, explorer.limits)
    _add_health(app, explorer, guard)
    add_page(app)
    _describe(app, has_token=token is not None)
    guard.routes = {route.path for route in app.routes if "{" not in route.path}  # type: ignore[attr-defined]
    return guard


def _add_lookups(app: FastAPI, explorer: Explorer) -> None:
    lookups, quick = explorer.lookups, explorer.quick

    @app.get(f"{_API}/model", response_model=bodies.ModelInfo, responses=refusals())
    async def model() -> Response:
        """Tell what is served."""
        return json_reply(explorer.info)

    @app.get(f"{_API}/entities", response_model=list[bodies.FoundEntity], responses=refusals("lookup"))
    async def entities(query: Annotated[bodies.SearchQuery, Query()]) -> Response:
        """Find entities whose name or label begins with the text or has it inside."""
        return json_reply(await quick.do(lookups.search, query.q, query.limit))

    @app.get(f"{_API}/entity", response_model=bodies.Entity, responses=refusals("lookup", "entity"))
    async def entity(query: Annotated[bodies.EntityQuery, Query()]) -> Response:
        """Tell an entity's facts, a page at a time."""
        id = await explorer.naming.entity(query.name)
        return json_reply(await quick.do(lookups.entity, id, query.limit, query.offset))

    @app.get(
        f"{_API}/relations", response_model=list[bodies.Relation], responses=refusals("lookup", "entity")
    )
    async def relations(query: Annotated[bodies.RelationsQuery, Query()]) -> Response:
        """List what can be asked: first what the head has facts for, then what similar entities have, then the rest."""
        head = None if query.head is None else await explorer.naming.entity(query.head)
        return json_reply(await quick.do(lookups.relations, head))


def _add_questions(app: FastAPI, explorer: Explorer) -> None:
    naming, quick = explorer.naming, explorer.quick

    @app.post(f"{_API}/ask", response_model=bodies.TimedAnswered, responses=refusals("question"))
    async def ask(body: bodies.AskBody) -> Response:
        """Answer a question: entities with their probabilities, the most probable first."""
        began = time.perf_counter()
        asked = (await explorer.engine.ask(await naming.question(body)), body.top, body.new)
        reply = replies.answers(*asked) if body.top <= _FEW else await quick.do(replies.answers, *asked)
        return json_reply({**reply, "milliseconds": round(1e3 * (time.perf_counter() - began), 3)})

    @app.post(f"{_API}/ask-many", response_model=bodies.ManyAnswered, responses=refusals("lookup"))
    async def ask_many(body: bodies.AskManyBody) -> Response:
        """Answer questions together; those that cannot be asked have an error in their place."""
        ids = await naming.questions(body.questions)
        results = iter(await explorer.engine.ask_all([each for each in ids if not isinstance(each, Problem)]))

        def reply() -> Response:
            return json_reply(
                {
                    "results": [
                        {"question": question.model_dump(), "error": each.plain()}
                        if isinstance(each, Problem)
                        else replies.answers(next(results), body.top, body.new)
                        for question, each in zip(body.questions, ids, strict=True)
                    ]
                }
            )

        return await quick.do(reply)  # a moment, in which other requests must not wait


def _add_explanations(app: FastAPI, explorer: Explorer) -> None:
    slow = explorer.slow

    @app.post(f"{_API}/explain", response_model=bodies.Explained, responses=refusals("question", "reached"))
    async def explain(body: bodies.ExplainBody) -> Response:
        """Say why an answer was given: the facts that carried the attention there."""
        result, answer = await explorer.asked(body, body.answer)
        return await slow.do(lambda: json_reply(replies.explanation(result, answer)))

    @app.post(f"{_API}/picture", response_model=bodies.Picture, responses=refusals("question", "reached"))
    async def picture(body: bodies.PictureBody) -> Response:
        """Draw why an answer was given, for the page."""
        result, answer = await explorer.asked(body, body.answer)
        return await slow.do(lambda: json_reply(replies.picture(result, answer, body.full)))

    @app.post(f"{_API}/why-not", response_model=bodies.WhyNot, responses=refusals("question"))
    async def why_not(body: bodies.WhyNotBody) -> Response:
        """Say where an entity that is not the first answer lost its attention."""
        ids, candidate = await explorer.naming.question(body), await explorer.naming.entity(body.candidate)
        result = await explorer.engine.ask(ids, traced=True)
        return await slow.do(lambda: json_reply(replies.why_not(result, candidate)))

    for format in FORMATS.values():
        app.get(
            f"{_API}/explanation.{format.suffix}",
            response_class=Response,
            responses={
                200: {"content": {format.media_type: {}}, "description": "a file"},
                **refusals("question", "reached"),
            },
            name=f"explanation_{format.suffix}",
        )(_download(explorer, format))


def _download(explorer: Explorer, format: Format) -> Callable[..., Awaitable[Response]]:
    async def explanation(query: Annotated[bodies.ExplanationQuery, Query()]) -> Response:
        """Download an explanation."""
        result, answer = await explorer.asked(query, query.answer)
        content, name = await explorer.slow.do(replies.download, result, answer, format)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, headers=headers, media_type=format.media_type)

    return explanation


def _add_health(app: FastAPI, explorer: Explorer, guard: Guard) -> None:
    @app.get("/livez", response_model=bodies.Health, responses=refusals())
    async def livez() -> Response:
        """Tell whether the server works at all."""
        if not explorer.engine.is_alive:
            raise Problem("internal", "questions are no longer answered; start this server again")
        return json_reply({"status": "alive"})

    @app.get("/readyz", response_model=bodies.Health, responses=refusals())
    async def readyz() -> Response:
        """Tell whether requests are welcome: not while the server is stopping."""
        if guard.stopping:
            raise Problem("overloaded", "this server is stopping", headers={"Retry-After": "5"})
        return json_reply({"status": "ready"})

    @app.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {
                "content": {"text/plain": {"schema": {"type": "string"}}},
                "description": "metrics as Prometheus reads them",
            },
            **refusals(),
        },
    )
    async def metrics() -> Response:
        """Tell what was done so far, for Prometheus."""
        return Response(explorer.metrics.text(), media_type="text/plain; version=0.0.4")


def _describe(app: FastAPI, has_token: bool) -> None:
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
