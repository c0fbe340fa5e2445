"""Instances of Simpson's paradox: the detector on every pair of models, and who is right in each.

The paper's setting: two strata of equal width of the as-coded propensity, Q1 the long tail and Q2 the head, and paired
t-tests over users. What is tested here is an estimate's influence by user, which for a plain mean is that t-test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from openloop.audits.paradox import Pair, Paradox, Part, find
from openloop.core.feedback import Array, Floats
from openloop.studies.jadidinejad2021 import as_coded
from openloop.studies.jadidinejad2021.methods import Cells, stacked, user_ndcg
from openloop.studies.jadidinejad2021.models import THRESHOLD, WHOLE, Given, Ints, Split, relevant, shown, split_of
from openloop.studies.kit.trials import Outcome

HOLDOUT, IPS, STRATIFIED, OPEN_LOOP = "Holdout", "IPS", "Stratified", "Open loop"
STRATA = ("Q1", "Q2")
LEVEL = 0.95

Masks = Mapping[str, npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one evaluation method says of M models; `rows` and `items` are the ratings that it looks at."""

    name: str
    value: Floats  # (M,)
    error: Floats  # (M,), standard error over users
    pvalue: Floats  # (M, M), of each difference, paired by user, two-sided
    users: int
    rows: int
    items: int


Lines = Mapping[str, Line]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Of some instances, how often a method has the majority stratum's model ahead and how often the aggregate's.

    `clear_…` counts those whose difference is significant (p < 0.05, unadjusted) by that method.
    """

    majority: int
    aggregate: int
    clear_majority: int
    clear_aggregate: int

    @property
    def total(self) -> int:
        """Instances that the method does not leave tied."""
        return self.majority + self.aggregate


# -- a line --------------------------------------------------------------------------------------------------


def influence(users: Floats) -> tuple[Floats, Floats]:
    """The mean over users who have a value, (M,), and each user's part in its error, (M, U), zero for the others."""
    known = np.isfinite(users[0])
    value = users[:, known].mean(axis=1)
    parts = np.zeros(users.shape)
    parts[:, known] = (users[:, known] - value[:, None]) / known.sum()
    return value, parts


def line_of(name: str, value: Floats, parts: Floats, users: int, rows: int, items: int) -> Line:
    """A line with its tests: t = d/√(n/(n − 1)·Σ_u ψ_u²), ψ the parts of the difference, n − 1 degrees of freedom."""
    from scipy.special import stdtr

    scale = users / (users - 1)
    M = len(value)
    pvalue = np.ones((M, M))
    for a in range(M - 1):
        gap = value[a] - value[a + 1 :]  # (M − a − 1,)
        error = np.sqrt(scale * ((parts[a] - parts[a + 1 :]) ** 2).sum(axis=1))
        t = np.divide(gap, error, out=np.zeros_like(gap), where=error > 0)
        pvalue[a, a + 1 :] = pvalue[a + 1 :, a] = np.minimum(2 * stdtr(users - 1, -np.abs(t)), 1.0)
    return Line(
        name=name, value=value, error=np.sqrt(scale * (parts**2).sum(axis=1)), pvalue=pvalue, users=users, rows=rows,
        items=items,
    )  # fmt: skip


def mean_line(name: str, users: Floats, rows: int, items: int) -> Line:
    """A line of means over users, of their values (M, U)."""
    return line_of(name, *influence(users), int(np.isfinite(users[0]).sum()), rows, items)


def marginal_line(strata: Sequence[Floats], sizes: Sequence[int], items: int) -> Line:
    """Eq. 4 with the observed shares: Σ_x E(Y | X = x) P(X = x); users' parts add up as the strata do."""
    shares = np.asarray(sizes) / sum(sizes)
    found = [influence(users) for users in strata]
    value = sum(share * mean for share, (mean, _) in zip(shares, found, strict=True))
    parts = sum(share * part for share, (_, part) in zip(shares, found, strict=True))
    users = int(np.any([np.isfinite(values[0]) for values in strata], axis=0).sum())
    return line_of(STRATIFIED, np.asarray(value), np.asarray(parts), users, sum(sizes), items)


