"""Naive, IPS, SNIPS and their clipped and per-user forms: each a function from Moments to an Estimate.

w = 1/p, or 1/π under `exclude`; O the observed cells, S_u a user's observed relevant items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.totals import Composed, Function, smooth
from openloop.core.weights import MASS_RANGE, Diagnostics, diagnose, effective_size, few_users, mass_flag
from openloop.errors import UndefinedError
from openloop.estimators.levels import by_level, drawn_by_user, sample_effects

FEW_RELEVANT = 5  # below this median |S_u| a user's own ratio is nearly the naive one

# A row's share in each total: the total's name → the powers (a, b) of w^a δ^b.
BASIS = {"n": (0, 0), "rows": (0, 0), "gain": (0, 1), "weight": (1, 0), "mass": (1, 0), "wgain": (1, 1)}
CUT_BASIS = {"cut": (1, 0), "cutgain": (1, 1)}


def naive(m: Moments) -> Estimate:
    """The plain average: Σδ/|O| (Schnabel Eq. 5), or the mean over users (Jadidinejad Eq. 1)."""
    m = m.collapse()
    if m.metric.kind == "cell":
        return ratio(m, "naive", "gain", "n", diagnostics=plain_diagnostics(m))
    return mean_over_users(m, "naive", per_user_values(m, "gain"), diagnostics=plain_diagnostics(m))


def ips(m: Moments) -> Estimate:
    """Inverse propensity scoring: Σwδ/(U·I) (Eq. 10; Horvitz & Thompson 1952).

    Balanced weights add up to U·I by construction, so it is snips there.
    """
    if m.unbalanced is not None:
        return replace(snips(m), method="ips")
    plain = _by_level(m, "ips") if m.sample is not None else ratio(_defined(m, "ips"), "ips", "wgain", "cells")
    return flag(plain, *mass_flag(m.mass))


def snips(m: Moments) -> Estimate:
    """Self-normalised: Σwδ/Σw (Eq. 11; Swaminathan & Joachims 2015).

    Pooled over relevant cells for user metrics; nDCG per user over its weights' ideal.
    """
    if m.sample is not None:
        plain = _by_level(m, "snips")
    elif (m := _defined(m, "snips")).metric.kind == "cell" or m.metric.pooled:
        plain = ratio(m, "snips", "wgain", "weight")
    else:
        return mean_over_users(m, "snips", _quotient(m, "wgain", "ideal"))
    return flag(plain, *mass_flag(m.mass)) if m.metric.kind == "cell" and m.scaled else plain


def snips_user(m: Moments) -> Estimate:
    """The mean over users of each user's own Σwc/Σw."""
    m = _defined(m, "snips_user")
    estimate = mean_over_users(m, "snips_user", _quotient(m, "wgain", "weight"))
    n = m.sums["n"][:, 0]
    typical = float(np.median(n[n > 0])) if m.users else 0.0
    estimate = replace(estimate, diagnostics=replace(estimate.diagnostics, typical_relevant=typical))
    if typical >= FEW_RELEVANT:
        return estimate
    return flag(estimate, f"users have {typical:g} relevant items (median): a user's own ratio is nearly naive")


def ips_eq3(m: Moments) -> Estimate:
    """Jadidinejad Eq. 3 as printed: (1/|U|) Σ_u (1/|S_u|) Σ c/p; not an estimate of the open loop."""
    m = _defined(m, "ips_eq3")
    return mean_over_users(m, "ips_eq3", per_user_values(m, "wgain"))


