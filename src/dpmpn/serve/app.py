"""The routes of the HTTP API, what can be asked and what answers it, and the files of the page."""

import hashlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from dpmpn.ask.results import QueryResult
from dpmpn.explain.learnt import LearntRelation, PatternCollection
from dpmpn.learnt import facts_to_ask, flows_to
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.render.formats import FORMATS, Format
from dpmpn.serve import bodies, replies
from dpmpn.serve.guard import LIMITS, Guard, Limits
from dpmpn.serve.lookups import Lookups
from dpmpn.serve.names import Naming
from dpmpn.serve.problems import Problem, answer_problems, json_reply, refusals
from dpmpn.serve.queues import EngineQueue, Ids, WorkQueue
from dpmpn.serve.status import Metrics, model_info

_DESCRIPTION = """\
Names of entities and relations travel in bodies and queries, never in paths: they may hold anything. Where a name is
expected, its label will do, and so will another spelling of its case.

Every error has the same shape: `{"error": {"code", "message", "near"}}`. The message says what to do; `near` holds
names that were perhaps meant. After 503 with the code `overloaded`, try again when `Retry-After` says so."""

_API = "/api/v1"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
_INDEX = "index.html"
_SHARED = ("player.js", "player.css")  # with the page of one explanation
_LEARNT_FROM, _LEARNT_AT_ONCE = 48, 8  # facts asked for: others wait while these few are asked together
_FEW = 100  # answers that are written sooner than another thread is woken


class Explorer:
    """A model and all that answers requests about it."""

    def __init__(self, reasoner: Reasoner, run_dir: Path | None, limits: Limits = LIMITS) -> None:
        self.reasoner, self.limits, self.metrics = reasoner, limits, Metrics()
        self.tuning: dict[str, Any] = {"state": "off"}  # whether another model is in the making
        self._changing, self._is_closed = threading.Lock(), False
        self.info, self.engine = self._ready(reasoner, run_dir)
        self.quick = WorkQueue("lookups", 2, limits.waiting_lookups, self.metrics)
        # One thread: writing and drawing hold the interpreter's lock, and the engine needs it, too.
        self.slow = WorkQueue("explanations", 1, limits.waiting_explanations, self.metrics)
        self.lookups = Lookups(reasoner.graph)
        self.near = WorkQueue("near names", 1, limits.waiting_near_names, self.metrics)
        self.naming = Naming(reasoner.graph, self.near)

    def _ready(self, reasoner: Reasoner, run_dir: Path | None) -> tuple[dict[str, Any], EngineQueue]:
        """What is said of a model, and what answers with it."""
        info = {**model_info(reasoner, run_dir), "limits": asdict(self.limits)}
        reasoner.known.index()  # once, for all questions
        _warm_up(reasoner)
        return info, EngineQueue(reasoner, self.metrics, self.limits.waiting_questions)

    def change(self, reasoner: Reasoner, run_dir: Path | None) -> None:
        """Answer with another model of the same graph from now on; what was asked before is answered by the old one."""
        info, engine = self._ready(reasoner, run_dir)
        with self._changing:
            if not self._is_closed:
                engine, self.engine = self.engine, engine
                self.reasoner, self.info = reasoner, info
        engine.close()

    async def ask(self, questions: Sequence[Ids], traced: bool = False) -> list[QueryResult]:
        """What questions reached, whichever model answers when they are asked."""
        while True:
            engine = self.engine
            try:
                return await engine.ask(questions, traced)
            except Problem:
                if engine is self.engine:
                    raise  # and not because the model was changed in this moment

    async def asked(
        self, question: bodies.AskedQuestion, answer: str | None
    ) -> tuple[QueryResult, int | None]:
        """A question asked so that it can be explained, and the id of the answer to explain."""
        ids = await self.naming.question(question)
        entity = None if answer is None else await self.naming.entity(answer)
        return (await self.ask([ids], traced=True))[0], entity

    async def learnt(self, asked: int, top: int) -> LearntRelation:
        """What the model has learnt about a relation; questions of others are answered in between."""
        reasoner, engine = self.reasoner, self.engine
        facts = await self.slow.do(facts_to_ask, reasoner, asked, _LEARNT_FROM)
        collection = PatternCollection(reasoner.graph, asked)
        for start in range(0, len(facts), _LEARNT_AT_ONCE):
            batch = facts[start : start + _LEARNT_AT_ONCE]
            flows = await engine.do(partial(flows_to, reasoner, batch))
            await self.slow.do(collection.add_all, flows)
        return await self.slow.do(collection.relation, top, reasoner.known.validation_of(asked))

    async def fact(self, given: bodies.GivenFact) -> tuple[str, str, str]:
        """The identifiers of a fact."""
        question = bodies.AskedQuestion(head=given.head, relation=given.relation, inverse=False)
        head, relation, _ = await self.naming.question(question)
        tail, graph = await self.naming.entity(given.tail), self.reasoner.graph
        return graph.entities.name(head), graph.relation_names.name(relation), graph.entities.name(tail)

    def close(self) -> None:
        """Finish what was begun, and end all threads."""
        with self._changing:
            self._is_closed = True
        self.engine.close()
        self.quick.close()
        self.near.close()
        self.slow.close()


def _warm_up(reasoner: Reasoner) -> None:
    """Ask and explain something, so that the first person need not wait for kernels, helper processes and indices."""
    graph = reasoner.graph
    graph.entities.near("")  # makes what near names are searched in
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
    guard = Guard(app, explorer.metrics, token, is_meant, explorer.limits)
    _add_health(app, explorer, guard)
    _add_page(app)
    bodies.describe(app, has_token=token is not None)
    guard.routes = {route.path for route in app.routes if "{" not in route.path}  # type: ignore[attr-defined]
    return guard


