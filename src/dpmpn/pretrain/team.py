"""The processes that compute an update: this one, and more for the other cores, with some of the lanes each.

Processes and not threads, for the reason in `engine.workers`. Weights go to the others and gradients come back through
pipes: a model that knows no graph is small. What is computed does not depend on how many processes there are.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch

from dpmpn.config import Config, from_dict, to_dict
from dpmpn.engine.learning import Gradients
from dpmpn.engine.machine import Usage, keep_freed_memory, process_usage
from dpmpn.engine.model import Model
from dpmpn.engine.workers import ask_process, end_process, reply_of, serve, start_process
from dpmpn.errors import Diverged
from dpmpn.models import build_model
from dpmpn.pretrain.lanes import Lane, LaneResult, Places
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.pretrain.splits import Facts
from dpmpn.pretrain.validation import ValidationGraph

Message = tuple[dict[str, Any], dict[str, np.ndarray]]


class Team:
    """All lanes and validation graphs, dealt to this process and to others."""

    def __init__(
        self,
        model: Model,
        graphs: Sequence[Facts],
        validation: Sequence[Facts],
        config: Config,
        settings: PretrainingSettings,
        places: Sequence[Places],
    ) -> None:
        keep_freed_memory()
        self.model = model
        self._n_lanes, self._n_validation = len(places), len(validation)
        cores = config.run.threads or os.cpu_count() or 1
        count = min(cores, max(self._n_lanes, 1))
        members = range(count)
        self._lanes_of = [list(range(member, self._n_lanes, count)) for member in members]
        self._validation_of = [list(range(member, self._n_validation, count)) for member in members]
        self._processes: list[subprocess.Popen[bytes]] = []

        def share(member: int) -> Message:
            dealt = [validation[i] for i in self._validation_of[member]]
            lanes = [(lane, places[lane]) for lane in self._lanes_of[member]]
            return _message(config, settings, lanes, graphs, dealt)

        self._own = _Member(model, *share(0))
        try:
            for member in members[1:]:
                self._processes.append(start_process("dpmpn.pretrain.team"))
                meta, arrays = share(member)
                ask_process(self._processes[-1], meta, **arrays)
            for process in self._processes:
                reply_of(process)
        except BaseException:
            self.close()
            raise

    def update(self, step: int) -> list[LaneResult]:
        """The gradients of an update's batches, in the order of the lanes."""
        found = {}
        for member, (meta, arrays) in enumerate(self._all("update", step)):
            for lane, result in zip(self._lanes_of[member], meta["lanes"], strict=True):
                found[lane] = _lane_result(result, torch.from_numpy(arrays[str(lane)]), self.model)
        return [found[lane] for lane in range(self._n_lanes)]

    def validate(self) -> list[dict[str, Any]]:
        """The scores of each validation graph, with the weights that the model has now."""
        found: dict[int, dict[str, Any]] = {}
        for member, (meta, _) in enumerate(self._all("validate", 0)):
            found |= zip(self._validation_of[member], meta["summaries"], strict=True)
        return [found[graph] for graph in range(self._n_validation)]

    def usage(self) -> Usage:
        """CPU seconds and peak memory of all processes so far."""
        return process_usage([os.getpid(), *(process.pid for process in self._processes)])

    def close(self) -> None:
        """End the other processes."""
        for process in self._processes:
            end_process(process)
        self._processes = []

    def _all(self, what: str, step: int) -> list[Message]:
        """The replies of all members, this process first."""
        meta, intra_op = {"what": what, "step": step}, torch.get_num_threads()
        weights = _weights(self.model)
        torch.set_num_threads(1)  # the other cores have work of their own
        try:
            for process in self._processes:
                ask_process(process, meta, weights=weights)
            replies = [self._own.compute(meta), *map(reply_of, self._processes)]
        except BaseException:
            self.close()  # a reply left unread would be taken for the next one
            raise
        finally:
            torch.set_num_threads(intra_op)
        if wrong := next((reply["diverged"] for reply, _ in replies if "diverged" in reply), None):
            raise Diverged(wrong)
        return replies


class _Member:
    """The lanes and validation graphs of one process."""

    def __init__(self, model: Model, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.model, self.config = model, from_dict(meta["config"])
        settings = PretrainingSettings(**meta["settings"])
        graphs, validation = (
            [Facts(arrays[f"{kind}{i}"], *sizes) for i, sizes in enumerate(meta[kind])]
            for kind in ("graphs", "validation")
        )
        self.lanes = [
            Lane(model, graphs, self.config, settings, lane, places) for lane, places in meta["lanes"]
        ]
        self.validation = [ValidationGraph(facts, settings.validation_facts) for facts in validation]

    def compute(self, meta: dict[str, Any]) -> Message:
        """What an update or a validation needs of this process, or what is wrong with the weights."""
        try:
            return self._validate() if meta["what"] == "validate" else self._update(meta["step"])
        except Diverged as error:
            return {"diverged": str(error)}, {}
        except ZeroDivisionError:  # a kernel's softmax of what are no numbers
            return {"diverged": "the weights are too large to compute with"}, {}

    def _validate(self) -> Message:
        return {"summaries": [graph.summary(self.model, self.config) for graph in self.validation]}, {}

    def _update(self, step: int) -> Message:
        results = {lane.number: lane.gradients(step) for lane in self.lanes}
        told = [
            {
                "graph": result.graph,
                "queries": result.queries,
                "targets": result.targets,
                "loss": result.gradients.loss,
                "reached": result.gradients.reached,
                "places": result.places,
            }
            for result in results.values()
        ]
        return {"lanes": told}, {
            str(lane): result.gradients.shared.numpy() for lane, result in results.items()
        }


def _lane_result(told: dict[str, Any], shared: torch.Tensor, model: Model) -> LaneResult:
    table = model.entities
    nothing = np.empty(0, np.int64), table.new_empty(0, table.shape[1])
    gradients = Gradients(told["loss"], told["reached"], shared, *nothing)
    return LaneResult(told["graph"], told["queries"], told["targets"], gradients, told["places"])


def _message(
    config: Config,
    settings: PretrainingSettings,
    lanes: list[tuple[int, Places]],
    graphs: Sequence[Facts],
    validation: Sequence[Facts],
) -> Message:
    """What a member is told first."""
    meta: dict[str, Any] = {"config": to_dict(config), "settings": asdict(settings), "lanes": lanes}
    arrays: dict[str, np.ndarray] = {}
    for kind, some in (("graphs", graphs), ("validation", validation)):
        meta[kind] = [facts[1:] for facts in some]
        arrays |= {f"{kind}{i}": facts.triples for i, facts in enumerate(some)}
    return meta, arrays


def _weights(model: Model) -> np.ndarray:
    """All weights in one row, as gradients are."""
    weights: np.ndarray = torch.cat(
        [p.detach().reshape(-1) for p in model.shared_parameters().values()]
    ).numpy()
    return weights


def _compute(member: _Member, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Message:
    """Take over the weights, and answer."""
    parameters = member.model.shared_parameters().values()
    parts = torch.split(torch.from_numpy(arrays["weights"]), [p.numel() for p in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data.copy_(part.view_as(parameter))
    return member.compute(meta)


def _prepare(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    model = build_model(0, 0, from_dict(meta["config"]).model, 0)
    return partial(_compute, _Member(model, meta, arrays))


if __name__ == "__main__":
    serve(_prepare)
