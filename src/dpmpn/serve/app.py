"""The routes of the HTTP API: what can be asked, and what answers it."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from dpmpn.ask.reasoner import Reasoner
from dpmpn.render.formats import FORMATS, Format
from dpmpn.serve import bodies
from dpmpn.serve.answers import answered, json_answer
from dpmpn.serve.asking import Asking, Ids
from dpmpn.serve.card import model_card
from dpmpn.serve.counts import Counts
from dpmpn.serve.description import DESCRIPTION, describe, refusals
from dpmpn.serve.desk import Desk
from dpmpn.serve.explaining import download, explained, told_why_not
from dpmpn.serve.guard import Guard
from dpmpn.serve.limits import LIMITS, Limits
from dpmpn.serve.lookups import Lookups
from dpmpn.serve.naming import Naming
from dpmpn.serve.page_files import INDEX, page_files
from dpmpn.serve.picture import pictured
from dpmpn.serve.problems import Problem, answer_problems

_API = "/api/v1"
_FEW = 100  # answers that are told sooner than another thread is


class Explorer:
    """A model and all that answers requests about it."""

    def __init__(self, reasoner: Reasoner, run_dir: Path, limits: Limits = LIMITS) -> None:
        self.reasoner, self.counts = reasoner, Counts()
        self.card = model_card(reasoner, run_dir, limits)
        reasoner.known.index()  # once, for all questions
        _warm_up(reasoner)
        self.asking = Asking(reasoner, self.counts, limits.waiting_questions)
        self.quick = Desk("lookups", 2, limits.waiting_lookups, self.counts)
        # One thread: telling and drawing hold the interpreter's lock, and the engine needs it, too.
        self.slow = Desk("explanations", 1, limits.waiting_explanations, self.counts)
        self.lookups = Lookups(reasoner.graph)
        self.naming = Naming(reasoner.graph, self.quick)

    def close(self) -> None:
        """Finish what was begun, and end all threads."""
        self.asking.close()
        self.quick.close()
        self.slow.close()


def _warm_up(reasoner: Reasoner) -> None:
    """Ask and explain something, so that the first person need not wait for kernels and helper processes."""
    graph = reasoner.graph
    edges = np.linspace(0, graph.n_edges - 1, min(16, graph.n_edges)).astype(np.int64)
    heads, relations = graph.edge_heads(edges).tolist(), graph.relations[edges].tolist()
    questions = [(head, relation, False) for head, relation in zip(heads, relations, strict=True)]
    reasoner.ask(questions, traced=False)
    for asked in reasoner.ask(questions[:1]):
        explained(asked, None)


def make_app(
    explorer: Explorer,
    token: str | None = None,
    is_meant: Callable[[str], bool] = lambda _: True,
    limits: Limits = LIMITS,
) -> Guard:
    """The application that serves a model; it closes the explorer when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        explorer.close()

    app = FastAPI(
        title="dpmpn",
        summary="Answers questions on a knowledge graph and shows why.",
        description=DESCRIPTION,
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
    guard = Guard(app, explorer.counts, set(), token, is_meant, limits)
    _add_health(app, explorer, guard)
    _add_page(app)
    describe(app, has_token=token is not None)
    guard.routes = {route.path for route in app.routes if "{" not in route.path}  # type: ignore[attr-defined]
    return guard


def _add_lookups(app: FastAPI, explorer: Explorer) -> None:
    lookups, quick = explorer.lookups, explorer.quick

    @app.get(f"{_API}/model", response_model=bodies.ModelCard, responses=refusals())
    async def model() -> Response:
        """Tell what is served."""
        return json_answer(explorer.card)

    @app.get(f"{_API}/entities", response_model=list[bodies.FoundEntity], responses=refusals("lookup"))
    async def entities(query: Annotated[bodies.SearchQuery, Query()]) -> Response:
        """Find entities whose name or label begins with the text or has it inside."""
        return json_answer(await quick.do(lookups.search, query.q, query.limit))

    @app.get(f"{_API}/entity", response_model=bodies.Entity, responses=refusals("lookup", "entity"))
    async def entity(query: Annotated[bodies.EntityQuery, Query()]) -> Response:
        """Tell an entity's facts, a page at a time."""
        id = await explorer.naming.entity(query.name)
        return json_answer(await quick.do(lookups.entity, id, query.limit, query.offset))

    @app.get(
        f"{_API}/relations", response_model=list[bodies.Relation], responses=refusals("lookup", "entity")
    )
    async def relations(query: Annotated[bodies.RelationsQuery, Query()]) -> Response:
        """List what can be asked: first what the head has facts for, then what its like have, then the rest."""
        head = None if query.head is None else await explorer.naming.entity(query.head)
        return json_answer(await quick.do(lookups.relations, head))


def _add_questions(app: FastAPI, explorer: Explorer) -> None:
    reasoner, naming = explorer.reasoner, explorer.naming

    @app.post(f"{_API}/ask", response_model=bodies.TimedAnswered, responses=refusals("question"))
    async def ask(body: bodies.AskBody) -> Response:
        """Answer a question: entities with their probabilities, the most probable first."""
        began = time.perf_counter()
        asked = await explorer.asking.ask(await naming.question(body))
        told = answered, reasoner, asked, body.top, body.new
        result = answered(*told[1:]) if body.top <= _FEW else await explorer.quick.do(*told)
        return json_answer({**result, "milliseconds": round(1e3 * (time.perf_counter() - began), 3)})

    @app.post(f"{_API}/ask-many", response_model=bodies.ManyAnswered, responses=refusals("many"))
    async def ask_many(body: bodies.AskManyBody) -> Response:
        """Answer questions together; those that cannot be asked have an error in their place."""
        results: list[dict] = [{} for _ in body.questions]
        ids: dict[int, Ids] = {}
        for at, named in enumerate(await naming.questions(body.questions)):
            if isinstance(named, Problem):
                results[at] = {"question": body.questions[at].model_dump(), "error": named.plain()}
            else:
                ids[at] = named
        found = await explorer.asking.ask_all(list(ids.values()))

        def told() -> Response:
            for at, asked in zip(ids, found, strict=True):
                results[at] = answered(reasoner, asked, body.top, body.new)
            return json_answer({"results": results})

        return await explorer.quick.do(told)  # a moment, in which other requests must not wait


def _add_explanations(app: FastAPI, explorer: Explorer) -> None:
    naming, slow = explorer.naming, explorer.slow

    @app.post(f"{_API}/explain", response_model=bodies.Explained, responses=refusals("question", "reached"))
    async def explain(body: bodies.ExplainBody) -> Response:
        """Say why an answer was given: the facts that carried the attention there."""
        question = await naming.question(body)
        answer = None if body.answer is None else await naming.entity(body.answer)
        asked = await explorer.asking.ask(question, traced=True)
        return await slow.do(lambda: json_answer(explained(asked, answer)))

    @app.post(f"{_API}/picture", response_model=bodies.Picture, responses=refusals("question", "reached"))
    async def picture(body: bodies.PictureBody) -> Response:
        """Draw why an answer was given, for the page."""
        question = await naming.question(body)
        answer = None if body.answer is None else await naming.entity(body.answer)
        asked = await explorer.asking.ask(question, traced=True)
        return await slow.do(lambda: json_answer(pictured(asked, answer, body.full)))

    @app.post(f"{_API}/why-not", response_model=bodies.WhyNotTold, responses=refusals("question"))
    async def why_not(body: bodies.WhyNotBody) -> Response:
        """Say where an entity that is not the first answer lost its attention."""
        question, candidate = await naming.question(body), await naming.entity(body.candidate)
        asked = await explorer.asking.ask(question, traced=True)
        return json_answer(await slow.do(told_why_not, asked, candidate))

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


def _download(explorer: Explorer, format: Format):  # type: ignore[no-untyped-def]  # FastAPI reads the inner one
    async def explanation(query: Annotated[bodies.ExplanationQuery, Query()]) -> Response:
        """Download an explanation."""
        question = await explorer.naming.question(query)
        answer = None if query.answer is None else await explorer.naming.entity(query.answer)
        asked = await explorer.asking.ask(question, traced=True)
        content, name = await explorer.slow.do(download, asked, answer, format)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, headers=headers, media_type=format.media_type)

    return explanation


def _add_health(app: FastAPI, explorer: Explorer, guard: Guard) -> None:
    @app.get("/livez", response_model=bodies.Health, responses=refusals())
    async def livez() -> Response:
        """Tell whether the server works at all."""
        if not explorer.asking.is_alive:
            raise Problem("internal", "questions are no longer answered; start this server again")
        return json_answer({"status": "alive"})

    @app.get("/readyz", response_model=bodies.Health, responses=refusals())
    async def readyz() -> Response:
        """Tell whether requests are welcome: not while the server is stopping."""
        if guard.stopping:
            raise Problem("overloaded", "this server is stopping", headers={"Retry-After": "5"})
        return json_answer({"status": "ready"})

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
        return Response(explorer.counts.text(), media_type="text/plain; version=0.0.4")


def _add_page(app: FastAPI) -> None:
    files = page_files()

    async def page(request: Request) -> Response:
        file = files.get(request.path_params.get("name", INDEX))
        if file is None:
            raise Problem("not_found", "the page has no such file; open /")
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.kind)

    app.add_route("/", page, ["GET"], include_in_schema=False)
    app.add_route("/page/{name}", page, ["GET"], include_in_schema=False)
