"""Where the pieces of an exhibit are made: trains runs or goes on with them, and measures them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.errors import RunError
from dpmpn.reproduce.exhibit import Request

if TYPE_CHECKING:
    from dpmpn.config import Horizon
    from dpmpn.run_folder import RunFolder
    from dpmpn.train.trainer import Progress

RUNS = "runs"


class Interrupted(Exception):
    """The user ended the work; what was done is kept."""


@dataclass(frozen=True)
class Watch:
    """Who is told how the work goes on, and may end it."""

    say: Callable[[str], None] = lambda _: None
    training: "Callable[[Progress], None]" = lambda _: None
    asking: Callable[[int, int], None] = lambda *_: None
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Workshop:
    """The folder of an exhibit, with the runs in it, and whom to tell."""

    folder: Path
    request: Request
    watch: Watch = Watch()

    def trained(
        self, label: str, dataset: Dataset, config: Config, *, max_queries: int | None = None
    ) -> "RunFolder":
        """The run of a label, trained as far as the request, the configuration and `max_queries` say.

        A run that was begun before goes on where it stopped.
        """
        from dpmpn.run_folder import RunFolder
        from dpmpn.train.trainer import train

        config = with_overrides(config, {"threads": self.request.threads})
        path = (self.request.runs or self.folder) / RUNS / label
        begun = RunFolder(path).exists()
        run = RunFolder.open(path) if begun else RunFolder.create(path, dataset, config)
        self.watch.say(f"training {label}")
        result = train(
            run,
            dataset,
            config,
            resume=begun,
            max_queries=max_queries,
            max_minutes=self.request.max_minutes,
            progress=self.watch.training,
            stop=self.watch.stop,
        )
        if result.stopped_because == "interrupted":
            raise Interrupted
        if max_queries is not None and result.position > max_queries:
            raise RunError(
                f"{run.path} was trained on {result.position:,} queries, more than the {max_queries:,} asked for; "
                "remove that folder to train it anew"
            )
        return run

    def evaluated(
        self,
        run: "RunFolder",
        dataset: Dataset,
        *,
        which: str = "best",
        split: str = "test",
        horizon: "Horizon | None" = None,
    ) -> dict[str, Any]:
        """Scores of a run's best or last weights on a split, with what training took."""
        from dpmpn.evaluate.evaluator import evaluate
        from dpmpn.model.engine import Engine

        config = with_overrides(run.config, {"threads": self.request.threads})
        engine = Engine(run.network(which), dataset.graph, config)
        try:
            scores = evaluate(engine, dataset, split, horizon=horizon, progress=self.tell)
        finally:
            engine.close()
        return {"scores": scores, "training": training_record(run)}

    def tell(self, done: int, total: int) -> None:
        """Tell how many questions were asked; raise `Interrupted` where the user ended the work."""
        if self.watch.stop():
            raise Interrupted
        self.watch.asking(done, total)


def training_record(run: "RunFolder") -> dict[str, Any]:
    """What a run was trained on and what that took, from its metrics; validations are in the seconds only."""
    from dpmpn.train.metrics import read_lines

    lines = read_lines(run.metrics)
    stretches = [line for line in lines if line["kind"] == "train"]
    positions = [0, *(line["position"] for line in stretches)]
    training_seconds = sum(
        (after - before) / line["queries_per_s"]
        for before, after, line in zip(positions, positions[1:], stretches, strict=False)
    )
    return {
        "queries": positions[-1],
        "training_seconds": training_seconds,
        "seconds": lines[-1]["seconds"] if lines else 0.0,
        "cpu_seconds": lines[-1]["cpu_seconds"] if lines else 0.0,
        "validations": [
            {"queries": line["position"], "mrr": line["mrr"]}
            for line in lines
            if line["kind"] == "validation"
        ],
    }
