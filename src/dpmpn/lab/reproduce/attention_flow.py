"""Figure 5: how attention diverges and converges from step to step, on the tasks of NELL995."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.lab.figures import COLOURS, MARKERS, new_figure, table
from dpmpn.lab.reproduce.exhibit import grouped, legend_below, row_of
from dpmpn.lab.reproduce.nell995 import TEST_FACTS, TaskExhibit, facts_counted, task_run, tasks_note
from dpmpn.lab.reproduce.workshop import Request, Result, Workshop, training_record
from dpmpn.wording import counted, percentage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.engine.trace import ReasoningTrace

Means = Mapping[str, Mapping[str, list[float]]]
"""Of each task and measure, the mean over all questions and seeds after each step."""
TOP = (1, 3, 5)
"""Nodes whose share of the attention is measured."""
_ENTROPY = "entropy"
MEASURES = (_ENTROPY, *(f"top_{count}" for count in TOP))


def entropies(attention: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Entropy of each query's attention, by the natural logarithm; 0 where one node has it all."""
    attention = attention.astype(np.float64)
    logarithm = np.log(attention, out=np.zeros_like(attention), where=attention > 0)
    return np.bincount(_queries(offsets), -attention * logarithm, len(offsets) - 1)


def top_shares(attention: np.ndarray, offsets: np.ndarray, count: int) -> np.ndarray:
    """The part of each query's attention that its `count` most attended nodes have."""
    query = _queries(offsets)
    largest_first = np.lexsort((-attention, query))  # queries stay in their places
    place = np.arange(len(attention)) - np.repeat(offsets[:-1], np.diff(offsets))
    of_top = attention[largest_first].astype(np.float64) * (place < count)
    return np.bincount(query, of_top, len(offsets) - 1)


def attention_measures(trace: "ReasoningTrace") -> np.ndarray:
    """Entropy and shares of the top nodes: measures x (steps + 1) x queries; all attention is at the head at first."""
    n_queries = len(trace.heads)
    at_head = [np.zeros(n_queries), *(np.ones(n_queries) for _ in TOP)]
    steps = [
        [
            entropies(step.slot_attention, step.slot_offsets),
            *(top_shares(step.slot_attention, step.slot_offsets, count) for count in TOP),
        ]
        for step in trace.steps
    ]
    return np.array([at_head, *steps]).transpose(1, 0, 2)


def pattern(entropy: Sequence[float]) -> str:
    """What the mean entropy does from step to step, in words."""
    peak = max(range(len(entropy)), key=entropy.__getitem__)
    if peak == 0:
        return "never rises"
    rises = all(after >= before for before, after in pairwise(entropy[: peak + 1]))
    falls = all(after <= before for before, after in pairwise(entropy[peak:]))
    if not rises or not falls:
        return f"rises and falls more than once, highest at step {peak}"
    return "only rises" if peak == len(entropy) - 1 else f"rises until step {peak}, then falls"


