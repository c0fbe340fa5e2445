"""Values of rankers from impressions: sips, rips, iips, pbm, pi, affine; normalised and doubly robust forms.

Each is a function from ShownMoments to an Estimate. Request n shows item a_k at position k ≤ K_n and earns c_k; w is
the row's weight of the estimator's kind, N the requests, N_k those with a position k.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.core.shown_moments import ShownMoments
from openloop.core.totals import Composed, Function, leave_one_out, single, smooth
from openloop.core.weights import THIN_SAMPLE, Diagnostics, effective_size, few_users
from openloop.errors import NameFormatError, UndefinedError, did_you_mean
from openloop.estimators.weighted import quotient, side_by_side

METRICS = ("clicks", "ctr", "dcg")
FEW_CLICKS = 100  # with fewer effective clicks an interval is unreliable
FULL_REACH = 0.99  # of the model's exposure
NOISE = 3.0  # standard errors that a reach estimated from random lists may be off
MATCHING = ("sips", "rips", "iips")  # kinds whose weights are 0 unless the model shows the same item there
EXAMINED = ("pbm", "affine", "dcg")  # kinds whose weights rest on θ

Form = Callable[[ShownMoments, str], Estimate]


def weighted_sum(m: ShownMoments, method: str) -> Estimate:
    """V̂ = Σ_n Σ_k w·c/N; affine adds Σ_k b_k, a doubly robust form what it imputes for the model's list."""
    _check(m, method)
    top = m.wgain.sum(axis=1)  # (U,)
    if m.direct is not None:
        top = top + m.direct
    if m.kind == "affine" and m.examined is not None and m.examined.offset is not None:
        top = top + m.shown @ m.examined.offset
    rests_on_theta = m.kind in EXAMINED or m.direct is not None
    slopes = (m.slope_wgain, 0 * m.slope_wgain) if rests_on_theta else None
    return _estimate(m, method, side_by_side(top, m.units), quotient, slopes)


def by_position(m: ShownMoments, method: str) -> Estimate:
    """Self-normalised at each position: Σ_k (N_k/N)·V_k, V_k = Σwc/Σw at k."""
    _check(m, method)
    used = m.shown.any(axis=0)  # some log may lack a position
    parts = [values[:, used] for values in (m.wgain, m.weight, m.shown)]  # (U, K) each
    return _estimate(m, method, np.hstack([*parts, m.units[:, None]]), _by_position)


def by_examination(m: ShownMoments, method: str) -> Estimate:
    """Self-normalised by θ: Θ·Σwc/Σwθ, Θ the mean over requests of Σ_k θ_k."""
    _check(m, method)
    theta = m.theta
    columns = side_by_side(m.wgain.sum(axis=1), m.weight @ theta, m.shown @ theta, m.units)
    slopes = (m.slope_wgain, m.slope_wtheta, theta * m.shown.sum(axis=0), np.zeros(m.depth))
    return _estimate(m, method, columns, _by_examination, slopes)


def _by_position(totals: Any) -> Any:
    """Totals are Σwc, Σw and N_k at each position, and N."""
    k = (totals.shape[-1] - 1) // 3
    values = totals[..., :k] / totals[..., k : 2 * k]
    return (values * totals[..., 2 * k : 3 * k]).sum(axis=-1) / totals[..., -1]


def _by_examination(totals: Any) -> Any:
    """Totals are Σwc, Σwθ, ΣΘ and N."""
    return totals[..., 0] / totals[..., 1] * totals[..., 2] / totals[..., 3]


# -- the estimate --------------------------------------------------------------------------------------------


def _estimate(
    m: ShownMoments, method: str, columns: Floats, function: Function, slopes: tuple[Floats, ...] | None = None
) -> Estimate:
    """The Estimate of a smooth function of totals; `slopes` (P,) are each total's derivatives by log θ (and b).

    θ fitted on this log adds (∂V/∂log θ)ᵀψ(log θ) to each cluster's part; fitted on another log, parts of its own.
    """
    value, gradient, influence = smooth(function, columns)
    effects, size, p_taken, examined = np.empty(0), 0, "known", m.examined
    if slopes is not None and examined is not None and examined.fitted:
        slope, p_taken = np.stack(slopes, axis=1) @ gradient, "corrected"  # (P,)
        if examined.influence is not None:
            # What a fitted nuisance adds to each cluster's part is one more total, of which the sum is 0.
            function = Composed(operator.add, ((function, columns.shape[1]), (single, 1)))
            columns = np.column_stack([columns, examined.influence @ slope / m.n_clusters])
            value, _, influence = smooth(function, columns)
        elif examined.effects is not None:
            effects, size = examined.effects @ slope, examined.size
    # Many positions of many users need not stay in memory: what leaving out each user changes is all that is used.
    return Estimate(
        value=value, influence=influence, method=method, metric=m.metric, estimand=estimand(m), p_taken=p_taken,
        columns=columns, function=function, deviations=leave_one_out(function, columns),
        denominator_users=effective_size(m.units), sample_effects=effects, sample_size=size,
        diagnostics=_diagnostics(m, method),
    ).linear()  # fmt: skip


def estimand(m: ShownMoments) -> str:
    """What the value is, in words."""
    what = "expected discounted clicks" if m.metric == "dcg" else "expected clicks"
    per = "impression" if m.metric == "ctr" else m.per
    return f"{what} per {per}{', reordering what was shown' if m.reordered else ''}"


