"""Mutants of the paper's model and of its compiled operations."""

from mutation import MODELS, PAPER, Mutant, mutant

_NETWORK, _REFERENCE, _FAST = "models/paper/network.py", "models/paper/reference.py", "models/paper/fast.py"
_IGNN, _MODEL, _SCAN = "models/paper/ignn.py", "models/paper/model.py", "engine/reference.py"

_LAYERS: list[Mutant] = [
    mutant(
        "slope",
        "leakyReLU has PyTorch's slope, not the authors'.",
        ("ops/messages.py", "SLOPE = 0.2  #", "SLOPE = 0.01  #"),
        tests=PAPER,
    ),
    mutant(
        "projection-without-tanh",
        "Vectors come to the attention module by a linear map alone.",
        (_NETWORK, "return torch.tanh(self.project(x))", "return self.project(x)"),
        tests=PAPER,
    ),
    mutant(
        "second-layer-without-tanh",
        "Messages and updates have no bound.",
        (_NETWORK, "return torch.tanh(self.second(x))", "return self.second(x)"),
        tests=PAPER,
    ),
    mutant(
        "both-sides-share-a-layer",
        "The right side of a transition logit goes through the left side's layer.",
        (
            _NETWORK,
            "functional.leaky_relu(self.right(right), SLOPE)",
            "functional.leaky_relu(self.left(right), SLOPE)",
        ),
        tests=PAPER,
    ),
    mutant(
        "mean-of-products",
        "A transition logit is a mean over dimensions.",
        (
            _NETWORK,
            "logits: Tensor = (left * self.center(right)).sum(-1)",
            "logits: Tensor = (left * self.center(right)).mean(-1)",
        ),
        tests=PAPER,
    ),
    mutant(
        "attended-state-with-bias",
        "W of the node state attending function has a bias.",
        (_NETWORK, "self.attend = dense(n_dims, n_dims, bias=False)", "self.attend = dense(n_dims, n_dims)"),
        tests=PAPER,
    ),
    mutant(
        "entities-begin-large",
        "Entity embeddings begin ten times too large.",
        (
            _NETWORK,
            "torch.empty(n_entities, n_dims).uniform_(-0.05, 0.05)",
            "torch.empty(n_entities, n_dims).uniform_(-0.5, 0.5)",
        ),
        tests=PAPER,
    ),
    mutant(
        "relations-begin-normal",
        "Relation embeddings begin normal, not uniform.",
        (
            _NETWORK,
            "torch.empty(n_relations + 1, n_dims).uniform_(-0.05, 0.05)",
            "torch.empty(n_relations + 1, n_dims).normal_(0, 0.05)",
        ),
        tests=PAPER,
    ),
    mutant(
        "kaiming",
        "Dense layers begin with another scheme than Glorot's.",
        (_NETWORK, "nn.init.xavier_uniform_(layer.weight)", "nn.init.kaiming_uniform_(layer.weight)"),
        tests=PAPER,
    ),
    mutant(
        "biases-begin-at-random",
        "Biases do not begin at zero.",
        (_NETWORK, "nn.init.zeros_(layer.bias)", "nn.init.uniform_(layer.bias, -0.05, 0.05)"),
        tests=PAPER,
    ),
]