def clipped(m: Moments) -> Estimate:
    """IPS with weights cut at the moments' cap, min(w, c) (Ionides 2008); for user metrics SNIPS with cut weights."""
    m = _defined(m, "clipped")
    name = "clipped" if m.cap is None else clipped_name(m.cap)
    if m.metric.kind == "cell" or m.metric.pooled:
        plain = ratio(m, name, "cutgain", "cells" if m.metric.kind == "cell" else "cut", cut=True)
    else:
        plain = mean_over_users(m, name, _quotient(m, "cutgain", "cutideal"))
    if m.weights is None or m.cap is None:
        return plain
    # The diagnostics of the cut weights; what they lack of the population is clipping's bias.
    total = float(m.stack("cut").sum())
    share = (total / m.weights.total if m.weights.total else 1.0) * (1.0 if m.kept_weight is None else m.kept_weight)
    cut = _diagnostics(replace(m, weights=m.weights.cut(m.cap, total)))
    diagnostics = replace(cut, cap=m.cap, clipped_share=m.clipped, kept_weight=share)
    if m.metric.kind == "cell" and total / m.population < MASS_RANGE[0]:
        mass = f"the cut weights add up to {total / m.population:.2f} of the population"
        diagnostics = diagnostics.flagged(f"{mass}: clipping biases this estimate")
    return replace(plain, diagnostics=diagnostics)


def clipped_name(cap: float) -> str:
    """The name that parses back to exactly this cap."""
    return f"clipped@{cap!r}".removesuffix(".0")


def ratio(
    m: Moments, method: str, top: str, bottom: str, *, cut: bool = False, diagnostics: Diagnostics | None = None
) -> Estimate:
    """Σ_u top / Σ_u bottom, with the ratio's influence; bottom may be "cells", which is not random over cells."""
    m = m.collapse()
    below = m.cells if bottom == "cells" else m.stack(bottom)[:, 0, 0]
    columns = side_by_side(m.stack(top)[:, 0, 0], below)  # (U, 2)
    if not below.sum():
        raise undefined(m, method, "no scored row counts: no rating reaches the threshold")
    basis = CUT_BASIS if cut else BASIS
    powers = m.cut_powers if cut else m.powers
    places = [(basis[top], 0)] + ([] if bottom == "cells" else [(basis[bottom], 0)])
    return estimate(m, method, columns, quotient, powers, places, diagnostics)


def _by_level(m: Moments, method: str) -> Estimate:
    """ips or snips by propensities that were fitted with a uniform sample, the strata being its rating levels."""
    _check_defined(m, method)
    sample, over_cells = m.sample, method == "ips"
    if sample is None or not m.stack("weight").sum():
        raise undefined(m, method, "no scored row counts: no rating reaches the threshold")
    top, bottom, mass = (m.sums[name] for name in ("wgain", "weight", "mass"))  # (U, L) each
    below = m.population if over_cells else float(bottom.sum())
    function = by_level(sample, mass.sum(axis=0), float(m.sums["rows"].sum()), below if over_cells else None)
    drawn = drawn_by_user(sample, m.n_users)
    columns = [top, bottom, mass, *([m.cells[:, None]] if over_cells else []), *([] if drawn is None else [drawn])]
    plain = estimate(
        m, method, side_by_side(*columns), function, m.powers,
        [(BASIS[name], r) for name in ("wgain", "weight", "mass") for r in range(len(sample))],
        carried=m.cells if over_cells else bottom.sum(axis=1),
    )  # fmt: skip
    centre = 0.0 if over_cells else float(top.sum()) / below
    slopes = (top.sum(axis=0) - centre * bottom.sum(axis=0)) / below  # (L,)
    # rmse: of the root's error
    effects = sample_effects(sample, slopes) * (0.5 / plain.value if plain.root and plain.value else 1.0)
    counted = sample.size * float(sample.shares[bottom.any(axis=0)].sum())
    variance = None if plain.cell_variance is None else plain.cell_variance + float(np.square(effects).sum())
    return replace(
        plain, p_taken="corrected", cell_variance=variance,
        sample_effects=effects if drawn is None else np.empty(0), sample_size=round(counted) if drawn is None else 0,
    )  # fmt: skip


