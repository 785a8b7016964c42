"""`dpmpn evaluate`: measures a trained model on held-out facts."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.changed_facts import OtherGraph, RunName, opened, say_expectations
from dpmpn.cli.in_parts import RayOption, ReportFile, ShardOption, Sharing, do_report
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.cli.settings import with_settings
from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.report import Report

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.evaluate.evaluator import Evaluation


@with_settings("asking", "run")
def command(
    context: typer.Context,
    run_dir: RunName,
    split: Annotated[
        str, typer.Option("--split", metavar="valid|test|train", help="which facts to ask for")
    ] = "test",
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="also measure each relation separately")
    ] = False,
    ties: Annotated[
        bool,
        typer.Option(
            "--ties", help="also show scores with ties placed first and last, even where it hardly matters"
        ),
    ] = False,
    limit: Annotated[
        int | None, number(int, "--limit", "ask about this many triples only", at_least=1)
    ] = None,
    on: OtherGraph = None,
    out: ReportFile = None,
    shard: ShardOption = None,
    on_ray: RayOption = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure a trained model: filtered MRR and hits in both directions, and how many answers it reached.

    With --on, the model is asked for the held-out facts of another dataset and reasons on its training facts, without
    being trained any further. For example, about entities it has never seen:

    dpmpn inductive WN18RR --out graphs/two

    dpmpn train graphs/two/train --out runs/two

    dpmpn evaluate runs/two --on graphs/two/ask

    How good are answers without any training, for a folder with the files train.* and test.*?

    dpmpn evaluate any-graph --on FOLDER

    The work can be shared between machines: see --shard, and `dpmpn merge --help`.
    """
    output = Output(json)
    sharing = Sharing.of(context, settings, shard, on_ray, out)
    make = partial(_work, run_dir, on, sharing.settings, split, per_relation, limit)

    def report(work: "Evaluation", frames: "Iterator[pl.DataFrame]") -> dict[str, Any]:
        return {**({} if on is None else {"on": work.dataset.name}), **work.report(frames)}

    def show(work: "Evaluation", scores: dict[str, Any]) -> None:
        _show(output, scores, work.dataset, ties, per_relation)

    do_report(output, make, out, sharing, "asked", report, show)


def _work(
    run_dir: str,
    on: str | None,
    settings: dict[str, str],
    split: str,
    per_relation: bool,
    limit: int | None,
    output: Output,
) -> "Evaluation":
    from dpmpn.evaluate.evaluator import Evaluation

    reasoner = opened(output, run_dir, on, settings)
    say_expectations(output, reasoner)
    return Evaluation(reasoner.engine, reasoner.dataset, split, per_relation=per_relation, limit=limit)


def _show(output: Output, scores: dict[str, Any], dataset: Dataset, all_ties: bool, relations: bool) -> None:
    output.say(Report.of(scores, dataset).text(all_ties, relations))
    output.say()
    output.say(f"{scores['queries_per_s']:.0f} questions/s. Coverage: share of answers the model reached.")
