"""Adam as the authors' program ran it: epsilon 1e-7 beside the uncorrected root, gradient norms clipped per variable.

The entity table is updated in one of two ways. Dense: every row at every step, as Keras does. Rows: only rows with a
gradient; a row's moments are first decayed by the number of steps it missed, so they and the bias correction are
those of the dense form, but a row does not move while it has no gradient (the dense form lets it drift on its old
momentum). Rows cost the same on a table of any size.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from dpmpn.config import TrainingConfig
from dpmpn.engine.learning import Gradients
from dpmpn.engine.model import Model
from dpmpn.kernels import Floats, Ints, Rows, float_kernel

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7
WARM_UP_BATCHES = 100
LAST_FACTOR = 0.01
AVERAGED_EVERY = 10  # steps: neighbours differ so little that averaging each would only cost time


@float_kernel
def _dense_rows(
    values: Rows, first: Rows, second: Rows, row_of: Ints, gradients: Rows, rate: float, beta1: float,
    beta2: float, epsilon: float, scale: float,
) -> None:  # fmt: skip
    for i in range(len(values)):
        x, m, v = values[i], first[i], second[i]
        if row_of[i] >= 0:
            g = gradients[row_of[i]]
            for k in range(len(x)):
                d = scale * g[k]
                m[k] += (1 - beta1) * (d - m[k])
                v[k] += (1 - beta2) * (d * d - v[k])
                x[k] -= rate * m[k] / (np.sqrt(v[k]) + epsilon)
        else:
            for k in range(len(x)):
                m[k] *= beta1
                v[k] *= beta2
                x[k] -= rate * m[k] / (np.sqrt(v[k]) + epsilon)


@float_kernel
def _dense(
    values: Floats, first: Floats, second: Floats, gradient: Floats, rate: float, beta1: float, beta2: float,
    epsilon: float, scale: float,
) -> None:  # fmt: skip
    """One variable as a whole."""
    for k in range(len(values)):
        d = scale * gradient[k]
        first[k] += (1 - beta1) * (d - first[k])
        second[k] += (1 - beta2) * (d * d - second[k])
        values[k] -= rate * first[k] / (np.sqrt(second[k]) + epsilon)


@float_kernel
def _touched_rows(
    values: Rows, first: Rows, second: Rows, last_step: Ints, step: int, rows: Ints, gradients: Rows, rate: float,
    beta1: float, beta2: float, epsilon: float, scale: float,
) -> None:  # fmt: skip
    for i in range(len(rows)):
        row = rows[i]
        x, m, v, g = values[row], first[row], second[row], gradients[i]
        missed = step - 1 - last_step[row]
        decay1, decay2 = beta1**missed, beta2**missed
        for k in range(len(x)):
            d = scale * g[k]
            m[k] = beta1 * decay1 * m[k] + (1 - beta1) * d
            v[k] = beta2 * decay2 * v[k] + (1 - beta2) * d * d
            x[k] -= rate * m[k] / (np.sqrt(v[k]) + epsilon)
        last_step[row] = step


@float_kernel
def _norm(rows: Rows) -> float:
    total = 0.0
    for i in range(len(rows)):
        for k in range(rows.shape[1]):
            total += rows[i, k] * rows[i, k]
    return float(np.sqrt(total))


class Adam:
    """The optimiser's state and its step."""

    def __init__(self, model: Model, config: TrainingConfig) -> None:
        self.model, self.config = model, config
        self.by_rows = config.adam_by_rows(len(model.entities)) and model.entities.device.type == "cpu"
        self.step_count = 0
        self.first = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
        self.second = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
        self.last_step = torch.zeros(len(model.entities) if self.by_rows else 0, dtype=torch.int64)
        self.average: dict[str, Tensor] = {}  # of recent weights: better than the weights of any one step
        if config.weight_average:
            self.average = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def step(self, gradients: Gradients, factor: float = 1.0) -> None:
        """Move all parameters against their gradients; `factor` scales the learning rate of this step."""
        self.step_count += 1
        corrections = math.sqrt(1 - BETA2**self.step_count) / (1 - BETA1**self.step_count)
        rate = factor * self.config.learning_rate * corrections
        shared = self.model.shared_parameters()
        parts = torch.split(gradients.shared, [parameter.numel() for parameter in shared.values()])
        for (name, parameter), part in zip(shared.items(), parts, strict=True):
            self._update_shared(name, parameter.detach(), part, rate)
        self._update_entities(gradients.rows, gradients.entities, rate)
        if self.average and self.step_count % AVERAGED_EVERY == 0:
            # A short run's average must not be of the initial values.
            share = min(self.config.weight_average, (1 + self.step_count) / (10 + self.step_count))
            kept = share**AVERAGED_EVERY
            for name, average in self.average.items():
                average.lerp_(self.model.get_parameter(name), 1 - kept)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The model with the average of its weights in their place, where there is one."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, average in self.average.items():
            parameter = self.model.get_parameter(name)
            weights = parameter.clone()
            parameter.copy_(average)  # in place: worker processes share this memory
            average.copy_(weights)

    def _update_shared(self, name: str, parameter: Tensor, gradient: Tensor, rate: float) -> None:
        """One variable that is not the entity table, all of it."""
        tensors = (parameter.view(-1), self.first[name].view(-1), self.second[name].view(-1), gradient)
        if parameter.device.type != "cpu":
            self._update_on_device(*tensors, None, rate)
            return
        values, first, second, own = (x.numpy() for x in tensors)
        scale = values.dtype.type(self._clip(_norm(own[None])))
        constants = (*self._constants(values.dtype, rate), scale)
        _dense(values, first, second, own, *constants)

    def _update_entities(self, rows: Tensor, entities: np.ndarray, rate: float) -> None:
        """The entity table, of which these entities have gradients."""
        tensors = (self.model.entities.detach(), self.first["entities"], self.second["entities"], rows)
        if rows.device.type != "cpu":
            self._update_on_device(*tensors, entities, rate)
            return
        values, first, second, gradients = (x.numpy() for x in tensors)
        scale = values.dtype.type(self._clip(_norm(gradients)))
        constants = (*self._constants(values.dtype, rate), scale)
        if self.by_rows:
            last_step = self.last_step.numpy()
            _touched_rows(values, first, second, last_step, self.step_count, entities, gradients, *constants)
            return
        row_of = np.full(len(values), -1, np.int64)
        row_of[entities] = np.arange(len(gradients))
        _dense_rows(values, first, second, row_of, gradients, *constants)

    @staticmethod
    def _constants(dtype: np.dtype, rate: float) -> tuple[np.floating, ...]:
        return tuple(dtype.type(x) for x in (rate, BETA1, BETA2, EPSILON))

    def _update_on_device(
        self,
        table: Tensor,
        first: Tensor,
        second: Tensor,
        gradient: Tensor,
        entities: np.ndarray | None,
        rate: float,
    ) -> None:
        """The dense form in PyTorch operations."""
        gradient = gradient * self._clip(float(gradient.norm()))
        if entities is not None:
            at = torch.from_numpy(entities).to(table.device)
            gradient = torch.zeros_like(table).index_copy_(0, at, gradient)
        gradient = gradient.view_as(table)
        first.lerp_(gradient, 1 - BETA1)
        second.lerp_(gradient * gradient, 1 - BETA2)
        table.sub_(rate * first / (second.sqrt() + EPSILON))

    def _clip(self, norm: float) -> float:
        limit = self.config.grad_clipnorm
        return limit / norm if limit is not None and norm > limit else 1.0

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on, by name."""
        tensors = {f"first.{name}": x for name, x in self.first.items()}
        tensors |= {f"second.{name}": x for name, x in self.second.items()}
        tensors |= {f"average.{name}": x for name, x in self.average.items()}
        return tensors | {"last_step": self.last_step, "step_count": torch.tensor(self.step_count)}

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from a saved state."""
        for name, x in self.state().items():
            if name != "step_count":
                x.copy_(tensors[name])
        self.step_count = int(tensors["step_count"])


