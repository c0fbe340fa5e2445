"""One-bit matrix completion: the likelihood of O under P = σ(μ + LRᵀ), and its maximum under a bound on LRᵀ.

It works on the whole grid in blocks of users, and never holds more than a few blocks in memory. `LowRank` chooses the
radii.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from openloop.core.feedback import Array, Feedback, Floats

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

BLOCK = 2**17  # cells at a time: they stay in the processor's cache
WINDOW = 10  # iterations over which a change is judged: with momentum it comes in waves
NUDGE = 0.1  # of the size of a factor under the bound
GROWTH = 1.2  # of the step from one iteration to the next
ROUNDING = 1e-12  # of a loss
MOST_NEWTON = 50
MOST_HALVINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogitFactors:
    """A = μ + LRᵀ, or the gradient by these."""

    mu: float
    L: Floats  # (U, k)
    R: Floats  # (I, k)

    def widened(self, rank: int) -> LogitFactors:
        """The same A with columns of zeros, up to a rank."""
        more = ((0, 0), (0, rank - self.L.shape[1]))
        return replace(self, L=np.pad(self.L, more), R=np.pad(self.R, more))


# ------------------------------------------------------------------------------------------ the bounds


def project_nuclear(L: Floats, R: Floats, radius: float) -> tuple[Floats, Floats]:
    """The nearest factors with (‖L‖_F² + ‖R‖_F²)/2 ≤ τ√(U·I): all shrink alike.

    ‖LRᵀ‖_* is the least such sum over all factors of the same product (Srebro et al. 2005).
    """
    squares = float(np.vdot(L, L) + np.vdot(R, R))
    bound = 2 * radius * float(np.sqrt(len(L) * len(R)))
    shrink = float(np.sqrt(bound / max(squares, bound)))
    return L * shrink, R * shrink


def project_max(L: Floats, R: Floats, radius: float) -> tuple[Floats, Floats]:
    """The nearest factors whose rows have squared norms of at most τ: long rows are cut.

    ‖LRᵀ‖_max is the least bound on those over all factors of the same product. It bounds every entry, and
    ‖LRᵀ‖_* ≤ √(U·I)·‖LRᵀ‖_max, so the two radii are comparable.
    """
    return _cut(L, radius), _cut(R, radius)


def _cut(rows: Floats, radius: float) -> Floats:
    squares = np.einsum("nk,nk->n", rows, rows)
    return rows * np.sqrt(radius / np.maximum(squares, radius))[:, None]


Projection = Callable[[Floats, Floats, float], tuple[Floats, Floats]]
PROJECTIONS: dict[str, Projection] = {"nuclear": project_nuclear, "max": project_max}


# ------------------------------------------------------------------------------------------ the likelihood


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridPart:
    """One of n random parts of the grid, without a number stored for each cell.

    The product of two random odd words is, in its high bits, as good as a fresh random word for each cell.
    """

    user: Words  # (U,)
    item: Words  # (I,)
    first: np.uint64
    width: np.uint64

    @classmethod
    def draw(cls, U: int, I: int, n: int, rng: np.random.Generator) -> list[GridPart]:
        """n parts, equally likely for each cell, that together are the grid."""
        user, item = (rng.integers(2**64, size=size, dtype=np.uint64) | np.uint64(1) for size in (U, I))
        edges = [2**64 * part // n for part in range(n + 1)]
        return [cls(user=user, item=item, first=np.uint64(a), width=np.uint64(b - a)) for a, b in pairwise(edges)]

    def holds(self, user: Array, item: Array) -> Mask:
        """Whether cells are in this part."""
        return self.user[user] * self.item[item] - self.first < self.width


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedGrid:
    """The grid with O/s on it, perhaps without a held-out part."""

    user: Array  # (n,)
    item: Array  # (n,)
    O: Floats  # (n,) O/s; 0 where held out
    ptr: Array  # (U + 1,)
    U: int
    I: int
    walk: Callable[..., Iterator[Any]] = map  # perhaps by threads, but in the order of blocks
    held_out: GridPart | None = None

    @classmethod
    def of(cls, feedback: Feedback, rows: Floats, walk: Callable[..., Iterator[Any]] = map) -> ObservedGrid:
        """All cells of a log whose rows count as given."""
        U, I = feedback.n_users, feedback.n_items
        return cls(user=feedback.user, item=feedback.item, O=rows, ptr=feedback.user_ptr, U=U, I=I, walk=walk)

    def without(self, part: GridPart) -> ObservedGrid:
        """All cells but those of a part."""
        return replace(self, O=np.where(part.holds(self.user, self.item), 0.0, self.O), held_out=part)

    def start(self, rank: int) -> LogitFactors:
        """The same p for every cell."""
        mu = float(logit(self.O.sum() / (self.U * self.I)))
        return LogitFactors(mu=mu, L=np.zeros((self.U, rank)), R=np.zeros((self.I, rank)))

    def loss(self, at: LogitFactors) -> float:
        """−ℓ = Σ log(1 + e^A) − (O/s)·A."""
        return sum(self._walk(lambda users: self._loss(users, *_logits(at, users), self._kept(users))))

    def slope(self, at: LogitFactors) -> tuple[float, LogitFactors]:
        """−ℓ and its gradient: with G = P − O/s it is Σ G by μ, GR by L, GᵀL by R."""
        total, by_mu, by_L, by_R = 0.0, 0.0, np.empty_like(at.L), np.zeros_like(at.R)

        def block(users: slice) -> tuple[float, float, Floats, Floats]:
            (A, e), kept = _logits(at, users), self._kept(users)  # (B, I) each
            loss, G = self._loss(users, A, e, kept), self._residuals(users, A, e, kept)
            return loss, float(G.sum()), G @ at.R, (at.L[users].T @ G).T

        for users, (loss, mu, L, R) in zip(self._blocks(), self._walk(block), strict=True):
            total, by_mu = total + loss, by_mu + mu
            by_L[users] = L
            by_R += R
        return total, LogitFactors(mu=by_mu, L=by_L, R=by_R)

    def mass(self, at: LogitFactors) -> tuple[float, float]:
        """Σ p and Σ p(1 − p)."""

        def block(users: slice) -> tuple[float, float]:
            P = _sigmoid(*_logits(at, users))  # (B, I)
            return float(P.sum()), float(P.sum() - np.vdot(P, P))

        sums = np.array(list(self._walk(block)))  # (blocks, 2)
        return float(sums[:, 0].sum()), float(sums[:, 1].sum())

    def _blocks(self) -> list[slice]:
        size = max(1, BLOCK // self.I)
        return [slice(first, min(first + size, self.U)) for first in range(0, self.U, size)]

    def _walk(self, work: Callable[[slice], Any]) -> Iterator[Any]:
        blocks = self._blocks()
        return self.walk(work, blocks) if len(blocks) > 1 else map(work, blocks)

    def _loss(self, users: slice, A: Floats, e: Floats, kept: Mask | None) -> float:
        lost = np.log1p(e)  # log(1 + e^A) = log(1 + e^−|A|) + max(A, 0)
        lost += np.maximum(A, 0.0)
        if kept is not None:
            lost *= kept
        at, O = self._rows(users)
        return float(lost.sum() - A[at] @ O)

    def _residuals(self, users: slice, A: Floats, e: Floats, kept: Mask | None) -> Floats:
        G = _sigmoid(A, e)
        if kept is not None:
            np.multiply(G, kept, out=G)
        at, O = self._rows(users)
        G[at] -= O
        return G

    def _kept(self, users: slice) -> Mask | None:
        if self.held_out is None:
            return None
        return ~self.held_out.holds(np.arange(users.start, users.stop)[:, None], np.arange(self.I))  # (B, I)

    def _rows(self, users: slice) -> tuple[tuple[Array, Array], Floats]:
        """Where a block has its rows, and their O/s."""
        rows = slice(self.ptr[users.start], self.ptr[users.stop])
        return (self.user[rows] - users.start, self.item[rows]), self.O[rows]


def _logits(at: LogitFactors, users: slice) -> tuple[Floats, Floats]:
    """A and e^−|A|, which cannot overflow, of a block."""
    A = at.L[users] @ at.R.T  # (B, I)
    np.add(A, at.mu, out=A)
    e = np.abs(A)
    return A, np.exp(np.negative(e, out=e), out=e)


def _sigmoid(A: Floats, e: Floats) -> Floats:
    return np.where(A < 0, e, 1.0) / (1.0 + e)


# ------------------------------------------------------------------------------------------ its maximum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Where a fit ended, the log-likelihood after each iteration, and whether it had settled."""

    at: LogitFactors
    path: Floats
    converged: bool


