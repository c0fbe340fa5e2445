"""Propensities fitted with a uniform sample: post-stratification by rating level (Holt & Smith 1979).

Such weights give level r the share π_r that the sample says, not that of the log. What is random is then
the mean inside each level, and the sample. Of a scored part with share s of the rows that p was fitted on, the
shares of levels are random too, by √(1 − s).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.levels import LevelSample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByLevel:
    """(1 − c)·held + c·plain with c = √(1 − s), functions of Σwδ, Σw and Σ_all w by level, which agree at the log's.

    held: Σ_r π_r A_r/N_r / Σ_r π_r B_r/N_r with the shares π_r as they are, plain: ΣA_r / ΣB_r; N_r is Σw of all scored
    rows, B_r of those that count. `cells` (ips): both divide by |C| instead. `drawn` is how many ratings of the
    sample each level has: where they belong to users of the log, another sample would make π_r proportional to them.
    """

    shares: Floats  # (L,) N_r/ΣN, or N_r/|C|
    blend: float  # c
    cells: bool = False
    drawn: Floats | None = None  # (L,)
    expected: Floats | None = None  # (L,) what `drawn` is divided by, never below it
    leverage: Floats | float = 1.0  # (L,) how steeply the shares follow those of the sample

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., 3L), then |C| for ips, then the sample's ratings (..., L) by level."""
        L = len(self.shares)
        top, bottom, mass = (totals[..., k * L : (k + 1) * L] for k in range(3))
        tilt = self._tilt(totals[..., 3 * L + self.cells :])  # (..., L), 1 at the log's totals
        filled = np.real(mass) > 0  # a level may be empty without a user
        per_mass = np.where(filled, self.shares * tilt / np.where(filled, mass, 1.0), 0.0)
        fixed, plain = ((x * top).sum(axis=-1) for x in (per_mass, tilt))
        if not self.cells:
            return self._blended(fixed / (per_mass * bottom).sum(axis=-1), plain / (tilt * bottom).sum(axis=-1))
        lost = self.shares.sum() / np.where(filled, self.shares, 0.0).sum(axis=-1)
        return self._blended(fixed * lost, plain / totals[..., 3 * L])

    def _blended(self, fixed: Any, plain: Any) -> Any:
        return (1 - self.blend) * fixed + self.blend * plain

    def _tilt(self, drawn: Any) -> Any:
        """How far another sample would change each level's share, the shares adding up to the same."""
        if self.drawn is None or self.expected is None:
            return np.ones(len(self.shares))
        factor = 1.0 + self.leverage * (drawn - self.drawn) / self.expected
        return factor * self.shares.sum() / (self.shares * factor).sum(axis=-1, keepdims=True)


def by_level(sample: LevelSample, mass: Floats, scored: float, cells: float | None) -> ByLevel:
    """The function for Σ_all w by level `mass` (L,) of `scored` rows; `cells` is |C| for ips, None for a ratio."""
    drawn = None if sample.level is None else np.bincount(sample.level, minlength=len(sample)).astype(np.float64)
    return ByLevel(
        shares=mass / (mass.sum() if cells is None else cells),
        blend=float(np.sqrt(1.0 - min(1.0, scored / sample.rows))),
        cells=cells is not None,
        drawn=drawn,
        # π̂_r n₀, smoothed, may be less than what was drawn
        expected=None if drawn is None else np.maximum(np.maximum(drawn, sample.shares * sample.size), 1e-300),
        leverage=sample.leverage,
    )


def drawn_by_user(sample: LevelSample, n_users: int) -> Floats | None:
    """How many of the sample's ratings each user has in each level (U, L); None where it names no users."""
    if sample.user is None or sample.level is None:
        return None
    L = len(sample)
    flat = np.bincount(sample.user.astype(np.int64) * L + sample.level, minlength=n_users * L)
    return flat.reshape(n_users, L).astype(np.float64)


def sample_effects(sample: LevelSample, slopes: Floats) -> Floats:
    """(g_r − π̂_r Σg)/√(n₀ π̂_r) with g_r the estimate's slope in log π_r: their squares add up to the sample's variance.

    `slopes` are those in the log of each level's Σw. For snips g_r = π_r(δ̄_r − θ), so that this is
    (1/n₀) Σ_r π_r(δ̄_r − θ)²; under `exclude` it is U·I·π_r/(U·I·π_r − excluded_r) times as much.
    """
    slopes = slopes * sample.leverage
    present = sample.shares > 0
    spread = np.sqrt(sample.size * np.where(present, sample.shares, 1.0))
    return np.where(present, (slopes - sample.shares * slopes.sum()) / spread, 0.0)
