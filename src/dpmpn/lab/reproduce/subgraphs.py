"""The appendix's subgraphs: the paper's own questions on the tasks of NELL995, drawn and held against its key edges."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import INVERSE_SUFFIX
from dpmpn.errors import ConfigError
from dpmpn.files import own_folder
from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.exhibit import row_of
from dpmpn.lab.reproduce.nell995 import TaskExhibit, facts_counted, task_run, tasks_note
from dpmpn.lab.reproduce.workshop import Request, Result, Workshop, training_record
from dpmpn.wording import counted, percentage, score_shown

if TYPE_CHECKING:
    from dpmpn.data.graph import KnowledgeGraph
    from dpmpn.explain.explanation import Subgraph
    from dpmpn.render.formats import Explanation

Edge = tuple[str, str, str]  # head, relation and tail as the graph names them, inverse relations included

ATTENDING_FROM = 20
"""max_attending_from_per_step of the questions, as the captions say."""
_FILE, _PICTURES = "paper_subgraphs.toml", "subgraphs"
_SHOWN_FACTS = 10


@dataclass(frozen=True)
class PaperSubgraph:
    """A question of the appendix, and the edges the paper selected to show."""

    name: str  # of the task, as the paper writes it
    query: Edge  # the tail is the answer
    edges: tuple[Edge, ...]


def paper_subgraph(task: str) -> PaperSubgraph | None:
    """What the paper shows of a task; None for tasks it does not have."""
    if task not in _paper_file():
        return None
    values = _paper_file()[task]
    head, relation, tail = values["query"]
    return PaperSubgraph(
        values["name"], (head, relation, tail), tuple((h, r, t) for h, r, t in values["edges"])
    )


@cache
def _paper_file() -> dict[str, Any]:
    return tomllib.loads((resources.files("dpmpn.lab.reproduce") / _FILE).read_text("utf-8"))


def edges_of(graph: "KnowledgeGraph", subgraph: "Subgraph") -> set[Edge]:
    """The edges of a subgraph the way attention went along them."""
    names, found = graph.relation_names, set()
    for edge in subgraph.edges:
        relation = names.id(edge.relation, "relation")
        along = int(graph.inverse[relation]) if edge.inverse else relation
        found.add((subgraph.nodes[edge.source].name, names.name(along), subgraph.nodes[edge.target].name))
    return found


def fact_of(edge: Edge) -> Edge:
    """The fact an edge of the paper stands for: one of an inverse relation is read backwards."""
    head, relation, tail = edge
    return (tail, relation.removesuffix(INVERSE_SUFFIX), head) if relation.endswith(INVERSE_SUFFIX) else edge


class Subgraphs(TaskExhibit):
    """A question of each task with its picture."""

    name = "subgraphs"
    title = "Subgraphs of twelve questions"
    place = "Figures 1 and 9-20"
    claim = (
        "The subgraph of a question, pruned by attention, is a readable explanation of the answer "
        "that a single path cannot give."
    )
    n_questions = 1
    fields = (
        *("task", "seed", "head", "relation", "tail", "score", "rank", "first_answer", "drawn_answer"),
        *("full_nodes", "full_edges", "pruned_nodes", "pruned_edges"),
        *("paper_edges", "paper_edges_in_full", "paper_edges_in_pruned"),
    )

    def work(self, request: Request, task: str, seed: int, workshop: Workshop) -> Result:
        """Ask the question, draw both subgraphs and compare their edges with the paper's."""
        from dpmpn.reasoner.reasoner import Reasoner

        run, dataset = task_run(workshop, request, task, seed)
        paper = paper_subgraph(task)
        head, relation, tail = paper.query if paper else _first_test_query(dataset)
        reasoner = Reasoner.load(
            run.path, ask_attending_from_per_step=ATTENDING_FROM, threads=request.threads, device="cpu"
        )
        (asked,) = reasoner.ask([reasoner.question_ids(head, relation)])
        wanted = reasoner.graph.entities.id(tail)
        reached = asked.is_reached(wanted)
        explanation = asked.explain(wanted if reached else None)
        folder = f"{_PICTURES}/{task}-seed{seed}"
        files = _saved(explanation, workshop, folder)
        return {
            "task": task,
            "seed": seed,
            "query": [head, relation, tail],
            "score": explanation.answer.score if reached else 0.0,
            "rank": explanation.answer.rank if reached else None,
            "first_answer": asked.graph.entities.name(int(asked.reached.entities[0])),
            "drawn_answer": explanation.answer.answer,
            "files": [f"{folder}/{name}" for name in files],
            "sizes": {
                name: {"nodes": len(subgraph.nodes), "edges": len(subgraph.edges)}
                for name, subgraph in (("full", explanation.full), ("pruned", explanation.pruned))
            },
            "paper": _edges_compared(explanation, paper) if paper else None,
            "key_facts": [[*key.fact, key.share] for key in explanation.key_facts],
            "training": training_record(run),
            **facts_counted(run, dataset),
        }

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """A row for each question."""
        return [row_of({**result, **_flat(result)}, self.fields) for result in results]

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """The table, and each question with its picture."""
        columns = [
            *("task", "seed", "answer's place", "score", "nodes (full)", "edges (full)"),
            *("nodes (pruned)", "edges (pruned)", "paper's edges", "of them in full", "in pruned"),
        ]
        lines = [_question_cells(result) for result in results]
        return [
            table(columns, lines),
            _answers_note(request, results),
            *(_picture(result) for result in results),
        ]