def reach(m: ShownMoments) -> tuple[float, float]:
    """Σwθ/ΣΘ, whose mean is the part of the model's exposure that the log supports; with its standard error."""
    columns = side_by_side(m.weight @ m.theta, m.shown @ m.theta)
    deviations = leave_one_out(quotient, columns)
    return float(quotient(columns.sum(axis=0))), float(np.sqrt(deviations @ deviations))


def _diagnostics(m: ShownMoments, method: str) -> Diagnostics:
    used = m.shown.any(axis=0)
    weight = m.weight.sum(axis=0)  # (K,)
    rows = np.divide(weight**2, m.squares, out=np.zeros(m.depth), where=m.squares > 0)[used]
    clicks = m.clicks**2 / m.click_squares if m.click_squares else 0.0
    supported, error = reach(m) if m.kind not in ("pi", "dcg") else (None, 0.0)
    users = int(np.count_nonzero(m.requests))
    flags = few_users(users)
    if clicks < FEW_CLICKS:
        flags.append(f"{method} rests on {clicks:.0f} effective clicks, fewer than {FEW_CLICKS}")
    if rows.min() < THIN_SAMPLE and m.kind != "pi":
        flags.append(f"{method} rests on {rows.min():.1f} effective rows at one position, fewer than {THIN_SAMPLE}")
    if supported is not None and m.kind in MATCHING and supported + NOISE * error < FULL_REACH:
        flags.append(f"the log supports {supported:.0%} of what the model shows: {method} misses the rest")
    return Diagnostics(
        n=int(m.shown.sum()), users=users, effective_size=float(weight.sum() ** 2 / m.squares.sum()), reach=supported,
        matches=tuple(int(n) for n in m.matches), effective_clicks=float(clicks), effective_rows=float(rows.min()),
        flags=tuple(flags),
    )  # fmt: skip


# -- refusals ------------------------------------------------------------------------------------------------


def _check(m: ShownMoments, method: str) -> None:
    """Refuse moments that cannot carry the estimate."""
    if not m.matches.any():
        raise _undefined(m, method, "the model lists none of the shown items; check that ids are the log's")
    if m.kind in MATCHING:
        alone = np.flatnonzero(m.shown.any(axis=0) & (m.matches == 0))
        if len(alone):
            raise _undefined(m, method, f"no row of the log matches the model at position {int(alone[0]) + 1}")
    if m.kind in EXAMINED and m.kind != "dcg":
        _check_reach(m, method)


def _check_reach(m: ShownMoments, method: str) -> None:
    supported, error = reach(m)
    if supported + (0.0 if m.denominator == "shown" else NOISE * error) >= FULL_REACH:
        return
    remedy = (
        "every item must have a chance at every position where only the propensity of the shown one is logged"
        if m.denominator == "propensity"
        else "where lists were drawn at random, pass the probability of each item at its position as propensity=, or "
        'ask for candidates="shown", which reorders what was shown'
    )
    raise _undefined(
        m, method, f"the log holds {supported:.2f} of what the model shows, and {FULL_REACH} is needed; {remedy}"
    )


def _undefined(m: ShownMoments, method: str, reason: str) -> UndefinedError:
    return UndefinedError(f"{method} of {m.metric} is undefined: {reason}.")


# -- names ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMethod:
    """An estimator of a ranker's value: the kind of its weights, and what it makes of their sums."""

    name: str
    kind: str
    form: Form = weighted_sum
    robust: bool = False
    imputation: Any = field(default=None, compare=False)  # a reward for each item

    def estimate(self, m: ShownMoments) -> Estimate:
        """The estimate from the moments of this method's kind."""
        return self.form(m, self.name)

    def undefined(self, metric: str) -> str | None:
        """Why there is no such estimate for any rows."""
        if metric != "dcg" or self.name == "pbm":
            return None
        return f"{self.name} of dcg is undefined: dcg is a sum over items, which pbm alone gives."


METHODS = {
    method.name: method
    for method in (
        *(ShownMethod(name=kind, kind=kind) for kind in ("sips", "rips", "iips", "pbm", "pi", "affine")),
        *(ShownMethod(name=f"sn{kind}", kind=kind, form=by_position) for kind in MATCHING),
        ShownMethod(name="snpbm", kind="pbm", form=by_examination),
        *(ShownMethod(name=f"{kind}_dr", kind=kind, robust=True) for kind in ("rips", "iips", "pbm")),
    )
}


def shown_method(name: str | ShownMethod) -> ShownMethod:
    """The estimator of that name, such as "snpbm"."""
    if isinstance(name, ShownMethod):
        return name
    if str(name).strip().lower() not in METHODS:
        raise NameFormatError(
            f"estimator {name!r} is not an estimator of impressions.{did_you_mean(str(name), METHODS)}"
        )
    return METHODS[str(name).strip().lower()]


def shown_metric(name: str) -> str:
    """The metric of that name: clicks, ctr or dcg."""
    if str(name).strip().lower() not in METRICS:
        raise NameFormatError(f"metric {name!r} is not a metric of impressions.{did_you_mean(str(name), METRICS)}")
    return str(name).strip().lower()
