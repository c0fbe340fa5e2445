"""`ImpressionSource`: rows in memory; each ranker's weights of a kind, and their sums by cluster and position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats, Ints
from openloop.core.impressions import Impressions
from openloop.core.shown_moments import Examined, ShownMoments
from openloop.errors import InputError, UndefinedError
from openloop.estimators.shown import EXAMINED
from openloop.kernels.examining import BELOW, ExaminedRows, examined_slopes, examined_weights
from openloop.kernels.shown_lists import position_facts, prefix_hits, totals, weighted_sums
from openloop.impressions.examined import examined_by
from openloop.impressions.imputing import ImputedRewards
from openloop.impressions.question import ShownQuestion
from openloop.impressions.rankers import Ranking, ranking
from openloop.impressions.support import LogSupport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImpressionSource:
    """A log, what each ranker says of it, and θ. `counts` are the requests (U,) and shown rows (U, K) by cluster."""

    log: Impressions
    rankings: Mapping[str, Ranking]
    examined: Examined | None
    support: LogSupport
    imputed: ImputedRewards | None
    depth: Ints  # (N,) K_n
    notes: tuple[str, ...] = ()
    counts: dict[bool, tuple[Floats, Floats]] = field(default_factory=dict[bool, tuple[Floats, Floats]])

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the rankers."""
        return tuple(self.rankings)

    def moments(self, model: str, kind: str, *, robust: bool = False) -> ShownMoments:
        """The moments of one ranker under one kind of weights."""
        log, found = self.log, self.rankings[model]
        w, rows = self._weights(found, kind)
        gain, residuals = self._gain(kind, robust=robust)
        requests, shown = self._counted(shuffled=kind == "pi")
        weight, wgain = weighted_sums(w, gain, log.cluster, log.request, log.position, shown.shape)
        matches, squares, clicks = position_facts(w, log.reward, log.position, log.depth)
        m = ShownMoments(
            kind=kind, requests=requests, shown=shown, weight=weight, wgain=wgain, matches=matches, squares=squares,
            clicks=float(clicks[0]), click_squares=float(clicks[1]),
            slope_wgain=np.zeros(self._parameters), slope_wtheta=np.zeros(self._parameters),
            examined=self.examined, denominator=self.support.denominator, reordered=self.support.reorders,
            per="request" if self.support.requests else "impression",
        )  # fmt: skip
        m = m if rows is None else self._with_slopes(m, w, gain, rows)
        return m if residuals is None else self._with_imputed(m, found, w, residuals)

    # -- weights ---------------------------------------------------------------------------------------------

    def _weights(self, found: Ranking, kind: str) -> tuple[Floats, ExaminedRows | None]:
        """w of each row, (n,), and for weights by θ what they are made of."""
        if kind in EXAMINED:
            rows = self._rows(found)
            tops = 1.0 / np.log2(np.arange(2, int(found.rank.max()) + 2)) if kind == "dcg" else None  # λ(σ)
            return examined_weights(self._scaled_theta(), rows, tops), rows
        if kind == "pi":
            return self._pi_weights(found), None
        if kind == "iips":
            return _inverse(self._own_position(found), _logged(self.log.propensity)), None
        hits = prefix_hits(found.rank == self.log.position, self.log.request)
        if kind == "rips":
            return _inverse(hits, _logged(self.log.prefix)), None
        last = self.log.request_ptr[1:] - 1
        return (hits[last] / _logged(self.log.slate))[self.log.request], None

    def _own_position(self, found: Ranking) -> Array:
        """π_k(a_k): whether the model shows the same item there, or its probability."""
        if found.probability is None:
            return found.rank == self.log.position
        return found.probability[np.arange(len(self.log)), self.log.position - 1]

    def _rows(self, found: Ranking) -> ExaminedRows:
        log, below = self.log, self.support.denominator
        given: dict[str, Any] = {} if found.probability is None else {"probability": found.probability}
        if below != "shown":
            given[below] = _logged(getattr(log, below))
        return ExaminedRows(
            request=log.request, position=log.position, depth=self.depth, rank=found.rank, below=BELOW.index(below),
            **given,
        )  # fmt: skip

    def _scaled_theta(self) -> Floats:
        """θ; without requests θ_k times the share of rows at k: positions then are not equally frequent."""
        theta = self._theta
        if self.support.requests:
            return theta
        shown = np.bincount(self.log.position - 1, minlength=self.log.depth)
        return theta * np.maximum(shown, 1) / shown.mean()

    @property
    def _theta(self) -> Floats:
        return np.ones(self.log.depth) if self.examined is None else self.examined.theta

    @property
    def _parameters(self) -> int:
        return self.log.depth * (2 if self.support.affine else 1)

    def _pi_weights(self, found: Ranking) -> Floats:
        """q_πᵀΓ⁺1_a of shuffled requests (Swaminathan et al. 2017, Eq. 4), in closed form; 0 for the others.

        Lists of K out of m items, each equally likely: Γ has the eigenvalues K/m, (m−K)/(m(m−1)), 0 and 1/(m−1). With M
        items at their own position and O in both lists, the weight is
        1 + (m−1)/(K(m−K))·(mO − K²) + (m−1)(M − O/K); where K = m the second term is 0.
        """
        log = self.log
        K = self.depth.astype(np.float64)
        m = _logged(log.pool).astype(np.float64)
        self._refuse_short(found)
        if found.probability is None:
            listed = (found.rank > 0) & (found.rank <= self.depth[log.request])
        else:
            inside = np.arange(log.depth) < self.depth[log.request][:, None]
            listed = (found.probability * inside).sum(axis=1)
        M, O = (totals(log.request, x, log.n_requests) for x in (self._own_position(found), listed))  # (N,)
        rest = np.divide(m * O - K**2, K * (m - K), out=np.zeros(len(K)), where=m > K)
        w = 1 + (m - 1) * (rest + M - O / K)
        return np.where(_logged(log.shuffled), w, 0.0)[log.request]

    def _refuse_short(self, found: Ranking) -> None:
        """The closed form is for lists that fill every position."""
        if found.lists is None:
            return
        shown = found.lists.lists[found.lists.key]  # (N, L)
        filled = np.minimum((shown >= 0).sum(axis=1), self.depth)
        short = int(np.count_nonzero(filled < self.depth))
        if short:
            raise UndefinedError(
                f"pi is undefined: {short:,} lists of the model are shorter than what was shown; give lists of at "
                f"least {self.log.depth} items."
            )

    # -- sums ------------------------------------------------------------------------------------------------

    def _counted(self, *, shuffled: bool) -> tuple[Floats, Floats]:
        """The requests and the shown rows of each cluster, of shuffled requests only or of all."""
        if shuffled not in self.counts:
            log = self.log
            every = _logged(log.shuffled).astype(np.float64) if shuffled else np.ones(log.n_requests)
            requests = totals(log.cluster, every, log.n_clusters)
            rows, shape = every[log.request], (log.n_clusters, log.depth)
            self.counts[shuffled] = (
                requests,
                weighted_sums(rows, rows, log.cluster, log.request, log.position, shape)[0],
            )
        return self.counts[shuffled]

    def _gain(self, kind: str, *, robust: bool) -> tuple[Floats, Floats | None]:
        """c, c − b_k, or c − θ_k·q̂ with θ_k·q̂; (n,) each."""
        c = self.log.reward
        if kind == "affine" and self.examined is not None and self.examined.offset is not None:
            return c - self.examined.offset[self.log.position - 1], None
        if not robust or self.imputed is None:
            return c, None
        expected = self._theta[self.log.position - 1] * self.imputed.of_rows(self.log)
        return c - expected, expected

    def _with_slopes(self, m: ShownMoments, w: Floats, gain: Floats, rows: ExaminedRows) -> ShownMoments:
        """∂Σw·gain/∂log θ and ∂Σwθ/∂log θ; of the affine model also by b: rows shown less Σw, at each position."""
        theta, scaled, weight = self._theta, self._scaled_theta(), m.weight.sum(axis=0)
        moving = m.kind != "dcg"
        by_theta = examined_slopes(w, gain, scaled, rows, moving=moving)
        if m.kind == "affine":
            by_theta = np.concatenate([by_theta, m.shown.sum(axis=0) - weight])
        else:
            mass = examined_slopes(w, theta, scaled, rows, moving=moving) + theta * weight
            m = replace(m, slope_wtheta=mass)
        return replace(m, slope_wgain=by_theta)

    def _with_imputed(self, m: ShownMoments, found: Ranking, w: Floats, expected: Floats) -> ShownMoments:
        """The moments with what is imputed for the model's lists, and how both parts move with θ."""
        if self.imputed is None:
            return m
        log = self.log
        above = w if m.kind == "rips" else None
        direct, slopes = self.imputed.of_lists(log, found, self._theta, self.depth, above)
        taken = totals(log.position - 1, w * expected, log.depth)  # ∂Σw(c − θq̂)/∂log θ_k at fixed w, but for −
        return replace(
            m, direct=totals(log.cluster, direct, log.n_clusters),
            slope_wgain=m.slope_wgain + slopes - taken,
        )  # fmt: skip


