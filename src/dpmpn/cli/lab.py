"""The laboratory's commands: `dpmpn reproduce`, `dpmpn compare` and `dpmpn bench`."""

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import DatasetName, PresetName, chosen_settings, with_settings
from dpmpn.cli.signals import stoppable
from dpmpn.data.importer import load_dataset
from dpmpn.engine.settings import MOST_THREADS
from dpmpn.errors import ConfigError, Stopped
from dpmpn.evaluate.metrics import TITLES
from dpmpn.progress import Meter
from dpmpn.settings import MOST_SEED, checked_number, refusal
from dpmpn.wording import counted, duration, percentage

if TYPE_CHECKING:
    from dpmpn.lab.compare.comparison import Comparison, Standing
    from dpmpn.lab.compare.contestants import Entrant

_OWN_PER_S, _EMBEDDINGS_PER_S = 150, 1500  # queries asked, a guess before anything is measured

_ExhibitName = Annotated[str | None, typer.Argument(metavar="NAME", help="an exhibit of --list")]
_ExhibitFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="folder for the exhibit, its data and its runs")
]
_ListAll = Annotated[
    bool, typer.Option("--list", help="show all exhibits and what the paper says about them")
]
_Quick = Annotated[
    bool, typer.Option("--quick", help="try it in a minute, on the bundled graph with small settings")
]
_SEEDS_HELP = (
    "seeds of the trainings, such as 0,1,2; name all that should be shown, including those made before"
)
_Seeds = Annotated[str, typer.Option("--seeds", metavar="LIST", help=_SEEDS_HELP)]
_OTHER_DATASET_HELP = (
    "WN18RR or FB15K-237 for convergence, ignn, horizons, time-cost, growth, leak-removal, ablation and unseen; "
    "these or WN18 for ignn-draws; these, WN18, FB15K, NELL-995, UMLS, Kinship, Family or countries for strong; "
    "YAGO3-10-quarter for yago3-10"
)
_OtherDataset = Annotated[str | None, typer.Option("--dataset", metavar="NAME", help=_OTHER_DATASET_HELP)]
_Epochs = Annotated[
    float | None,
    number(float, "--epochs", "of each training, instead of the paper's", above=0, at_most=1_000_000),
]
_MINUTES_HELP = (
    "end each training after this many minutes; trainings of strong, ablation and unseen use all of them"
)
_MaxMinutes = Annotated[float | None, number(float, "--max-minutes", _MINUTES_HELP, above=0)]
_RUNS_HELP = (
    "folder of another exhibit whose trained models are used as they are, instead of training: "
    "nell995's for attention-flow and subgraphs, ignn's for wn18rr, fb15k-237's for growth, wn18's for ignn-draws"
)
_Runs = Annotated[Path | None, typer.Option("--runs", metavar="DIR", help=_RUNS_HELP)]
_ONLY_HELP = (
    "parts of ablation, such as no-gates,paper; name all that should be shown, including those made before"
)
_Only = Annotated[str, typer.Option("--only", metavar="LIST", help=_ONLY_HELP)]
_Threads = Annotated[int, number(int, "--threads", "0 = all cores", at_least=0, at_most=MOST_THREADS)]


def reproduce(
    name: _ExhibitName = None,
    out: _ExhibitFolder = None,
    list_all: _ListAll = False,
    quick: _Quick = False,
    seeds: _Seeds = "0",
    dataset: _OtherDataset = None,
    epochs: _Epochs = None,
    max_minutes: _MaxMinutes = None,
    runs: _Runs = None,
    only: _Only = "",
    threads: _Threads = 0,
    json: JsonTarget = None,
) -> None:
    """Reproduce a table or figure of the paper: data, table or plot, settings and command in one folder.

    It first says how long it will take. If it is interrupted, run the same command again to continue.

    Seeds can be added to a folder: --seeds 0,1,2 after --seeds 0 trains the other two and shows all three.

    Datasets are found as `dpmpn datasets` shows.

    Example: dpmpn reproduce wn18rr --seeds 0,1,2 --out exhibits/wn18rr

    Shortened: dpmpn reproduce horizons --epochs 0.2 --out exhibits/horizons

    Beyond the paper: dpmpn reproduce strong --max-minutes 60 --out exhibits/strong

    With trained models: dpmpn reproduce subgraphs --runs exhibits/nell995 --out exhibits/subgraphs
    """
    from dpmpn.lab.reproduce.making import exhibit_named, make
    from dpmpn.lab.reproduce.workshop import Request, Watch

    output = Output(json)
    if list_all:
        _list_exhibits(output)
        return
    if name is None or out is None:
        raise ConfigError(
            "name an exhibit and a folder: dpmpn reproduce NAME --out DIR; --list shows all exhibits"
        )
    parts = tuple(part.strip() for part in only.split(",") if part.strip())
    request = Request(_numbers(seeds), quick, dataset, epochs, max_minutes, threads, runs, parts)
    exhibit = exhibit_named(name)
    output.say(f"{exhibit.place_of(request)}: {exhibit.title}")
    with stoppable() as stop, output.meter("trained") as training, output.meter("asked") as asking:
        watch = Watch(output.say, training.show_training, asking.show, stop)
        try:
            files = make(exhibit, request, out, watch, shlex.join(["dpmpn", *sys.argv[1:]]))
        except Stopped:
            output.say("Interrupted; what was done is kept. Run the same command again to continue.")
            raise typer.Exit(stop.exit_code) from None
    report = {"exhibit": exhibit.name, "folder": str(out), "files": [str(path) for path in files]}
    output.result(report, lambda: output.say("\n".join(f"made {path}" for path in files)))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise refusal("--seeds", text, "numbers with commas between them, such as 0,1,2") from error
    return tuple(checked_number("--seeds", seed, int, at_least=0, at_most=MOST_SEED) for seed in seeds)


