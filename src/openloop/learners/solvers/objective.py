"""The objective of matrix factorisation and a solution of it: Schnabel et al. 2016, Eq. 14.

    Σ_{(u,i) ∈ O} w_ui δ(Y_ui, v_uᵀw_i + a_u + b_i + c)  +  λ(‖V‖² + ‖W‖²)  +  λ_b(‖a‖² + ‖b‖²),

w of mean 1 (the paper's 1/P up to a factor), δ the squared error, the absolute error, or the logistic loss of labels 0
and 1, whose logit is what is predicted. A vector and its offset are one row: P = [V a] is (U, K + 1), Q = [W b] is
(I, K + 1); without offsets P is V, Q is W and c is 0. For positives alone (Hu et al. 2008) every cell of the grid
counts with the weight `rest` as well, as a 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import DivergenceError
from openloop.kernels.least_squares import Problem
from openloop.kernels.losses import Loss, squares_numpy


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    """What is minimised, apart from the data; `smoothing` is ε of the absolute loss."""

    factors: int
    reg: float
    bias_reg: float | None = None  # λ_b; None: no offsets
    loss: Loss = Loss.SQUARED
    smoothing: float = 0.0
    rest: float = 0.0
    constant: float = 0.0  # what the rows leave out of the objective

    @property
    def offsets(self) -> bool:
        """Whether there are any."""
        return self.bias_reg is not None

    @cached_property
    def penalty(self) -> Floats:
        """λ of each entry of a row of P or Q."""
        own = np.full(self.factors, self.reg)
        return own if self.bias_reg is None else np.append(own, self.bias_reg)

    def problem(self, X: Array) -> Problem:
        """What the kernel solves for one side, given the other, X."""
        prior = self.rest * (X.T @ X) if self.rest else None  # (K, K)
        return Problem(self.penalty, offsets=self.offsets, prior=prior, loss=self.loss, smoothing=self.smoothing)

    def penalty_of(self, P: Array) -> float:
        """λ‖V‖² + λ_b‖a‖²."""
        return float(np.sum(np.einsum("uk,uk->k", P, P, dtype=np.float64) * self.penalty))

    def losses(self, y: Array, z: Floats) -> tuple[Floats, Floats]:
        """δ(y, z) of each row, and its derivative in z, which is that of the square that touches it there."""
        loss, v, e = squares_numpy(self.loss, self.smoothing, y, z)
        return loss, -2 * v * e


@dataclass(slots=True, eq=False)
class Solution:
    """P, Q and c, the objective after each sweep, and whether it had settled when the last one ended."""

    P: Array  # [V a], (U, K + 1)
    Q: Array  # [W b], (I, K + 1)
    c: float = 0.0
    history: list[float] = field(default_factory=list[float])
    settled: bool = False
    learner: str = "MF"

    def record(self, value: float, tol: float) -> bool:
        """Note the objective; whether it fell by no more than `tol` of itself."""
        if not np.isfinite(value):
            raise DivergenceError(
                f"{self.learner}: the objective is {value} after sweep {len(self.history) + 1}: the numbers are too "
                "large, or too few ratings for a single solution; use a larger reg, or smaller ratings or less uneven "
                "weights."
            )
        self.settled = bool(self.history) and self.history[-1] - value <= tol * abs(value)
        self.history.append(value)
        return self.settled

    def notes(self, iterations: int, tol: float) -> list[str]:
        """A sentence where it was cut short."""
        why = f"stopped after {iterations} sweeps, before the objective had converged to tol={tol:g}"
        return [] if self.settled else [why]


def start(feedback: Feedback, objective: Objective, dtype: Any, rng: np.random.Generator) -> Solution:
    """Random vectors of about unit length, and no offsets; who has no rating has no vector."""
    K, width = objective.factors, len(objective.penalty)
    P, Q = (np.zeros((n, width), dtype) for n in (feedback.n_users, feedback.n_items))
    rated = np.zeros(len(Q), bool)
    rated[feedback.item] = True
    for side, seen in ((P, np.diff(feedback.user_ptr) > 0), (Q, rated)):
        drawn = rng.standard_normal((len(side), K), np.float32) / np.sqrt(max(K, 1))
        side[seen, :K] = drawn[seen]
    return Solution(P, Q)