def _queries(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


class AttentionFlow(TaskExhibit):
    """Entropy of the attention, and what the most attended nodes have of it."""

    name = "attention-flow"
    title = "Attention flow"
    place = "Figure 5"
    claim = (
        "Attention diverges and then converges: it is more focused at the beginning and at the final step "
        "than in between."
    )
    n_questions = TEST_FACTS

    def work(self, request: Request, task: str, seed: int, workshop: Workshop) -> Result:
        """Ask the test questions and average over them."""
        run, dataset = task_run(workshop, request, task, seed)
        queries = dataset.queries("test")
        size = run.config.training.batch_size
        measured = []
        with workshop.asking(run, dataset) as engine:
            for start in range(0, len(queries), size):
                heads, relations, _ = queries[start : start + size].T
                _, trace = engine.trace(engine.asking_batch(heads, relations))
                measured.append(attention_measures(trace))
                workshop.progress(min(start + size, len(queries)), len(queries))
        averages = np.concatenate(measured, axis=2).mean(axis=2)
        return {
            "task": task,
            "seed": seed,
            "queries": len(queries),
            **{measure: averages[at].tolist() for at, measure in enumerate(MEASURES)},
            "training": training_record(run),
            **facts_counted(run, dataset),
        }

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """A row for each step."""
        rows = []
        for result in results:
            shared = row_of(result, ("task", "seed", "queries"))
            steps = zip(*(result[measure] for measure in MEASURES), strict=True)
            for step, values in enumerate(steps):
                rows.append({**shared, "step": step, **dict(zip(MEASURES, values, strict=True))})
        return rows

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Tables of all measures, and what the entropy does."""
        means, n_questions = _means(results), {result["task"]: result["queries"] for result in results}
        return [
            _entropy_table(means, n_questions),
            *(_share_table(means, count) for count in TOP),
            _pattern_note(request, means, results),
        ]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """A panel for each measure, a line for each task."""
        means = _means(results)
        figure, axes = new_figure(9.5, 7.5, 2, 2, sharex=True)
        titles = ["(A) entropy", *(f"({'BCD'[at]}) share of the top {count}" for at, count in enumerate(TOP))]
        for panel, measure, title in zip(axes.flat, MEASURES, titles, strict=True):
            scale = 1 if measure == _ENTROPY else 100
            for at, (task, found) in enumerate(means.items()):
                panel.plot(
                    [scale * value for value in found[measure]],
                    label=task,
                    color=COLOURS[at % len(COLOURS)],
                    marker=MARKERS[at % len(MARKERS)],
                    linestyle="-" if at < len(COLOURS) else "--",
                    markersize=4,
                    linewidth=1.3,
                )
            panel.set_title(title)
            panel.set_ylabel("nats" if measure == _ENTROPY else "percent of attention")
            panel.set_ylim(bottom=0)
        for panel in axes[-1]:
            panel.set_xlabel("step")
            panel.set_xticks(range(max(len(found[_ENTROPY]) for found in means.values())))
        legend_below(figure, axes[0, 0], 3)
        return figure


def _means(results: Sequence[Result]) -> Means:
    by_task = grouped(results, lambda result: str(result["task"]))
    return {
        task: {
            measure: [mean(values) for values in zip(*(result[measure] for result in found), strict=True)]
            for measure in MEASURES
        }
        for task, found in by_task.items()
    }


def _entropy_table(means: Means, n_questions: Mapping[str, int]) -> str:
    lines = []
    for task, found in means.items():
        entropy = found[_ENTROPY]
        lines.append(
            [task, f"{n_questions[task]:,}", *(f"{value:.2f}" for value in entropy), pattern(entropy)]
        )
    columns = ["task", "questions", *_step_titles(means), "from step to step"]
    return "Mean entropy of the attention:\n\n" + table(columns, lines)


def _share_table(means: Means, count: int) -> str:
    nodes = "the most attended node" if count == 1 else f"the {count} most attended nodes"
    return f"Mean share of attention on {nodes}, in percent:\n\n" + table(
        ["task", *_step_titles(means)],
        ([task, *(percentage(value) for value in found[f"top_{count}"])] for task, found in means.items()),
    )


def _step_titles(means: Means) -> list[str]:
    longest = max(len(found[_ENTROPY]) for found in means.values())
    return [f"step {step}" for step in range(longest)]


def _pattern_note(request: Request, means: Means, results: Sequence[Result]) -> str:
    patterns = [pattern(found[_ENTROPY]) for found in means.values()]
    both = sum(text.startswith("rises until") for text in patterns)
    sentences = [
        f"Attention diverges and then converges, its entropy rising first and falling later, on {both} of "
        f"{counted(len(patterns), 'task')}. Step 0 is before the first step, when the head has all attention. "
        "Entropy is by the natural logarithm, over all nodes a step scanned. "
        "Values are means over the test questions" + " and over the seeds" * (len(request.seeds) > 1) + "."
    ]
    if request.quick:
        sentences.append(
            "The tasks are two relations of the bundled graph: nothing here compares with the paper."
        )
    else:
        sentences.append(tasks_note(request, results))
    return " ".join(sentences) + "\n"


ATTENTION_FLOW = AttentionFlow()
