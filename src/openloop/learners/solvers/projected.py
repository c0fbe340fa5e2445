"""Matrix factorisation with users projected out: f(Q) = min_P F(P, Q), lowered by L-BFGS.

Given Q, each user's vector is a small least-squares problem of her own rows. It is solved where they are and dropped
again, so the only state is Q, and an iteration is one pass that adds up over blocks of users. The blocks may lie in
memory, on disk or on a cluster: what this module asks of them is `Blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Array, Floats
from openloop.errors import DivergenceError
from openloop.support.progress import Advance

# A user's conjugate gradients begin at zero and end when this share of her gradient is left, or after so many steps:
# users who are not solved make an f whose gradient is not its own.
UNTIL, STEPS = 1e-5, 400
SETTLING = 4  # iterations that must gain as little as one sweep of ALS where that ends: each gains less than a sweep
MEMORY = 7  # pairs (s, y) that L-BFGS estimates the curvature from
SUFFICIENT, SHORTER, TRIES = 1e-4, 0.4, 12  # Armijo's rule: a step that lowers f too little is shortened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """What blocks are asked: all that they need beside their rows."""

    Q: Array  # [W b], (I, K + 1)
    c: float
    penalty: Floats  # λ of each entry of a row of P or Q
    scale: float = 1.0  # what a block's weights are multiplied by to have mean 1
    until: float = UNTIL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Totals:
    """What a block of users says of f at Q, or all of them together."""

    loss: float  # Σ w e² + Σ_u p_uᵀΛp_u
    sums: Array  # Σ w e x and Σ w x² of each item, (I, 2, K + 1)
    offsets: float = 0.0  # Σ_u a_u
    users: int = 0  # with a row


class Blocks(Protocol):
    """The rows of all users, in blocks of whole users."""

    def total(self, ask: Ask) -> Totals:
        """The totals over all blocks, added in their order."""
        ...

    def map(self, answer: Any, ask: Ask) -> Any:
        """A frame of what `answer` says of each block."""
        ...


def added(parts: Iterable[Totals]) -> Totals:
    """The sum of parts in their order: in double precision, and rounded once at the end."""
    loss, offsets, users, sums, dtype = 0.0, 0.0, 0, None, None
    for part in parts:
        loss, offsets, users = loss + part.loss, offsets + part.offsets, users + part.users
        if sums is None:
            sums, dtype = part.sums.astype(np.float64), part.sums.dtype
        else:
            sums += part.sums
    assert sums is not None  # noqa: S101 (there is a block, as there is a row)
    return Totals(loss=loss, sums=sums.astype(dtype), offsets=offsets, users=users)


# -- the descent ---------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True, eq=False)
class Descent:
    """How far a fit has come: what a checkpoint holds, and from which it goes on with the same bits."""

    Q: Array
    steps: list[Array] = field(default_factory=list[Array])  # s, the last of which is the latest
    changes: list[Array] = field(default_factory=list[Array])  # y, of the gradient
    values: list[float] = field(default_factory=list[float])  # f at the start, and after each iteration

    def settled(self, tol: float) -> bool:
        """Whether the last iterations together lowered f by no more than `tol` of it."""
        last = self.values[-1 - SETTLING :]
        return len(last) > SETTLING and last[0] - last[-1] <= tol * abs(last[-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescentPlan:
    """When to stop, whom to tell, and what to do after each iteration."""

    iterations: int
    tol: float
    advance: Advance
    keep: Callable[[Descent], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Landing:
    """f at one Q, its gradient and the diagonal that scales it."""

    Q: Array
    f: float
    gradient: Floats
    diagonal: Floats
    totals: Totals


def descend(blocks: Blocks, ask: Ask, found: Descent, plan: DescentPlan) -> tuple[Totals, bool]:
    """Improve `found` until f settles; returns the totals there, and whether it settled."""
    with threadpool_limits(1, "blas"):  # with more threads sums would round by their number
        here = evaluate_at(blocks, ask, found.Q)
        if not np.isfinite(here.f):
            raise DivergenceError(
                f"MF: the objective is {here.f} at the start: the numbers are too large; use smaller ratings or less "
                "uneven weights."
            )
        found.values = found.values or [here.f]
        while not found.settled(plan.tol):
            if len(found.values) > plan.iterations:
                return here.totals, False
            there = _lower(blocks, ask, found, here)
            if there is None:  # no step gives a lower value within floating-point precision
                break
            _remember(found, here, there)
            here = there
            plan.keep(found)
            plan.advance(len(found.values) - 1, f"objective {here.f:.6g}")
    return here.totals, True


def evaluate_at(blocks: Blocks, ask: Ask, Q: Array) -> Landing:
    """f, its gradient 2(ΛQ - Σ w e x) and the diagonal 2(Λ + Σ w x²) at Q: one pass over the rows."""
    got = blocks.total(replace(ask, Q=Q))
    f = got.loss + float(np.sum(np.einsum("ik,ik->k", Q, Q, dtype=np.float64) * ask.penalty))
    diagonal = 2 * (ask.penalty + got.sums[:, 1])
    diagonal[diagonal <= 0] = 1.0  # of a free offset without a rating; its gradient is 0
    with np.errstate(invalid="ignore"):  # of a step that was too long, and will be shortened
        gradient = 2 * (ask.penalty * Q - got.sums[:, 0])
    return Landing(Q=Q, f=f, gradient=gradient, diagonal=diagonal, totals=got)


def _lower(blocks: Blocks, ask: Ask, found: Descent, here: Landing) -> Landing | None:
    """A point that is lower by Armijo's rule; where the remembered curvature misleads, without it."""
    while True:
        direction = _direction(found, here)
        slope, t = -_dot(here.gradient, direction), 1.0
        for _ in range(TRIES if slope < 0 else 0):
            there = evaluate_at(blocks, ask, (here.Q - t * direction).astype(here.Q.dtype))
            if there.f <= here.f + SUFFICIENT * t * slope:
                return there
            t *= SHORTER
        if not found.steps:
            return None
        found.steps, found.changes = [], []


