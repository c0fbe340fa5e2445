"""Half a sweep of weighted alternating least squares: every user's vector, given all items' (or the reverse).

Written for users: user u has the rows ptr[u]:ptr[u + 1], each an item i, a target y and a weight w, and gets

    argmin_p  Σ w (y - c - b_i - x_iᵀp)² + pᵀ(G + diag λ)p,

exactly (Cholesky), or by a few steps of conjugate gradients from the present vector. With offsets, the last entry of p
is the user's offset a, the last entry of x is 1, and b_i is the last entry of the item's vector. All users share the
prior G. The absolute and the logistic loss are minimised through quadratic upper bounds, so they never rise.

Kernels know nothing about models. One thread solves for each user, in a fixed order: bits do not depend on threads.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.cholesky import dot, factor, substitute
from openloop.kernels.compiling import SUMMING, fix, inlined, njit
from openloop.kernels.losses import Loss, squares, squares_numpy

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Pointers = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

# Parts have about equally many rows, so threads end together, and enough rows that starting a part costs nothing.
PARTS, PART_ROWS = 64, 20_000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one side: those of u are ptr[u] : ptr[u + 1], each with its partner, target and weight."""

    ptr: Pointers
    partner: Ints
    y: Array
    w: Array

    def __post_init__(self) -> None:
        fix(self, "ptr", "partner", "y", "w")

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def filled(self) -> npt.NDArray[np.bool_]:
        """Which owners have rows."""
        return np.diff(self.ptr) > 0

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Ranges of users with about equally many rows."""
        n = int(self.ptr[-1])
        cuts = np.searchsorted(self.ptr, np.linspace(0, n, min(PARTS, 1 + n // PART_ROWS) + 1)[1:-1])
        edges = np.unique(np.concatenate([[0], cuts, [len(self)]])).tolist()
        return list(pairwise(edges))

    def turned(self, n_partners: int) -> Rows:
        """The same rows by partner."""
        return Rows(*by_partner(self.ptr, self.partner, self.y, self.w, n_partners))


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What all users share: the penalty of each entry of p, the prior, whether there are offsets, and the loss."""

    penalty: Array  # λ, (K,)
    offsets: bool = False
    prior: Array | None = None  # G, (K, K)
    loss: Loss = Loss.SQUARED
    smoothing: float = 0.0  # ε of the absolute loss
    until: float = 0.0  # share of its gradient at which a user's conjugate gradients end; rounding ends them anyway


def half_sweep(rows: Rows, X: Array, c: float, P: Array, problem: Problem, pool: Executor, *, steps: int = 3) -> float:
    """Improve P (U, K), given X (I, K); returns the loss of all rows plus the penalties of P, as they are then.

    For other losses than the squared one it is that of the squares above them, which is no less. `steps` of conjugate
    gradients at most, 0 for Cholesky.
    """
    T = P.dtype.type
    G = np.zeros((0, 0), P.dtype) if problem.prior is None else np.ascontiguousarray(problem.prior, P.dtype)
    loss = int(problem.loss), T(problem.smoothing)
    shared = (T(c), problem.penalty.astype(P.dtype), G, problem.offsets, *loss, steps, T(problem.until))
    value = np.zeros(len(rows))  # (U,)

    def solve(part: tuple[int, int]) -> None:
        _solve_part(*part, rows.ptr, rows.partner, rows.y, rows.w, X, P, *shared, value)

    parts = rows.parts
    if len(parts) == 1:
        solve(parts[0])
    else:
        list(pool.map(solve, parts))
    return float(value.sum())


@njit(cache=True, nogil=True)
def by_partner(
    ptr: Pointers, partner: Ints, y: Array, w: Array, n_partners: int
) -> tuple[Pointers, Ints, Array, Array]:
    """A counting sort: pointers by partner, whose rows they are, and the targets and weights in that order."""
    turned = np.zeros(n_partners + 1, np.int64)
    for i in partner:
        turned[i + 1] += 1
    for i in range(n_partners):
        turned[i + 1] += turned[i]
    free, own = turned[:-1].copy(), np.empty(partner.size, np.int32)
    targets, weights = np.empty(partner.size, y.dtype), np.empty(partner.size, w.dtype)
    for u in range(ptr.size - 1):
        for row in range(ptr[u], ptr[u + 1]):
            to = free[partner[row]]
            own[to], targets[to], weights[to] = u, y[row], w[row]
            free[partner[row]] += 1
    return turned, own, targets, weights