def _list_exhibits(output: Output) -> None:
    from dpmpn.lab.reproduce.making import EXHIBITS

    def show() -> None:
        for exhibit in EXHIBITS.values():
            output.say(f"{exhibit.name:<16}{exhibit.place:<20}{exhibit.title}")
            output.wrap(f"    {exhibit.claim}", indent=4)

    keys = ("name", "place", "title", "claim")
    output.result([{key: getattr(exhibit, key) for key in keys} for exhibit in EXHIBITS.values()], show)


_CompareName = Annotated[
    str, typer.Argument(metavar="DATASET", help="a name listed by `dpmpn datasets`, or a folder")
]
_CompareFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="folder of the results")]
_MODELS_HELP = 'embedding models, separated by commas; default: all; "" = none'
_Models = Annotated[str | None, typer.Option("--models", metavar="NAMES", help=_MODELS_HELP)]
_Budget = Annotated[
    float, number(float, "--budget", "training time of each model", above=0, metavar="MINUTES")
]
_SEED_HELP = "seed for vectors, batches and samples"
_Seed = Annotated[int, number(int, "--seed", _SEED_HELP, at_least=0, at_most=2**32 - 1)]
_CompareThreads = Annotated[
    int, number(int, "--threads", "threads to compute with; 0 = all cores", at_least=0, at_most=MOST_THREADS)
]
_ValidQueries = Annotated[
    int, number(int, "--valid-queries", "questions of each validation; 0 = all", at_least=0)
]


def compare(
    dataset: _CompareName,
    out: _CompareFolder,
    models: _Models = None,
    budget: _Budget = 15.0,
    seed: _Seed = 0,
    threads: _CompareThreads = 0,
    valid_queries: _ValidQueries = 2000,
    json: JsonTarget = None,
) -> None:
    """Compare our two models with embedding models, each trained for the same time.

    The same for all: the training facts, the minutes of training, the
    threads, the validation questions and the evaluator. Ranks are filtered,
    over the whole test set in both directions, ties at the mean of their
    ranks. Test facts with an entity that no training fact has are kept.

    The budget is training time on this machine. After 1/128, 1/64, ... 1/2
    and all of it, and after 5, 15 and 60 minutes, the clock stops and the
    model is validated; the best version is tested. Our own models,
    the paper's and the stronger one, always take part, with the settings that
    `dpmpn train` would choose for either --model.

    Embedding models are transe, transr, distmult, conve, complex, hole, rotate
    and complex-n3.

    DIR gets compare.md, compare.csv, compare.json and the curves as
    compare.svg and compare.png. Each finished model is kept in DIR/models: the
    same command continues after the last one, and other --models are added.

    Example: dpmpn compare WN18RR --models rotate,complex-n3 --out comparison
    """
    output = Output(json)
    names = _checked(models)
    data = load_dataset(dataset)

    from dpmpn.lab.compare.comparison import Comparison, Conditions

    comparison = Comparison(Conditions(data, budget, seed, threads, valid_queries), names, out)
    _introduce_models(output, comparison)
    with stoppable() as stop, output.meter("") as meter:
        try:
            report = comparison.run(
                lambda entrant: meter.begin(f"{entrant.label}, seconds"),
                lambda standing: _show_standing(meter, standing),
                lambda entrant, model: _say_result(output, comparison, entrant, model["result"]),
                stop,
            )
        except Stopped:
            kept = counted(len(comparison.finished), "finished model")
            output.say(f"Interrupted; {kept} in {out}: run the same command again to continue.")
            raise typer.Exit(stop.exit_code) from None
    output.result(report, lambda: _show_ranking(output, comparison))


def _checked(models: str | None) -> list[str]:
    """Names that exist, with the libraries to train and draw them."""
    from dpmpn.lab.compare.contestants import check_pykeen, chosen_models
    from dpmpn.lab.compare.embedding import EMBEDDING_MODELS
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
    asked = validations * len(comparison.conditions.validation) + 2 * values["test"]
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


@with_settings()
def bench(
    dataset: DatasetName,
    seconds: Annotated[float, number(float, "--seconds", "how long to measure each rate", above=0)] = 20.0,
    reference: Annotated[
        bool, typer.Option("--reference", help="also measure the plain reference implementation")
    ] = False,
    preset: PresetName = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure the speed of training and asking: queries a second, latency and memory.

    The model and its settings are those that `dpmpn train` would choose; each can be changed by its option.
    """
    output = Output(json)
    data, config, _ = chosen_settings(dataset, preset, settings)

    from dpmpn.lab import bench as benchmark

    output.say(f"measuring {data.name}, about {seconds:g} s each")
    report = benchmark.bench(data, config, seconds, reference)
    output.result(report, lambda: _show_measures(output, report))


def _show_measures(output: Output, report: dict[str, Any]) -> None:
    shown = table("measure", "value", right=("value",))
    for key, value in report.items():
        if not isinstance(value, dict | list):
            shown.add_row(key, f"{value:,.1f}" if isinstance(value, float) else str(value))
    output.show(shown)
