"""A mixture of users whose ratings are missing not at random: its likelihood and the E step of EM.

User u has component z with chance θ_z; her rating of item i is level v with chance β_{z,i,v}, and is observed with
chance m_{i,v} (Marlin & Zemel 2009: μ_v in CPT-v, σ(s_v + ω_i) in Logit-vd). With the chance that
a cell is not observed, q_{z,i} = Σ_v β_{z,i,v}(1 − m_{i,v}),

    log P(row u, z) = log θ_z + Σ_i log q_{z,i} + Σ_{i observed} log(β_{z,i,r} m_{i,r} / q_{z,i}).

Unobserved cells are the sum over all items less that over the observed ones, so rows × Z numbers are added up and no
grid of cells is made. Both sums over rows are products with one sparse matrix of ones, in the order of the rows: bits
do not depend on threads. Kernels know nothing about priors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class RatedCells:
    """The rows of a log as a matrix of ones: users × (item, level), and its transpose."""

    by_user: csr_array  # (U, I·L)
    by_level: csr_array  # (I·L, U)
    shape: tuple[int, int, int]  # U, I, L

    @classmethod
    def of(cls, user: Codes, item: Codes, level: Codes, shape: tuple[int, int, int]) -> RatedCells:
        """The rows, sorted by user and item."""
        U, I, L = shape
        at = (np.asarray(user, np.int64), item.astype(np.int64) * L + level)
        by_user = csr_array((np.ones(len(user)), at), (U, I * L))
        return cls(by_user, by_user.T.tocsr(), shape)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.by_user.nnz)

    @property
    def shares(self) -> Floats:
        """The levels' shares of the rows, (L,)."""
        L = self.shape[2]
        return np.bincount(self.by_user.indices % L, minlength=L) / self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The parameters: `theta` (Z,), `beta` (I, L, Z), and `seen` (I, L), the chance m that a level is observed."""

    theta: Floats
    beta: Floats
    seen: Floats

    @property
    def unseen_levels(self) -> Floats:
        """β_{z,i,v}(1 − m_{i,v}), (I, L, Z)."""
        return self.beta * (1 - self.seen)[:, :, None]


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedCounts:
    """What the E step expects of the users' components and of all ratings."""

    users: Floats  # N_z = Σ_u P(z | row u), (Z,)
    observed: Floats  # users of z that were observed to rate i with v, (I, L, Z)
    all: Floats  # the same of all users of z, observed or not, (I, L, Z)


def components(cells: RatedCells, at: Mixture) -> tuple[Floats, Floats]:
    """P(z | row u) (U, Z), and log P(row u) (U,)."""
    _, I, L = cells.shape
    q = at.unseen_levels.sum(axis=1)  # (I, Z)
    table = np.log(at.beta) + np.log(at.seen)[:, :, None] - np.log(q)[:, None, :]  # (I, L, Z)
    joint = cells.by_user @ table.reshape(I * L, -1)  # (U, Z)
    joint += np.log(at.theta) + np.log(q).sum(axis=0)
    largest = joint.max(axis=1, keepdims=True)
    chance = np.exp(joint - largest)
    total = chance.sum(axis=1, keepdims=True)  # (U, 1)
    return chance / total, (np.log(total) + largest)[:, 0]


def expected(cells: RatedCells, at: Mixture, given: Floats) -> ExpectedCounts:
    """The counts of the E step; `given` is P(z | row u) (U, Z).

    An unobserved cell of a user of z has level v with chance β_{z,i,v}(1 − m_{i,v})/q_{z,i}.
    """
    _, I, L = cells.shape
    users, observed = given.sum(axis=0), (cells.by_level @ given).reshape(I, L, -1)
    unseen = at.unseen_levels
    absent = np.maximum(users - observed.sum(axis=1), 0.0)  # (I, Z), below 0 by rounding alone
    return ExpectedCounts(users, observed, observed + unseen * (absent / unseen.sum(axis=1))[:, None, :])


# -- the definition, cell by cell ----------------------------------------------------------------------------
