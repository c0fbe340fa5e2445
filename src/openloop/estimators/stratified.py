"""The stratified estimator: means inside strata of propensity, marginalised (Jadidinejad et al. 2021, Eq. 4)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats, distinct
from openloop.core.moments import Moments
from openloop.core.weights import Diagnostics
from openloop.errors import InputError
from openloop.estimators.weighted import BASIS, estimate, flag, per_user_values, quotient, side_by_side, undefined

Bins = Literal["count", "width"]
Share = Literal["catalogue", "observed"]


def stratified(m: Moments, share: Share | npt.ArrayLike = "catalogue") -> Estimate:
    """E(Y) = Σ_s P(s) E(Y | s) (Eq. 4).

    `share="catalogue"`: P(s) is the share of the population's cells in s, exact where the grid is known, else
    Σ_s w/Σw, whose randomness the influence includes. `"observed"`: the share of scored rows (the paper's). An
    array gives the shares. A stratum without a row is named, and its share spread over the others.
    """
    top, bottom = _within(m)  # (U, S) each
    given, own, random = _shares(m, share)
    columns = np.concatenate([top, bottom] if own is None else [top, bottom, own], axis=1)  # (U, 2S) or (U, 3S)
    shares = np.asarray(given if own is None else own.sum(axis=0))  # (S,)
    if not bottom.any():
        raise undefined(m, "stratified", "no scored row counts: no rating reaches the threshold")
    if not shares[bottom.any(axis=0)].any():
        raise undefined(m, "stratified", "no scored row lies in a stratum that has a share")
    places = [(BASIS[name], s) for name in ("gain", "n", *random) for s in range(m.n_strata)]
    filled = bottom.sum(axis=0)  # (S,)
    carried = bottom @ np.divide(
        shares, filled, out=np.zeros(m.n_strata), where=filled > 0
    )  # (U,) Σ_s share_s n_us/n_s
    found = estimate(
        m, "stratified", columns, partial(marginal, strata=m.n_strata, given=given), m.powers, places, carried=carried
    )
    return _described(found, m, share, shares, filled)


def within_strata(m: Moments) -> list[Estimate | None]:
    """The mean of each stratum by itself; None where none of its rows counts."""
    top, bottom = _within(m)  # (U, S) each
    return [_stratum(m, side_by_side(top[:, s], bottom[:, s]), s) for s in range(m.n_strata)]


def _stratum(m: Moments, columns: Floats, s: int) -> Estimate | None:
    n = m.sums["n"][:, s]
    if not columns[:, 1].any():
        return None
    seen = Diagnostics(n=int(n.sum()), users=int(np.count_nonzero(columns[:, 1])))
    return estimate(m, f"stratum {s + 1}", columns, quotient, diagnostics=seen)


def _shares(m: Moments, share: Share | npt.ArrayLike) -> tuple[Floats | None, Floats | None, tuple[str, ...]]:
    """Given shares (S,), or each user's part in them (U, S) and its name where it is random over cells.

    Other users would have other cells in a stratum: that is part of the influence, known grid or not.
    """
    if not isinstance(share, str):
        return _checked(np.asarray(share, np.float64), m.n_strata), None, ()
    if share not in get_args(Share):
        raise InputError(f'stratified: share must be "catalogue", "observed" or numbers, got {share!r}.')
    if share == "catalogue" and m.catalogue is not None:
        return None, m.catalogue, ()
    name = {"catalogue": "mass", "observed": "rows"}[share]
    return None, m.stack(name)[:, 0], (name,)


def marginal(totals: Any, strata: int, given: Floats | None) -> Any:
    """Σ_s share_s · top_s/bottom_s over the strata that have rows; totals (..., 2S or 3S)."""
    top, bottom = totals[..., :strata], totals[..., strata : 2 * strata]
    share = totals[..., 2 * strata :] if given is None else given
    filled = np.real(bottom) > 0
    means = np.where(filled, top / np.where(filled, bottom, 1.0), 0.0)
    weight = np.where(filled, share, 0.0)
    return (weight * means).sum(axis=-1) / weight.sum(axis=-1)


def _within(m: Moments) -> tuple[Floats, Floats]:
    """Numerator and denominator of each stratum's mean, per user."""
    if m.metric.kind == "cell":
        stacked = m.stack("gain", "n")
        return stacked[:, 0], stacked[:, 1]
    values = np.asfortranarray(per_user_values(m, "gain").reshape(m.n_users, m.n_strata))
    present = np.isfinite(values)
    return np.where(present, values, 0.0), present.astype(np.float64)


def _checked(share: Floats, strata: int) -> Floats:
    if share.shape != (strata,) or not np.all(share >= 0) or not share.sum() > 0:
        raise InputError(f"stratified: share must be {strata} non-negative numbers, one for each stratum, got {share}.")
    return share / share.sum()


def _described(found: Estimate, m: Moments, share: object, shares: Floats, filled: Floats) -> Estimate:
    known = tuple(float(s) for s in shares / shares.sum())
    found = replace(found, diagnostics=replace(found.diagnostics, shares=known))
    empty = [s for s in range(m.n_strata) if known[s] > 0 and filled[s] == 0]
    notes = [
        f"stratum {s + 1} of {m.n_strata} has no scored row that counts; its share {known[s]:.1%} was spread"
        for s in empty
    ]
    if isinstance(share, str) and share == "observed" and m.metric.kind == "cell":
        notes.append("observed shares of a cell metric give the naive estimate again")
    return flag(found, *notes)


def edges(propensity: Floats, strata: int, bins: Bins = "count") -> tuple[float, ...]:
    """The inner edges of the strata, right-closed, between distinct values; fewer where values tie.

    Where there are no more distinct values than strata, each value is a stratum of its own.
    """
    if strata < 1:
        raise InputError(f"strata must be at least 1, got {strata}.")
    values = distinct(propensity)
    if len(values) <= strata:
        raw = values[:-1]
    elif bins == "count":
        raw = np.quantile(propensity, np.arange(1, strata) / strata)
    else:
        raw = np.linspace(values[0], values[-1], strata + 1)[1:-1]

    def below(q: float) -> float:
        return values[max(np.searchsorted(values, q, side="right") - 1, 0)]

    def above(q: float) -> float:
        return values[min(np.searchsorted(values, q, side="right"), len(values) - 1)]

    return snap(raw, below, above)


def snap(raw: npt.ArrayLike, below: Any, above: Any) -> tuple[float, ...]:
    """Each raw edge moved to the midpoint between the distinct values around it; doubles and outer ones go."""
    found: list[float] = []
    for q in np.asarray(raw, np.float64):
        low, high = float(below(q)), float(above(q))
        if high > low and (not found or (low + high) / 2 > found[-1]):
            found.append((low + high) / 2)
    return tuple(found)


def catalogue_cells(grid: Floats, at: tuple[float, ...], excluded: tuple[Any, Any] = ((), ())) -> Floats:
    """How many cells each user has in each stratum, (U, S); the cells (users, items) of `excluded` do not count."""
    U, S = len(grid), len(at) + 1
    # A user at a time, as the grid may be a broadcast view: then all users have the row of the first.
    same = grid.strides[0] == 0
    counts = np.array([np.bincount(np.searchsorted(at, row), minlength=S) for row in (grid[:1] if same else grid)])
    counts = np.repeat(counts, U // len(counts), axis=0).astype(np.float64)  # (U, S)
    user, item = (np.asarray(codes, np.int64) for codes in excluded)
    stratum = np.searchsorted(at, grid[0])[item] if same else np.searchsorted(at, grid[user, item])
    return counts - np.bincount(user * S + stratum, minlength=U * S).reshape(U, S)