def _direction(found: Descent, here: Landing) -> Floats:
    """H⁻¹∇f by the two loops of L-BFGS (Nocedal & Wright 2006, Algorithm 7.4), from the diagonal."""
    q, pairs = here.gradient.copy(), list(zip(found.steps, found.changes, strict=True))
    alphas: list[float] = []
    for s, y in reversed(pairs):
        alphas.append(_dot(s, q) / _dot(s, y))
        q -= alphas[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= _dot(s, y) / _dot(y, y / here.diagonal)
    q /= here.diagonal
    for s, y in pairs:
        q += (alphas.pop() - _dot(y, q) / _dot(s, y)) * s
    return q


def _remember(found: Descent, here: Landing, there: Landing) -> None:
    s, y = there.Q - here.Q, (there.gradient - here.gradient).astype(there.Q.dtype)
    if _dot(s, y) > 0:  # else the curvature is not that of a minimum
        found.steps, found.changes = [*found.steps, s][-MEMORY:], [*found.changes, y][-MEMORY:]
    found.Q = there.Q
    found.values.append(there.f)


def _dot(a: Array, b: Array) -> float:
    """Σ ab in double precision, whatever the arrays are kept in."""
    return float(np.einsum("ik,ik->", a, b, dtype=np.float64))


# -- its ends ------------------------------------------------------------------------------------------------


def start_items(seen: Array, factors: int, dtype: Any, rng: np.random.Generator) -> Array:
    """Random vectors of about unit length and no offsets, (I, K + 1); an item without a rating has no vector."""
    Q = np.zeros((len(seen), factors + 1), dtype)
    drawn = rng.standard_normal((len(seen), factors), np.float32) / np.sqrt(max(factors, 1))
    Q[seen, :factors] = drawn[seen]
    return Q


def centred(ask: Ask, got: Totals, seen: Array) -> Ask:
    """Free offsets and c are known up to a shift: with means of 0, who has no rating gets the average offset.

    Users' offsets follow by themselves, as they are solved again where they are asked for.
    """
    Q, mean = ask.Q.copy(), float(ask.Q[seen, -1].mean(dtype=np.float64))
    Q[seen, -1] -= ask.Q.dtype.type(mean)
    return replace(ask, Q=Q, c=ask.c + mean + got.offsets / got.users)