_SECTION_3: list[Mutant] = [
    mutant(
        "ignn-left-out-of-the-update",
        "The update sees nothing of the IGNN, in both paths.",
        (
            _REFERENCE,
            "self.attention_of(self.visited)[:, None] *",
            "0 * self.attention_of(self.visited)[:, None] *",
        ),
        (
            _FAST,
            "self.attended = update_attended @ agnn.attend.weight",
            "self.attended = 0 * update_attended @ agnn.attend.weight",
        ),
        tests=PAPER,
    ),
    mutant(
        "messages-are-averaged",
        "Messages are divided by their number, not by its root, in both paths.",
        (
            _REFERENCE,
            "return total / count.to(total.dtype).sqrt()[:, None]",
            "return total / count.to(total.dtype)[:, None]",
        ),
        ("ops/messages.py", "scale = (1.0 / np.sqrt(count))", "scale = (1.0 / count)"),
        tests=PAPER,
    ),
    mutant(
        "unseen-nodes-are-projected",
        "A node that is not visited yet is the projection of a zero state, not zero.",
        (
            _REFERENCE,
            "small[tail_row], torch.zeros_like(small[:1]))",
            "small[tail_row], flow.small(torch.zeros_like(self.states[:1])))",
        ),
        tests=PAPER,
    ),
    mutant(
        "attention-is-not-renormalised",
        "Attention that N1 cut off is missing from the next distribution.",
        (_REFERENCE, "arriving / total.where(total != 0, 1.0), 0.0)", "arriving, 0.0)"),
        tests=PAPER,
    ),
    mutant(
        "softmax-kinds-swapped",
        "One softmax entry per edge where one per pair is configured, and the other way round, in both paths.",
        (
            _REFERENCE,
            'if self.network.settings.softmax == "pair":',
            'if self.network.settings.softmax == "edge":',
        ),
        ("ops/attention.py", 'if softmax == "pair":', 'if softmax == "edge":'),
        tests=PAPER,
    ),
    mutant(
        "n1-off-by-one",
        "A query expands one node more than N1, in both paths.",
        (
            _REFERENCE,
            "n1, scores = self.horizon.max_attending_from_per_step, self",
            "n1, scores = self.horizon.max_attending_from_per_step + 1, self",
        ),
        (
            "engine/frontier.py",
            "attending_from, horizon.max_attending_from_per_step\n",
            "attending_from, horizon.max_attending_from_per_step + 1\n",
        ),
        tests=PAPER,
    ),
    mutant(
        "n2-off-by-one",
        "One edge more than N2 is drawn, in both paths.",
        (
            _SCAN,
            "limit, per_relation = self.horizon.max_sampling_per_node, self",
            "limit, per_relation = self.horizon.max_sampling_per_node + 1, self",
        ),
        (
            "engine/frontier.py",
            "limit, per_relation = horizon.max_sampling_per_node, horizon",
            "limit, per_relation = horizon.max_sampling_per_node + 1, horizon",
        ),
        tests=PAPER,
    ),
    mutant(
        "n3-off-by-one",
        "One node more than N3 gets messages, in both paths.",
        (
            _REFERENCE,
            "n3 = self.horizon.max_attending_to_per_step",
            "n3 = self.horizon.max_attending_to_per_step + 1",
        ),
        (
            "engine/frontier.py",
            "return select(how, horizon.max_attending_to_per_step, scores",
            "return select(how, horizon.max_attending_to_per_step + 1, scores",
        ),
        tests=PAPER,
    ),
    mutant(
        "chance-draws-from-the-last-scan",
        "A sampling strategy draws only nodes that have attention, in both paths.",
        (
            _SCAN,
            "at = torch.arange(len(nodes), device=nodes.device)",
            "at = torch.arange(len(nodes), device=nodes.device)[scores > ATTENTION_FLOOR]",
        ),
        (
            "engine/frontier.py",
            "scores = hash_scores(keys, step, offsets, nodes)",
            "scores = hash_scores(keys, step, offsets, nodes) * (scores > ATTENTION_FLOOR)",
        ),
        tests=PAPER,
    ),
    mutant(
        "attention-floor",
        "Any attention above zero is followed.",
        ("engine/frontier.py", "ATTENTION_FLOOR = 1e-20", "ATTENTION_FLOOR = 0.0"),
        tests=PAPER,
    ),
    mutant(
        "ignn-without-residual",
        "An IGNN state is replaced, not added to, in both paths.",
        (
            _REFERENCE,
            "states = states + network.ignn.update(states, received, network.entities)",
            "states = network.ignn.update(states, received, network.entities)",
        ),
        (_IGNN, "return updated + torch.tanh(", "return torch.tanh("),
        tests=PAPER,
    ),
    mutant(
        "ignn-update-without-embedding",
        "The IGNN's update sees the state twice and never the embedding, in both paths.",
        (
            _REFERENCE,
            "network.ignn.update(states, received, network.entities)",
            "network.ignn.update(states, received, states)",
        ),
        (
            _IGNN,
            "x = torch.addmm(x, embeddings[:n_nodes], entity_weight.t())",
            "x = torch.addmm(x, updated, entity_weight.t())",
        ),
        tests=PAPER,
    ),
    mutant(
        "pool-counts-one-step-less",
        "The mean over IGNN steps is divided by the number of updates, in both paths.",
        (
            _REFERENCE,
            "return total / (len(batch.ignn_edges) + 1)",
            "return total / max(1, len(batch.ignn_edges))",
        ),
        (_IGNN, "return total / (len(levels) + 1)", "return total / max(1, len(levels))"),
        tests=PAPER,
    ),
    mutant(
        "attention-flow-is-cut",
        "No gradient flows through the attention of an earlier step, in both paths.",
        (
            _REFERENCE,
            "self.next_attention(frontier, scan, self.attention_of(frontier))",
            "self.next_attention(frontier, scan, self.attention_of(frontier).detach())",
        ),
        (
            _FAST,
            "before = self._attention_at(self.visited.slot[frontier.visited])",
            "before = self._attention_at(self.visited.slot[frontier.visited]).detach()",
        ),
        tests=PAPER,
    ),
    mutant(
        "attention-in-the-update-is-cut",
        "No gradient flows from an attended IGNN state to its attention, in both paths.",
        (
            _REFERENCE,
            "self.attention_of(self.visited)[:, None] *",
            "self.attention_of(self.visited)[:, None].detach() *",
        ),
        (
            _FAST,
            "            self.attention[torch.from_numpy(slots)],",
            "            self.attention[torch.from_numpy(slots)].detach(),",
        ),
        tests=PAPER,
    ),
    mutant(
        "missed-updates-are-forgotten",
        "The fast path does not make up for updates of nodes that no message came to.",
        (_FAST, "for k in range(int(missed[0])):", "for k in range(0):"),
        tests=PAPER,
    ),
    mutant(
        "loss-floor",
        "The loss has a larger floor beside the probability.",
        (_MODEL, "LOSS_FLOOR = 1e-20", "LOSS_FLOOR = 1e-10"),
        tests=PAPER,
    ),
    mutant(
        "mean-over-reached-targets",
        "The loss is a mean over the targets that were reached.",
        ("engine/model.py", "mean = loss.total / n_targets", "mean = loss.total / max(1, loss.n_reached)"),
        tests=PAPER,
    ),
    mutant(
        "unreached-targets-cost-nothing",
        "The loss leaves out the targets that were not reached.",
        (_MODEL, "unreached = -np.log(LOSS_FLOOR) * int((~reached).sum())", "unreached = 0.0"),
        tests=PAPER,
    ),
]