def estimate(
    m: Moments,
    method: str,
    columns: Floats,
    function: Function,
    powers: Floats | None = None,
    places: list[tuple[tuple[int, int], int]] | None = None,
    diagnostics: Diagnostics | None = None,
    carried: Floats | None = None,
) -> Estimate:
    """The Estimate of a smooth function of totals; `places` says which w^a δ^b, in which stratum, each one sums.

    `carried` is each user's part W_u in the denominator, by default the second column.
    """
    value, gradient, influence = smooth(function, columns)
    variance = None
    if powers is not None and places is not None and m.metric.kind == "cell" and not m.whole_users:
        variance = cell_variance(gradient, places, powers)
    plain = Estimate(
        value=value, influence=influence, cell_variance=variance, method=method, metric=m.metric.name,
        diagnostics=_diagnostics(m) if diagnostics is None else diagnostics, columns=columns, function=function,
        denominator_users=effective_size(columns[:, 1] if carried is None else carried), whole_users=m.whole_users,
    )  # fmt: skip
    return root(plain) if m.metric.root else plain


def cell_variance(gradient: Floats, places: list[tuple[tuple[int, int], int]], powers: Floats) -> float:
    """Σ_O (1−p) g², g = Σ_ab G_ab w^a δ^b the row's part in the linearised estimate, stratum by stratum.

    For ips this is Σ(1−p)w²δ²/(U·I)², for snips Σ(1−p)w²(δ−θ)²/(Σw)².
    """
    linear = np.zeros((len(powers), 2, 2))  # (S, 2, 2): G
    for (power, stratum), slope in zip(places, gradient, strict=False):
        linear[stratum][power] += slope
    terms = [
        linear[:, a, b] * linear[:, c, d] * powers[:, a + c, b + d]
        for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)
    ]  # fmt: skip
    total, size = float(np.sum(terms)), float(np.abs(terms).sum())
    # One-pass sums cancel: what is below their own rounding is zero.
    return total if total > 64 * np.finfo(float).eps * size else 0.0


def root(e: Estimate) -> Estimate:
    """rmse = √mse, with influence/(2·rmse)."""
    if e.value < 0:  # dr need not lie between the losses
        msg = f"{e.method} of {e.metric} is undefined: the estimate under the root is negative, {e.value:.4g}."
        raise UndefinedError(msg)
    value = float(np.sqrt(e.value))
    slope = 1.0 / (2.0 * value) if value > 0 else 0.0
    variances = (e.cell_variance, e.diagnostics.loss_variance)
    cell_variance, loss_variance = (None if x is None else x * slope**2 for x in variances)
    with np.errstate(invalid="ignore"):  # dr without a user may be negative
        deviations = np.sqrt(e.value + e.deviations) - value
    return replace(
        e, value=value, influence=e.influence * slope, deviations=deviations, root=True,
        function=Composed(np.sqrt, ((e.function, e.columns.shape[1]),)), sample_effects=e.sample_effects * slope,
        cell_variance=cell_variance, diagnostics=replace(e.diagnostics, loss_variance=loss_variance),
    )  # fmt: skip


def mean_over_users(m: Moments, method: str, values: Floats, diagnostics: Diagnostics | None = None) -> Estimate:
    """The mean of per-user values; users without one (NaN) are left out, and counted in the diagnostics."""
    present = np.isfinite(values)
    if not present.any():
        raise undefined(m, method, "no user has a relevant scored item, and for auc one that is not; see threshold=")
    columns = side_by_side(np.where(present, values, 0.0), present.astype(np.float64))  # (U, 2)
    return estimate(m, method, columns, quotient, diagnostics=diagnostics)


def per_user_values(m: Moments, gain: str) -> Floats:
    """metric.per_user(|S_u|, Σc, |C_u|) of each user and stratum, NaN where S_u is empty; (U,) or (U, S)."""
    per_user = m.metric.per_user
    if per_user is None:
        raise undefined(m, "a mean over users", "it is a cell metric")
    stacked = m.stack("n", gain)
    n, total = stacked[:, 0], stacked[:, 1]  # (U, S)
    cells = np.broadcast_to(m.cells[:, None], n.shape)
    present = n > 0
    values = np.full(n.shape, np.nan)
    values[present] = per_user(n[present], total[present], cells[present])
    return values[:, 0] if m.n_strata == 1 else values