def impression_source(models: Mapping[str, Any], log: Impressions, exam: Any, asked: ShownQuestion) -> ImpressionSource:
    """The log with what each ranker says of it, checked and resolved."""
    examined = examined_by(exam, log, log.depth)
    rankings = {name: ranking(name, model, log, asked) for name, model in models.items()}
    affine = examined is not None and examined.offset is not None
    support = LogSupport(
        requests=log.requests is not None, whole=log.whole,
        propensity=log.propensity is not None,
        exposure=log.exposure is not None, prefix=log.prefix is not None, slate=log.slate is not None,
        shuffled=log.shuffled is not None and bool(log.shuffled.any()), pool=log.pool is not None,
        theta=examined is not None, affine=affine, reorders=asked.reorders,
        random=next((name for name, found in rankings.items() if found.probability is not None), ""),
        unlisted=next((name for name, found in rankings.items() if found.lists is None), ""),
    )  # fmt: skip
    imputed = None
    if examined is not None and any(method.robust for method in asked.methods):
        given = asked.imputation is not None
        imputed = ImputedRewards.given(asked.imputation, log) if given else ImputedRewards.fitted(log, examined.theta)
    notes = [] if log.users is not None else ["the log names no users: intervals are over requests"]
    return ImpressionSource(
        log=log, rankings=rankings, examined=examined, support=support, imputed=imputed, depth=log.lengths,
        notes=(*notes, *(note for found in rankings.values() for note in found.notes), *support.notes),
    )  # fmt: skip


def _inverse(target: Array, logged: Floats) -> Floats:
    """target/logged, without the division where the target is 0."""
    w = np.zeros(len(logged))
    return np.divide(target, logged, out=w, where=target != 0)


def _logged(values: Any) -> Any:
    """A column of the log that the support says is there."""
    if values is None:
        raise InputError("evaluate: a column of the log is missing that its support promised.")
    return values