_OPERATIONS: list[Mutant] = [
    mutant(
        "normaliser-has-no-gradient",
        "The gradient of the renormalised attention misses its normaliser.",
        ("ops/attention.py", "grad[s] = (grad[s] - weighted) / total[q]", "grad[s] = grad[s] / total[q]"),
        tests=PAPER,
    ),
    mutant(
        "leaky-gradient-of-combine",
        "The gradient of the fused layer has slope 1 for negative sums.",
        ("ops/messages.py", "row[k] = g[k] * (one if o[k] > 0 else slope)", "row[k] = g[k] * one"),
        tests=PAPER,
    ),
    mutant(
        "tanh-gradient",
        "The gradient of tanh misses a square.",
        ("ops/messages.py", "row[k] = s * g[k] * (one - m[k] * m[k])", "row[k] = s * g[k] * (one - m[k])"),
        tests=PAPER,
    ),
    mutant(
        "old-rows-keep-their-gradients",
        "Rows of a pool begin with what an earlier batch left in their gradients.",
        ("ops/pool.py", "            self.gradients[start:stop] = 0\n", "            pass\n"),
        tests=MODELS,
    ),
    mutant(
        "removed-edge-is-stepped-onto",
        "Stepping over removed edges stops one short.",
        (
            "ops/expand.py",
            "while skipped < high and removed[skipped] <= edge:",
            "while skipped < high and removed[skipped] < edge:",
        ),
        tests=PAPER,
    ),
    mutant(
        "ties-go-to-the-higher-node",
        "Of nodes with equal scores the one with the higher id is kept.",
        (
            "ops/select.py",
            "    tied.sort()\n    return int(tied[room - 1])",
            "    tied.sort()\n    return int(tied[n - room])",
        ),
        (
            "ops/select.py",
            "(scores[i] == cut and nodes[i] <= last_node)",
            "(scores[i] == cut and nodes[i] >= last_node)",
        ),
        tests=MODELS,
    ),
    mutant(
        "too-few-rounds",
        "The permutation that sampling draws by mixes too little.",
        ("ops/permutation.py", "ROUNDS = 6", "ROUNDS = 2"),
        tests=PAPER,
    ),
    mutant(
        "random-horizons-forget-the-step",
        "Random horizons draw the same nodes at every step, in both paths.",
        (
            "ops/select.py",
            "key = combine(combine(query_keys[q], step), -2)",
            "key = combine(combine(query_keys[q], 0), -2)",
        ),
        (
            _SCAN,
            "combine_torch(combine_torch(self.keys[query], draw), -2)",
            "combine_torch(combine_torch(self.keys[query], 0), -2)",
        ),
        tests=PAPER,
    ),
]

MUTANTS_OF_PAPER: list[Mutant] = [*_LAYERS, *_SECTION_3, *_OPERATIONS]