@njit(cache=True, nogil=True, fastmath=SUMMING)
def _solve_part(
    first: int, last: int, ptr: Pointers, partner: Ints, y: Array, w: Array, X: Array, P: Array,
    c: Any, penalty: Array, G: Array, offsets: Any, loss: int, smoothing: Any, steps: int, until: Any, value: Floats,
) -> None:  # fmt: skip
    most, K = 0, P.shape[1]
    for u in range(first, last):
        most = max(most, ptr[u + 1] - ptr[u])
    # Made once for all users: with rows as few as 20 each, making them anew would take half of the time.
    x, (v, e, s), room = np.empty((most, K), P.dtype), np.empty((3, most), P.dtype), np.empty((4, K), P.dtype)
    for u in range(first, last):
        first_row, n = ptr[u], ptr[u + 1] - ptr[u]
        if n == 0:
            continue
        _gather(X, partner[first_row : first_row + n], x)
        for r in range(n):
            v[r], e[r] = w[first_row + r], y[first_row + r]
            if offsets:
                e[r] -= x[r, K - 1]
                x[r, K - 1] = 1
        labels = y[first_row : first_row + n]
        value[u] = _residuals(x[:n], P[u], c, labels, loss, smoothing, v[:n], e[:n], s[:n])
        value[u] += _penalty_of(P[u], penalty, G, room[0])
        if steps > 0:
            value[u] -= _conjugate(x[:n], v[:n], e[:n], penalty, G, steps, until, P[u], s[:n], room)
        else:
            value[u] -= _cholesky(x[:n], v[:n], e[:n], penalty, G, P[u], s[:n], room)


@inlined
def _residuals(x: Array, p: Array, c: Any, y: Array, loss: int, smoothing: Any, v: Array, e: Array, s: Array) -> float:
    """Targets e and weights v become residuals and the weights of their squares; returns the loss. s is room."""
    _products(x, p, s)
    for r in range(e.size):
        e[r] -= c + s[r]
    return squares(loss, smoothing, y, v, e)


# With A = Σ v xxᵀ + G + diag λ and half the negative gradient g = Σ v e x - (G + diag λ)p, both solve Aδ = g, and
# return by how much the step δ lowers the objective. s (n,) and room (4, K) are theirs to write to.


@inlined
def _conjugate(
    x: Array, v: Array, e: Array, penalty: Array, G: Array, steps: int, until: Any, p: Array, s: Array, room: Array
) -> float:
    """Some steps of conjugate gradients, preconditioned by the diagonal m of A."""
    g, h, m, d = room[0], room[1], room[2], room[3]
    _gradient(x, v, e, penalty, G, p, s, g, h)
    _diagonal(x, v, penalty, G, m)
    for j in range(p.size):
        d[j] = g[j] / m[j]
    gz, gain = dot(g, d), 0.0
    eps = np.finfo(p.dtype).eps
    rounding = max(100 * eps * eps, until * until) * gz  # what is left of gz when g is 0 but for rounding
    for _ in range(steps):
        if not gz > 0:
            break
        _products(x, d, e)
        for r in range(e.size):
            e[r] *= v[r]
        _combine(x, e, h)
        _penalise(d, penalty, G, h)
        curvature = dot(d, h)  # h = Ad
        if curvature <= eps * gz:  # flat but for rounding, as is possible without a penalty
            break
        step = gz / curvature
        gain += step * gz
        before, gz = gz, p.dtype.type(0)
        for j in range(p.size):
            p[j] += step * d[j]
            g[j] -= step * h[j]
            gz += g[j] * g[j] / m[j]
        if gz <= rounding:
            break
        for j in range(p.size):
            d[j] = g[j] / m[j] + gz / before * d[j]
    return gain


@inlined
def _gradient(
    x: Array, v: Array, e: Array, penalty: Array, G: Array, p: Array, s: Array, g: Array, shrink: Array
) -> None:
    """g; s and shrink are room."""
    for r in range(e.size):
        s[r] = v[r] * e[r]
    _combine(x, s, g)
    shrink[:] = 0
    _penalise(p, penalty, G, shrink)
    for j in range(p.size):
        g[j] -= shrink[j]


@inlined
def _diagonal(x: Array, v: Array, penalty: Array, G: Array, m: Array) -> None:
    """m, the diagonal of A; where it is 0, so is the gradient, and any positive number serves."""
    m[:] = penalty
    for r in range(v.size):
        row, weight = x[r], v[r]
        for j in range(m.size):
            m[j] += weight * row[j] * row[j]
    for j in range(m.size):
        m[j] += G[j, j] if G.size else m.dtype.type(0)
        m[j] = m[j] if m[j] > 0 else m.dtype.type(1)