def _add_lookups(app: FastAPI, explorer: Explorer) -> None:
    lookups, quick = explorer.lookups, explorer.quick

    @app.get(f"{_API}/model", response_model=bodies.ModelInfo, responses=refusals())
    async def model() -> Response:
        """Tell what is served."""
        return json_reply(explorer.info)

    @app.get(f"{_API}/tuning", response_model=bodies.Tuning, responses=refusals())
    async def tuning() -> Response:
        """Say which model answers, and how far the tuning of a better one has come."""
        return json_reply({"model": explorer.info["model"], **explorer.tuning})

    @app.get(f"{_API}/entities", response_model=list[bodies.FoundEntity], responses=refusals("lookup"))
    async def entities(query: Annotated[bodies.SearchQuery, Query()]) -> Response:
        """Find entities whose name or label begins with the text or contains it."""
        return json_reply(await quick.do(lookups.search, query.q, query.limit))

    @app.get(f"{_API}/entity", response_model=bodies.Entity, responses=refusals("lookup", "entity"))
    async def entity(query: Annotated[bodies.EntityQuery, Query()]) -> Response:
        """List an entity's facts, a page at a time."""
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
        """Answer a question: entities with their scores and probabilities, the highest score first."""
        began = time.perf_counter()
        (result,) = await explorer.ask([await naming.question(body)])
        asked = (result, body.top, body.new, body.any_role)
        reply = replies.answers(*asked) if body.top <= _FEW else await quick.do(replies.answers, *asked)
        return json_reply({**reply, "milliseconds": round(1e3 * (time.perf_counter() - began), 3)})

    @app.post(f"{_API}/ask-many", response_model=bodies.ManyAnswered, responses=refusals("lookup"))
    async def ask_many(body: bodies.AskManyBody) -> Response:
        """Answer questions together; those that cannot be asked have an error in their place."""
        ids = await naming.questions(body.questions)
        results = iter(await explorer.ask([each for each in ids if not isinstance(each, Problem)]))

        def reply() -> Response:
            return json_reply(
                {
                    "results": [
                        {"question": question.model_dump(), "error": each.plain()}
                        if isinstance(each, Problem)
                        else replies.answers(next(results), body.top, body.new, body.any_role)
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

    @app.post(f"{_API}/patterns", response_model=bodies.Learnt, responses=refusals("relation"))
    async def patterns(body: bodies.PatternsBody) -> Response:
        """Tell what the model has learnt about a relation: the patterns that lead it to right answers."""
        asked = await explorer.naming.relation(body.relation, body.inverse)
        found = await explorer.learnt(asked, body.top)
        return await slow.do(lambda: json_reply(replies.learnt(found)))

    @app.post(f"{_API}/decisive", response_model=bodies.Decided, responses=refusals("question", "reached"))
    async def decisive(body: bodies.ExplainBody) -> Response:
        """Find the facts that decide about an answer, by asking again without some and with some alone."""
        result, answer = await explorer.asked(body, body.answer)
        return await slow.do(lambda: json_reply(replies.decisive(explorer.reasoner, result, answer)))

    @app.post(f"{_API}/what-if", response_model=bodies.WhatIf, responses=refusals("question", "reached"))
    async def what_if(body: bodies.WhatIfBody) -> Response:
        """Say what becomes of an answer with some facts more or fewer."""
        ids = await explorer.naming.question(body)
        answer = None if body.answer is None else await explorer.naming.entity(body.answer)
        add, remove = [[await explorer.fact(each) for each in facts] for facts in (body.add, body.remove)]
        return await slow.do(lambda: json_reply(replies.what_if(explorer.reasoner, ids, answer, add, remove)))

    @app.post(f"{_API}/why-not", response_model=bodies.WhyNot, responses=refusals("question"))
    async def why_not(body: bodies.WhyNotBody) -> Response:
        """Say where an entity that is not the first answer lost its attention."""
        ids, candidate = await explorer.naming.question(body), await explorer.naming.entity(body.candidate)
        (result,) = await explorer.ask([ids], traced=True)
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
        """Report whether the server works at all."""
        if not explorer.engine.is_alive:
            raise Problem("internal", "questions are no longer answered; restart this server")
        return json_reply({"status": "alive"})

    @app.get("/readyz", response_model=bodies.Health, responses=refusals())
    async def readyz() -> Response:
        """Report whether requests are accepted: not while the server is stopping."""
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
        """Report the counters so far, for Prometheus."""
        return Response(explorer.metrics.text(), media_type="text/plain; version=0.0.4")


class _PageFile(NamedTuple):
    content: bytes
    media_type: str
    tag: str  # by which a browser knows that it has it already


def _add_page(app: FastAPI) -> None:
    """Serve the page at /, and its files below /page/."""
    found = _page_files()

    async def page(request: Request) -> Response:
        file = found.get(request.path_params.get("name", _INDEX))
        if file is None:
            raise Problem("not_found", "the page has no such file; open /")
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)

    app.add_route("/", page, ["GET"], include_in_schema=False)
    app.add_route("/page/{name}", page, ["GET"], include_in_schema=False)


def _page_files() -> dict[str, _PageFile]:
    """All files of the page by their names: read once, so that a request can reach no other."""
    found = {}
    shared = (files("dpmpn.render").joinpath("page", name) for name in _SHARED)
    for file in (*files("dpmpn.serve").joinpath("page").iterdir(), *shared):
        media_type = _MEDIA_TYPES.get(file.name[file.name.rfind(".") :])
        if file.is_file() and media_type:
            content = file.read_bytes()
            found[file.name] = _PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found