# -- all lines of a split ------------------------------------------------------------------------------------


def strata_of(given: Given, part: Split) -> tuple[Ints, Masks]:
    """The rows that count, by position (users and items that training shows), and which of them are in each line."""
    users, items = (int(n) for n in given["shape"])
    p = as_coded.propensities(given["item"], items, users)
    stratum = as_coded.strata(p[given["item"][part.test]], len(STRATA))
    known = shown(given, part, given["user"][part.test], given["item"][part.test])
    masks = {HOLDOUT: np.ones(int(known.sum()), bool)}
    masks |= {name: stratum[known] == s for s, name in enumerate(STRATA)}
    return part.test[known], masks


def sizes(given: Given, part: Split) -> dict[str, tuple[int, int]]:
    """Ratings and items of the lines."""
    rows, masks = strata_of(given, part)
    item = given["item"][rows]
    return {name: (int(mask.sum()), len(np.unique(item[mask]))) for name, mask in masks.items()}


def lines_of(
    given: Given, outcomes: Sequence[Outcome], opened: Sequence[Outcome] | None, *, split: int, seed: int, among: str
) -> dict[str, Line]:
    """Every line of a table, for the models of the outcomes.

    `among` "coded" ranks as the published code does, and has its IPS; `opened` are then models fitted on the whole log.
    "outside" leaves training items out of rankings; `opened` are then the same models as the outcomes.
    """
    part = split_of(given, split, seed)
    rows, masks = strata_of(given, part)
    size, users = sizes(given, part), int(given["shape"][0])
    cells, inside = closed_cells(given, outcomes, part, rows, masks)
    values = {name: user_ndcg(cells.where(keep), among, None) for name, keep in inside.items()}
    found = {HOLDOUT: mean_line(HOLDOUT, values[HOLDOUT], *size[HOLDOUT])}
    if among == "coded":
        gain = as_coded.ips_gain(as_coded.propensities(given["item"], int(given["shape"][1]), users), part.order)
        found[IPS] = mean_line(IPS, user_ndcg(cells, among, None, gain[cells.item]), *size[HOLDOUT])
    kept = [name for name in STRATA if np.isfinite(values[name][0]).sum() > 1]
    found[STRATIFIED] = marginal_line([values[n] for n in kept], [size[n][0] for n in kept], size[HOLDOUT][1])
    found |= {name: mean_line(name, values[name], *size[name]) for name in kept}
    if opened is not None:
        found[OPEN_LOOP] = open_line(given, opened, part, seed, among)
    return found


def closed_cells(
    given: Given, outcomes: Sequence[Outcome], part: Split, rows: Ints, masks: Masks
) -> tuple[Cells, dict[str, npt.NDArray[np.bool_]]]:
    """The relevant cells that count, and which of them are in each line."""
    user, item = relevant(given, part.test)
    cells = stacked(outcomes, "closed", user, item, int(given["shape"][0]))
    counted = relevant_rows(given, part.test)
    inside = {name: np.isin(counted, rows[mask]) for name, mask in masks.items()}
    keep = inside[HOLDOUT]
    return cells.where(keep), {name: mask[keep] for name, mask in inside.items()}


def relevant_rows(given: Given, rows: Ints) -> Ints:
    """The positions of the relevant ones of the rows, as `relevant` has them."""
    return rows[given["rating"][rows] >= THRESHOLD]


def open_line(given: Given, opened: Sequence[Outcome], part: Split, seed: int, among: str) -> Line:
    """The open loop: as coded on all its cells, else on those outside the training part."""
    user, item = relevant(given)
    cells = stacked(opened, "open", user, item, int(given["shape"][0]))
    trained = split_of(given, WHOLE, seed) if among == "coded" else part
    rated = given["open_item"][_open_rows(given, trained, given["open_user"], given["open_item"], among)]
    kept = cells.where(_open_rows(given, trained, user, item, among))
    return mean_line(OPEN_LOOP, user_ndcg(kept, among, None), len(rated), len(np.unique(rated)))