def nudged(at: LogitFactors, radius: float, rng: np.random.Generator) -> LogitFactors:
    """Off the saddle: a column that is 0 in L and in R would stay so, having no gradient."""
    scale = NUDGE * np.sqrt(radius / at.L.shape[1])
    L, R = (side + scale * rng.standard_normal(side.shape) for side in (at.L, at.R))
    return LogitFactors(mu=at.mu, L=L, R=R)


def maximise(
    cells: ObservedGrid, start: LogitFactors, project: Projection, radius: float, tol: float, max_iter: int
) -> Found:
    """The factors of the greatest likelihood under the bound.

    The problem is not convex in the factors, but with columns to spare its minima are those of the convex problem
    in A (Burer & Monteiro 2005).
    """
    (U, k), I = start.L.shape, len(start.R)
    # −ℓ has a curvature of up to U·I/4 by μ and τ√(U·I)/4 by a factor; in this unit of μ they are alike.
    unit, step = float(np.sqrt(radius / np.sqrt(U * I))), 4 / (radius * float(np.sqrt(U * I)))

    def factors(x: Floats) -> LogitFactors:
        return LogitFactors(mu=float(unit * x[-1]), L=x[: U * k].reshape(U, k), R=x[U * k : -1].reshape(I, k))

    def vector(L: Floats, R: Floats, mu: float) -> Floats:
        return np.concatenate([L.ravel(), R.ravel(), [mu]])

    def slope(x: Floats) -> tuple[float, Floats]:
        value, by = cells.slope(factors(x))
        return value, vector(by.L, by.R, unit * by.mu)

    def projected(x: Floats) -> Floats:
        return vector(*project(factors(x).L, factors(x).R, radius), x[-1])

    x = projected(vector(start.L, start.R, start.mu / unit))
    x, losses, converged = descend(lambda x: cells.loss(factors(x)), slope, projected, x, step, tol, max_iter)
    return Found(at=factors(x), path=-np.array(losses), converged=converged)


