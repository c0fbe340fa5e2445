"""The rows of Tables 2 to 5: what each evaluation method says of all models, tested in pairs over users.

The paper's setting: two strata of equal width of the as-coded propensity, Q1 the long tail and Q2 the head, and paired
t-tests over users. What is tested here is an estimate's influence by user, which for a plain mean is that t-test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from openloop.core.feedback import Floats
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


MethodRows = Mapping[str, MethodRow]


def row_of(name: str, scores: Scores, rows: int, items: int) -> MethodRow:
    """A method's row with its tests."""
    parts = [estimate.linear() for estimate in scores.estimates]
    pvalue = np.ones((len(parts), len(parts)))
    for a, b in combinations(range(len(parts)), 2):
        pvalue[a, b] = pvalue[b, a] = (parts[a] - parts[b]).pvalue
    error = np.array([estimate.stderr for estimate in scores.estimates])
    return MethodRow(name=name, value=scores.value, error=error, pvalue=pvalue, rows=rows, items=items)


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