def side_by_side(*columns: Floats) -> Floats:
    """Columns (U,) or (U, k) as (U, m), each of them contiguous: sums over users then are ten times faster."""
    return np.vstack([column.T for column in columns]).T


def quotient(totals: Any) -> Any:
    """The first total over the second."""
    return totals[..., 0] / totals[..., 1]


def flag(e: Estimate, *flags: str) -> Estimate:
    """The estimate with more flags in its diagnostics."""
    return replace(e, diagnostics=e.diagnostics.flagged(*flags)) if flags else e


def why_undefined(metric: Metric, estimator: str) -> str | None:
    """The empty places in the table of estimators, with their reasons."""
    if estimator == "snips_user":
        return None if metric.pooled else "it is defined for adg, atop and recall@k"
    if metric.kind == "cell":
        return "it is defined for user metrics" if estimator == "ips_eq3" else None
    if estimator in ("naive", "stratified"):
        return None
    if estimator == "dr":
        return "it is defined for cell metrics"
    if not metric.additive:
        return "it has naive and stratified estimates only"
    if estimator == "ips":
        return "the number of relevant items is unknown; use snips, or ips_eq3 for Jadidinejad's Eq. 3 as printed"
    if estimator in ("snips", "clipped") and not (metric.pooled or metric.ideal):
        return (
            "weights do not reach what per_user divides by; pass pooled=True where that is gain/n, or write a sum over "
            "a user's items as kind='cell'"
        )
    return None


def _defined(m: Moments, estimator: str) -> Moments:
    """The moments without strata, where the table has this combination."""
    _check_defined(m, estimator)
    return m.collapse()


def _check_defined(m: Moments, estimator: str) -> None:
    reason = why_undefined(m.metric, estimator)
    if reason is not None:
        raise undefined(m, estimator, reason)


def undefined(m: Moments, method: str, reason: str) -> UndefinedError:
    """The error for a combination that has no definition."""
    return UndefinedError(f"{method} of {m.metric.name} is undefined: {reason}.")


def _quotient(m: Moments, top: str, bottom: str) -> Floats:
    stacked = m.stack(top, bottom)[:, :, 0]
    return np.divide(stacked[:, 0], stacked[:, 1], out=np.full(m.n_users, np.nan), where=stacked[:, 1] > 0)


def plain_diagnostics(m: Moments) -> Diagnostics:
    """Those of an estimate that weights nothing, so the weights' diagnostics do not apply."""
    return Diagnostics(n=int(m.sums["n"].sum()), users=m.users, flags=tuple(few_users(m.users)))


def _diagnostics(m: Moments) -> Diagnostics:
    if m.weights is None:
        return plain_diagnostics(m)
    weighted = diagnose(m.weights, m.users, m.population, m.floored)
    # Relevant rows represent the relevant cells, whose number is unknown: there is nothing to compare their Σw with.
    mass = m.weights.total / m.population * (1.0 if m.unbalanced is None else m.unbalanced)
    return replace(
        weighted, inverse_squares=m.inverse_squares, mass=mass if m.metric.kind == "cell" else None,
        loss_variance=_loss_variance(m), kept_weight=m.kept_weight,
    )  # fmt: skip


def _loss_variance(m: Moments) -> float | None:
    """S² = Σw(δ − θ)²/Σw, θ = Σwδ/Σw: how much losses differ between cells; None where δ is a residual."""
    if m.squares is None or m.imputed is not None:
        return None
    total = float(m.stack("weight").sum())
    mean = float(m.stack("wgain").sum()) / total
    return max(0.0, m.squares / total - mean * mean)  # one-pass sums cancel; ** raises where a product is infinite


Estimator = Callable[[Moments], Estimate]