def impossible(state: Mapping[str, Tensor], n_queries: int) -> str | None:
    """What no training of so many queries could have left in a state; None where it could be one."""
    steps, last_step = int(state["step_count"]), state["last_step"]
    if not 0 <= steps <= n_queries:
        return f"it counts {steps} steps of {n_queries} queries"
    if len(last_step) and not 0 <= int(last_step.min()) <= int(last_step.max()) <= steps:
        return f"rows were changed in other than its {steps} steps"
    negative = next((name for name, x in state.items() if name.startswith("second.") and (x < 0).any()), None)
    return None if negative is None else f"squares in '{negative}' are negative"


OPTIMISERS = {"adam": Adam}
"""By their names in the configuration."""


def learning_rate_factor(schedule: str, position: int, total: int | None, batch_size: int) -> float:
    """What `learning_rate` is multiplied with for the batch at a position of a run of `total` queries.

    "linear": rises over the first 100 batches (half of a run that has fewer than 200), then falls evenly to 1 % at
    the end. A run whose end is not known has nothing to fall to; its learning rate stays as it is.
    """
    if schedule == "constant" or total is None:
        return 1.0
    warm_up = min(WARM_UP_BATCHES * batch_size, total / 2)
    if position < warm_up:
        return min(1.0, (position + batch_size) / warm_up)
    left = max(0.0, (total - position) / (total - warm_up))
    return LAST_FACTOR + (1 - LAST_FACTOR) * left
