"""The Python face: fit a model on a dataset, ask it questions, measure it, save it and load it again."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import polars as pl

from dpmpn.arguments import typed
from dpmpn.ask.core import TRACED, Answers, Asker
from dpmpn.ask.results import Predictions, QueryResult
from dpmpn.config import Config, check_overrides, load_preset, with_overrides
from dpmpn.errors import DataError, RunError, UnknownName, WrongType
from dpmpn.files import copy_folder
from dpmpn.progress import meter_for_python
from dpmpn.reasoner.asked_frames import answered_frame, is_frame
from dpmpn.reasoner.asked_model import AskedModel
from dpmpn.reasoner.batch import PredictionBatch, questions_of
from dpmpn.reasoner.fitting import check_log, dataset_of, trained_run
from dpmpn.reasoner.shown import as_table, facts_about
from dpmpn.settings import checked_number
from dpmpn.suitable_config import suitable_config
from dpmpn.wording import listed

# What needs torch is imported where it is used: the command line's help need not wait for it.
if TYPE_CHECKING:
    from dpmpn.explain.what_if import WhatIf
    from dpmpn.render.formats import Explanation, WhyNot
    from dpmpn.render.learnt import LearntPatterns
    from dpmpn.train.pretrained import Pretrained
    from dpmpn.train.trainer import Progress

_SHOWN_RELATIONS = 5  # where an unknown one is like none


class Reasoner(AskedModel):
    """A model that answers questions on a knowledge graph.

    >>> reasoner = Reasoner().fit(load_dataset("countries"))
    >>> reasoner.predict("Serbia", "in_subregion")
    """

    @typed
    def __init__(self, config: Config | str | FilePath | None = None, **settings: Any) -> None:
        """Take a configuration, the name or file of a preset, or none for what suits the data."""
        self._given = config  # as it came, which is what `get_params` gives back
        self._chosen = load_preset(config) if isinstance(config, str | FilePath) else config
        super().__init__(settings)
        self._model = check_overrides(settings)  # a wrong one is refused here, not after the data was read
        self._start: Pretrained | None = None  # what `fit` begins from
        self._weights: FilePath | None = None  # where the pre-trained model is, if not in the package
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    @typed
    def load(cls, run_dir: str | FilePath, **settings: Any) -> "Reasoner":
        """Load the best model of a run folder; settings such as the horizon for asking may be changed.

        Two come with the package: `demo`, a run on the bundled graph, and `any-graph`, the pre-trained model for `on`
        to put on a graph; a folder of `dpmpn pretrain` is taken like it. A run that was not trained yet answers with
        the pre-trained model it begins from, if it does.
        """
        from dpmpn.train.pretrained import ANY_GRAPH, is_pretrained
        from dpmpn.train.run_folder import START, RunFolder, run_path

        if run_dir == ANY_GRAPH or is_pretrained(FilePath(run_dir)):
            return cls.pretrained(None if run_dir == ANY_GRAPH else run_dir, **settings)
        run = RunFolder.open(run_path(run_dir))
        if not run.has_weights() and is_pretrained(run.path / START):
            return cls.pretrained(run.path / START, **settings).on(run.dataset())
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

    @typed
    def fit(
        self,
        facts: Any,
        out: str | FilePath | None = None,
        progress: "Callable[[Progress], None] | bool | None" = True,
        log_to: str | None = None,
    ) -> "Reasoner":
        """Train on facts; the run folder is `out`, or a temporary one that `save` can copy.

        Facts are a dataset, its name or folder, a file, a data frame, a graph or rows of head, relation and tail. Where
        none are held out for validation and test, some are.

        A bar shows the progress in a terminal or a notebook; `progress=False` leaves it out, and a function is told
        instead. `log_to` is "tensorboard", which finds the metrics in `out`, or "mlflow".

        `Reasoner.pretrained().fit(dataset)` begins from the pre-trained model, and tunes it to the dataset.
        """
        from dpmpn.train.tuning import tuned_config

        check_log(log_to, out)
        dataset = dataset_of(facts)
        if self._start is not None:
            config = tuned_config(dataset, self._start, self._settings)[0]
        else:
            config = self._chosen or suitable_config(dataset, self._model)[0]
            config = with_overrides(config, self._settings)
        run, temporary = trained_run(dataset, config, self._start, out, progress, log_to)
        self._forget()
        self._pretrained = None
        self._run, self._dataset, self._trained, self.changes = run, dataset, None, None
        self._temporary, self._is_as_trained, self._is_elsewhere = temporary, True, False
        self.calibrate()
        return self

    @overload
    def predict(  # type: ignore[overload-overlap]  # a text is an iterable of texts
        self,
        head: str,
        relation: str,
        top: int = 10,
        inverse: bool = False,
        new: bool = False,
        any_role: bool = False,
    ) -> Predictions: ...
    @overload
    def predict(
        self,
        head: Iterable[str],
        relation: str | Iterable[str],
        top: int = 10,
        inverse: bool = False,
        new: bool = False,
        any_role: bool = False,
    ) -> PredictionBatch: ...
    @overload
    def predict(
        self,
        head: Any,
        relation: None = None,
        top: int = 10,
        inverse: bool = False,
        new: bool = False,
        any_role: bool = False,
    ) -> Any: ...
    @typed
    def predict(
        self,
        head: str | Iterable[Any],  # as a data frame is, too
        relation: str | Iterable[str] | None = None,
        top: int = 10,
        inverse: bool = False,
        new: bool = False,
        any_role: bool = False,
    ) -> Any:
        """Answer <head, relation, ?>; or, with `inverse`, <?, relation, head>.

        Answers the graph states already are marked as known, and those of validation or test as held out; `new`
        leaves out both. Entities that do not fit what the relation asks for are left out, too, unless `any_role`.
        Answers are ranked by score; how probable each is was measured after training (`calibrate`). Of several heads,
        with one relation or one for each, each is a question.

        A data frame of pandas or polars with the columns head and relation, and perhaps inverse, becomes a frame with a
        row for each answer; its other columns stay.
        """
        if relation is None:
            if not is_frame(head):
                raise WrongType(
                    "Reasoner.predict: 'relation' is missing; only a data frame is asked without it"
                )
            top = checked_number("top", top, int, at_least=1)
            return answered_frame(self, head, top, inverse, new, any_role)
        if is_frame(head):
            raise WrongType("Reasoner.predict: a data frame has a column of relations; leave out 'relation'")
        if isinstance(head, str) and isinstance(relation, str):
            (result,) = self.ask([self.question_ids(head, relation, inverse)])
            return result.answers(top, new, any_role)
        heads, relations = questions_of(head, relation)
        ids = [self.question_ids(*names, inverse) for names in zip(heads, relations, strict=True)]
        found: list[Predictions] = []
        for start in range(0, len(ids), TRACED):
            found += [result.answers(top, new, any_role) for result in self.ask(ids[start : start + TRACED])]
        return PredictionBatch(heads, relations, found)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The configuration and the settings as they were given: what scikit-learn copies and searches over."""
        return {"config": self._given, **self._settings}

    @typed
    def set_params(self, **params: Any) -> "Reasoner":
        """Change the configuration or some settings; what was trained before is forgotten, so fit it again."""
        start, weights = self._start, self._weights
        self.__init__(**{**self.get_params(), **params})  # type: ignore[misc]
        self._forget()
        self._start, self._weights = start, weights
        return self

    def question_ids(self, head: str, relation: str, inverse: bool = False) -> tuple[int, int, bool]:
        """A question as ids: the entity to start from, the relation to ask, and whether that is asked backwards."""
        self._refuse_swapped(head, relation)
        source = self.graph.entities.id(head)
        relation_id = self._relation_id(relation)
        if inverse:
            relation_id = int(self.graph.inverse[relation_id])
            if relation_id < 0:
                raise DataError(
                    f"relation '{relation}' has no inverse in this graph, so its head cannot be asked"
                )
        return source, relation_id, inverse

    def _refuse_swapped(self, head: str, relation: str) -> None:
        """Say so where a relation is given as the head and an entity as the relation."""
        if isinstance(head, str) and isinstance(relation, str) and self.graph.are_swapped(head, relation):
            raise DataError(
                f"'{head}' is a relation and '{relation}' an entity; swap them, so that the entity comes first"
            )

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
        return self._results(questions, self.asker.ask(heads, relations, traced))

    def _again(self, question: tuple[int, int, bool], removed: np.ndarray) -> QueryResult:
        """Ask a question on the graph without some edges; other threads may ask at the same time."""
        heads, relations = (np.array([question[i]], np.int64) for i in range(2))
        answers = Asker(self.engine_beside, self.unseen).ask(heads, relations, traced=True, removed=removed)
        (result,) = self._results([question], answers)
        return result

    def _results(self, questions: Sequence[tuple[int, int, bool]], answers: Answers) -> list[QueryResult]:
        common = self.graph, self.config.asking_horizon(), self.known
        return [
            QueryResult(
                *common,
                answers.of(query),
                query,
                inverse,
                self.calibration,
                self._notes(head, relation),
                partial(self._again, (head, relation, inverse)),
            )
            for query, (head, relation, inverse) in enumerate(questions)
        ]

    def _notes(self, head: int, relation: int) -> tuple[str, ...]:
        """What can be expected of the answers to a question, where that is less than usual."""
        expected = () if self.expectations is None else self.expectations.of_question(relation)
        return (*expected, *self.known.roles.warning(head, relation))

    @typed
    def explain(
        self,
        head: str,
        relation: str,
        answer: str | None = None,
        inverse: bool = False,
        *,
        keep_fact: bool = False,
        decisive: bool = False,
    ) -> "Explanation":
        """Why <head, relation, ?>, or with `inverse` <?, relation, head>, has an answer, the first if none is named.

        An answer that the graph states is explained as if it did not, unless `keep_fact`. `decisive` looks for the
        facts that decide, by asking again without some, and with some alone: see `Explanation.decisive`.
        """
        (result,) = self.ask([self.question_ids(head, relation, inverse)])
        explained = result.explain(None if answer is None else self.graph.entities.id(answer), keep_fact)
        return self.with_decisive(explained) if decisive else explained

    def with_decisive(self, explanation: "Explanation") -> "Explanation":
        """An explanation of an answer on this graph with the facts that decide, found by asking again."""
        from dpmpn.decisive.deciding import decisive

        question = explanation.question
        _, relation, _ = self.question_ids(question.head, question.relation, question.inverse)
        query = explanation.flow.query
        head, answer = (int(query.nodes[index]) for index in (query.head, explanation.flow.answer))
        return replace(explanation, decisive=decisive(self, head, relation, answer))

    @typed
    def what_if(
        self,
        head: str,
        relation: str,
        answer: str | None = None,
        inverse: bool = False,
        *,
        add: Any = (),
        remove: Any = (),
    ) -> "WhatIf":
        """What becomes of an answer, the first one if none is named, with some facts more or fewer.

        Facts are given as to `with_facts`. An answer that the graph states is judged as if it did not, before and
        after, unless the fact itself is what is removed.
        """
        question, changed = self.question_ids(head, relation, inverse), self.with_facts(add, remove)
        entity = None if answer is None else self.graph.entities.id(answer)
        return self.compared(changed, question, entity)

    def compared(
        self, changed: "Reasoner", question: tuple[int, int, bool], answer: int | None = None
    ) -> "WhatIf":
        """What an answer to a question given as ids, or the first one, is here and on a changed graph."""
        from dpmpn.explain.what_if import WhatIf

        ((before,), (after,)) = self.ask([question]), changed.ask([question])
        if answer is None:
            if not (first := before.answers(1)):
                raise DataError(f"nothing answers {before.question}: name an answer to compare")
            answer = self.graph.entities.id(first[0].answer)
        if after.states(answer) or not before.states(answer):
            before, after = before.as_unknown(answer), after.as_unknown(answer)
        label, found = self.graph.entities.label(answer), after.answers(1)
        now = after.prediction(answer) if changed.graph.degree(question[0]) else None
        was = before.prediction(answer) if self.graph.degree(question[0]) else None
        first_after = found[0] if len(found) else None
        return WhatIf(before.question, self.graph.entities.name(answer), label, was, now, first_after)

    @typed
    def why_not(self, head: str, relation: str, candidate: str, inverse: bool = False) -> "WhyNot":
        """Where the attention of an entity that is not the first answer was lost."""
        return self.predict(head, relation, inverse=inverse).why_not(candidate)

    @typed
    def patterns(
        self,
        relation: str | Iterable[str] | None = None,
        sample: int = 100,
        top: int = 20,
        inverse: bool = False,
        progress: bool = True,
    ) -> "LearntPatterns":
        """What the model has learnt: the patterns of relations that lead it to right answers, and how often each holds.

        For each relation, one, several or all, `sample` facts are asked for as in training: hidden from the graph. The
        `top` patterns that brought most of the attention come first. `inverse` asks <?, relation, tail>.
        """
        from dpmpn.learnt import learnt_relations
        from dpmpn.render.learnt import LearntPatterns

        sample, top = (
            checked_number(name, value, int, at_least=1) for name, value in (("sample", sample), ("top", top))
        )
        relations = None if relation is None else [relation] if isinstance(relation, str) else list(relation)
        with meter_for_python("asked", progress) as meter:
            found = learnt_relations(self, relations, sample, top, inverse, meter.show_speed)
            return LearntPatterns(list(found))

    @typed
    def complete(
        self,
        relation: str | Iterable[str] | None = None,
        top: int = 100,
        min_probability: float | None = None,
        *,
        head_type: str | None = None,
        heads: str = "like",
        both_directions: bool = False,
        held_out: bool = False,
        max_questions: int | None = None,
        out: str | FilePath | None = None,
        progress: bool = True,
    ) -> pl.DataFrame:
        """The most probable facts that are stated nowhere, the best first, each with what supports it.

        `relation`, one or several, and `head_type` ask for less, `both_directions` for heads, too. `heads` are asked
        that are "like" those that have the relation, those for which it is "stated", or "all". `held_out` counts
        validation and test facts as missing and marks them. With `out` the table is written to that file as well, and
        a killed run goes on from there.
        """
        from dpmpn.ask.questions import Asking
        from dpmpn.complete import checked_request, complete

        top = checked_number("top", top, int, at_least=1)
        relations = None if relation is None else [relation] if isinstance(relation, str) else list(relation)
        asking = Asking(heads, both_directions)  # type: ignore[arg-type]  # which it checks
        which = relations, head_type, top, min_probability
        checked_request(self, *which, asking, max_questions)  # measuring may take minutes
        with meter_for_python("measured", progress) as meter:
            self.calibrate(progress=meter.show_speed)
            return complete(
                self,
                *which,
                out,
                asking=asking,
                held_out=held_out,
                max_questions=max_questions,
                progress=lambda stage, done, total: meter.show_speed(done, total, stage),
            )

    @typed
    def evaluate(
        self,
        split: str = "test",
        per_relation: bool = False,
        limit: int | None = None,
        progress: Callable[..., None] | bool | None = True,
    ) -> dict[str, Any]:
        """Filtered ranking metrics on a split, as fractions; `limit` takes only so many of its queries.

        Progress is shown, or told to a function, as in `fit`.
        """
        from dpmpn.evaluate.evaluator import evaluate

        with meter_for_python("asked", shown=progress is True) as meter:
            told = progress if callable(progress) else meter.show_speed
            try:
                return evaluate(
                    self.engine, self.dataset, split, per_relation=per_relation, limit=limit, progress=told
                )
            finally:
                self.engine.close()

    @typed
    def score(self, facts: Any = None, y: None = None) -> float:
        """The mean reciprocal rank of facts, or of the test facts; what names unknown entities or relations counts 0.

        This is what scikit-learn's searches compare; `y` is there for them.
        """
        from dpmpn.reasoner.scoring import mean_reciprocal_rank

        return mean_reciprocal_rank(self, facts)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator: this one takes facts alone, and has no target."""
        utils = import_module("sklearn.utils")
        return utils.Tags(estimator_type=None, target_tags=utils.TargetTags(required=False))

    def __sklearn_clone__(self) -> "Reasoner":
        """A reasoner of the same parameters that is not fitted; one that begins from a pre-trained model still does."""
        other = type(self)(**self.get_params())
        other._start, other._weights = self._start, self._weights
        return other

    def __repr__(self) -> str:
        shown = self._shown()
        return f"Reasoner({shown['model']}{', on ' + shown['graph'] if 'graph' in shown else ''})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the model, its graph and how good it was, as a table."""
        return as_table(self._shown())

    def _shown(self) -> dict[str, str]:
        if self._dataset is None and self._run is None:
            return {"model": "pre-trained, without a graph" if self.is_pretrained else "not trained"}
        return facts_about(self, None if self._is_elsewhere else self._run)

    @typed
    def save(self, folder: str | FilePath) -> None:
        """Copy the run folder; `Reasoner.load` reads it on any machine."""
        folder = FilePath(folder)
        if folder.exists():
            raise RunError(f"{folder}: already exists; choose another folder or remove this one first")
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


def _unfitted(kind: type[Reasoner], config: Config | None, settings: dict[str, Any]) -> Reasoner:
    return kind(config, **settings)


def _pretrained(kind: type[Reasoner], weights: FilePath | None, settings: dict[str, Any]) -> Reasoner:
    return kind.pretrained(weights, **settings)


def _loaded(kind: type[Reasoner], run: FilePath, settings: dict[str, Any]) -> Reasoner:
    return kind.load(run, **settings)
