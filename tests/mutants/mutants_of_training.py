"""Mutants of the optimiser, the schedule, the order of queries and the training loop."""

from mutation import BATCHES, TRAINING, Mutant, mutant

_OPTIMISER, _LOOP, _BATCHES = "train/optimiser.py", "train/trainer.py", "train/batches.py"

_ADAM: list[Mutant] = [
    mutant(
        "adam-epsilon",
        "Adam's epsilon is a hundred times larger.",
        (_OPTIMISER, "BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7", "BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-5"),
        tests=TRAINING,
    ),
    mutant(
        "adam-beta2",
        "Adam's second moment forgets ten times sooner.",
        (_OPTIMISER, "BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7", "BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-7"),
        tests=TRAINING,
    ),
    mutant(
        "no-bias-correction",
        "Adam's moments are not corrected for beginning at zero.",
        (
            _OPTIMISER,
            "corrections = math.sqrt(1 - BETA2**self.step_count) / (1 - BETA1**self.step_count)",
            "corrections = 1.0",
        ),
        tests=TRAINING,
    ),
    mutant(
        "bias-correction-without-root",
        "The second moment's correction is not under the root.",
        (
            _OPTIMISER,
            "corrections = math.sqrt(1 - BETA2**self.step_count)",
            "corrections = (1 - BETA2**self.step_count)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "gradients-are-normalised",
        "Every gradient gets the norm that only larger ones are clipped to.",
        (
            _OPTIMISER,
            "if limit is not None and norm > limit else 1.0",
            "if limit is not None and norm > 0 else 1.0",
        ),
        tests=TRAINING,
    ),
    mutant(
        "rows-are-not-clipped",
        "The gradient of the entity table is never clipped.",
        (
            _OPTIMISER,
            "scale = values.dtype.type(self._clip(_norm(gradients)))",
            "scale = values.dtype.type(1)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "resting-rows-decay-once-more",
        "A row that missed steps decays by one step too many.",
        (_OPTIMISER, "missed = step - 1 - last_step[row]", "missed = step - last_step[row]"),
        tests=TRAINING,
    ),
    mutant(
        "resting-rows-are-not-noted",
        "The step of a row's last gradient is not kept.",
        (_OPTIMISER, "        last_step[row] = step\n", "        last_step[row] = 0\n"),
        tests=TRAINING,
    ),
    mutant(
        "rows-without-gradient-do-not-drift",
        "In the dense form a row without gradient stays where it is.",
        (
            _OPTIMISER,
            "                v[k] *= beta2\n                x[k] -= rate * m[k] / (np.sqrt(v[k]) + epsilon)\n",
            "                v[k] *= beta2\n",
        ),
        tests=TRAINING,
    ),
    mutant(
        "average-moves-the-wrong-way",
        "The average of weights keeps what it should let go.",
        (
            _OPTIMISER,
            "average.lerp_(self.model.get_parameter(name), 1 - kept)",
            "average.lerp_(self.model.get_parameter(name), kept)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "average-holds-the-initial-values",
        "The average of a short run is of its initial values.",
        (
            _OPTIMISER,
            "min(self.config.weight_average, (1 + self.step_count) / (10 + self.step_count))",
            "self.config.weight_average",
        ),
        tests=TRAINING,
    ),
    mutant(
        "average-stays-in-place",
        "Training goes on from the average of weights once it was validated.",
        (_OPTIMISER, "        finally:\n            self._exchange()", "        finally:\n            pass"),
        tests=TRAINING,
    ),
    mutant(
        "steps-counted-from-zero-after-a-resume",
        "A resumed run corrects moments as if it had just begun.",
        (_OPTIMISER, 'self.step_count = int(tensors["step_count"])', "self.step_count = 0"),
        tests=TRAINING,
    ),
    mutant(
        "schedule-does-not-end",
        "The learning rate has not fallen to its last value at the end.",
        (
            _OPTIMISER,
            "left = max(0.0, (total - position) / (total - warm_up))",
            "left = max(0.0, 1 - position / (total + warm_up))",
        ),
        tests=TRAINING,
    ),
    mutant(
        "schedule-last-factor",
        "The learning rate falls to a tenth.",
        (_OPTIMISER, "LAST_FACTOR = 0.01", "LAST_FACTOR = 0.1"),
        tests=TRAINING,
    ),
    mutant(
        "schedule-first-batch-is-lost",
        "The first batch has a learning rate of zero.",
        (
            _OPTIMISER,
            "return min(1.0, (position + batch_size) / warm_up)",
            "return min(1.0, position / warm_up)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "schedule-is-not-used",
        "The learning rate of every step is the first one's.",
        (
            _LOOP,
            "        self.optimiser.step(gradients, factor)\n",
            "        self.optimiser.step(gradients)\n",
        ),
        tests=TRAINING,
    ),
]

_TRAINING_LOOP: list[Mutant] = [
    mutant(
        "patience-off-by-one",
        "A run goes on for one validation more than its patience.",
        (
            _LOOP,
            "self.state.validations_without_improvement >= patience",
            "self.state.validations_without_improvement > patience",
        ),
        tests=TRAINING,
    ),
    mutant(
        "patience-is-not-renewed",
        "Validations without improvement are counted over the whole run.",
        (_LOOP, "state.best, state.validations_without_improvement = found, 0", "state.best = found"),
        tests=TRAINING,
    ),
    mutant(
        "equal-is-better",
        "A validation that only equals the best one replaces it.",
        (
            _LOOP,
            "better = state.best is None or found.mrr > state.best.mrr",
            "better = state.best is None or found.mrr >= state.best.mrr",
        ),
        tests=TRAINING,
    ),
    mutant(
        "best-is-not-the-average",
        "The weights that are saved are not those that were validated.",
        (
            _LOOP,
            "averaged():\n                save_best(self.run.path, self.model, state.position, found)",
            "averaged():\n                pass\n"
            "            save_best(self.run.path, self.model, state.position, found)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "validation-not-of-the-average",
        "The last weights are validated, and their average is saved.",
        (
            _LOOP,
            "        with self.optimiser.averaged():\n            found = self._measured(self.validator)",
            "        found = self._measured(self.validator)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "position-counts-targets",
        "A run's position counts answers, not queries.",
        (_LOOP, "self.state.position += n_queries", "self.state.position += n_targets"),
        tests=TRAINING,
    ),
    mutant(
        "interrupted-validation-is-lost",
        "A validation that was interrupted is not made after a resume.",
        (_LOOP, "state.validation_due = True  # so that", "state.validation_due = False  # so that"),
        tests=TRAINING,
    ),
    mutant(
        "lines-of-a-killed-run-stay",
        "Metrics that a killed run wrote after its checkpoint stay.",
        (
            _LOOP,
            "rewind_lines(self.run.metrics, self.state.lines)",
            "rewind_lines(self.run.metrics, self.state.lines + 9)",
        ),
        tests=TRAINING,
    ),
    mutant(
        "validation-at-multiples-alone",
        "A validation is left out where a batch passes its position.",
        (_LOOP, "return before // every != after // every", "return after % every == 0"),
        tests=TRAINING,
    ),
    mutant(
        "fractions-of-epochs-are-cut",
        "A run of one epoch and a half stops after one.",
        (_LOOP, "total = max(1, round(n_epochs * n_queries))", "total = max(1, int(n_epochs) * n_queries)"),
        tests=TRAINING,
    ),
    mutant(
        "loss-is-a-mean-of-batches",
        "The loss of a line weighs batches of all sizes alike.",
        (
            _LOOP,
            "float(gradients.loss) * n_targets",
            "float(gradients.loss) * self.config.training.batch_size",
        ),
        tests=TRAINING,
    ),
    mutant(
        "end-is-not-validated",
        "The end of a run is not validated.",
        (
            _LOOP,
            "if self.state.validated_position != self.state.position:",
            "if self.state.validated_position is None:",
        ),
        tests=TRAINING,
    ),
    mutant(
        "epochs-have-one-order",
        "Every epoch has the order of the first.",
        (
            _BATCHES,
            "np.random.default_rng([self.config.run.seed, epoch])",
            "np.random.default_rng([self.config.run.seed, 0])",
        ),
        tests=BATCHES,
    ),
    mutant(
        "batches-draw-alike",
        "All batches of a run draw the same edges.",
        (
            _BATCHES,
            "combine(np.uint64(self.config.run.seed), position)",
            "combine(np.uint64(self.config.run.seed), 0)",
        ),
        tests=BATCHES,
    ),
    mutant(
        "last-query-of-a-batch-is-left-out",
        "A batch has one query less than asked for.",
        (
            _BATCHES,
            "chosen = self._order[start : start + count]",
            "chosen = self._order[start : start + count - 1]",
        ),
        tests=BATCHES,
    ),
    mutant(
        "known-answers-of-the-learnt-alone",
        "Facts that are edges but not learnt are not known to be right.",
        (
            _BATCHES,
            "np.stack([graph.edge_heads(everything), graph.relations, graph.tails], 1)",
            "triples",
        ),
        tests=BATCHES,
    ),
    mutant(
        "one-way-dropout",
        "The inverse of a dropped fact stays.",
        (_BATCHES, "        return edges[edges >= 0]\n", "        return edges[:, 0]\n"),
        tests=BATCHES,
    ),
]

MUTANTS_OF_TRAINING: list[Mutant] = [*_ADAM, *_TRAINING_LOOP]
