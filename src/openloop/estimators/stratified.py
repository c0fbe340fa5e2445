"""The stratified estimator: means inside strata of propensity, marginalised (Jadidinejad et al. 2021, Eq. 4)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.weights import Diagnostics
from openloop.errors import InputError
from openloop.estimators.weighted import BASIS, estimate, flag, per_user_values, quotient, side_by_side, undefined

Share = Literal["catalogue", "observed"]
Shares = Share | npt.ArrayLike | None
BLOCK = 2**21  # cells that are looked at together
COARSE_SPAN = 3.0  # p inside a stratum spans more than this factor: its plain mean is not that of its cells
COARSE_SHARE = 0.25  # of the population in such strata: the estimate is flagged


def stratified(m: Moments, share: Shares = None) -> Estimate:
    """E(Y) = Σ_s P(s) E(Y | s) (Eq. 4); inside a stratum rows count equally.

    `share="catalogue"`: of a cell metric, P(s) is the share of the population's cells in s, exact where the grid is
    known, else Σ_s w/Σw. Of adg, atop and recall@k it is the share of relevant cells, Σ_{S∩s} w/Σ_S w, and E(Y | s)
    the mean over the relevant rows of s. `"observed"`: the share of scored rows, with a mean over users inside s (the
    paper's). None: "catalogue" where it is defined. An array gives the shares. The influence includes the shares'
    randomness. A stratum without a row is named, and its share spread over the others.
    """
    share = default_share(m.metric) if share is None else share
    reason = why_no_shares(m.metric, share)
    if reason is not None:
        raise undefined(m, "stratified", reason)
    is_observed = _is(share, "observed")
    top, bottom = _within(m, pooled=not is_observed)  # (U, S) each
    fixed, by_user, names = _shares(m, share)
    shares = by_user.sum(axis=0) if fixed is None else fixed  # (S,), up to a factor
    if not bottom.any():
        raise undefined(m, "stratified", "no scored row counts: no rating reaches the threshold")
    if not shares[bottom.any(axis=0)].any():
        raise undefined(m, "stratified", "no scored row lies in a stratum that has a share")
    columns = side_by_side(top, bottom, by_user)  # (U, 2S or 3S)
    places = [(BASIS[name], s) for name in ("gain", "n", *names) for s in range(m.n_strata)]
    function = partial(marginal, strata=m.n_strata, fixed=fixed)
    plain = estimate(m, "stratified", columns, function, m.powers, places, carried=carried(bottom, shares))
    shares = shares / shares.sum()
    coarse = None if is_observed else _coarse_share(m, shares)
    diagnostics = replace(plain.diagnostics, shares=tuple(shares.tolist()), coarse_share=coarse)
    flags = [
        f"stratum {s + 1} of {len(shares)} has no scored row that counts; its share {shares[s]:.1%} was spread"
        for s in np.flatnonzero((shares > 0) & ~bottom.any(axis=0))
    ]
    if coarse is not None and coarse > COARSE_SHARE:
        flags.append(
            f"coarse strata: {coarse:.0%} of the population is in strata whose propensities differ by more than a "
            f"factor of {COARSE_SPAN:g}, so their means are biased; snips weights inside them too"
        )
    if is_observed and m.metric.kind == "cell":
        flags.append("observed shares of a cell metric give the naive estimate again")
    return flag(replace(plain, diagnostics=diagnostics), *flags)


def default_share(metric: Metric) -> Share:
    """The shares of the population, where a metric has an average over it."""
    return "observed" if _only_seen(metric) else "catalogue"


def why_no_shares(metric: Metric, share: Shares) -> str | None:
    """Why a metric has no estimate with these shares."""
    if not _is(share, "catalogue") or not _only_seen(metric):
        return None
    return "it compares with what was not seen, which no shares correct; write :observed for the paper's form"


def _only_seen(metric: Metric) -> bool:
    """ndcg, map, mrr, hit@k, auc: their ideal depends on what was not seen."""
    return metric.kind == "user" and not metric.pooled


def _is(share: object, name: Share) -> bool:
    return isinstance(share, str) and share == name


# -- inside a stratum ----------------------------------------------------------------------------------------


def within_strata(m: Moments, *, weighted: bool = False) -> list[Estimate | None]:
    """The mean of each stratum by itself; None where none of its rows counts.

    Plain: Σδ/n, or the mean over users (the paper's). Weighted: Σwδ/Σw of the stratum, pooled for user metrics, which
    is free of the selection inside it, where `weighs` says so.
    """
    if weighted and weighs(m):
        stacked = m.stack("wgain", "weight")
        top, bottom = stacked[:, 0], stacked[:, 1]
    else:
        top, bottom = _within(m, pooled=False)
    return [_stratum(m, side_by_side(top[:, s], bottom[:, s]), s) for s in range(m.n_strata)]


def weighs(m: Moments) -> bool:
    """Whether strata have weighted means; not of a metric that no weights debias, nor without propensities."""
    return "weight" in m.sums and not _only_seen(m.metric)


def _stratum(m: Moments, columns: Floats, s: int) -> Estimate | None:
    n = m.sums["n"][:, s]
    if not columns[:, 1].any():
        return None
    diagnostics = Diagnostics(n=int(n.sum()), users=int(np.count_nonzero(columns[:, 1])))
    return estimate(m, f"stratum {s + 1}", columns, quotient, diagnostics=diagnostics)


def _within(m: Moments, *, pooled: bool) -> tuple[Floats, Floats]:
    """Numerator and denominator of each stratum's plain mean, per user."""
    if m.metric.kind == "cell" or (pooled and m.metric.pooled):
        stacked = m.stack("gain", "n")
        return stacked[:, 0], stacked[:, 1]
    values = np.asfortranarray(per_user_values(m, "gain").reshape(m.n_users, m.n_strata))
    present = np.isfinite(values)
    return np.where(present, values, 0.0), present.astype(np.float64)


def marginal(totals: Any, strata: int, fixed: Floats | None) -> Any:
    """Σ_s share_s · top_s/bottom_s over the strata that have rows; totals (..., 2S or 3S)."""
    top, bottom = totals[..., :strata], totals[..., strata : 2 * strata]
    share = totals[..., 2 * strata :] if fixed is None else fixed
    filled = np.real(bottom) > 0
    means = np.divide(top, bottom, out=np.zeros_like(top), where=filled)
    weight = share * filled
    return (weight * means).sum(axis=-1) / weight.sum(axis=-1)


def carried(bottom: Floats, shares: Floats) -> Floats:
    """W_u = Σ_s share_s n_us/n_s, (U,): how much of the estimate each user carries; n_us the (U, S) of `bottom`."""
    n = bottom.sum(axis=0)  # (S,)
    weight = np.where(n > 0, shares, 0.0)
    return np.einsum("us,s->u", bottom, weight / weight.sum() / np.where(n > 0, n, 1.0))


# -- shares --------------------------------------------------------------------------------------------------


def _shares(m: Moments, share: Shares) -> tuple[Floats | None, Floats, tuple[str, ...]]:
    """Fixed shares (S,); or each user's part in them (U, S), and the name of the sum that is random over cells.

    Other users would have other cells in a stratum: that is part of the influence, known grid or not.
    """
    if not isinstance(share, str):
        numbers = np.asarray(share, np.float64)
        if numbers.shape != (m.n_strata,) or not np.all(numbers >= 0) or not numbers.sum() > 0:
            raise InputError(
                f"stratified: share must be {m.n_strata} non-negative numbers, one for each stratum, got {numbers}."
            )
        return numbers / numbers.sum(), np.empty((m.n_users, 0)), ()
    if share not in get_args(Share):
        raise InputError(f'stratified: share must be "catalogue", "observed" or numbers, got {share!r}.')
    if share == "catalogue" and not m.metric.pooled and m.catalogue is not None:
        return None, m.catalogue, ()
    # rows and mass are of all scored rows, weight of those that count: the relevant ones, for a user metric.
    name = "rows" if share == "observed" else "weight" if m.metric.pooled else "mass"
    return None, m.stack(name)[:, 0], (name,)


def population_shares(m: Moments) -> tuple[float, ...] | None:
    """Each stratum's share of the population, of relevant cells for adg, atop and recall@k; None without weights."""
    if m.catalogue is None and "mass" not in m.sums:
        return None
    values = _shares(m, "catalogue")[1].sum(axis=0)
    return tuple((values / values.sum()).tolist()) if values.any() else None


def catalogue_cells(grid: Floats, edges: tuple[float, ...], excluded: tuple[Any, Any] = ((), ())) -> Floats:
    """How many cells each user has in each stratum, (U, S); the cells (users, items) of `excluded` do not count."""
    U, S = len(grid), len(edges) + 1
    if not U:  # a block may have no users
        return np.zeros((0, S))
    # A user at a time, as the grid may be a broadcast view: then all users have the row of the first.
    same = grid.strides[0] == 0
    counts = np.array([np.bincount(np.searchsorted(edges, row), minlength=S) for row in (grid[:1] if same else grid)])
    counts = np.repeat(counts.T, U // len(counts), axis=1).astype(np.float64)  # (S, U)
    first = np.searchsorted(edges, grid[0])
    for start in range(0, len(excluded[0]), BLOCK):
        user, item = (np.asarray(codes[start : start + BLOCK], np.int64) for codes in excluded)
        stratum = first[item] if same else np.searchsorted(edges, grid[user, item])
        counts -= np.bincount(stratum * U + user, minlength=U * S).reshape(S, U)
    return counts.T


def _coarse_share(m: Moments, shares: Floats) -> float | None:
    """The share of strata inside which p differs so much that rows counted alike are selected rows again."""
    if m.limits is None:
        return None
    return float(shares[m.limits[:, 1] > COARSE_SPAN * m.limits[:, 0]].sum())
