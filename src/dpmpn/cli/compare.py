"""`dpmpn compare`: trains embedding models beside ours under one budget of time, and measures all alike."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.output import JsonTarget, Meter, Output, table
from dpmpn.cli.signals import stoppable
from dpmpn.data.importer import load_dataset
from dpmpn.errors import ConfigError, Stopped
from dpmpn.wording import counted, duration, percentage

if TYPE_CHECKING:
    from dpmpn.lab.compare.comparison import Comparison, Standing
    from dpmpn.lab.compare.contestants import Entrant

_OWN_PER_S, _EMBEDDINGS_PER_S = 150, 1500  # queries asked, a guess before anything is measured


def command(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="a name of `dpmpn datasets`, or a folder")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="folder of the results")],
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            metavar="NAMES",
            help='embedding models, with commas between them; all where it is left out, "" = none',
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option("--budget", metavar="MINUTES", help="training time of each model")
    ] = 15.0,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            min=0,
            max=2**32 - 1,
            metavar="INT",
            help="what vectors, batches and samples are drawn by",
        ),
    ] = 0,
    threads: Annotated[
        int, typer.Option("--threads", min=0, metavar="INT", help="threads to compute with; 0 = all cores")
    ] = 0,
    valid_queries: Annotated[
        int,
        typer.Option("--valid-queries", min=0, metavar="INT", help="questions of each validation; 0 = all"),
    ] = 2000,
    json: JsonTarget = None,
) -> None:
    """Compare our two models with embedding models, each trained for the same time.

    Equal for all: the training facts, the minutes of training, the threads,
    the validation questions and the evaluator. It ranks filtered, over the
    whole test set in both directions, ties at the mean of their places. Test
    facts with an entity that no training fact names are kept.

    The budget is training time on this machine alone. On the way, at 1/128,
    1/64, ... 1/2 and all of it and after 5, 15 and 60 minutes, the clock stops
    and the model is validated; the best of these is tested. Our own models,
    the paper's and the stronger one, always take part, with the settings that
    `dpmpn train` would choose for either --model.

    Embedding models are transe, transr, distmult, conve, complex, hole, rotate
    and complex-n3.

    DIR gets compare.md, compare.csv, compare.json and the curves as
    compare.svg and compare.png. Each finished model is kept in DIR/models: the
    same command goes on after the last one, and other --models join them.

    Example: dpmpn compare WN18RR --models rotate,complex-n3 --out comparison
    """
    output = Output(json)
    if not 0 < budget < float("inf"):
        raise ConfigError(f"'--budget' must be a number of minutes above 0, not {budget:g}")
    names = _checked(models)
    data = load_dataset(dataset)

    from dpmpn.lab.compare.comparison import Comparison, Conditions

    comparison = Comparison(Conditions(data, budget, seed, threads, valid_queries), names, out)
    _introduce_models(output, comparison)
    with stoppable() as stop, Meter(output, "") as meter:
        try:
            report = comparison.run(
                lambda entrant: meter.begin(f"{entrant.label}, seconds"),
                lambda standing: _show_standing(meter, standing),
                lambda entrant, model: _say_result(output, comparison, entrant, model["result"]),
                stop,
            )
        except Stopped:
            kept = counted(len(comparison.finished), "finished model")
            output.say(f"Interrupted; {kept} in {out}: the same command goes on with the next one.")
            raise typer.Exit(stop.exit_code) from None
    output.result(report, lambda: _show_ranking(output, comparison))


def _checked(models: str | None) -> list[str]:
    """Names that exist, with the libraries to train and draw them."""
    from dpmpn.lab.compare.contestants import chosen_models
    from dpmpn.lab.compare.embedding import EMBEDDING_MODELS, check_pykeen
    from dpmpn.lab.figures import check_plotting

    names = list(EMBEDDING_MODELS) if models is None else chosen_models(models.split(","))
    if names:
        check_pykeen()
    check_plotting()
    return names


def _introduce_models(output: Output, comparison: "Comparison") -> None:
    from dpmpn.lab.compare.report import validation_seconds

    values, left = comparison.values, comparison.left()
    output.say(
        f"{values['dataset']}: {values['entities']:,} entities, {values['relations']:,} relations; triples: "
        f"{values['train']:,} train, {values['valid']:,} valid, {values['test']:,} test"
    )
    for name in comparison.finished:
        output.say(f"{name}: finished before, kept")
    if not left:
        return
    budget_seconds = 60 * values["budget_minutes"]
    training = budget_seconds * len(left)
    validations = len(validation_seconds(budget_seconds))
    asked = validations * len(comparison.course.validation) + 2 * values["test"]
    measuring = sum(asked / (_OWN_PER_S if entrant.is_own else _EMBEDDINGS_PER_S) for entrant in left)
    output.say(
        f"{counted(len(left), 'model')} x {values['budget_minutes']:g} min on {counted(values['threads'], 'thread')}: "
        f"{duration(training)} of training, and about {duration(measuring)} of measuring; "
        "Ctrl-C keeps the finished ones"
    )


def _show_standing(meter: Meter, standing: "Standing") -> None:
    """Move the bar: it counts seconds of training."""
    left = max(0.0, standing.budget_seconds - standing.seconds)
    best = "" if standing.best_mrr is None else f", best MRR {standing.best_mrr:.4f}"
    note = f"epoch {standing.epochs:.2f}{best}, " + (standing.asking or f"ETA {duration(left)}")
    total = math.ceil(standing.budget_seconds)
    meter.show(min(int(standing.seconds), total - 1), total, note)


def _say_result(output: Output, comparison: "Comparison", entrant: "Entrant", result: dict[str, Any]) -> None:
    """How a model did, and how long the others will take."""
    test, done = result["test"]["both"]["realistic"], comparison.finished.values()
    each = [one["result"]["seconds"] + one["result"]["evaluation_seconds"] for one in done]
    left = len(comparison.left())
    rest = f"; {left} left, about {duration(left * sum(each) / len(each))}" if left else ""
    output.say(
        f"{entrant.label}: test MRR {test['mrr']:.4f}, H@10 {test['hits_at_10']:.4f} after {result['epochs']:.2f} "
        f"epochs, measured in {duration(result['evaluation_seconds'])}{rest}"
    )


def _show_ranking(output: Output, comparison: "Comparison") -> None:
    from dpmpn.evaluate.metrics import TITLES
    from dpmpn.lab.compare.report import by_mrr

    numbers = (*TITLES.values(), "parameters", "epochs", "queries/s", "minutes")
    shown = table("model", *numbers, right=numbers)
    for model in by_mrr(list(comparison.finished.values())):
        result = model["result"]
        shown.add_row(
            model["label"],
            *(percentage(result["test"]["both"]["realistic"][metric]) for metric in TITLES),
            f"{result['parameters']:,}",
            f"{result['epochs']:.3g}",
            f"{result['queries_per_s']:,.0f}",
            f"{result['seconds'] / 60:.1f}",
        )
    output.say()
    output.show(shown)
    output.say()
    output.say(f"Table and curves: {comparison.out}/compare.md and compare.svg")
