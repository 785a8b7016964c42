"""What an answer was made of: each step's messages by how much they count, as a flow from the head to the answers.

A message counts by its product with the gradient of the logits, each weighted by its answer's probability: how much the
answers would change without it. What speaks against an answer counts, too: explanations that left it out held less of
what the answer depends on (docs/stronger.md). Of a node's probability, edges into it (and its own earlier state, as a
self-loop) have the parts that their contributions are of all; so probability flows back along the edges, step by step,
to the head, and what flowed into a node adds up to what it had.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dpmpn.engine.frontier import Scan, Visited
from dpmpn.engine.trace import Choice, TraceStep
from dpmpn.ops.gate import ReceivedColumns

_LEAST = 1e-12  # of a contribution: a node whose messages all count for nothing still got its state from them


@dataclass(frozen=True, eq=False)
class StepRecord:
    """What a step did, for its part of the trace."""

    scan: Scan
    visited: Visited  # before the step
    senders_at: np.ndarray  # attending-from nodes: their index among the visited ones
    message: Tensor  # pairs x n_dims
    flow: np.ndarray  # pairs
    pair_offsets: np.ndarray
    received: Tensor  # slots x ReceivedColumns.width: the state before, and what messages brought
    choice: Choice | None  # of the slots, where there were too many


def contributions(
    records: list[StepRecord], logits: Tensor, probability: Tensor
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each step, how much its edges and the earlier states of its slots change the answers."""
    gradients = torch.autograd.grad(
        (probability.detach() * logits).sum(), [record.received for record in records], allow_unused=True
    )
    found = []
    for record, gradient in zip(records, gradients, strict=True):
        at, received = ReceivedColumns(record.message.shape[1]), record.received.detach()
        if gradient is None:
            gradient = torch.zeros_like(received)
        slot = torch.from_numpy(record.scan.edge_slot)
        pair = torch.from_numpy(np.repeat(np.arange(len(record.message)), np.diff(record.pair_offsets)))
        count = torch.bincount(slot, minlength=len(gradient))[:, None]
        # A message is in the sum and, divided by their number, in the mean.
        by_sum = gradient[:, at.sum] + gradient[:, at.mean] / count
        by_flow = gradient[:, at.log_flow] / received[:, at.log_flow].exp()  # of the logarithm of all flow
        carried = (record.message[pair] * by_sum[slot]).sum(1)
        edge = carried + torch.from_numpy(record.flow)[pair] * by_flow[slot]
        earlier = (received[:, at.state] * gradient[:, at.state]).sum(1)
        found.append((edge.abs().numpy(), earlier.abs().numpy()))
    return found


def traced_steps(
    records: list[StepRecord],
    brought: list[tuple[np.ndarray, np.ndarray]],
    visited: Visited,
    probability: np.ndarray,
    scores: np.ndarray,
    self_loop: int,
) -> list[TraceStep]:
    """The steps of a trace: back from the probabilities of all that was visited in the end.

    `scores` are what nodes were chosen by, for each row of the states.
    """
    after, attention = visited, probability.astype(np.float64)
    steps = []
    for record, (edge, earlier) in zip(reversed(records), reversed(brought), strict=True):
        step, attention = _traced(record, edge, earlier, after, attention, scores[after.row], self_loop)
        steps.append(step)
        after = record.visited
    return steps[::-1]


def _traced(
    record: StepRecord,
    edge: np.ndarray,
    earlier: np.ndarray,
    after: Visited,
    attention: np.ndarray,
    score: np.ndarray,
    self_loop: int,
) -> tuple[TraceStep, np.ndarray]:
    """The step of a trace, and the attention of the nodes visited before it.

    Every node that was visited before is one that attention was at. A node that was not expanded has its self-loop
    alone: there it waited.
    """
    scan, before = record.scan, record.visited
    n_before, lengths = len(before.node), np.diff(scan.edge_offsets)
    slot_index, is_loop = _slot_indices(scan, before, after), scan.edge_relation == self_loop
    sender = np.repeat(record.senders_at, lengths)
    # By index before the step: what the earlier state brought, which is all where no message came.
    kept = np.ones(n_before)
    seen = scan.slot_visited >= 0
    kept[scan.slot_visited[seen]] = earlier[seen]
    edge = np.maximum(edge + is_loop * kept[sender], _LEAST)
    waits = np.ones(n_before, bool)  # nodes without a self-loop among the edges
    waits[sender[is_loop]] = False
    # Nodes before the step in their order: the edges of those attended from, and at last their self-loops.
    counts = waits.astype(np.int64)
    counts[record.senders_at] += lengths
    offsets = np.concatenate([[0], np.cumsum(counts)])
    target, weight = np.empty(offsets[-1], np.int64), np.empty(offsets[-1])
    relation = np.full(offsets[-1], self_loop, np.int32)
    own = offsets[1:][waits] - 1
    target[own], weight[own] = _kept_indices(before, after)[waits], np.maximum(kept[waits], _LEAST)
    at = np.repeat(offsets[record.senders_at] - scan.edge_offsets[:-1], lengths) + np.arange(len(edge))
    target[at], weight[at], relation[at] = slot_index[scan.edge_slot], edge, scan.edge_relation
    total = np.bincount(target, weight, len(after.node))
    flow = weight * (attention / np.maximum(total, _LEAST))[target]
    sent = np.bincount(np.repeat(np.arange(n_before), counts), flow, n_before)
    query = np.repeat(np.arange(len(before.offsets) - 1), np.diff(before.offsets))
    attended_to = np.zeros(len(after.node), bool)
    attended_to[slot_index] = True
    attended_from = np.zeros(n_before, bool)
    attended_from[record.senders_at] = True
    step = TraceStep(
        query, before.node, sent, attended_from, offsets, relation, after.node[target], target, flow,
        after.offsets, after.node, attention, score, attended_to, record.choice,
    )  # fmt: skip
    return step, sent


def _kept_indices(before: Visited, after: Visited) -> np.ndarray:
    """Where the nodes visited before a step stand after it: first of their query's, in the same order."""
    shift = after.offsets[:-1] - before.offsets[:-1]
    indices: np.ndarray = np.arange(len(before.node)) + np.repeat(shift, np.diff(before.offsets))
    return indices


def _slot_indices(scan: Scan, before: Visited, after: Visited) -> np.ndarray:
    """Where the slots stand among the nodes visited after the step: new ones follow the earlier ones of their query."""
    new = scan.slot_visited < 0
    indices = np.empty(scan.n_slots, np.int64)
    indices[~new] = _kept_indices(before, after)[scan.slot_visited[~new]]
    number = np.cumsum(new) - 1
    first = np.concatenate([[0], np.cumsum(new)])[scan.slot_offsets[:-1]]
    start = after.offsets[:-1] + np.diff(before.offsets)
    indices[new] = (start[scan.slot_query] + number - first[scan.slot_query])[new]
    return indices
