"""A block to sums: each ranker's weights of a kind, and their sums by cluster, by position and by bucket.

Sums over all rows are kept by bucket and added once all are there: so they have the same bits however buckets make
blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.shown_moments import Examined
from openloop.estimators.shown import EXAMINED
from openloop.impressions.imputing import ImputedRewards
from openloop.impressions.logs import ShownBlock
from openloop.impressions.rankers import Ranking
from openloop.kernels.examining import BELOW, ExaminedRows, examined_slopes, examined_weights
from openloop.kernels.shown_lists import place_facts, prefix_hits, totals, weighted_sums

Kind = tuple[str, bool]  # of weights, and whether something is imputed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownSums:
    """Sums of one ranker under one kind of weights, by cluster of a block (c, …) and by bucket (b, …)."""

    weight: Floats  # (c, K)
    wgain: Floats  # (c, K)
    direct: Floats | None  # (c,)
    facts: Floats  # (b, 4, K): rows with a weight, Σw², Σwc, Σ(wc)²
    slopes: Floats  # (b, 2, P): of Σwc and of Σwθ
    short: int = 0  # lists that leave positions empty, where weights need full ones


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownReduction:
    """What is the same for every block: θ, what weights by θ divide by, and what is imputed.

    `scale` (K,) is what θ is multiplied by in weights: without requests positions are not equally frequent.
    """

    examined: Examined | None
    denominator: str
    scale: Floats
    imputed: ImputedRewards | None

    @property
    def theta(self) -> Floats:
        """θ, or 1 at every position where examination is unknown."""
        return np.ones(len(self.scale)) if self.examined is None else self.examined.theta

    @property
    def parameters(self) -> int:
        """P."""
        return len(self.scale) * (1 if self.examined is None or self.examined.offset is None else 2)

    def counts(self, block: ShownBlock, *, shuffled: bool) -> tuple[Floats, Floats]:
        """The requests (c,) and the shown rows (c, K) of each cluster, of shuffled requests only or of all."""
        log = block.log
        counted = _logged(log.shuffled).astype(np.float64) if shuffled else np.ones(log.n_requests)
        rows, shape = counted[log.request], (len(block.clusters), log.depth)
        shown = weighted_sums(rows, rows, log.cluster, log.request, log.position, shape)[0]
        return totals(log.cluster, counted, len(block.clusters)), shown

    def sums(self, block: ShownBlock, ranking: Ranking, kind: str, *, robust: bool) -> ShownSums:
        """The sums of one ranker."""
        log, K, buckets = block.log, block.log.depth, block.n_buckets
        rows = self._examined_rows(block, ranking) if kind in EXAMINED else None
        w = _weights(block, ranking, kind) if rows is None else self._examined_weights(rows, kind)
        gain, expected = self._gain(block, kind, robust=robust)
        shape = len(block.clusters), K
        weight, wgain = weighted_sums(w, gain, log.cluster, log.request, log.position, shape)
        place = block.of_requests[log.request] * K + log.position - 1
        facts = np.stack([x.reshape(buckets, K) for x in place_facts(w, log.reward, place, buckets * K)], axis=1)
        slopes, direct = np.zeros((buckets, 2, self.parameters)), None
        if rows is not None:
            slopes = self._slopes(block, rows, kind, w, gain, place)
        if expected is not None and self.imputed is not None:
            by_request, by_position = self.imputed.of_lists(block, ranking, self.theta, w if kind == "rips" else None)
            direct = totals(log.cluster, by_request, len(block.clusters))
            # ∂Σw(c − θq̂)/∂log θ_k at fixed w is −Σwθq̂ at k
            slopes[:, 0] += by_position - totals(place, w * expected, buckets * K).reshape(buckets, K)
        short = _short_lists(block, ranking) if kind == "pi" else 0
        return ShownSums(weight=weight, wgain=wgain, direct=direct, facts=facts, slopes=slopes, short=short)

    def _gain(self, block: ShownBlock, kind: str, *, robust: bool) -> tuple[Floats, Floats | None]:
        """c, c − b_k, or c − θ_k·q̂ with θ_k·q̂; (n,) each."""
        c, place = block.log.reward, block.log.position - 1
        if kind == "affine" and self.examined is not None and self.examined.offset is not None:
            return c - self.examined.offset[place], None
        if not robust or self.imputed is None:
            return c, None
        expected = self.theta[place] * self.imputed.of_rows(block)
        return c - expected, expected

    # -- weights by θ ----------------------------------------------------------------------------------------

    def _examined_rows(self, block: ShownBlock, ranking: Ranking) -> ExaminedRows:
        log, below = block.log, self.denominator
        more: dict[str, Any] = {} if ranking.probability is None else {"probability": ranking.probability}
        if below != "shown":
            more[below] = _logged(getattr(log, below))
        return ExaminedRows(
            request=log.request, position=log.position, depth=log.lengths, rank=ranking.rank, below=BELOW.index(below),
            **more,
        )  # fmt: skip

    def _examined_weights(self, rows: ExaminedRows, kind: str) -> Floats:
        tops = 1.0 / np.log2(np.arange(2, int(rows.rank.max()) + 2)) if kind == "dcg" else None  # λ(σ)
        return examined_weights(self.theta * self.scale, rows, tops)

    def _slopes(
        self, block: ShownBlock, rows: ExaminedRows, kind: str, w: Floats, gain: Floats, place: Array
    ) -> Floats:
        """∂Σw·gain/∂log θ and ∂Σwθ/∂log θ; of the affine model also by b: rows shown less Σw, at each position."""
        K, buckets = block.log.depth, block.n_buckets

        def slopes(x: Floats) -> Floats:
            scaled = self.theta * self.scale
            return examined_slopes(x, scaled, rows, block.of_requests, buckets, moving=kind != "dcg")

        weight = totals(place, w, buckets * K).reshape(buckets, K)
        by_theta, mass = slopes(w * gain), np.zeros((buckets, self.parameters))
        if kind == "affine":
            shown = totals(place, np.ones(len(w)), buckets * K).reshape(buckets, K)
            by_theta = np.hstack([by_theta, shown - weight])
        else:
            mass = slopes(w * self.theta[block.log.position - 1]) + self.theta * weight
        return np.stack([by_theta, mass], axis=1)


# -- other weights -------------------------------------------------------------------------------------------


def _weights(block: ShownBlock, ranking: Ranking, kind: str) -> Floats:
    """w of each row, (n,)."""
    log = block.log
    if kind == "pi":
        return _slate_weights(block, ranking)
    if kind == "iips":
        return _inverse(_own_position(block, ranking), _logged(log.propensity))
    hits = prefix_hits(ranking.rank == log.position, log.request)
    if kind == "rips":
        return _inverse(hits, _logged(log.prefix))
    last = log.request_ptr[1:] - 1
    return (hits[last] / _logged(log.slate))[log.request]


def _own_position(block: ShownBlock, ranking: Ranking) -> Array:
    """π_k(a_k): whether the model shows the same item there, or its probability."""
    if ranking.probability is None:
        return ranking.rank == block.log.position
    return ranking.probability[np.arange(len(block.log)), block.log.position - 1]


def _slate_weights(block: ShownBlock, ranking: Ranking) -> Floats:
    """q_πᵀΓ⁺1_a of shuffled requests (Swaminathan et al. 2017, Eq. 4), in closed form; 0 for the others.

    Lists of K out of m items, each equally likely: Γ has the eigenvalues K/m, (m−K)/(m(m−1)), 0 and 1/(m−1). With M
    items at their own position and O in both lists, the weight is
    1 + (m−1)/(K(m−K))·(mO − K²) + (m−1)(M − O/K); where K = m the second term is 0.
    """
    log, lengths = block.log, block.log.lengths
    K, m = lengths.astype(np.float64), _logged(log.pool).astype(np.float64)
    if ranking.probability is None:
        listed = (ranking.rank > 0) & (ranking.rank <= lengths[log.request])
    else:
        inside = np.arange(log.depth) < lengths[log.request][:, None]
        listed = (ranking.probability * inside).sum(axis=1)
    M, O = (totals(log.request, x, log.n_requests) for x in (_own_position(block, ranking), listed))  # (N,)
    rest = np.divide(m * O - K**2, K * (m - K), out=np.zeros(len(K)), where=m > K)
    w = 1 + (m - 1) * (rest + M - O / K)
    return np.where(_logged(log.shuffled), w, 0.0)[log.request]


def _short_lists(block: ShownBlock, ranking: Ranking) -> int:
    """The lists that leave positions of their requests empty: the closed form is for those that fill all."""
    if ranking.lists is None:
        return 0
    lengths = block.log.lengths
    listed = (ranking.lists.lists[ranking.lists.key] >= 0).sum(axis=1)
    return int(np.count_nonzero(np.minimum(listed, lengths) < lengths))


def _inverse(target: Array, logged: Floats) -> Floats:
    """target/logged, without the division where the target is 0."""
    return np.divide(target, logged, out=np.zeros(len(logged)), where=target != 0)


def _logged(values: Any) -> Any:
    """A column of the log, which the support says is there."""
    assert values is not None  # noqa: S101
    return values
