"""Section 3 of the paper in plain numpy, dense and one query after another: written from its equations alone.

Nothing here is taken from the program but the names of the weights. The five numbered equations of the paper's text are
(1) a step of the IGNN, (2) a step of the AGNN, (3) consecutive expansion, (4) the proposition's bound and (5) the
transition. Sections 2 and 3 give the parts of (1) and (2) in lists without numbers; a comment names the line that
is meant. Where the paper leaves something open, a comment says what the authors' program does.

No neighbours are sampled here: a node with more than N2 edges is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Edge = tuple[int, int, int]  # v', r, v: from v' to v
Query = tuple[int, int, int]  # head, rel, and the tail that is the answer
Weights = dict[str, np.ndarray]

SLOPE = 0.2  # of leakyReLU; open in the paper
FLOOR = 1e-20  # of attention worth following, and beside the probability in the loss; open in the paper


@dataclass(frozen=True)
class Settings:
    """T, N1, N2 and N3, and two things that the paper allows in two forms."""

    steps: int
    attending_from: int
    sampling_per_node: int
    attending_to: int
    softmax: Literal["edge", "pair"]
    ignn_output: Literal["last", "pool"]


@dataclass(frozen=True)
class Outcome:
    """What is compared: a^T (queries x entities), the loss, and how clear the choice of nodes was."""

    attention: np.ndarray
    loss: float
    margin: float  # smallest relative gap in attention between a node kept by N1 or N3 and one left out
    pruned: tuple[int, int]  # how many steps N1 and N3 left nodes out of


def section3(
    weights: Weights,
    edges: Sequence[Edge],  # of the batch's graph, inverses included, self-loops not
    ignn_edges: Sequence[Sequence[Edge]],  # the sampled edges of each IGNN step
    queries: Sequence[Query],
    settings: Settings,
) -> Outcome:
    """Answer every query and take the loss."""
    full = inattentive(weights, ignn_edges, settings.ignn_output)
    runs = [_Run(weights, edges, full, head, rel, settings) for head, rel, _ in queries]
    attention = np.stack([run.attention() for run in runs])
    # "We use attention scores at the final step as the probability to predict the tail node."
    losses = [-np.log(a[tail] + FLOOR) for a, (_, _, tail) in zip(attention, queries, strict=True)]
    pruned = sum(run.pruned[0] for run in runs), sum(run.pruned[1] for run in runs)
    return Outcome(attention, float(np.mean(losses)), min(run.margin for run in runs), pruned)


def inattentive(weights: Weights, ignn_edges: Sequence[Sequence[Edge]], output: str) -> np.ndarray:
    """Equation (1) repeated: the IGNN's state of every entity."""
    e, e_r = weights["entities"], weights["relations"]
    states = [e]  # "the initial H^0_v = e_v"
    for sampled in ignn_edges:
        h = states[-1]
        total, count = np.zeros_like(h), np.zeros(len(h))
        for v1, r, v in sampled:
            total[v] += two_layers(weights, "ignn.message", h[v1], e_r[r], h[v])  # (1), message function
            count[v] += 1
        mean = over_root(total, count)  # (1), message aggregation
        # (1), node state update function: for all v, also those that no message came to.
        changed = [two_layers(weights, "ignn.update", h[v], mean[v], e[v]) for v in range(len(h))]
        states.append(h + np.stack(changed))
    # "we output a pooling result or simply the last"; which pooling is open: the mean, step 0 included.
    return states[-1] if output == "last" else np.mean(states, axis=0)