def _open_rows(given: Given, part: Split, user: Array, item: Array, among: str) -> npt.NDArray[np.bool_]:
    """Which cells of the open loop count."""
    if among == "coded":
        return shown(given, part, user, item)
    width = int(given["shape"][1])
    trained = given["user"][part.train].astype(np.int64) * width + given["item"][part.train]
    return ~np.isin(user.astype(np.int64) * width + item, trained)


# -- the detector --------------------------------------------------------------------------------------------


def search(models: Sequence[str], lines: Lines, *, holm: bool) -> tuple[Paradox, ...]:
    """Every reversal and masking among all pairs; by the paper's tests p < 0.05 as they stand, or after Holm."""
    strata = [lines[name] for name in STRATA if name in lines]
    pairs = [
        Pair(
            a=models[a], b=models[b], aggregate=_part(lines[HOLDOUT], a, b, holm=holm),
            strata=tuple(_part(line, a, b, holm=holm) for line in strata), metric="ndcg", by="propensity",
        )
        for a, b in combinations(range(len(models)), 2)
    ]  # fmt: skip
    return find(pairs, LEVEL)


def _part(line: Line, a: int, b: int, *, holm: bool) -> Part:
    p = float(line.pvalue[a, b])
    tested = {"pvalue": p} if holm else {"significant": p < 1 - LEVEL}
    return Part(name=line.name, a=line.value[a], b=line.value[b], rows=line.rows, **tested)  # type: ignore[arg-type]


def clearest(found: Sequence[Paradox], models: Sequence[str], lines: Lines) -> Paradox | None:
    """A reversal before a masking; of several, the one whose weaker test is strongest."""
    at = {name: position for position, name in enumerate(models)}

    def doubt(paradox: Paradox) -> tuple[bool, float]:
        a, b = at[paradox.pair.a], at[paradox.pair.b]
        tests = [lines[paradox.majority.name].pvalue[a, b]]
        tests += [lines[HOLDOUT].pvalue[a, b]] if paradox.kind == "reversal" else []
        return paradox.kind != "reversal", float(max(tests))

    return min(found, key=doubt, default=None)


def sides(found: Sequence[Paradox], models: Sequence[str], line: Line) -> Sides:
    """Whom a method sides with in the instances."""
    at = {name: position for position, name in enumerate(models)}
    preferred = np.array([at[paradox.preferred] for paradox in found], int)
    other = np.array([at[paradox.other] for paradox in found], int)
    gap, clear = line.value[preferred] - line.value[other], line.pvalue[preferred, other] < 1 - LEVEL
    return Sides(
        majority=int((gap > 0).sum()), aggregate=int((gap < 0).sum()), clear_majority=int((clear & (gap > 0)).sum()),
        clear_aggregate=int((clear & (gap < 0)).sum()),
    )  # fmt: skip


def mirrored(lines: Lines, line: Line) -> Sides:
    """Whom a method sides with in the mirror images of maskings: all ratings significant, Q1 opposite and not.

    Instances are chosen for a significant Q1, which alone would make the open loop agree with it; these are chosen for
    a significant aggregate.
    """
    all_of, tail = lines[HOLDOUT], lines[STRATA[0]]
    gaps = [x.value[:, None] - x.value for x in (all_of, tail, line)]  # (M, M) each
    chosen = (all_of.pvalue < 1 - LEVEL) & (tail.pvalue >= 1 - LEVEL) & (gaps[0] * gaps[1] < 0)
    with_tail, against = (np.triu(chosen & (sign * gaps[1] * gaps[2] > 0)) for sign in (1, -1))
    clear = line.pvalue < 1 - LEVEL
    return Sides(
        majority=int(with_tail.sum()), aggregate=int(against.sum()), clear_majority=int((with_tail & clear).sum()),
        clear_aggregate=int((against & clear).sum()),
    )  # fmt: skip
