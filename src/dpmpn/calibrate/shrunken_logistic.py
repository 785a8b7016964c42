"""Logistic regression whose constant and slope differ by cell, shrunk from all cells towards each by its own evidence.

    P(right | x, z, cell) = σ(wᵀx + u_cellᵀz),    u_cell ~ N(0, diag(σ₁², σ₂², ...)),    w ~ N(0, 5²)

z are those of the features x by which cells may differ. A cell without cases has u = 0 and the uncertainty σ². How much
cells differ, σ, is what makes all cases most probable (Laplace's approximation, by expectation and maximisation), so
that cells that do not differ are one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_PRIOR = 25.0  # variance of w
_FIRST, _LEAST = 1.0, 1e-3  # variance of what differs by cell: to begin with, and the least
_ROUNDS, _STEPS, _SETTLED = 40, 30, 1e-3
_DIGITS = 8  # of what is kept


def sigmoid(logit: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-logit)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * logit)))


@dataclass(frozen=True, eq=False)
class ShrunkenLogistic:
    """A fitted regression, with what its uncertainty needs: a Hessian of [[A, B], [Bᵀ, D]], D a block for each cell."""

    differing: tuple[int, ...]  # z: which features
    coefficients: np.ndarray  # w: features
    covariance: np.ndarray  # (A - B D⁻¹ Bᵀ)⁻¹: features x features
    offsets: np.ndarray  # u: cells x differing
    spread: np.ndarray  # D⁻¹: cells x differing x differing
    pull: np.ndarray  # D⁻¹ Bᵀ: cells x differing x features
    variance: np.ndarray  # σ²: differing

    def logit(self, features: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the logit of each case, rows of features (cases x features)."""
        z = features[:, self.differing]
        mean = features @ self.coefficients + np.einsum("nk,nk->n", z, self.offsets[cell])
        apart = features - np.einsum("nk,nkf->nf", z, self.pull[cell])  # of the cell's mean
        variance = np.einsum("nf,fg,ng->n", apart, self.covariance, apart)
        return mean, variance + np.einsum("nk,nkl,nl->n", z, self.spread[cell], z)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; of the cells only those that had cases."""
        used = np.flatnonzero(self.pull.any(axis=(1, 2)))
        arrays = {"coefficients": self.coefficients, "covariance": self.covariance, "variance": self.variance}
        of_cells = {"offsets": self.offsets[used], "spread": self.spread[used], "pull": self.pull[used]}
        plain = {name: _plain(values) for name, values in (arrays | of_cells).items()}
        return plain | {
            "differing": list(self.differing),
            "n_cells": len(self.offsets),
            "cells": used.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ShrunkenLogistic":
        """Read plain values; ValueError, KeyError, TypeError or IndexError if they are something else."""
        w, covariance, variance = (
            np.array(values[name], np.float64) for name in ("coefficients", "covariance", "variance")
        )
        differing, n_cells = tuple(int(k) for k in values["differing"]), int(values["n_cells"])
        used, n, k = np.array(values["cells"], np.int64), len(w), len(differing)
        if not 0 <= n_cells <= 2**32 or (used < 0).any() or not all(0 <= i < n for i in differing):
            raise ValueError("a regression of cells or features that there are not")
        offsets, spread, pull = np.zeros((n_cells, k)), np.zeros((n_cells, k, k)), np.zeros((n_cells, k, n))
        spread[:] = np.diag(variance)
        for array, name in ((offsets, "offsets"), (spread, "spread"), (pull, "pull")):
            array[used] = np.array(values[name], np.float64).reshape(len(used), *array.shape[1:])
        arrays = (w, covariance, variance, offsets, spread, pull)
        if covariance.shape != (n, n) or not all(np.isfinite(array).all() for array in arrays):
            raise ValueError("a regression whose parts do not fit together, or are not finite")
        return cls(differing, w, covariance, offsets, spread, pull, variance)


def fit(
    features: np.ndarray,  # cases x features; the first one is 1
    cell: np.ndarray,  # cases: which cell each is of
    right: np.ndarray,  # cases: bool
    weight: np.ndarray,  # cases: how many each stands for
    n_cells: int,
    differing: tuple[int, ...] = (0,),  # features that may count differently in each cell
    rising: Sequence[
        int
    ] = (),  # features that speak for being right: one that would speak against is left out
    expected: Sequence[float] | None = None,  # what w is drawn to; 0 if left out
    variance: float = _PRIOR,  # of w around it
) -> ShrunkenLogistic:
    """The most probable regression."""
    used, of_used = np.unique(cell, return_inverse=True)
    active = np.ones(features.shape[1], bool)
    centre = np.zeros(features.shape[1]) if expected is None else np.array(expected, np.float64)
    while True:
        own = tuple(int(np.cumsum(active)[k]) - 1 for k in differing if active[k])
        fitted = _Fit(
            features[:, active],
            of_used,
            right.astype(np.float64),
            weight,
            len(used),
            own,
            centre[active],
            variance,
        )
        fitted.run()
        kept = np.flatnonzero(active)
        against = [i for i in rising if active[i] and fitted.w[np.searchsorted(kept, i)] < 0]
        if not against:
            return fitted.result(kept, features.shape[1], used, n_cells)
        active[against] = False


class _Fit:
    """Newton's method for w and u, in which the cells' blocks are inverted one by one; and σ after each convergence."""

    def __init__(
        self,
        features: np.ndarray,
        cell: np.ndarray,
        right: np.ndarray,
        weight: np.ndarray,
        n_cells: int,
        differing: tuple[int, ...],
        centre: np.ndarray,
        variance: float,
    ) -> None:
        self.x, self.z, self.cell = features, features[:, differing], cell
        self.right, self.weight, self.n_cells, self.differing = right, weight, n_cells, differing
        n, k = features.shape[1], len(differing)
        self.centre, self.ridge = centre, np.full(n, 1 / variance)
        self.variance = np.full(k, _FIRST)
        self.w, self.u = centre.copy(), np.zeros((n_cells, k))

    def run(self) -> None:
        """Until neither the values nor how much cells differ changes any more."""
        for _ in range(_ROUNDS):
            self._converge()
            of_cells = self.spread + np.einsum("ckf,fg,clg->ckl", self.pull, self.covariance, self.pull)
            sure = np.einsum("ckk->ck", of_cells)
            before, self.variance = self.variance, np.maximum((self.u**2 + sure).mean(axis=0), _LEAST)
            if np.abs(np.log(self.variance / before)).max(initial=0) < 0.02:
                break

    def _objective(self, w: np.ndarray, u: np.ndarray) -> float:
        logit = self._logit(w, u)
        likelihood = self.weight @ (self.right * logit - np.logaddexp(0, logit))
        return float(likelihood - 0.5 * (self.ridge @ (w - self.centre) ** 2 + (u**2 / self.variance).sum()))

    def _logit(self, w: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.x @ w + np.einsum("nk,nk->n", self.z, u[self.cell]))

    def _converge(self) -> None:
        value = self._objective(self.w, self.u)
        for _ in range(_STEPS):
            p = sigmoid(self._logit(self.w, self.u))
            self._curve(self.weight * p * (1 - p))
            gap = self.weight * (self.right - p)
            slope_w = self.x.T @ gap - self.ridge * (self.w - self.centre)
            slope_u = self._summed(gap[:, None] * self.z) - self.u / self.variance
            step_w = self.covariance @ (slope_w - np.einsum("ckf,ck->f", self.pull, slope_u))
            step_u = np.einsum("ckl,cl->ck", self.spread, slope_u) - np.einsum("ckf,f->ck", self.pull, step_w)
            size = 1.0
            while (after := self._objective(self.w + size * step_w, self.u + size * step_u)) < value:
                size /= 2
                if size < 1e-6:
                    return
            self.w, self.u = self.w + size * step_w, self.u + size * step_u
            gain, value = after - value, after
            if gain < _SETTLED:
                return

    def _curve(self, curvature: np.ndarray) -> None:
        """The inverse of the Hessian, in its blocks."""
        n, k = self.x.shape[1], self.z.shape[1]
        of_z = self._summed(
            (curvature[:, None, None] * self.z[:, :, None] * self.z[:, None, :]).reshape(-1, k * k)
        )
        block = of_z.reshape(-1, k, k) + np.diag(1 / self.variance)
        coupling = self._summed(
            (curvature[:, None, None] * self.z[:, :, None] * self.x[:, None, :]).reshape(-1, k * n)
        )
        self.spread = np.linalg.inv(block)
        coupling = coupling.reshape(-1, k, n)
        self.pull = self.spread @ coupling
        hessian = (self.x.T * curvature) @ self.x + np.diag(self.ridge)
        self.covariance = np.linalg.inv(hessian - np.einsum("ckf,ckg->fg", coupling, self.pull))

    def _summed(self, values: np.ndarray) -> np.ndarray:
        """Sums of the columns over each cell: cells x columns."""
        return np.stack([np.bincount(self.cell, column, self.n_cells) for column in values.T], 1)

    def result(self, kept: np.ndarray, n_features: int, used: np.ndarray, n_cells: int) -> ShrunkenLogistic:
        """For all features and cells: features left out count nothing, and cells without cases differ by σ."""
        k = len(self.differing)
        w, covariance = np.zeros(n_features), np.zeros((n_features, n_features))
        w[kept], covariance[np.ix_(kept, kept)] = self.w, self.covariance
        offsets, spread = np.zeros((n_cells, k)), np.zeros((n_cells, k, k))
        pull = np.zeros((n_cells, k, n_features))
        offsets[used], spread[:], spread[used] = self.u, np.diag(self.variance), self.spread
        pull[np.ix_(used, np.arange(k), kept)] = self.pull
        differing = tuple(int(kept[i]) for i in self.differing)
        return ShrunkenLogistic(differing, w, covariance, offsets, spread, pull, self.variance)


def _plain(values: np.ndarray) -> Any:
    return np.vectorize(lambda x: float(f"{x:.{_DIGITS}g}"), otypes=[float])(values).tolist()
