"""θ of positions from groups inside which the position is as good as random: conditional likelihood, by Newton.

E[c | group g, position k] = r_g θ_k, whatever r_g is. The score Σ_g (c_gk − C_g p_gk) has mean 0 at the true θ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.impressions import Impressions
from openloop.errors import DivergenceError, UndefinedError, listing
from openloop.kernels.harvesting import Cells, links, row_scores, score_and_information
from openloop.propensity.solvers.grouping import Grouped, per_cluster

STEP = 2.0  # of log θ at a time, which keeps Newton from overshooting where little is known
PRECISION = 1e-10  # of log θ
ROUNDS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThetaCurve:
    """θ by position with θ_1 = 1, and the influence of log θ per cluster (U, K), None where a method has none."""

    theta: Floats  # (K,)
    influence: Floats | None

    @property
    def parts(self) -> Floats:
        """The influence, which must be there."""
        if self.influence is None:
            raise UndefinedError("Examination: this θ has no influence per user.")
        return self.influence


def harvest(log: Impressions, found: Grouped) -> ThetaCurve:
    """θ that solves the score equation, with ψ_u(log θ) = U·H⁻¹ Σ_rows e(1_k − p_g) summed by cluster."""
    cells, depth = found.cells, log.depth
    refuse_cut(cells, depth)
    theta = solve(cells, depth)
    _, H = score_and_information(cells, theta)
    cluster = per_cluster(log, found.row)
    scores = row_scores(cells, theta, found.cell, log.reward[found.row], cluster, log.n_clusters)  # (U, K)
    influence = np.zeros_like(scores)
    influence[:, 1:] = log.n_clusters * np.linalg.solve(H[1:, 1:], scores[:, 1:].T).T
    return ThetaCurve(theta=theta, influence=influence)


def solve(cells: Cells, depth: int) -> Floats:
    """θ (K,) by Newton on log θ; the likelihood is concave, and strictly so where positions are linked."""
    b, largest = np.zeros(depth), np.inf
    for _ in range(ROUNDS):
        score, H = score_and_information(cells, np.exp(b))
        step = np.linalg.solve(H[1:, 1:], score[1:])
        largest = float(np.abs(step).max())
        b[1:] += step * min(1.0, STEP / max(largest, PRECISION))
        if largest < PRECISION:
            return np.exp(b)
    raise DivergenceError(
        f"Examination: Newton still moved log θ by {largest:.2g} after {ROUNDS} rounds; the links between positions "
        "rest on too few clicks."
    )


def refuse_cut(cells: Cells, depth: int) -> None:
    """Ford (1957): θ exists if and only if every position is linked to every other, along steps in both directions."""
    from scipy.sparse.csgraph import connected_components

    if len(cells.start) < 2:
        raise UndefinedError(
            "Examination: nothing is identified. No group was shown at two positions and clicked, so position and item "
            'cannot be separated; shuffle some requests and use by="randomised".'
        )
    beats = links(cells, depth)
    parts, part = connected_components(beats, directed=True, connection="strong")
    if parts == 1:
        return
    first, other = part == part[0], part != part[0]
    raise UndefinedError(
        f"Examination: positions {_named(first)} are not linked to {_named(other)}: "
        f"{_cut(beats, first, other)}. Drop the rows at the positions that are not linked, or shuffle some requests."
    )


def _cut(beats: Array, first: Array, other: Array) -> str:
    """Which clicks are missing."""
    forth, back = bool(beats[np.ix_(first, other)].any()), bool(beats[np.ix_(other, first)].any())
    if not forth and not back:
        return "no group with a click was shown at both"
    if back:
        return f"no group that was shown at both has a click at {_named(first)}"
    return f"no group that was shown at both has a click at {_named(other)}"


def _named(which: Array) -> str:
    return listing((np.flatnonzero(which) + 1).tolist(), limit=10)
