"""Weights moved until functions of the rows have given means: w′ = w·exp(μᵀh), by dual Newton.

Deville & Särndal 1992 call it calibration; where the functions are indicators it is raking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.vocabulary import Int64s

REACHED = 1e-6  # of the range of h: so near its target a mean counts as met
FEWEST = 20  # rows of the median row's item in the whole log: with fewer, an item's Σw is held by chance
EXACT = 1e-12  # Newton goes on to here, which is a step or two more
STEPS = 100
LONGEST = 4.0  # largest change of a log weight in a step: further on the dual is not nearly quadratic
UNBOUNDED = 100.0  # log factors beyond it: no weights reach the targets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Raked:
    """The factor w′/w of each row, μ, and how far each mean is from its target, in parts of the range of its h."""

    factor: Floats  # (n,)
    mu: Floats  # (K,)
    off: Floats  # (K,)

    @property
    def converged(self) -> bool:
        """Whether all means are met."""
        return bool(np.all(np.abs(self.off) <= REACHED))


def calibrate(w: Floats, H: Floats, means: Floats, block: Array | None = None) -> Raked:
    """The w′ nearest to w in relative entropy under which each column of H (n, K) has its mean (K,).

    Σw′ = Σw, also within each block if `block` (n,) assigns rows to blocks. A column that equals its mean in all rows,
    except for rounding, is already balanced.
    """
    reach = np.abs(H - means).max(axis=0)
    varies = reach > REACHED * np.abs(H).max(axis=0)
    scale = np.where(varies, reach, 1.0)
    block = np.zeros(len(w), np.int64) if block is None else block
    order = np.argsort(block, kind="stable")
    rows = _Rows.of(w[order], (np.where(varies, H - means, 0.0) / scale)[order], block[order])
    mu = _minimum(rows)
    q = rows.shares(mu)
    factor = np.empty(len(w))
    factor[order] = q * w.sum() / w[order]
    return Raked(factor=factor, mu=mu / scale, off=q @ rows.C)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Rows sorted by block; C = h − target, S_b = Σ_b w/Σw."""

    log_w: Floats  # (n,)
    C: Floats  # (n, K)
    start: Int64s  # (B,) of each block
    size: Int64s  # (B,)
    S: Floats  # (B,)

    @classmethod
    def of(cls, w: Floats, C: Floats, block: Array) -> _Rows:
        start = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]]))
        S = np.add.reduceat(w, start) / w.sum()
        return cls(log_w=np.log(w), C=C, start=start, size=np.diff(np.append(start, len(w))), S=S)

    def _levels(self, mu: Floats) -> tuple[Floats, Floats]:
        """log w + μᵀC of each row, and log Σ_b w·exp(μᵀC) of each block."""
        e = self.log_w + self.C @ mu
        top = np.maximum.reduceat(e, self.start)
        return e, top + np.log(np.add.reduceat(np.exp(e - np.repeat(top, self.size)), self.start))

    def loss(self, mu: Floats) -> float:
        """Φ(μ) = Σ_b S_b log Σ_b w·exp(μᵀC): convex, and ∇Φ = 0 where the means are met."""
        return float(self.S @ self._levels(mu)[1])

    def shares(self, mu: Floats) -> Floats:
        """q = w′/Σw′."""
        e, total = self._levels(mu)
        return np.exp(e - np.repeat(total - np.log(self.S), self.size))

    def newton_step(self, q: Floats) -> Floats:
        """−(∇²Φ)⁻¹∇Φ, of the least norm where functions are combinations of others."""
        # ∇Φ = Σ q·C, ∇²Φ = Σ q·CCᵀ − Σ_b m_b m_bᵀ/S_b with m_b = Σ_b q·C
        qC = q[:, None] * self.C
        m = np.add.reduceat(qC, self.start) / np.sqrt(self.S)[:, None]  # (B, K)
        return -np.linalg.lstsq(self.C.T @ qC - m.T @ m, qC.sum(axis=0), rcond=1e-12)[0]


def _minimum(rows: _Rows) -> Floats:
    """The μ with the least Φ, or where the search gave up."""
    mu = np.zeros(rows.C.shape[1])
    reached = rows.loss(mu)
    for _ in range(STEPS):
        q = rows.shares(mu)
        if np.abs(q @ rows.C).max(initial=0.0) <= EXACT or np.abs(rows.C @ mu).max() > UNBOUNDED:
            break
        step = rows.newton_step(q)
        step *= min(1.0, LONGEST / max(float(np.abs(rows.C @ step).max()), 1e-300))
        while (now := rows.loss(mu + step)) > reached + 1e-15 and np.abs(step).max() > 1e-12:
            step = step / 2
        if now > reached + 1e-15:
            break
        mu, reached = mu + step, now
    return mu


# -- levels --------------------------------------------------------------------------------------------------


def rake(w: Floats, level: Int64s, shares: Floats, block: Array | None = None) -> Raked:
    """w′ = w·g_r·h_b, g = exp(μ): each level r (of 0 … L−1) has its share (L,) of Σw, and each block keeps its Σw.

    Every level with a share needs a row. Rows of one block and level share a factor, so few cells are adjusted.
    """
    L = len(shares)
    cell = level if block is None else block.astype(np.int64) * L + level
    there = np.bincount(cell) > 0  # sorting many rows would take longer than all else
    held, place = np.flatnonzero(there), (np.cumsum(there) - 1)[cell]
    table: Floats = np.bincount(place, w).astype(np.float64)
    H = (held[:, None] % L == np.arange(L)).astype(np.float64)
    found = calibrate(table, H, shares / shares.sum(), None if block is None else held // L)
    return Raked(factor=found.factor[place], mu=found.mu, off=found.off)