def _flat(result: Result) -> dict[str, Any]:
    """The query, the sizes and the comparison, each value by a name of its own."""
    paper = result["paper"] or dict.fromkeys(("edges", "in_full", "in_pruned"))
    return {
        **dict(zip(("head", "relation", "tail"), result["query"], strict=True)),
        **{f"{name}_{what}": n for name, sizes in result["sizes"].items() for what, n in sizes.items()},
        "paper_edges": paper["edges"],
        **{f"paper_edges_{where}": paper[where] for where in ("in_full", "in_pruned")},
    }


def _first_test_query(dataset: Dataset) -> Edge:
    head, relation, tail = dataset.test[0].tolist()
    names = dataset.graph.entities
    return names.name(head), dataset.graph.relation_names.name(relation), names.name(tail)


def _saved(explanation: "Explanation", workshop: Workshop, folder: str) -> list[str]:
    """Write pictures, text and tables; the names of the files. PNG needs an extra, and is left out without it."""
    formats, out = ["svg", "png", "text", "csv"], own_folder(workshop.folder / folder)
    try:
        paths = explanation.save(out, formats)
    except ConfigError as missing:
        workshop.watch.say(f"without png: {missing}")
        paths = explanation.save(out, [name for name in formats if name != "png"])
    return [path.name for path in paths]


def _edges_compared(explanation: "Explanation", paper: PaperSubgraph) -> dict[str, int]:
    """How many of the paper's edges are in our subgraphs."""
    graph, printed = explanation.graph, set(paper.edges)
    return {
        "edges": len(printed),
        "in_full": len(printed & edges_of(graph, explanation.full)),
        "in_pruned": len(printed & edges_of(graph, explanation.pruned)),
    }


def _question_cells(result: Result) -> list[str]:
    paper, sizes = result["paper"], result["sizes"]
    compared = [paper["edges"], paper["in_full"], paper["in_pruned"]] if paper else ["-", "-", "-"]
    return [
        _name(result["task"]),
        str(result["seed"]),
        "not reached" if result["rank"] is None else f"{result['rank']:,}",
        score_shown(result["score"]),
        *(f"{sizes[name][what]:,}" for name in ("full", "pruned") for what in ("nodes", "edges")),
        *map(str, compared),
    ]


def _name(task: str) -> str:
    paper = paper_subgraph(task)
    return paper.name if paper else task


def _answers_note(request: Request, results: Sequence[Result]) -> str:
    first = sum(result["rank"] == 1 for result in results)
    sentences = [
        f"Each question was asked with max_attending_from_per_step = {ATTENDING_FROM}. "
        f"The answer is in the first place for {first} of {counted(len(results), 'question')}. "
        "Its place is that among all answers, with those that the graph states already."
    ]
    if all(result["paper"] for result in results):
        sentences.append(
            "The paper's edges are its selected key edges; one counts where attention went along it the same way. "
            "It does not say how it selected them, and its models are other trainings, so not all can be expected here."
        )
    if request.quick:
        sentences.append("The questions are of the bundled graph: nothing here compares with the paper.")
    else:
        sentences.append(tasks_note(request, results))
    return " ".join(sentences) + "\n"


def _picture(result: Result) -> str:
    """A question with its picture and its strongest facts."""
    head, relation, tail = result["query"]
    svg, *others = sorted(result["files"], key=lambda name: not name.endswith(".svg"))
    lines = [
        f"## {_name(result['task'])}, seed {result['seed']}\n",
        f"`{head}`, `{relation}`, `{tail}`: {_answer_note(result)}\n",
        f"![full subgraph left, pruned right]({svg})\n",
        _fact_table(result),
        "Files: " + ", ".join(f"[{name.rsplit('/', 1)[1]}]({name})" for name in (svg, *others)) + ".\n",
    ]
    return "\n".join(lines)


def _answer_note(result: Result) -> str:
    if result["rank"] is None:
        return f"no attention reached the answer, so the picture is of the first one, `{result['drawn_answer']}`."
    place = f"number {result['rank']:,}, score {score_shown(result['score'])}"
    return f"{place}." if result["rank"] == 1 else f"{place}; the first is `{result['first_answer']}`."


def _fact_table(result: Result) -> str:
    facts = result["key_facts"]
    paper = paper_subgraph(result["task"])
    printed = {fact_of(edge) for edge in paper.edges} if paper else set()
    columns = ["key fact", "share of the attention, percent", *(["in the paper"] if paper else [])]
    rows = []
    for head, relation, tail, share in facts[:_SHOWN_FACTS]:
        mark = ["yes" if (head, relation, tail) in printed else ""] if paper else []
        rows.append([f"`{head}`, `{relation}`, `{tail}`", percentage(share), *mark])
    return table(columns, rows)


SUBGRAPHS = Subgraphs()
