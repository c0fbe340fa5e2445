"""Rows of a log to a grid of classes, and its solution back to every user and item.

Users or items with no row, or with every row, have no finite offset at the optimum. They leave the grid, again and
again until none is left, and get an offset afterwards: half a row is expected of them, or all rows but half a one.
In a part of a log a row stands for several, and so does the half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
from openloop.errors import UndefinedError
from openloop.propensity.base import tally
from openloop.propensity.solvers.newton import Grid, Logits

HALF = 0.5
MAX_DENSE = 10_000  # rows of the Hessian that is left once the larger side is eliminated: 800 MB
MAX_CELLS = 2**29  # cells of the grid of classes: 2 GiB
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """The classes of users, or of items: those of one state, one count and the same covariates."""

    of: Array  # (U,) the class of each user
    size: Floats  # (G,) users in each class
    count: Floats  # (G,) rows of one user, on the part of the grid that is fitted
    values: Floats  # (G, k) covariates
    state: Array  # (G,) 0 fitted, -1 no row, +1 every row

    @property
    def fitted(self) -> Mask:
        """The classes that are fitted."""
        return self.state == 0

    def members(self, state: int) -> int:
        """How many users are in a state."""
        return int(self.size[self.state == state].sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedRows:
    """Observed cells: codes, how many rows of the log each stands for, and the size of the grid."""

    user: Array
    item: Array
    weight: Floats
    shape: tuple[int, int]

    def taken(self, keep: Mask) -> CountedRows:
        """Some of them."""
        return CountedRows(user=self.user[keep], item=self.item[keep], weight=self.weight[keep], shape=self.shape)

    def counts(self) -> tuple[Floats, Floats]:
        """Rows of each user (U,) and of each item (I,)."""
        n_users, n_items = self.shape
        return tally(self.user, self.weight, n_users), tally(self.item, self.weight, n_items)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collapsed:
    """The grid of classes that are fitted, and all classes of users and items; `half` a row of the log."""

    grid: Grid
    users: Side
    items: Side
    half: float

    def whole(self, found: Logits) -> tuple[Grid, Logits]:
        """All classes with their logits: those that left the grid included."""
        fitted_u, fitted_i = self.users.fitted, self.items.fitted
        gamma, beta = np.empty(len(fitted_u)), np.empty(len(fitted_i))
        gamma[fitted_u], beta[fitted_i] = found.gamma, found.beta
        X, Z = self.users.values, self.items.values
        gamma[~fitted_u] = self._afterwards(
            found.beta + X[~fitted_u] @ found.W @ self.grid.Z.T, self.grid.n, self.users
        )
        beta[~fitted_i] = self._afterwards(
            found.gamma + Z[~fitted_i] @ found.W.T @ self.grid.X.T, self.grid.m, self.items
        )
        counts = {"a": self.users.count, "b": self.items.count, "S": self.grid.S}
        grid = Grid(m=self.users.size, n=self.items.size, X=X, Z=Z, **counts)
        return grid, Logits(gamma=gamma, beta=beta, W=found.W)

    def _afterwards(self, z: Floats, n: Floats, side: Side) -> Floats:
        """The offset of each class that left the grid; z (left, H) are the logits of its cells without it."""
        sign = -side.state[~side.fitted].astype(np.float64)  # (left,)
        # Every row but half a one: as half a row, with the logits' signs turned.
        return sign * expecting(self.half, sign[:, None] * z, n)


def collapse(rows: CountedRows, X: Floats, Z: Floats) -> Collapsed:
    """The grid of classes; X (U, k) and Z (I, l) are centred covariates."""
    state_u, state_i = extremes(rows)
    half = HALF * float(rows.weight.mean())
    rows = left(rows, state_u, state_i)
    count_u, count_i = rows.counts()
    users, items = classes(state_u, count_u, X), classes(state_i, count_i, Z)
    fitted_u, fitted_i = users.fitted, items.fitted
    _check_size(int(fitted_u.sum()), int(fitted_i.sum()), X.shape[1] * Z.shape[1])
    grid = Grid(
        m=users.size[fitted_u], n=items.size[fitted_i], a=users.count[fitted_u], b=items.count[fitted_i],
        X=users.values[fitted_u], Z=items.values[fitted_i], S=products(rows, X, Z),
    )  # fmt: skip
    return Collapsed(grid=grid, users=users, items=items, half=half)


def _check_size(G: int, H: int, K: int) -> None:
    if K + min(G, H) > MAX_DENSE or G * H > MAX_CELLS:
        raise UndefinedError(
            f"Logistic: {G:,} classes of users × {H:,} of items with {K:,} products do not fit into memory: at most "
            f"{MAX_DENSE:,} products and classes of the smaller side, and {MAX_CELLS:,} cells; round or group "
            "covariates, or use Boosted, which samples."
        )


def extremes(rows: CountedRows) -> tuple[Array, Array]:
    """The state of each user and item: -1 no row, +1 every row, counted on what is left once these are gone."""
    state_u, state_i = np.zeros(rows.shape[0], np.int8), np.zeros(rows.shape[1], np.int8)
    while True:
        count_u, count_i = left(rows, state_u, state_i).counts()
        free_u, free_i = state_u == 0, state_i == 0
        if not free_u.any() or not free_i.any():
            raise UndefinedError(
                "Logistic: every user and item has either no row or every row of the others, so no offset is finite; "
                "use Uniform, or Known."
            )
        new_u = free_u * _extreme(count_u, int(free_i.sum()))
        new_i = free_i * _extreme(count_i, int(free_u.sum()))
        if not new_u.any() and not new_i.any():
            return state_u, state_i
        state_u += new_u
        state_i += new_i


def left(rows: CountedRows, state_u: Array, state_i: Array) -> CountedRows:
    """The rows whose user and item are both on the grid. Those of nobody without a row need not be looked for."""
    if not (state_u > 0).any() and not (state_i > 0).any():
        return rows
    return rows.taken((state_u[rows.user] == 0) & (state_i[rows.item] == 0))


def _extreme(count: Floats, most: int) -> Array:
    # Rows of a part stand for 1/s rows each, so that their sum may pass the number of cells.
    return (count >= most * (1 - 1e-9)).astype(np.int8) - (count <= 0).astype(np.int8)


def classes(state: Array, count: Floats, values: Floats) -> Side:
    """Equal state, count and covariates make a class."""
    keys = np.column_stack([state, np.where(state == 0, count, 0.0), values])  # (U, 2 + k)
    found, of, size = _distinct_rows(keys)
    return Side(
        of=of, size=size.astype(np.float64), count=found[:, 1], values=np.ascontiguousarray(found[:, 2:]),
        state=found[:, 0].astype(np.int8),
    )  # fmt: skip


def _distinct_rows(keys: Floats) -> tuple[Floats, Array, Array]:
    """Distinct rows, where each row is among them, and how often each stands."""
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    new = np.concatenate([[True], np.any(ordered[1:] != ordered[:-1], axis=1)])
    of = np.empty(len(keys), np.int64)
    of[order] = np.cumsum(new) - 1
    return ordered[new], of, np.bincount(of)


def products(rows: CountedRows, X: Floats, Z: Floats) -> Floats:
    """S = Σ_O x_u z_iᵀ, (k, l)."""
    if not X.shape[1] or not Z.shape[1]:
        return np.zeros((X.shape[1], Z.shape[1]))
    # Σ_i z_i over each user's rows first: (U, l), a column at a time
    weighted = [tally(rows.user, rows.weight * Z[rows.item, c], len(X)) for c in range(Z.shape[1])]
    return X.T @ np.column_stack(weighted)


def expecting(rows: float, z: Floats, n: Floats) -> Floats:
    """c with Σ_h n_h σ(c + z_h) = rows, for each row of z.

    c ← c + log rows − log Σ nσ never steps too far, since the sum grows at most as fast as eᶜ.
    """
    rows = min(rows, HALF * float(n.sum()))  # of a single opposite: half of it
    c = np.log(rows) - _log_sum_exp(z, n)
    for _ in range(500):
        with np.errstate(over="ignore"):
            total = (n / (1.0 + np.exp(-(c[:, None] + z)))).sum(axis=1)
        step = np.log(rows) - np.log(total)
        c += step
        if not np.any(np.abs(step) > 1e-10):
            break
    return c


def _log_sum_exp(z: Floats, n: Floats) -> Floats:
    top = z.max(axis=1, initial=-np.inf)
    return top + np.log((n * np.exp(z - top[:, None])).sum(axis=1))