Loss = Callable[[Floats], float]
Slope = Callable[[Floats], tuple[float, Floats]]
Project = Callable[[Floats], Floats]


def descend(
    loss: Loss, slope: Slope, project: Project, x: Floats, step: float, tol: float, max_iter: int
) -> tuple[Floats, list[float], bool]:
    """Accelerated projected gradient (Beck & Teboulle 2009); where the loss would rise, momentum starts anew.

    Ends when the loss has changed by less than `tol` of itself, or of 1, over some iterations. Returns the point,
    the loss after each iteration, which never rises, and whether it ended so.
    """
    losses, last, t = [loss(x)], x, 1.0
    for _ in range(max_iter):
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = x + (t - 1) / t_next * (x - last)
        z, loss_z, step = _backtrack(loss, project, y, *slope(y), step)
        if loss_z > losses[-1]:
            if t == 1:  # without momentum only rounding can make it rise
                return x, losses, True
            last, t = x, 1.0
            continue
        last, x, t, step = x, z, t_next, step * GROWTH
        losses.append(loss_z)
        if len(losses) > WINDOW and losses[-WINDOW - 1] - loss_z <= tol * max(abs(loss_z), 1.0):
            return x, losses, True
    return x, losses, False


def _backtrack(
    loss: Loss, project: Project, y: Floats, loss_y: float, g: Floats, step: float
) -> tuple[Floats, float, float]:
    """A step from y so short that the quadratic bound on the loss holds where it ends; its loss and length."""
    # Rows of a part count 1/s, more than one: the loss may then be negative, its rounding may not.
    slack = ROUNDING * max(abs(loss_y), 1.0)
    for _ in range(MOST_HALVINGS):
        z = project(y - step * g)
        d, loss_z = z - y, loss(z)
        if loss_z <= loss_y + g @ d + d @ d / (2 * step) + slack:
            return z, loss_z, step
        step /= 2
    return y, loss_y, step


def settled(cells: ObservedGrid, at: LogitFactors) -> LogitFactors:
    """The same factors with the μ of Σp = |O|: Newton's method on logit(Σp/(U·I)), which is nearly a line in μ."""
    target, size = float(cells.O.sum()), cells.U * cells.I
    for _ in range(MOST_NEWTON):
        mass, variance = cells.mass(at)
        if abs(mass - target) <= ROUNDING * target:
            break
        m = mass / size
        at = replace(at, mu=at.mu + float(logit(target / size) - logit(m)) * m * (1 - m) * size / variance)
    return at
