"""The Python face: fit a model on a dataset, ask it questions, measure it, save it and load it again."""

import tempfile
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.arguments import typed
from dpmpn.ask.core import Asker, KnownFacts
from dpmpn.ask.expectations import Expectations
from dpmpn.ask.results import Predictions, QueryResult
from dpmpn.config import Config, check_overrides, load_preset, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import ConfigError, DataError, RunError, UnknownName
from dpmpn.files import copy_folder
from dpmpn.files.held import temporary_folder
from dpmpn.suitable_config import suitable_config
from dpmpn.wording import listed

# What needs torch is imported where it is used: the command line's help need not wait for it.
if TYPE_CHECKING:
    import polars as pl

    from dpmpn.data.changed_graph import Changes, Facts
    from dpmpn.engine.engine import Engine
    from dpmpn.engine.model import Model
    from dpmpn.render.formats import Explanation, WhyNot
    from dpmpn.train.pretrained import Pretrained
    from dpmpn.train.run_folder import RunFolder
    from dpmpn.train.trainer import Progress

_SHOWN_RELATIONS = 5  # where an unknown one is like none


class Reasoner:
    """A model that answers questions on a knowledge graph.

    >>> reasoner = Reasoner().fit(load_dataset("countries"))
    >>> reasoner.predict("Serbia", "in_subregion")
    """

    @typed
    def __init__(self, config: Config | str | FilePath | None = None, **settings: Any) -> None:
        """Take a configuration, the name or file of a preset, or none for what suits the data."""
        self._chosen = load_preset(config) if isinstance(config, str | FilePath) else config
        self._settings = settings
        self._model = check_overrides(settings)  # a wrong one is refused here, not after the data was read
        self._run: RunFolder | None = None
        self._start: Pretrained | None = None  # what `fit` begins from
        self._pretrained: Pretrained | None = None  # in the place of a run
        self._weights: FilePath | None = None  # where that is, if not in the package
        self._dataset: Dataset | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        # Of the training, where it reasons on another graph since.
        self._trained: tuple[Model, KnowledgeGraph] | None = None
        self.changes: Changes | None = None  # what the last `with_facts` did
        self._is_as_trained = True  # not one that `with_facts`, `on` or `with_labels` made

    @classmethod
    @typed
    def load(cls, run_dir: str | FilePath, **settings: Any) -> "Reasoner":
        """Load the best model of a run folder; settings such as the horizon for asking may be changed."""
        from dpmpn.train.run_folder import RunFolder

        run = RunFolder.open(FilePath(run_dir))
        reasoner = cls(run.config, **settings)
        reasoner._run = run
        return reasoner

    @classmethod
    @typed
    def pretrained(cls, weights: str | FilePath | None = None, **settings: Any) -> "Reasoner":
        """The model that comes with the package, or one that `dpmpn pretrain` made: `on` gives it a graph, any one.

        >>> Reasoner.pretrained().on("facts.csv").predict("Serbia", "in_subregion")
        """
        from dpmpn.train.pretrained import load_pretrained, shipped

        folder = None if weights is None else FilePath(weights)
        found = shipped() if folder is None else load_pretrained(folder)
        reasoner = cls(found.config, **settings)
        reasoner._pretrained = reasoner._start = found
        reasoner._weights = folder
        return reasoner

    @property
    def is_pretrained(self) -> bool:
        """Whether its model belongs to no graph, and has seen no fact of the one it is asked on."""
        return self._pretrained is not None

    def in_memory(self) -> "Reasoner":
        """The same reasoner without files of its run folder: once it was asked, these may be changed or go.

        A mapped file that is cut off would end the process that reads there (SIGBUS), and one that is written anew
        would change the graph while it is asked.
        """
        dataset = self.dataset.in_memory()
        if not self.is_pretrained:
            self._fitted().dataset()  # its checksums are right once more, so nothing changed while it was read
        return self._asked_on(dataset, self.changes, self._trained)

    @typed
    def fit(
        self,
        dataset: Dataset,
        out: str | FilePath | None = None,
        progress: "Callable[[Progress], None] | None" = None,
    ) -> "Reasoner":
        """Train on a dataset; the run folder is `out`, or a temporary one that `save` can copy.

        `Reasoner.pretrained().fit(dataset)` begins from the pre-trained model, and tunes it to the dataset.
        """
        from dpmpn.train.run_folder import RunFolder
        from dpmpn.train.trainer import train
        from dpmpn.train.tuning import tuned_config

        if self._start is not None:
            config = tuned_config(dataset, self._start, self._settings)[0]
        else:
            config = self._chosen or suitable_config(dataset, self._model)[0]
            config = with_overrides(config, self._settings)
        temporary = None
        if out is None:
            temporary = temporary_folder()
            out = FilePath(temporary.name) / "run"
        run = RunFolder.create(FilePath(out), dataset, config, self._start)
        train(run, dataset, config, progress=progress)
        self._forget()
        self._pretrained = None
        self._run, self._dataset, self._trained, self.changes = run, dataset, None, None
        self._temporary, self._is_as_trained = temporary, True
        return self

    def with_facts(self, add: "Facts" = (), remove: "Facts" = ()) -> "Reasoner":
        """The same model on a graph with more or fewer facts, without training; this reasoner stays as it is.

        Facts are tuples of names, a file or a data frame. Entities may be new, relations only to the pre-trained
        model, which learnt none. Answers say how much of their attention came through entities the model was not
        trained on.
        """
        from dpmpn.data.changed_graph import changed_dataset

        if self.is_pretrained:
            return self._asked_on(
                *changed_dataset(self.dataset, add, remove, relations_may_be_new=True), None
            )
        trained = self._trained or (self.engine.model, self.graph)
        return self._asked_on(*changed_dataset(self.dataset, add, remove), trained)

    def on(self, facts: "Dataset | Facts") -> "Reasoner":
        """The same model asked on another graph, without training; this reasoner stays as it is.

        Facts are a dataset, its name or folder, a file or a data frame, all of whose facts are then the graph. The
        pre-trained model takes any. Others take the relations they learnt, matched by name, and any entities; they
        must have no parameters of single entities, as those trained with `model="strong"`.
        """
        from dpmpn.data.importer import load_facts
        from dpmpn.data.inductive import with_relations_of

        dataset = load_facts(facts)
        if self.is_pretrained:
            return self._asked_on(dataset, None, None)
        model, graph = trained = self._trained or (self.engine.model, self.graph)
        if n_rows := len(model.entities):
            raise ConfigError(
                f"this model learnt a vector for each of {n_rows:,} entities and has none for those of "
                f"'{dataset.name}'; train one that learns relations alone, with --model strong"
            )
        return self._asked_on(with_relations_of(dataset, graph), None, trained)

    def with_labels(self, labels: "str | FilePath | pl.DataFrame") -> "Reasoner":
        """The same model with what its entities and relations are called, from a file as `dpmpn import` takes it."""
        from dpmpn.data.labels import read_labels

        frame = read_labels(labels) if isinstance(labels, str | FilePath) else labels
        dataset = replace(self.dataset, graph=self.graph.labelled(frame))
        return self._asked_on(dataset, self.changes, self._trained)

    @typed
    def predict(
        self, head: str, relation: str, top: int = 10, inverse: bool = False, new: bool = False
    ) -> Predictions:
        """Answer <head, relation, ?>; or, with `inverse`, <?, relation, head>.

        Answers the graph states already are marked as known, and those of validation or test as held out; `new`
        leaves out both.
        """
        (result,) = self.ask([self.question_ids(head, relation, inverse)])
        return result.answers(top, new)

    def question_ids(self, head: str, relation: str, inverse: bool = False) -> tuple[int, int, bool]:
        """A question as ids: the entity to start from, the relation to ask, and whether that is asked backwards."""
        source = self.graph.entities.id(head)
        relation_id = self._relation_id(relation)
        if inverse:
            relation_id = int(self.graph.inverse[relation_id])
            if relation_id < 0:
                raise DataError(
                    f"relation '{relation}' has no inverse in this graph, so its head cannot be asked"
                )
        return source, relation_id, inverse

    def _relation_id(self, relation: str) -> int:
        """The id of a relation; where nothing is like an unknown one, the error says which there are."""
        names, count = self.graph.relation_names, self.graph.n_forward
        try:
            return names.id(relation, "relation", count)
        except UnknownName as error:
            if error.near:
                raise
            some = [f"'{name}'" for name in names.packed[:_SHOWN_RELATIONS][:count]]
            more = [f"{count - len(some):,} more"] if count > len(some) else []
            raise UnknownName("relation", relation, [], f"there are {listed(some + more)}") from error

    def ask(self, questions: Sequence[tuple[int, int, bool]], traced: bool = True) -> list[QueryResult]:
        """Ask questions, given as ids, together: what each reached does not depend on the others, to six digits.

        One question costs no more with its trace than without; of many, answers that need no reasons come sooner.
        """
        heads, relations = (np.array([question[i] for question in questions], np.int64) for i in range(2))
        answers = self.asker.ask(heads, relations, traced)
        common = self.graph, self.config.asking_horizon(), self.known
        return [
            QueryResult(*common, answers.of(query), query, inverse, self._notes(relation))
            for query, (_, relation, inverse) in enumerate(questions)
        ]

    def _notes(self, relation: int) -> tuple[str, ...]:
        """What can be expected of answers to a relation, where that is less than usual."""
        return () if self.expectations is None else self.expectations.of_question(relation)

    @typed
    def explain(
        self, head: str, relation: str, answer: str | None = None, inverse: bool = False
    ) -> "Explanation":
        """Why <head, relation, ?>, or with `inverse` <?, relation, head>, has an answer, the first if none is named."""
        return self.predict(head, relation, inverse=inverse).explain(answer)

    @typed
    def why_not(self, head: str, relation: str, candidate: str, inverse: bool = False) -> "WhyNot":
        """Where the attention of an entity that is not the first answer was lost."""
        return self.predict(head, relation, inverse=inverse).why_not(candidate)

    @typed
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

    @typed
    def save(self, folder: str | FilePath) -> None:
        """Copy the run folder; `Reasoner.load` reads it on any machine."""
        folder = FilePath(folder)
        if folder.exists():
            raise RunError(f"{folder}: exists already; choose another folder or remove this one first")
        if self.is_pretrained:
            raise RunError(
                "a pre-trained model need not be saved: Reasoner.pretrained() is there wherever the package is; keep "
                "the facts it is asked on"
            )
        if self._trained is not None:
            raise RunError(
                "a reasoner made by on or with_facts cannot be saved; save the one it was made from and keep the facts"
            )
        copy_folder(self._fitted().path, folder)

    def __copy__(self) -> "Reasoner":
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, _: dict[int, Any]) -> "Reasoner":
        other = copy(self)  # graphs, datasets and runs never change
        other.__dict__.pop("engine", None)
        other.__dict__.pop("asker", None)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process is where the run is, not what was read of it."""
        if self._run is None and not self.is_pretrained:
            return _unfitted, (type(self), self._chosen, self._settings)
        if not self._is_as_trained:
            raise RunError(
                "a reasoner made by with_facts, on or with_labels cannot be sent to another process; send the one it "
                "was made from, and make it again there"
            )
        if self._temporary is not None:
            raise RunError(
                "this reasoner was trained in a temporary folder, which goes with it, and cannot be sent to another "
                "process; save it and send the one that Reasoner.load gives, or train with fit(..., out=FOLDER)"
            )
        if self.is_pretrained:
            return _pretrained, (type(self), self._weights and self._weights.absolute(), self._settings)
        return _loaded, (type(self), self._fitted().path.absolute(), self._settings)

    @property
    def config(self) -> Config:
        """The whole configuration the model was trained with, with the settings given for asking."""
        return with_overrides((self._pretrained or self._fitted()).config, self._settings)

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset the model was trained on, with the facts changed since; or the one it is asked on."""
        return self._dataset if self._dataset is not None else self._fitted().dataset()

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph the model reasons on."""
        return self.dataset.graph

    @cached_property
    def engine(self) -> "Engine":
        """The trained model on its graph."""
        from dpmpn.engine.engine import Engine
        from dpmpn.models import on_device

        # The device a run was trained on may not be here: asking is on the CPU unless told otherwise.
        config = self.config.replace(device=self._settings.get("device", "cpu"))
        if self._trained is not None:
            model, trained = self._trained
            return Engine(model.extended(trained, self.graph), self.graph, config)
        model = self._pretrained.model if self._pretrained else self._fitted().model("best")
        return Engine(on_device(model, config.run.device), self.graph, config)

    @cached_property
    def unseen(self) -> np.ndarray | None:
        """Which entities the model was not trained on; None where none of them has an edge in the graph.

        None, too, for a model that learnt nothing of single entities.
        """
        from dpmpn.engine.trace import unseen_entities

        if self._trained is None or not len(self._trained[0].entities):
            return None
        unseen = unseen_entities(self._trained[1], self.graph)
        return unseen if (unseen & ~unseen_entities(self.graph, self.graph)).any() else None

    @cached_property
    def known(self) -> KnownFacts:
        """What the graph and each split state."""
        return KnownFacts(self.dataset)

    @cached_property
    def expectations(self) -> Expectations | None:
        """What its graph lets the pre-trained model expect; None for a model that was trained on a graph."""
        return Expectations(self.graph) if self.is_pretrained else None

    @cached_property
    def asker(self) -> Asker:
        """Asks the model questions that are given as ids."""
        return Asker(self.engine, self.unseen)

    def _asked_on(
        self, dataset: Dataset, changes: "Changes | None", trained: "tuple[Model, KnowledgeGraph] | None"
    ) -> "Reasoner":
        """The same model on another dataset; this reasoner stays as it is."""
        other = copy(self)
        other._forget()
        other._dataset, other.changes, other._trained = dataset, changes, trained
        other._is_as_trained = False
        return other

    def _fitted(self) -> "RunFolder":
        if self.is_pretrained:
            raise RunError(
                "a pre-trained model has no graph of its own; give it the facts to ask about, as in "
                'Reasoner.pretrained().on("facts.csv")'
            )
        if self._run is None:
            raise RunError("this reasoner has not been trained; call fit, or Reasoner.load on a run folder")
        return self._run

    def _forget(self) -> None:
        """Drop what was read from an earlier run."""
        for name in ("dataset", "engine", "known", "unseen", "asker", "expectations"):
            self.__dict__.pop(name, None)


def _unfitted(kind: type[Reasoner], config: Config | None, settings: dict[str, Any]) -> Reasoner:
    return kind(config, **settings)


def _pretrained(kind: type[Reasoner], weights: FilePath | None, settings: dict[str, Any]) -> Reasoner:
    return kind.pretrained(weights, **settings)


def _loaded(kind: type[Reasoner], run: FilePath, settings: dict[str, Any]) -> Reasoner:
    return kind.load(run, **settings)
