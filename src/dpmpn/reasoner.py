"""The Python face: fit a model on a dataset, ask it questions, measure it, save it and load it again."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dpmpn.config import Config, derived_defaults, load_preset, preset_names, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.registry import find_dataset
from dpmpn.errors import ConfigError, DataError, RunError

# What needs torch is imported where it is used: the command line's help need not wait for it.
if TYPE_CHECKING:
    import polars as pl

    from dpmpn.explain_path import Path
    from dpmpn.model.engine import Engine
    from dpmpn.model.network import Network
    from dpmpn.model.trace import ReasoningTrace
    from dpmpn.run_folder import RunFolder
    from dpmpn.train.trainer import Progress


@dataclass(frozen=True)
class Prediction:
    """One answer to a question."""

    answer: str
    probability: float
    rank: int  # place in the list of answers, counted from 1
    known: bool  # whether the graph states it already


class Predictions(Sequence[Prediction]):
    """Answers to a question, the most probable first."""

    def __init__(self, answers: Sequence[Prediction], reasoner: "Reasoner", head: int, relation: int) -> None:
        self._answers = tuple(answers)
        self._reasoner, self._head, self._relation = reasoner, head, relation

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Prediction]: ...
    def __getitem__(self, index: int | slice) -> Prediction | Sequence[Prediction]:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self._answers)

    def __repr__(self) -> str:
        lines = (f"{p.rank}. {p.answer}  {p.probability:.3f}{'  known' * p.known}" for p in self)
        return "\n".join(lines) or "no answers"

    def to_frame(self) -> "pl.DataFrame":
        """The answers as a polars data frame with the columns answer, probability, rank and known."""
        import polars as pl

        schema = {"answer": pl.String, "probability": pl.Float64, "rank": pl.Int64, "known": pl.Boolean}
        return pl.DataFrame([asdict(answer) for answer in self], schema=schema)

    def why(self, answer: str | None = None, top: int = 3) -> "list[Path]":
        """The chains of facts that carried the attention to an answer, to the first one if none is named."""
        from dpmpn.explain_path import strongest_paths

        graph = self._reasoner.graph
        name = answer if answer is not None else self._answers[0].answer if self._answers else None
        return (
            strongest_paths(self._trace, 0, graph.entities.id(name), graph, top) if name is not None else []
        )

    @cached_property
    def _trace(self) -> "ReasoningTrace":
        engine = self._reasoner.engine
        return engine.trace(engine.asking_batch(np.array([self._head]), np.array([self._relation])))[1]


class Reasoner:
    """A model that answers questions on a knowledge graph.

    >>> reasoner = Reasoner().fit(load_dataset("countries"))
    >>> reasoner.predict("Serbia", "in_subregion")
    """

    def __init__(self, config: Config | str | FilePath | None = None, **settings: Any) -> None:
        """Take a configuration, the name or file of a preset, or none for what suits the data."""
        self._chosen = load_preset(config) if isinstance(config, str | FilePath) else config
        self._settings = settings
        with_overrides(Config(), settings)  # a wrong one is refused here, not after the data was read
        self._run: RunFolder | None = None
        self._dataset: Dataset | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def load(cls, run_dir: str | FilePath, **settings: Any) -> "Reasoner":
        """Load the best model of a run folder; settings such as the horizon for asking may be changed."""
        from dpmpn.run_folder import RunFolder

        run = RunFolder.open(FilePath(run_dir))
        reasoner = cls(run.config, **settings)
        reasoner._run = run
        return reasoner

    def fit(
        self,
        dataset: Dataset,
        out: str | FilePath | None = None,
        progress: "Callable[[Progress], None] | None" = None,
    ) -> "Reasoner":
        """Train on a dataset; the run folder is `out`, or a temporary one that `save` can copy."""
        from dpmpn.run_folder import RunFolder
        from dpmpn.train.trainer import train

        config = self._chosen if self._chosen is not None else suitable_config(dataset)[0]
        config = with_overrides(config, self._settings)
        if out is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="dpmpn-")
            out = FilePath(self._temporary.name) / "run"
        run = RunFolder.create(FilePath(out), dataset, config)
        train(run, dataset, config, progress=progress)
        self._forget()
        self._run, self._dataset = run, dataset
        return self

    def predict(
        self, head: str, relation: str, top: int = 10, inverse: bool = False, new: bool = False
    ) -> Predictions:
        """Answer <head, relation, ?>; or, with `inverse`, <?, relation, head>.

        Answers the graph states already are marked as known, or left out with `new`.
        """
        source, asked = self._question(head, relation, inverse)
        answer = self.engine.answer(self.engine.asking_batch(np.array([source]), np.array([asked])))
        probabilities = answer.attention.cpu().numpy()
        order = np.argsort(-probabilities, kind="stable")
        order = order[probabilities[order] > 0]
        known = self._known(source, asked, answer.nodes[order])
        if new:
            order, known = order[~known], known[~known]
        names = self.graph.entities
        answers = [
            Prediction(names.name(int(answer.nodes[at])), float(probabilities[at]), rank, bool(is_known))
            for rank, (at, is_known) in enumerate(zip(order[:top], known[:top], strict=True), start=1)
        ]
        return Predictions(answers, self, source, asked)

    def evaluate(
        self,
        split: str = "test",
        per_relation: bool = False,
        limit: int | None = None,
        progress: Callable[..., None] | None = None,
    ) -> dict[str, Any]:
        """Filtered ranking metrics on a split, as fractions; `limit` takes only so many of its queries."""
        from dpmpn.evaluate.evaluator import evaluate

        try:
            report = evaluate(
                self.engine, self.dataset, split, per_relation=per_relation, limit=limit, progress=progress
            )
        finally:
            self.engine.close()
        return {**report, "coverage": report["both"]["coverage"]}

    def save(self, folder: str | FilePath) -> None:
        """Copy the run folder; `Reasoner.load` reads it on any machine."""
        folder = FilePath(folder)
        if folder.exists():
            raise RunError(f"{folder}: exists already; choose another folder or remove this one first")
        shutil.copytree(self._fitted().path, folder)

    @property
    def config(self) -> Config:
        """The whole configuration the model was trained with, with the settings given for asking."""
        return with_overrides(self._fitted().config, self._settings)

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset the model was trained on."""
        return self._dataset if self._dataset is not None else self._fitted().dataset()

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph the model reasons on."""
        return self.dataset.graph

    @cached_property
    def engine(self) -> "Engine":
        """The trained network on its graph."""
        from dpmpn.model.engine import Engine

        # The device a run was trained on may not be here: asking is on the CPU unless told otherwise.
        config = self.config.replace(device=self._settings.get("device", "cpu"))
        return Engine(_placed(self._fitted().network("best"), config.run.device), self.graph, config)

    def _fitted(self) -> "RunFolder":
        if self._run is None:
            raise RunError("this reasoner has not been trained; call fit, or Reasoner.load on a run folder")
        return self._run

    def _forget(self) -> None:
        """Drop what was read from an earlier run."""
        for name in ("dataset", "engine"):
            self.__dict__.pop(name, None)

    def _question(self, head: str, relation: str, inverse: bool) -> tuple[int, int]:
        """Ids of the entity to start from and of the relation to ask."""
        source = self.graph.entities.id(head)
        asked = self.graph.relation_names.id(relation, "relation")
        if inverse:
            asked = int(self.graph.inverse[asked])
            if asked < 0:
                raise DataError(
                    f"relation '{relation}' has no inverse in this graph, so its head cannot be asked"
                )
        return source, asked

    def _known(self, head: int, relation: int, answers: np.ndarray) -> np.ndarray:
        """Whether the graph or the training triples state each answer."""
        train = self.dataset.train
        trained = train[(train[:, 0] == head) & (train[:, 1] == relation), 2]
        return (self.graph.find_edges(np.array(head), np.array(relation), answers) >= 0) | np.isin(
            answers, trained
        )


def _placed(network: "Network", device: str) -> "Network":
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:  # how PyTorch says that a device is not there
        raise ConfigError(f"device '{device}' cannot be used here; use --device cpu") from error


def suitable_config(dataset: Dataset) -> tuple[Config, list[str]]:
    """The preset of a known dataset, else settings derived from the graph; and sentences that say why."""
    preset = _preset_of(dataset)
    if preset is not None:
        return load_preset(preset), [f"preset {preset}"]
    graph = dataset.graph
    max_degree = int(np.diff(graph.offsets).max(initial=0))
    return derived_defaults(
        graph.n_entities, graph.n_edges, len(dataset.train), max_degree, joined_pairs(dataset)
    )


def _preset_of(dataset: Dataset) -> str | None:
    """Preset of a dataset of the registry; a folder that only shares its name does not count."""
    entry = find_dataset(dataset.name)
    folder = entry.folder() if entry is not None else None
    if entry is None or folder is None or dataset.folder is None or not dataset.folder.samefile(folder):
        return None
    return entry.preset or (entry.name if entry.name in preset_names() else None)


def joined_pairs(dataset: Dataset) -> float | None:
    """Share of validation triples whose head and tail a training triple joins too, in either direction."""
    if not len(dataset.valid):
        return None
    n_entities = dataset.graph.n_entities
    train, valid = (split[:, [0, 2]].astype(np.int64) for split in (dataset.train, dataset.valid))
    forward, backward = train @ [n_entities, 1], train @ [1, n_entities]
    asked = valid @ [n_entities, 1]
    return float((np.isin(asked, forward) | np.isin(asked, backward)).mean())
