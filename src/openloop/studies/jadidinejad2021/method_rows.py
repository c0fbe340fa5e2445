"""The rows of Tables 2 to 5: what each evaluation method says of all models, tested in pairs over users.

The paper's setting: two strata of equal width of the as-coded propensity, Q1 the long tail and Q2 the head, and paired
t-tests over users. What is tested here is an estimate's influence by user, which for a plain mean is that t-test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.totals import freedom
from openloop.studies.jadidinejad2021.fits import ModelFits
from openloop.studies.jadidinejad2021.methods import HeldOutRows, coded
from openloop.studies.jadidinejad2021.open_loop import counted_ratings, targets
from openloop.studies.jadidinejad2021.scores import Scores

HOLDOUT, IPS, STRATIFIED, OPEN_LOOP = "Holdout", "IPS", "Stratified", "Open loop"
STRATA = ("Q1", "Q2")
METHODS = {HOLDOUT: "holdout", IPS: "ips", STRATIFIED: "stratified", "Q1": "q1", "Q2": "q2"}  # as `coded` names them
LEVEL = 0.95
CODED, OUTSIDE = "coded", "outside"
AMONG = {CODED: "training items in the ranking, as coded", OUTSIDE: "training items left out of the ranking"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRow:
    """What one evaluation method says of M models; `rows` and `items` are the ratings that it looks at."""

    name: str
    value: Floats  # (M,)
    error: Floats  # (M,), standard error over users
    pvalue: Floats  # (M, M), of each difference, paired by user, two-sided
    rows: int
    items: int

    def among(self, models: Array) -> MethodRow:
        """The same of some models, by position or mask."""
        inside = self.pvalue[models][:, models]
        return replace(self, value=self.value[models], error=self.error[models], pvalue=inside)


MethodRows = Mapping[str, MethodRow]


def row_of(name: str, scores: Scores, rows: int, items: int) -> MethodRow:
    """A method's row with its tests."""
    parts = [estimate.linear() for estimate in scores.estimates]
    pvalue = pair_pvalues(
        scores.value, np.array([part.deviations for part in parts]), np.array([part.influence for part in parts]),
        max(part.units for part in parts),
    )  # fmt: skip
    error = np.array([estimate.stderr for estimate in scores.estimates])
    return MethodRow(name=name, value=scores.value, error=error, pvalue=pvalue, rows=rows, items=items)


def pair_pvalues(value: Floats, deviations: Floats, influence: Floats, units: int) -> Floats:
    """The p-value of every difference of two models, (M, M), as `Estimate.pvalue` has it of one.

    J (M, U) are the deviations, ψ (M, U) the influence: stderr² = (m − 1)/m · ΣJ², t has `freedom(m, (Σψ²)²/Σψ⁴)`.
    """
    from scipy.special import stdtr

    found = np.ones((len(value), len(value)))
    for a in range(len(value) - 1):
        later = slice(a + 1, None)
        gap = value[a] - value[later]
        error = np.sqrt((units - 1) / units * np.square(deviations[a] - deviations[later]).sum(axis=1))
        squares = np.square(influence[a] - influence[later])  # (M − a − 1, U)
        with np.errstate(invalid="ignore", divide="ignore"):  # two models that are alike for every user
            effective = squares.sum(axis=1) ** 2 / np.square(squares).sum(axis=1)
            tested = 2 * stdtr(freedom(units, effective, np.inf), -np.abs(gap) / error)
        found[a, later] = found[later, a] = np.where(error == 0, gap == 0, tested)
    return found


def method_rows(fits: ModelFits, split: int, among: str) -> dict[str, MethodRow]:
    """Every row of a table, on one split.

    `among` "coded" ranks as the published code does, and has its IPS; the open loop is the published one. "outside"
    leaves training items out of rankings; the open loop is then ranked by the same models.
    """
    held = fits.held_out(split)
    methods, size, tested = coded(held, among=among), sizes(held), strata_with_users(held)
    left_out = {*(set(STRATA) - tested), *([] if among == CODED else [IPS])}
    found = {
        name: row_of(name, methods[method](None), *size.get(name, size[HOLDOUT]))
        for name, method in METHODS.items()
        if name not in left_out
    }
    return found | ({OPEN_LOOP: open_loop_row(fits, split, among)} if fits.has_open_loop else {})


def sizes(held: HeldOutRows) -> dict[str, tuple[int, int]]:
    """Ratings and items of all rows that count as coded, and of each stratum."""
    item, stratum = held.rows[1][held.shown], held.coded_strata(len(STRATA))
    parts = {HOLDOUT: item, **{name: item[stratum == s] for s, name in enumerate(STRATA)}}
    return {name: (len(items), len(np.unique(items))) for name, items in parts.items()}


def strata_with_users(held: HeldOutRows) -> set[str]:
    """The strata in which two users or more have a relevant rating."""
    user, counts = held.rows[0][held.shown], held.relevant[held.shown]
    stratum = held.coded_strata(len(STRATA))
    return {name for s, name in enumerate(STRATA) if len(np.unique(user[counts & (stratum == s)])) > 1}


def open_loop_row(fits: ModelFits, split: int, among: str) -> MethodRow:
    """The open loop: as coded on all its cells, else on those outside the training part."""
    target = "published" if among == CODED else "candidates"
    rated = fits.given["open_item"][counted_ratings(fits, split, target)]
    return row_of(OPEN_LOOP, targets(fits, split)[target](None), len(rated), len(np.unique(rated)))