@inlined
def _cholesky(x: Array, v: Array, e: Array, penalty: Array, G: Array, p: Array, s: Array, room: Array) -> float:
    """The minimum itself; A is in double precision, as small penalties leave it nearly singular. NaN where it is."""
    _gradient(x, v, e, penalty, G, p, s, room[0], room[1])
    g = room[0].astype(np.float64)
    gain = substitute(factor(_normal_matrix(x, v, penalty, G)), g)
    for j in range(p.size):
        p[j] += g[j]
    return gain


@inlined
def _normal_matrix(x: Array, v: Array, penalty: Array, G: Array) -> Floats:
    """A, its lower triangle."""
    K = penalty.size
    A = np.zeros((K, K))
    for j in range(K):
        A[j, j] = penalty[j]
        for i in range(min(j + 1, len(G))):
            A[j, i] += G[j, i]
    for r in range(v.size):
        row, weight = x[r].astype(np.float64), float(v[r])
        for j in range(K):
            target, scaled = A[j], weight * row[j]
            for i in range(j + 1):
                target[i] += scaled * row[i]
    return A


@inlined
def _penalise(p: Array, penalty: Array, G: Array, h: Array) -> None:
    """h += (G + diag λ)p."""
    for j in range(p.size):
        h[j] += penalty[j] * p[j]
    for j in range(len(G)):
        h[j] += dot(G[j], p)


@inlined
def _penalty_of(p: Array, penalty: Array, G: Array, h: Array) -> Any:
    """pᵀ(G + diag λ)p; h is room."""
    h[:] = 0
    _penalise(p, penalty, G, h)
    return dot(p, h)


@inlined
def _gather(X: Array, mine: Ints, x: Array) -> None:
    """x = X[mine]."""
    for r in range(mine.size):
        source, target = X[mine[r]], x[r]
        for j in range(source.size):
            target[j] = source[j]


# Four rows at a time: each entry of p or out is then loaded once for four, which halves the time.


@inlined
def _products(x: Array, p: Array, out: Array) -> None:
    """out = x p."""
    n, zero = len(x), p.dtype.type(0)
    for r in range(0, n - 3, 4):
        x0, x1, x2, x3 = x[r], x[r + 1], x[r + 2], x[r + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for j in range(p.size):
            s0 += x0[j] * p[j]
            s1 += x1[j] * p[j]
            s2 += x2[j] * p[j]
            s3 += x3[j] * p[j]
        out[r], out[r + 1], out[r + 2], out[r + 3] = s0, s1, s2, s3
    for r in range(n - n % 4, n):
        out[r] = dot(x[r], p)


@inlined
def _combine(x: Array, s: Array, out: Array) -> None:
    """out = xᵀ s."""
    n = len(x)
    for j in range(out.size):
        out[j] = 0
    for r in range(0, n - 3, 4):
        x0, x1, x2, x3 = x[r], x[r + 1], x[r + 2], x[r + 3]
        s0, s1, s2, s3 = s[r], s[r + 1], s[r + 2], s[r + 3]
        for j in range(out.size):
            out[j] += s0 * x0[j] + s1 * x1[j] + s2 * x2[j] + s3 * x3[j]
    for r in range(n - n % 4, n):
        row = x[r]
        for j in range(out.size):
            out[j] += s[r] * row[j]


def half_sweep_numpy(rows: Rows, X: Array, c: float, P: Array, problem: Problem) -> float:
    """The same by the normal equations, one user after the other."""
    value = 0.0
    for u in np.flatnonzero(rows.filled):
        mine = slice(rows.ptr[u], rows.ptr[u + 1])
        x, y, b = X[rows.partner[mine]], rows.y[mine], np.zeros(1)
        if problem.offsets:
            b, x = x[:, -1], np.column_stack([x[:, :-1], np.ones(len(x))])
        loss, v, e = squares_numpy(problem.loss, problem.smoothing, y, c + b + x @ P[u])
        v = rows.w[mine] * v
        G = np.diag(problem.penalty) + (0 if problem.prior is None else problem.prior)  # (K, K)
        step = np.linalg.solve(x.T @ (v[:, None] * x) + G, x.T @ (v * e) - G @ P[u])
        P[u] += step
        value += np.sum(rows.w[mine] * loss + v * ((e - x @ step) ** 2 - e**2)) + P[u] @ G @ P[u]
    return float(value)