class _Run:
    """One query x = <head, rel, ?>."""

    def __init__(
        self,
        weights: Weights,
        edges: Sequence[Edge],
        full: np.ndarray,
        head: int,
        rel: int,
        settings: Settings,
    ) -> None:
        self.weights, self.full, self.settings, self.head = weights, full, settings, head
        self.q_head, self.q_rel = weights["entities"][head], weights["relations"][rel]  # q_head, q_rel
        self.out: list[list[Edge]] = [[] for _ in full]
        for edge in edges:
            self.out[edge[0]].append(edge)
        assert all(len(out) <= settings.sampling_per_node for out in self.out), "N2 would sample"
        self.margin, self.pruned = np.inf, [0, 0]

    def attention(self) -> np.ndarray:
        """a^T."""
        n = len(self.full)
        a = np.zeros(n)
        a[self.head] = 1.0  # "The initial distribution a^0 is a one-hot vector with a^0[v_head] = 1."
        visited = np.zeros(n, bool)
        visited[self.head] = True  # V_{G^0(x)} = {v_head}
        h = np.zeros_like(self.full)  # "letting unseen nodes hold zero states"
        h[self.head] = self.full[self.head]  # "We initialize H^0_v(x) = H_v for node v in V_{G^0(x)}"
        for _ in range(self.settings.steps):
            # Section 2, N1: the attending-from horizon is part of G^t(x), so of the visited nodes.
            attending_from = self.top(np.where(visited, a, 0.0), self.settings.attending_from, 0)
            self_loop = len(self.weights["relations"]) - 1
            # "every node in KGs has a self-loop edge to itself": after sampling, which N2 does not reach here.
            scanned = {v1: [*self.out[v1], (v1, self_loop, v1)] for v1 in attending_from}
            ta = self.transition(h, visited, scanned) @ a
            a = ta / ta.sum()  # "a renormalized version, a^{t+1} = T^t a^t / ||T^t a^t||"
            attending_to = set(self.top(a, self.settings.attending_to, 1))  # Section 2, N3
            visited[list(attending_to)] = True  # (3)
            passing = [edge for out in scanned.values() for edge in out if edge[2] in attending_to]
            h = self.update(h, a, visited, passing)
        return a

    def top(self, a: np.ndarray, limit: int, which: int) -> list[int]:
        """Nodes "with the k-largest attention scores", of those that have attention."""
        order = [int(v) for v in np.argsort(-a) if a[v] > FLOOR]
        if len(order) > limit:
            self.pruned[which] += 1
            self.margin = min(self.margin, 1 - a[order[limit]] / a[order[limit - 1]])
        return order[:limit]

    def transition(self, h: np.ndarray, visited: np.ndarray, scanned: dict[int, list[Edge]]) -> np.ndarray:
        """T^t of equation (5): entities x entities, column v' is where v' sends its attention."""
        # "smaller dimensions to compute attention": one dense layer with tanh makes all vectors smaller, and nodes
        # that are not visited yet have a zero vector after it; both open in the paper.
        small_h = np.stack([self.small(x) for x in h]) * visited[:, None]
        small_full = np.stack([self.small(x) for x in self.full])
        q_head, q_rel = self.small(self.q_head), self.small(self.q_rel)
        matrix = np.zeros((len(h), len(h)))
        for v1, out in scanned.items():
            logits = []
            for _, r, v in out:
                c_r = np.concatenate([self.small(self.weights["relations"][r]), q_head, q_rel])  # c_r(x)
                sender = np.concatenate([small_h[v1], c_r])
                alpha1 = self.alpha("alpha1", sender, np.concatenate([small_h[v], c_r]))  # (5), second line
                alpha2 = self.alpha("alpha2", sender, np.concatenate([small_full[v], c_r]))  # (5), third line
                logits.append(alpha1 + alpha2)
            if (
                self.settings.softmax == "edge"
            ):  # the authors' program: an entry for each edge, added up afterwards
                for (_, _, v), share in zip(out, softmax(np.array(logits)), strict=True):
                    matrix[v, v1] += share
            else:  # (5), first line as it stands: the sum over r is inside
                tails = sorted({v for _, _, v in out})
                sums = [sum(x for x, edge in zip(logits, out, strict=True) if edge[2] == v) for v in tails]
                matrix[tails, v1] = softmax(np.array(sums))
        return matrix

    def small(self, x: np.ndarray) -> np.ndarray:
        """The projection that all inputs of the attention module share."""
        return np.tanh(dense(self.weights, "attention.project", x))

    def alpha(self, name: str, sender: np.ndarray, receiver: np.ndarray) -> float:
        """MLP(..)^T W MLP(..), "one single layer with the leakyReLu"; the program's W has a bias."""
        left = leaky(dense(self.weights, f"attention.{name}.left", sender))
        right = leaky(dense(self.weights, f"attention.{name}.right", receiver))
        return float(left @ dense(self.weights, f"attention.{name}.center", right))

    def update(self, h: np.ndarray, a: np.ndarray, visited: np.ndarray, passing: list[Edge]) -> np.ndarray:
        """Equation (2): the states of step t + 1 from those of step t and the attention of step t + 1."""
        query = (self.q_head, self.q_rel)
        total, count = np.zeros_like(h), np.zeros(len(h))
        for v1, r, v in passing:
            # (2), message function, with c_r(x) = [e_r, q_head, q_rel]; the order in the weights is that of these.
            total[v] += two_layers(
                self.weights, "agnn.message", h[v1], self.weights["relations"][r], h[v], *query
            )
            count[v] += 1
        mean = over_root(total, count)  # (2), message aggregation
        new = h.copy()
        for v in np.flatnonzero(visited):
            attended = a[v] * (self.weights["agnn.attend.weight"] @ self.full[v])  # (2), node state attending
            new[v] = h[v] + two_layers(
                self.weights, "agnn.update", h[v], mean[v], attended, *query
            )  # (2), update
        return new


def two_layers(weights: Weights, name: str, *inputs: np.ndarray) -> np.ndarray:
    """psi and delta: "a two-layer MLP (using leakyReLu for the first layer and tanh for the second)"."""
    hidden = leaky(dense(weights, f"{name}.first", np.concatenate(inputs)))
    return np.tanh(dense(weights, f"{name}.second", hidden))


def dense(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    """W x + b."""
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def over_root(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Sums divided "by the square root of N(v)", the number of messages; zero where there is none."""
    return total / np.sqrt(np.maximum(count, 1))[:, None]


def leaky(x: np.ndarray) -> np.ndarray:
    """The leakyReLU."""
    return np.where(x > 0, x, SLOPE * x)


def softmax(x: np.ndarray) -> np.ndarray:
    """Exponentials that sum to one."""
    y = np.exp(x - x.max())
    return y / y.sum()
