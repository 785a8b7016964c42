"""Mutants of the stronger model."""

from mutation import STRONG, Mutant, mutant

_REFERENCE, _NETWORK, _FAST = (
    "models/strong/reference.py",
    "models/strong/network.py",
    "models/strong/fast.py",
)

MUTANTS_OF_STRONG: list[Mutant] = [
    mutant(
        "profiles-see-hidden-facts",
        "The profile of an entity counts the facts that a batch hides, in both paths.",
        (_REFERENCE, "    kept[removed] = False\n", ""),
        (
            "models/strong/model.py",
            "self._profiles.without(batch.removed)",
            "self._profiles.without(batch.removed[:0])",
        ),
        tests=STRONG,
    ),
    mutant(
        "known-answers-are-rivals",
        "Other right answers count against the one that is learnt, in both paths.",
        (
            _REFERENCE,
            "answers[torch.from_numpy(known), torch.from_numpy(targets.known)] = True",
            "answers[torch.from_numpy(known), torch.from_numpy(targets.known)] = False",
        ),
        (
            "models/strong/read_out.py",
            "answers = np.unique(np.concatenate([known, own]))",
            "answers = np.unique(np.concatenate([known[:0], own]))",
        ),
        tests=STRONG,
    ),
    mutant(
        "update-without-residual",
        "A state of the stronger model is replaced, not added to, in both paths.",
        (_REFERENCE, "return old + torch.relu(", "return torch.relu("),
        (
            "ops/layers.py",
            "row[k] = old[k] + max(c[k] * weight[k] + bias[k]",
            "row[k] = max(c[k] * weight[k] + bias[k]",
        ),
        ("ops/layers.py", "        dreceived[:, : gradient.shape[1]] += gradient\n", ""),
        tests=STRONG,
    ),
    mutant(
        "inverse-of-the-relation-asked",
        "What the inverse of the relation asked adds goes to the relation itself.",
        (
            "models/strong/asked.py",
            "np.stack([relations, inverse[relations]], 1)",
            "np.stack([relations, relations], 1)",
        ),
        tests=STRONG,
    ),
    mutant(
        "prior-of-the-relation-asked",
        "Having the relation asked and how often share one weight of the prior.",
        (_NETWORK, "self.prior_asked[2 * which + part]", "self.prior_asked[2 * which]"),
        tests=STRONG,
    ),
    mutant(
        "no-more-for-the-head",
        "The head of a question has no offset of its own, in both paths.",
        (
            _REFERENCE,
            "self.asked.visited[query] + self.asked.is_head[query] * is_head",
            "self.asked.visited[query] + 0 * self.asked.is_head[query] * is_head",
        ),
        (_FAST, "+ visited_more + head_more * is_head", "+ visited_more + 0 * head_more * is_head"),
        tests=STRONG,
    ),
    mutant(
        "mean-message-is-the-sum",
        "The mean of the messages repeats their sum, in both paths.",
        (_REFERENCE, "torch.cat([old, received, received / count,", "torch.cat([old, received, received,"),
        (
            "ops/gate.py",
            "        share = one / out.dtype.type(count[s])\n        for k in range(width):\n            row[2 ",
            "        share = one\n        for k in range(width):\n            row[2 ",
        ),
        tests=STRONG,
    ),
    mutant(
        "prior-leaves-out-the-last-step",
        "The last step chooses nodes without their priors, in both paths.",
        (
            _REFERENCE,
            "            logit = logit + self.prior.detach()",
            "            logit = logit + 0 * self.prior.detach()",
        ),
        (_FAST, "            logit += self.prior.detach()", "            logit += 0 * self.prior.detach()"),
        tests=STRONG,
    ),
    mutant(
        "scores-are-not-rounded",
        "Horizons choose between equal nodes by the order their messages were added up in.",
        (_REFERENCE, "self.attention.detach().round(decimals=DIGITS)", "self.attention.detach()"),
        (_FAST, "self.scores[visited.row].round(DIGITS)", "self.scores[visited.row]"),
        tests=STRONG,
    ),
    mutant(
        "probabilities-without-the-unvisited",
        "The softmax of an answer runs over the visited entities alone.",
        (
            "models/strong/read_out.py",
            "total = _log_total(reached, reached.logits, _unvisited(reached))",
            "total = _log_total(reached, reached.logits, 0 * _unvisited(reached))",
        ),
        tests=STRONG,
    ),
]
