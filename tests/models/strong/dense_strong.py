"""The stronger model in plain numpy, dense and one query after another: written from docs/stronger.md alone.

Nothing here is taken from the program but the names of the weights and the order of their columns. Comments name the
numbered item of 'What it computes' that is meant. The forms that settings can take beside those of the page are as the
settings describe themselves: relation vectors that do not depend on the question (`plain`), flows that are the senders'
attention (`gates = "nodes"`) or 1 (`"off"`), profiles that the states do not begin with (`"prior"`), or those of
entities without edges (`"off"`).

No neighbours are sampled here: a node with more than N2 edges is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Edge = tuple[int, int, int]  # from, relation, to
Weights = dict[str, np.ndarray]

LEAST_FLOW = 1e-12  # beside a flow whose logarithm is taken
NORM_EPSILON = 1e-5  # beside the variance in layer normalisation


@dataclass(frozen=True)
class Question:
    """What is asked, the answers that are learnt, and others that are known."""

    head: int
    relation: int
    answers: tuple[int, ...]
    known: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """Steps, N1, N2 and N3, and the three settings that change the form of the model."""

    steps: int
    attending_from: int
    sampling_per_node: int
    attending_to: int
    relation_vectors: str
    profiles: str
    gates: str


@dataclass(frozen=True)
class Outcome:
    """What is compared, and how hard the case was."""

    probabilities: np.ndarray  # queries x entities
    visited: np.ndarray  # queries x entities
    loss: float
    pruned: tuple[int, int]  # how many steps N1 and N3 left nodes out of
    by_prior: int  # how many last steps would have kept other nodes without the prior


def dense_strong(
    weights: Weights,
    edges: Sequence[Edge],  # those that may be seen, inverses included, self-loops not
    inverse: Sequence[int],  # of each relation; all have one here
    n_entities: int,
    questions: Sequence[Question],
    form: Form,
) -> Outcome:
    """Answer every question and take the loss."""
    profile = relation_profiles(edges, n_entities, len(inverse), form.profiles != "off")
    runs = [_Run(weights, edges, inverse, profile, question, form) for question in questions]
    logits = np.stack([run.logits() for run in runs])
    losses = [
        loss
        for row, question in zip(logits, questions, strict=True)
        for loss in answer_losses(row, question.answers, question.known)
    ]
    return Outcome(
        np.stack([softmax(row) for row in logits]),  # "The softmax is over *all* entities"
        np.stack([run.visited for run in runs]),
        float(np.mean(losses)),
        (sum(run.pruned[0] for run in runs), sum(run.pruned[1] for run in runs)),
        sum(run.by_prior for run in runs),
    )


def relation_profiles(
    edges: Sequence[Edge], n_entities: int, n_relations: int, are_on: bool = True
) -> np.ndarray:
    """Entities x features: which relations, the logarithms of how often, a constant, and the degree."""
    profile = np.zeros((n_entities, 2 * n_relations + 2))
    for v in range(n_entities):
        own = [r for v1, r, _ in edges if v1 == v] if are_on else []
        for r in set(own):
            profile[v, r] = 1
            profile[v, n_relations + r] = np.log(own.count(r))
        profile[v, -2] = 1
        profile[v, -1] = np.log(1 + len(own)) / 3
    return profile


def answer_losses(logits: np.ndarray, answers: Sequence[int], known: Sequence[int]) -> list[float]:
    """-log p of each answer: other answers that training knows "are no rivals in the softmax"."""
    losses = []
    for answer in answers:
        others = (set(answers) | set(known)) - {answer}
        rivals = [v for v in range(len(logits)) if v not in others]
        losses.append(float(-np.log(softmax(logits[rivals])[rivals.index(answer)])))
    return losses


class _Run:
    """One question."""

    def __init__(
        self,
        weights: Weights,
        edges: Sequence[Edge],
        inverse: Sequence[int],
        profile: np.ndarray,
        question: Question,
        form: Form,
    ) -> None:
        self.weights, self.profile, self.form = weights, profile, form
        self.head, self.asked, self.inverse = question.head, question.relation, inverse[question.relation]
        self.n_relations = len(inverse)
        self.z = weights["queries"][question.relation]  # z_q
        self.out: list[list[Edge]] = [[] for _ in profile]
        for edge in edges:
            self.out[edge[0]].append(edge)
        assert all(len(out) <= form.sampling_per_node for out in self.out), "N2 would sample"
        self.visited = np.zeros(len(profile), bool)
        self.pruned, self.by_prior = [0, 0], 0

    def logits(self) -> np.ndarray:
        """Of every entity, after all steps."""
        w, n = self.weights, len(self.profile)
        prior = self.prior()
        # "The state begins with a linear map of the node's relation profile".
        h = self.profile @ w["profile_state"] if self.form.profiles == "on" else np.zeros((n, len(self.z)))
        # "The head's state begins with that plus the vector z_q of the relation asked, and its attention is 1."
        h[self.head] += self.z
        a = np.zeros(n)
        a[self.head] = 1.0
        self.visited[self.head] = True
        for t in range(self.form.steps):
            h, a = self.step(t, h, a, prior if t == self.form.steps - 1 else None)
        logits = prior.copy()
        for v in np.flatnonzero(self.visited):
            hidden = relu(
                h[v] @ w["read_state"]  # R h
                + self.z @ w["read_query"]  # Q z_q
                + self.profile[v] @ w["read_profile"]  # F phi
                + w["read_bias"]  # o
            )
            logits[v] += w["visited"][self.asked]  # d_q
            logits[v] += w["is_head"][self.asked] * (v == self.head)  # e_q [head]
            logits[v] += (w["read_weight"] + self.z @ w["read_weight_query"]) @ hidden  # s + S z_q
        return logits

    def prior(self) -> np.ndarray:
        """phi^T (P z_q + p_q) of every entity."""
        row = self.weights["prior"] @ self.z
        # "p_q has weights for the relation asked and its inverse alone": of having it, and of how often.
        for relation, (has, often) in zip(
            (self.asked, self.inverse), self.weights["prior_asked"].reshape(2, 2), strict=True
        ):
            row[relation] += has
            row[self.n_relations + relation] += often
        return np.asarray(self.profile @ row)

    def step(
        self, t: int, h: np.ndarray, a: np.ndarray, prior: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Items 1 to 5: new states and attention. The prior is given in the last step."""
        # 1: "the N1 visited nodes with most attention send along their edges and to themselves".
        senders = self.best(a, np.flatnonzero(self.visited), self.form.attending_from, 0)
        sent = [edge for v in senders for edge in [*self.out[v], (v, self.n_relations, v)]]
        carried = [self.carried(t, h[v1], a[v1], r) for v1, r, _ in sent]
        flow = np.zeros(len(h))
        for (_, _, v), (rho, _) in zip(sent, carried, strict=True):
            flow[v] += rho
        attended = self.attended(flow, sorted({v for _, _, v in sent}), prior)
        new_h, new_a = h.copy(), a.copy()
        for v in attended:
            messages = [m for (_, _, to), (_, m) in zip(sent, carried, strict=True) if to == v]
            new_h[v] = self.updated(t, h[v], np.stack(messages), flow[v])
            new_a[v] = self.attention(t, new_h[v])
        self.visited[attended] = True
        return new_h, new_a

    def attended(self, flow: np.ndarray, led_to: list[int], prior: np.ndarray | None) -> list[int]:
        """2: "Only the N3 nodes that most attention flows to get messages", and in the last step by priors, too."""
        log_flow = np.log(flow + LEAST_FLOW)
        chosen = self.best(gate(log_flow), led_to, self.form.attending_to, 1)
        if prior is None:
            return chosen
        without, (_, n3) = chosen, self.pruned
        chosen = self.best(gate(log_flow + prior), led_to, self.form.attending_to, 1)
        self.pruned[1] = n3  # the same step, counted once
        self.by_prior += chosen != without
        return chosen

    def best(self, scores: np.ndarray, of: Sequence[int], limit: int, which: int) -> list[int]:
        """The best nodes by scores of six digits, of equal ones those with lower ids."""
        rounded = np.round(scores, 6)
        order = sorted((int(v) for v in of if rounded[v] > 0), key=lambda v: (-rounded[v], v))
        self.pruned[which] += len(order) > limit
        return sorted(order[:limit])

    def carried(self, t: int, h: np.ndarray, a: float, r: int) -> tuple[float, np.ndarray]:
        """2 and 3: flow and message along an edge of relation r from a node with state h and attention a."""
        d = len(h)
        of_h = h @ self.weights[f"steps.{t}.send"]
        of_r = self.relation_vector(t, r)
        w1_h, w2_h, w_h = of_h[:d], of_h[d : 2 * d], of_h[-1]
        v, u, k, f = of_r[:d], of_r[d : 2 * d], of_r[2 * d : 3 * d], of_r[-1]
        rho = float({"edges": a * gate(w_h + f), "nodes": a, "off": 1.0}[self.form.gates])
        return rho, rho * (w1_h * (1 + k) + v) * gate(w2_h + u)

    def relation_vector(self, t: int, r: int) -> np.ndarray:
        """3: (v, u, k, f) of a relation to the question."""
        w, step, how = self.weights, f"steps.{t}", self.form.relation_vectors
        vector = w[f"{step}.relation"][r].copy()  # "adds a vector of the relation"
        if how == "plain":
            return np.asarray(vector)
        x = w["relations"][r]
        if how in ("turned", "each_step"):
            x = x + self.z @ map_of(w["turned"], r, len(x))  # x_r + T_r z_q
        hidden = relu(x @ w[f"{step}.relation_in"] + self.z @ w[f"{step}.query_in"])
        vector += hidden @ w[f"{step}.relation_out"]  # V_2 ReLU(V_1 x_{r,q} + V_q z_q)
        if r == self.asked:
            vector += w[f"{step}.asked"][0]  # "one more vector if r is the relation asked"
        if r == self.inverse:
            vector += w[f"{step}.asked"][1]  # "and another if r is the inverse of that"
        if how == "each_step":
            vector += self.z @ map_of(w[f"{step}.turned"], r, len(vector))  # "another map of z_q"
        return np.asarray(vector)

    def updated(self, t: int, h: np.ndarray, messages: np.ndarray, flow: float) -> np.ndarray:
        """4: the state of a node that messages came to."""
        w, step, n = self.weights, f"steps.{t}", len(messages)
        total = messages.sum(0)
        have = np.concatenate([h, total, total / n, [np.log(n)], [np.log(flow + LEAST_FLOW)]])
        change = have @ w[f"{step}.change"] + self.z @ w[f"{step}.change_query"]
        normal = (change - change.mean()) / np.sqrt(change.var() + NORM_EPSILON)
        return h + relu(normal * w[f"{step}.norm_weight"] + w[f"{step}.norm_bias"])

    def attention(self, t: int, h: np.ndarray) -> float:
        """5: g(b^T ReLU(A h + B z_q) + c)."""
        w, step = self.weights, f"steps.{t}"
        hidden = relu(h @ w[f"{step}.score_state"] + self.z @ w[f"{step}.score_query"])
        return float(gate(hidden @ w[f"{step}.score_weight"] + w[f"{step}.score_bias"][0]))


def map_of(maps: np.ndarray, relation: int, width: int) -> np.ndarray:
    """The map of one relation: maps stand side by side."""
    return maps[:, relation * width : (relation + 1) * width]


def gate(x: np.ndarray) -> np.ndarray:
    """g(x) = (1 + x / (1 + |x|)) / 2."""
    return (1 + x / (1 + np.abs(x))) / 2


def relu(x: np.ndarray) -> np.ndarray:
    """The positive part."""
    return np.maximum(x, 0)


def softmax(x: np.ndarray) -> np.ndarray:
    """Exponentials that sum to one."""
    y = np.exp(x - x.max())
    return np.asarray(y / y.sum())
