"""Mutants of ranks, metrics and the protocols of evaluation."""

from mutation import EVALUATION, Mutant, mutant

_RANKING, _DENSE, _EVALUATOR = "evaluate/ranking.py", "evaluate/ranking.py", "evaluate/evaluator.py"
_PRECISION, _METRICS = "evaluate/average_precision.py", "evaluate/metrics.py"

MUTANTS_OF_EVALUATION: list[Mutant] = [
    mutant(
        "ranks-are-not-filtered",
        "Other known answers that score more stay before the target.",
        (_RANKING, "            more -= int(other > score)\n", "            more -= 0\n"),
        tests=EVALUATION,
    ),
    mutant(
        "ties-are-not-filtered",
        "Other known answers that tie with the target are counted.",
        (_RANKING, "            same -= int(other == score)\n", "            same -= 0\n"),
        tests=EVALUATION,
    ),
    mutant(
        "target-is-filtered",
        "The target itself is taken out when it is known.",
        (
            _RANKING,
            "    for answer in known:\n        if answer != target:\n",
            "    for answer in known:\n        if answer >= 0:\n",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "known-from-training-alone",
        "Known answers of validation and test are not filtered.",
        (
            _EVALUATOR,
            "KnownAnswers.from_triples(*(dataset.queries(split) for split in SPLITS))",
            "KnownAnswers.from_triples(*(dataset.queries(split) for split in SPLITS[:1]))",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "optimistic-and-pessimistic-swapped",
        "The best place among ties is called the worst.",
        (
            _RANKING,
            "        optimistic[query] = 1 + more\n        pessimistic[query] = 1 + more + same\n",
            "        pessimistic[query] = 1 + more\n        optimistic[query] = 1 + more + same\n",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "unlisted-entities-do-not-tie",
        "Entities that no attention came to are not among the ties of a target without any.",
        (_RANKING, "        same = n_entities - more\n", "        same = max(same, 1)\n"),
        tests=EVALUATION,
    ),
    mutant(
        "realistic-is-rounded",
        "The expected rank is rounded down.",
        (
            _RANKING,
            "return (self.optimistic + self.pessimistic) / 2",
            "return (self.optimistic + self.pessimistic) // 2",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "every-target-is-reached",
        "Coverage counts targets without attention.",
        (_RANKING, "reached[query] = score > 0", "reached[query] = score >= 0"),
        tests=EVALUATION,
    ),
    mutant(
        "hits-off-by-one",
        "The k-th place is no hit at k.",
        (_METRICS, "lambda ranks: ranks <= k)", "lambda ranks: ranks < k)"),
        tests=EVALUATION,
    ),
    mutant(
        "mrr-of-ranks-from-zero",
        "Reciprocal ranks are those of the next place.",
        (_METRICS, "lambda ranks: 1.0 / ranks)", "lambda ranks: 1.0 / (1 + ranks))"),
        tests=EVALUATION,
    ),
    mutant(
        "dense-ties-are-not-filtered",
        "Where every entity has a score, known answers that tie are counted.",
        (_DENSE, "                same -= row[answer] == score\n", "                same -= 0\n"),
        tests=EVALUATION,
    ),
    mutant(
        "dense-target-ties-with-itself",
        "The worst place of a target counts the target itself.",
        (_DENSE, "pessimistic[query] = more + same", "pessimistic[query] = 1 + more + same"),
        tests=EVALUATION,
    ),
    mutant(
        "map-over-heads-twice",
        "The mean over triples counts every head once.",
        (_PRECISION, "float(np.average(values, weights=triples_per_head))", "float(np.mean(values))"),
        tests=EVALUATION,
    ),
    mutant(
        "map-divided-by-candidates",
        "A head's precisions are divided by its candidates.",
        (_PRECISION, "return sums / max(right_before, 1)", "return sums / max(len(scores), 1)"),
        tests=EVALUATION,
    ),
    mutant(
        "map-density-of-ties",
        "Right answers among ties are spread as if none of them were placed yet.",
        (_PRECISION, "density = (right - 1) / max(size - 1, 1)", "density = right / size"),
        tests=EVALUATION,
    ),
    mutant(
        "map-pessimistic-is-optimistic",
        "Right answers stand before the wrong ones they tie with in both ways.",
        (
            _PRECISION,
            "pessimistic += (right_before + 1 + i) / (before + wrong + 1 + i)",
            "pessimistic += (right_before + 1 + i) / (before + 1 + i)",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "map-lowest-first",
        "Candidates are sorted by ascending score.",
        (_PRECISION, "order = np.lexsort((-scores, heads))", "order = np.lexsort((scores, heads))"),
        tests=EVALUATION,
    ),
    mutant(
        "candidates-are-not-grouped",
        "Candidates of a head that stand apart in the file count for other heads.",
        (
            _EVALUATOR,
            'order = np.argsort(candidates.heads, kind="stable")',
            "order = np.arange(len(candidates.heads))",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "labels-are-not-grouped",
        "Candidates are sorted by head, and their labels are not.",
        (
            _EVALUATOR,
            "positive = self.candidates.positive[self.order]",
            "positive = self.candidates.positive",
        ),
        tests=EVALUATION,
    ),
    mutant(
        "ranks-in-the-order-asked",
        "Ranks come in the order of the relations asked, not of the queries.",
        (_EVALUATOR, "ranks = ranks[np.argsort(self._order)]", "ranks = ranks[:]"),
        tests=EVALUATION,
    ),
    mutant(
        "stated-facts-are-asked-as-they-are",
        "A fact that the graph states is asked with it.",
        (
            _EVALUATOR,
            'removed = removed_edges(engine.graph, asked, "triples")',
            'removed = removed_edges(engine.graph, asked[:0], "triples")',
        ),
        tests=EVALUATION,
    ),
    mutant(
        "directions-swapped",
        "Scores of tail queries are called those of head queries.",
        (
            _EVALUATOR,
            '"tail": summarise(ranks[:n_triples]), "head": head}',
            '"tail": head, "head": summarise(ranks[:n_triples])}',
        ),
        tests=EVALUATION,
    ),
    mutant(
        "known-pairs-run-into-the-next-head",
        "A relation beyond those seen has the known answers of the next head.",
        ("evaluate/known.py", "        found &= (relations >= 0) & (relations < self.n_relations)\n", ""),
        tests=EVALUATION,
    ),
    mutant(
        "known-answers-are-not-unique",
        "A fact of two splits is filtered twice.",
        (
            "evaluate/known.py",
            "new_triple = new_pair | _differs_from_previous(tails)",
            "new_triple = np.ones(len(tails), np.bool_)",
        ),
        tests=EVALUATION,
    ),
]
