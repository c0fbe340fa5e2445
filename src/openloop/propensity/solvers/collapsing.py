"""Rows of a log, or counts of them, to a grid of classes, and its solution back to every user and item.

Users or items with no row, or with every row, have no finite offset at the optimum. They are removed from the grid,
repeatedly until none is left. Afterwards they get the offset at which half a row is expected, or half a row less than
all rows. In a part of a log, a row counts as several rows of the whole log, and so does half a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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

    of: Array  # (U,) the class of each user, or of each entry of users
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


class Counted(Protocol):
    """What the likelihood asks a log for: entries of users and of items, and the rows of each.

    States are those of `extremes`; what is counted are rows whose user and item are both still on the grid.
    """

    @property
    def sizes(self) -> tuple[Floats, Floats]: ...  # noqa: D102, how many users, and how many items, each entry has
    @property
    def row(self) -> float: ...  # noqa: D102, how many rows of the log a row holds, in the mean
    def counts(self, state_u: Array, state_i: Array) -> tuple[Floats, Floats]: ...  # noqa: D102, rows of one user, of one item
    def products(self, state_u: Array, state_i: Array, X: Floats, Z: Floats) -> Floats: ...  # noqa: D102, Σ_O x_u z_iᵀ


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedRows:
    """Observed cells: codes, how many rows of the log each represents, and the size of the grid."""

    user: Array
    item: Array
    weight: Floats
    shape: tuple[int, int]

    def taken(self, keep: Mask) -> CountedRows:
        """Some of them."""
        return CountedRows(user=self.user[keep], item=self.item[keep], weight=self.weight[keep], shape=self.shape)

    @property
    def sizes(self) -> tuple[Floats, Floats]:
        """Every entry is one user, or one item."""
        return np.ones(self.shape[0]), np.ones(self.shape[1])

    @property
    def row(self) -> float:
        """How many rows of the log a row holds, in the mean."""
        return float(self.weight.mean())

    def counts(self, state_u: Array, state_i: Array) -> tuple[Floats, Floats]:
        """Rows of each user (U,) and of each item (I,)."""
        rows, (n_users, n_items) = self._left(state_u, state_i), self.shape
        return tally(rows.user, rows.weight, n_users), tally(rows.item, rows.weight, n_items)

    def products(self, state_u: Array, state_i: Array, X: Floats, Z: Floats) -> Floats:
        """Σ_O x_u z_iᵀ, (k, l)."""
        # Σ_i z_i over each user's rows first: (U, l), a column at a time
        rows = self._left(state_u, state_i)
        weighted = [tally(rows.user, rows.weight * Z[rows.item, c], len(X)) for c in range(Z.shape[1])]
        return X.T @ np.column_stack(weighted)

    def _left(self, state_u: Array, state_i: Array) -> CountedRows:
        """Rows whose user and item are both on the grid; ids without rows need no filter."""
        if not (state_u > 0).any() and not (state_i > 0).any():
            return self
        return self.taken((state_u[self.user] == 0) & (state_i[self.item] == 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedIds:
    """Users and items by the numbers of their rows alone: an entry is `size` of them, of `count` rows each.

    Every row is one of the whole log. `sums` are Σ_i z_i over the rows of each user, where there are covariates.
    """

    count: tuple[Floats, Floats]
    size: tuple[Floats, Floats]
    sums: Floats | None = None  # (U, l)
    row: float = 1.0

    @property
    def sizes(self) -> tuple[Floats, Floats]:
        """How many users, and how many items, each entry has."""
        return self.size

    def counts(self, state_u: Array, state_i: Array) -> tuple[Floats, Floats]:
        """Rows per id. Each id on the grid has a row with every id that had all rows, and none with those without."""
        (count_u, count_i), (size_u, size_i) = self.count, self.size
        return count_u - size_i[state_i > 0].sum(), count_i - size_u[state_u > 0].sum()

    def products(self, state_u: Array, state_i: Array, X: Floats, Z: Floats) -> Floats:
        """Σ_O x_u z_iᵀ, (k, l)."""
        assert self.sums is not None  # noqa: S101, covariates come with them
        left = state_u == 0
        return X[left].T @ (self.sums[left] - Z[state_i > 0].sum(axis=0))


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
        # Half a row less than all rows: like half a row, with the signs of the logits reversed.
        return sign * expecting(self.half, sign[:, None] * z, n)


def collapse(rows: Counted, X: Floats, Z: Floats) -> Collapsed:
    """The grid of classes; X (U, k) and Z (I, l) are centred covariates, one row per entry."""
    state_u, state_i = extremes(rows)
    (count_u, count_i), (size_u, size_i) = rows.counts(state_u, state_i), rows.sizes
    users, items = classes(state_u, count_u, X, size_u), classes(state_i, count_i, Z, size_i)
    fitted_u, fitted_i = users.fitted, items.fitted
    _check_size(int(fitted_u.sum()), int(fitted_i.sum()), X.shape[1] * Z.shape[1])
    S = rows.products(state_u, state_i, X, Z) if X.shape[1] and Z.shape[1] else np.zeros((X.shape[1], Z.shape[1]))
    grid = Grid(
        m=users.size[fitted_u], n=items.size[fitted_i], a=users.count[fitted_u], b=items.count[fitted_i],
        X=users.values[fitted_u], Z=items.values[fitted_i], S=S,
    )  # fmt: skip
    return Collapsed(grid=grid, users=users, items=items, half=HALF * rows.row)


def _check_size(G: int, H: int, K: int) -> None:
    if K + min(G, H) > MAX_DENSE or G * H > MAX_CELLS:
        raise UndefinedError(
            f"Logistic: {G:,} classes of users × {H:,} of items with {K:,} products do not fit into memory: at most "
            f"{MAX_DENSE:,} products and classes of the smaller side, and {MAX_CELLS:,} cells; round or group "
            "covariates, or use Boosted, which samples."
        )


def extremes(rows: Counted) -> tuple[Array, Array]:
    """The state of each user and item: -1 no row, +1 every row, counted on what is left once these are gone."""
    size_u, size_i = rows.sizes
    state_u, state_i = np.zeros(len(size_u), np.int8), np.zeros(len(size_i), np.int8)
    while True:
        count_u, count_i = rows.counts(state_u, state_i)
        free_u, free_i = state_u == 0, state_i == 0
        if not free_u.any() or not free_i.any():
            raise UndefinedError(
                "Logistic: every user and item has either no row or every row of the others, so no offset is finite; "
                "use Uniform, or Known."
            )
        new_u = free_u * _extreme(count_u, float(size_i[free_i].sum()))
        new_i = free_i * _extreme(count_i, float(size_u[free_u].sum()))
        if not new_u.any() and not new_i.any():
            return state_u, state_i
        state_u += new_u
        state_i += new_i


def _extreme(count: Floats, most: float) -> Array:
    # Each row of a part represents 1/s rows, so their sum may exceed the number of cells.
    return (count >= most * (1 - 1e-9)).astype(np.int8) - (count <= 0).astype(np.int8)


def classes(state: Array, count: Floats, values: Floats, size: Floats) -> Side:
    """Equal state, count and covariates make a class; each entry is `size` users or items."""
    keys = np.column_stack([state, np.where(state == 0, count, 0.0), values])  # (U, 2 + k)
    found, of = _distinct_rows(keys)
    return Side(
        of=of, size=tally(of, size, len(found)), count=found[:, 1], values=np.ascontiguousarray(found[:, 2:]),
        state=found[:, 0].astype(np.int8),
    )  # fmt: skip


def _distinct_rows(keys: Floats) -> tuple[Floats, Array]:
    """Distinct rows, and where each row is among them."""
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    new = np.concatenate([[True], np.any(ordered[1:] != ordered[:-1], axis=1)])
    of = np.empty(len(keys), np.int64)
    of[order] = np.cumsum(new) - 1
    return ordered[new], of


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
