"""A model and the graph it is asked on: both are read when first used, and the model can be put on other graphs."""

from copy import copy
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpmpn.arguments import typed
from dpmpn.ask.core import Asker, KnownFacts
from dpmpn.ask.expectations import Expectations
from dpmpn.ask.measure import digest_of, keep, kept, measured
from dpmpn.calibrate.calibration import Calibration
from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import ConfigError, RunError
from dpmpn.settings import checked_number

# What needs torch is imported where it is used: the command line's help need not wait for it.
if TYPE_CHECKING:
    import polars as pl

    from dpmpn.ask.measure import Tick
    from dpmpn.data.changed_graph import Changes, Facts
    from dpmpn.engine.engine import Engine
    from dpmpn.engine.model import Model
    from dpmpn.train.pretrained import Pretrained
    from dpmpn.train.run_folder import RunFolder


class AskedModel:
    """The model of a run, or a pre-trained one, on its own graph or on another."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._run: RunFolder | None = None
        self._pretrained: Pretrained | None = None  # in the place of a run
        self._dataset: Dataset | None = None
        # Of the training, where it reasons on another graph since.
        self._trained: tuple[Model, KnowledgeGraph] | None = None
        self.changes: Changes | None = None  # what the last `with_facts` did
        self._is_as_trained = True  # not one that `with_facts`, `on` or `with_labels` made
        self._is_elsewhere = False  # on a graph that `on` gave it

    @property
    def is_pretrained(self) -> bool:
        """Whether its model belongs to no graph, and has seen no fact of the one it is asked on."""
        return self._pretrained is not None

    def in_memory(self) -> Self:
        """The same reasoner without files of its run folder: once it was asked, these may be changed or go.

        A mapped file that is cut off would end the process that reads there (SIGBUS), and one that is written anew
        would change the graph while it is asked.
        """
        _ = self.calibration  # another model may be in the folder later
        dataset = self.dataset.in_memory()
        if not self.is_pretrained:
            self._fitted().dataset()  # its checksums are right once more, so nothing changed while it was read
        return self._asked_on(dataset, self.changes, self._trained)

    def with_facts(self, add: "Facts" = (), remove: "Facts" = ()) -> Self:
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

    def on(self, facts: "Dataset | Facts") -> Self:
        """The same model asked on another graph, without training; this reasoner stays as it is.

        Facts are a dataset, its name or folder, a file or a data frame, all of whose facts are then the graph. The
        pre-trained model takes any. Others take the relations they learnt, matched by name, and any entities; they
        must have no parameters of single entities, as those trained with `model="strong"`.
        """
        from dpmpn.data.importer import load_facts
        from dpmpn.data.inductive import with_relations_of

        dataset = load_facts(facts)
        if self.is_pretrained:
            return self._asked_on(dataset, None, None, elsewhere=True)
        model, graph = trained = self._trained or (self.engine.model, self.graph)
        if n_rows := len(model.entities):
            raise ConfigError(
                f"this model learnt a vector for each of {n_rows:,} entities and has none for those of "
                f"'{dataset.name}'; train one that learns relations alone, with --model strong"
            )
        return self._asked_on(with_relations_of(dataset, graph), None, trained, elsewhere=True)

    def with_labels(self, labels: "str | FilePath | pl.DataFrame") -> Self:
        """The same model with what its entities and relations are called, from a file as `dpmpn import` takes it."""
        from dpmpn.data.labels import read_labels

        frame = read_labels(labels) if isinstance(labels, str | FilePath) else labels
        dataset = replace(self.dataset, graph=self.graph.labelled(frame))
        return self._asked_on(dataset, self.changes, self._trained)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        other = copy(self)  # graphs, datasets and runs never change
        other.__dict__.pop("engine", None)
        other.__dict__.pop("engine_beside", None)
        other.__dict__.pop("asker", None)
        return other

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
    def engine_beside(self) -> "Engine":
        """The same for questions that are asked again, whatever else is asked at the same time."""
        return self.engine.beside()

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

    @cached_property
    def calibration(self) -> Calibration | None:
        """What its scores are worth as probabilities; None where that was not measured, see `calibrate`.

        With some facts more or fewer, what was measured before holds; on another graph it does not.
        """
        if self._run is None or self._is_elsewhere:
            return None
        found = kept(self._run.path, self._calibration_key())
        return found if found is not None and found.fits(self.graph.n_relations) else None

    @typed
    def calibrate(
        self,
        sample: int | None = None,
        again: bool = False,
        relation: int | None = None,
        progress: "Tick | None" = None,
    ) -> Calibration | None:
        """Measure what its scores are worth, if that is not known yet; None where too few facts are held out.

        Up to `sample` questions of validation facts are asked, and more of others. The run folder keeps what was
        measured. For one `relation` alone, by its id, it is quicker and is not kept.
        """
        if sample is not None:
            sample = checked_number("sample", sample, int, at_least=1)
        if relation is not None:
            most = self.graph.n_relations - 1
            relation = checked_number("relation", relation, int, at_least=0, at_most=most)
        if again or self.calibration is None:
            found = measured(self, sample, relation, progress)
            if found is not None and relation is None and self._run is not None and self._is_as_trained:
                keep(found, self._run.path, self._calibration_key())
            self.__dict__["calibration"] = found
        return self.calibration

    def _calibration_key(self) -> str:
        """A digest of what scores depend on: the run, and how it is asked."""
        config = self.config
        asking = {"horizon": asdict(config.asking_horizon()), "seed": config.run.seed}
        return digest_of({"run": self._fitted().identity(), **asking})

    def _asked_on(
        self,
        dataset: Dataset,
        changes: "Changes | None",
        trained: "tuple[Model, KnowledgeGraph] | None",
        elsewhere: bool = False,
    ) -> Self:
        """The same model on another dataset; this reasoner stays as it is."""
        before = self.__dict__.get("calibration")
        other = copy(self)
        other._forget()
        if elsewhere:
            other._is_elsewhere = True
        elif before is not None and before.fits(dataset.graph.n_relations):
            other.__dict__["calibration"] = before
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
        for name in (
            "dataset",
            "engine",
            "engine_beside",
            "known",
            "unseen",
            "asker",
            "expectations",
            "calibration",
        ):
            self.__dict__.pop(name, None)
