"""Mutants of graphs, of what a batch must not see, and of the engine that runs batches."""

from mutation import BATCHES, GRAPHS, MODELS, PAPER, Mutant, mutant

MUTANTS_OF_ENGINE: list[Mutant] = [
    mutant(
        "ignn-edges-hold-hidden-facts",
        "The IGNN's edges are drawn from the graph that still holds the batch's own facts.",
        (
            "train/batches.py",
            "sample_ignn_edges(self.graph, removed, *self",
            "sample_ignn_edges(self.graph, removed[:0], *self",
        ),
        tests=BATCHES,
    ),
    mutant(
        "asking-with-hidden-facts",
        "Facts hidden for asking are among the IGNN's edges.",
        (
            "engine/engine.py",
            "edges = self._asking_edges if not len(removed) else self._ignn_edges(removed)",
            "edges = self._asking_edges",
        ),
        tests=BATCHES,
    ),
    mutant(
        "ignn-steps-draw-the-same",
        "Every step of the IGNN runs on the same edges.",
        (
            "engine/batch.py",
            "np.uint64(combine(np.uint64(key), step))",
            "np.uint64(combine(np.uint64(key), 0))",
        ),
        tests=BATCHES,
    ),
    mutant(
        "ignn-steps-onto-removed-edges",
        "Positions among the remaining edges are counted to the wrong side of a removed one.",
        (
            "engine/batch.py",
            'np.arange(len(removed)), chosen, side="right")',
            'np.arange(len(removed)), chosen, side="left")',
        ),
        tests=BATCHES,
    ),
    mutant(
        "pairs-one-way",
        "Only edges from head to tail of a batch's pairs are removed.",
        (
            "engine/batch.py",
            "np.concatenate([_pair_edges(*args, heads, tails), _pair_edges(*args, tails, heads)])",
            "_pair_edges(*args, heads, tails)",
        ),
        tests=BATCHES,
    ),
    mutant(
        "inverses-stay",
        "The inverses of a batch's triples are not removed.",
        (
            "engine/batch.py",
            "edges = np.concatenate([edges, back])",
            "edges = np.concatenate([edges, back[:0]])",
        ),
        tests=BATCHES,
    ),
    mutant(
        "inverse-keeps-its-relation",
        "The inverse of a triple is looked for under the relation itself.",
        (
            "engine/batch.py",
            "graph.find_edges(tails[has_inverse], inverse[has_inverse], heads[has_inverse])",
            "graph.find_edges(tails[has_inverse], relations[has_inverse], heads[has_inverse])",
        ),
        tests=BATCHES,
    ),
    mutant(
        "keys-forget-the-head",
        "Questions about the same relation draw alike, whatever their head.",
        ("engine/batch.py", "combine(np.uint64(combine(base, h)), r)", "combine(base, r)"),
        tests=(*BATCHES, *PAPER),
        survives="Nodes draw by their own ids as well, and two questions need no draws of their own: an answer is "
        "still the same alone and in any batch.",
    ),
    mutant(
        "rows-of-an-entity-overwrite",
        "Of an entity's gradient rows the last one stands for their sum.",
        (
            "engine/learning.py",
            "total.index_add_(0, torch.from_numpy(at)",
            "total.index_copy_(0, torch.from_numpy(at)",
        ),
        tests=PAPER,
    ),
    mutant(
        "loss-of-parts-is-averaged",
        "The loss of a batch in two parts is half of what it is in one.",
        (
            "engine/learning.py",
            "return Gradients(sum(p.loss for p in parts),",
            "return Gradients(sum(p.loss for p in parts) / len(parts),",
        ),
        tests=MODELS,
    ),
    mutant(
        "mean-over-queries",
        "The loss is divided by queries, not by targets.",
        (
            "engine/engine.py",
            "n_targets = 0 if targets is None else len(targets.entities)",
            "n_targets = 0 if targets is None else len(targets)",
        ),
        tests=MODELS,
    ),
    mutant(
        "answers-sorted-by-node-first",
        "Nodes of different queries are mixed when parts are joined.",
        ("engine/answer.py", "order = np.lexsort((nodes, query))", "order = np.lexsort((query, nodes))"),
        tests=MODELS,
    ),
    mutant(
        "answers-not-sorted",
        "The nodes of an answer keep the order in which edges led to them.",
        (
            "engine/answer.py",
            "order = np.lexsort((nodes, query))",
            "order = np.argsort(query, kind='stable')",
        ),
        tests=(*PAPER, "tests/evaluate"),
    ),
    mutant(
        "states-of-the-wrong-step",
        "A new state counts as that of the step before, so that an update is made twice.",
        (
            "engine/frontier.py",
            "self.offsets, self.node, self.row, self.step, slot_row, step + 1,",
            "self.offsets, self.node, self.row, self.step, slot_row, step,",
        ),
        tests=PAPER,
    ),
    mutant(
        "part-of-targets",
        "A part of a batch gets the targets of the first queries.",
        (
            "engine/learning.py",
            "    return kept - kept[0], values[kept[0] : kept[-1]]",
            "    return kept - kept[0], values[: kept[-1] - kept[0]]",
        ),
        tests=("tests/engine", *MODELS),
    ),
    mutant(
        "budget-is-overrun",
        "Parts of a batch are twice as large as memory allows.",
        (
            "engine/engine.py",
            "n_parts = -(-len(batch) // fitting)",
            "n_parts = -(-len(batch) // (2 * fitting))",
        ),
        tests=MODELS,
    ),
    mutant(
        "bound-on-visited-nodes",
        "The bound on visited nodes of Section 2 leaves out the head.",
        (
            "engine/settings.py",
            "return 1 + steps * min(reached, self.max_attending_to_per_step)",
            "return steps * min(reached, self.max_attending_to_per_step)",
        ),
        tests=(*PAPER, "tests/test_config.py"),
    ),
    mutant(
        "inverse-edges-have-the-relation-itself",
        "An edge's inverse is stored under the relation itself.",
        ("data/graph.py", "    backward[:, 1] += n_forward\n", "    backward[:, 1] += 0\n"),
        tests=GRAPHS,
    ),
    mutant(
        "inverse-of-itself",
        "Every relation is its own inverse.",
        (
            "data/graph.py",
            "np.concatenate([forward + n_forward, forward])",
            "np.concatenate([forward, forward + n_forward])",
        ),
        tests=(*GRAPHS, *BATCHES),
    ),
    mutant(
        "edge-found-at-the-end",
        "Looking an edge up may find one of the next head.",
        ("data/graph.py", "in_range = low < self.offsets[np.add(heads, 1)]", "in_range = low < self.n_edges"),
        tests=(*GRAPHS, *BATCHES),
    ),
]
