"""The evaluation methods by name, in three columns: as coded, as printed, and ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.propensities import part_probability
from openloop.estimators.edges import edges
from openloop.estimators.stratified import catalogue_cells
from openloop.studies.jadidinejad2021 import as_coded, scores
from openloop.studies.jadidinejad2021.models import THRESHOLD, Split, relevant, shown, split_of
from openloop.studies.jadidinejad2021.scores import Ints, Mask, RankedCells, Scores, stacked
from openloop.studies.kit.trials import Given, feedback

Method = Callable[[int | None], Scores]  # of the cut k
PROPENSITIES = ("popularity", "logistic", "calibrated")
STRATA = 5  # of equal count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOutRows:
    """The held-out part of the log, and the log before it."""

    given: Given
    split: Split

    @property
    def rows(self) -> tuple[Array, Array]:
        """User and item of all held-out rows."""
        return self.given["user"][self.split.test], self.given["item"][self.split.test]

    @property
    def relevant(self) -> Mask:
        """Which of them are relevant."""
        return self.given["rating"][self.split.test] >= THRESHOLD

    @property
    def shown(self) -> Mask:
        """Which of the rows have a user and an item that training shows: those that count as coded."""
        return shown(self.given, self.split, *self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        users, items = self.given["shape"]
        return int(users), int(items)

    @property
    def coded_propensities(self) -> Floats:
        """Those of the published code, (I,)."""
        users, items = self.shape
        return as_coded.propensities(self.given["item"], items, users)

    def coded_strata(self, n: int) -> Ints:
        """The stratum of each row that counts as coded; edges come of all held-out rows, as in the code."""
        return as_coded.strata(self.coded_propensities[self.rows[1]], n)[self.shown]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOutCells(HeldOutRows):
    """What a method may look at: the held-out part, and its relevant cells under each model."""

    cells: RankedCells

    @classmethod
    def of(cls, given: Given, outcomes: Sequence[dict[str, Array]], split: int, seed: int) -> HeldOutCells:
        """The held-out part of a split, under the models of these trials."""
        part = split_of(given, split, seed)
        cells = stacked(outcomes, "closed", *relevant(given, part.test), int(given["shape"][0]))
        return cls(given=given, split=part, cells=cells)


def propensity(given: Given, *, kind: str) -> dict[str, Array]:
    """A trial: P (U, I) or (I,) by "eq7", "popularity" (γ = 1), "logistic" or "calibrated", from the whole log."""
    from openloop.propensity import Calibrated, Logistic, Popularity

    log = feedback(given)
    if kind in ("eq7", "popularity"):
        model = Popularity(gamma=None if kind == "eq7" else 1.0).fit(log)
        return {"p": np.asarray(model.item_propensities_)}
    side = {f"{s}_features": given[f"{s}_covariates"] for s in ("user", "item") if f"{s}_covariates" in given}
    model = Logistic() if kind == "logistic" else Calibrated(Logistic())
    return {"p": np.asarray(model.fit(log, **side).matrix())}


# -- as coded and as printed ---------------------------------------------------------------------------------


def coded(held: HeldOutCells, strata: int = 2, among: str = "coded") -> dict[str, Method]:
    """The five columns of Table 6, as the published code computes them; it ranks `among` as "coded"."""
    cells = held.cells.where(held.shown[held.relevant])
    gain = as_coded.ips_gain(held.coded_propensities, held.split.order)[cells.item]
    # The code's IPS normalises by the ideal of its own gains, which makes it snips.
    ips = partial(scores.snips, weight=gain)
    return _five(cells, among, held.coded_strata(strata), held.relevant[held.shown], strata, ips)


def printed(held: HeldOutCells, eq7: Floats, strata: int = 2) -> dict[str, Method]:
    """The same by the text: Eq. 7, Eq. 3, "equal size strata" (section 7.1), "the ranking of all items"."""
    at = edges(eq7[held.rows[1]], strata, "count")
    row = np.searchsorted(at, eq7[held.rows[1]])
    weight = 1 / eq7[held.cells.item]
    ips = partial(scores.ips_eq3, weight=weight)
    return _five(held.cells, "all", row, held.relevant, len(at) + 1, ips)


def _five(cells: RankedCells, among: str, row: Ints, relevant: Array, strata: int, ips: Any) -> dict[str, Method]:
    """`row` is the stratum of each row, `relevant` says which of the rows are the cells."""
    mine = row[relevant]
    share = np.bincount(row, minlength=strata) / len(row)

    def inside(s: int) -> Method:
        return partial(scores.holdout, cells.where(mine == s), among)

    return {
        "holdout": partial(scores.holdout, cells, among),
        "ips": partial(ips, cells, among),
        "stratified": partial(scores.stratified, cells, among, stratum=mine, share=share),
        "q1": inside(0),
        f"q{strata}": inside(strata - 1),
    }


# -- ours ----------------------------------------------------------------------------------------------------


def ours(
    held: HeldOutCells, p: Mapping[str, Floats], among: str = "outside", chosen: Mapping[str, int] | None = None
) -> dict[str, Method]:
    """Ours: holdout, and with each propensity snips of nDCG, snips of adg, and strata weighted by the catalogue.

    `p` are the log's, (U, I) or (I,) each. `chosen` adds the number of strata that the rule chose to five. The
    strata's shares are given: `ol.evaluate` has no such estimate of nDCG, whose size no shares make right. Here its
    order counts.
    """
    found: dict[str, Method] = {"holdout": partial(scores.holdout, held.cells, among)}
    for name, values in p.items():
        grid = grid_of(held, values)
        mine, s = grid[held.cells.user, held.cells.item], held.split.share
        weight = 1 / part_probability(mine, s, 1 - s if among == "outside" else 0.0)
        found[f"snips, {name}"] = partial(scores.snips, held.cells, among, weight=weight)
        found[f"snips of adg, {name}"] = partial(scores.snips_of_adg, held.cells, among, weight=weight)
        found[f"{STRATA} strata, {name}"] = catalogued(held, grid, among, STRATA)
        if chosen is not None:
            found[f"strata by rule, {name}"] = catalogued(held, grid, among, chosen[name])
    return found


def grid_of(held: HeldOutCells, p: Floats) -> Floats:
    """p of every cell, (U, I), where it may be given for items alone."""
    return np.broadcast_to(p, held.shape)


def catalogued(held: HeldOutCells, grid: Floats, among: str, n: int) -> Method:
    """n strata of equal count, each with the share that it has of the candidates."""
    at, mine = strata_of_cells(held, grid, n)
    train = held.split.train if among == "outside" else held.split.train[:0]
    share = catalogue_cells(grid, at, (held.given["user"][train], held.given["item"][train])).sum(axis=0)
    return partial(scores.stratified, held.cells, among, stratum=mine, share=share / share.sum())


def strata_of_cells(held: HeldOutCells, grid: Floats, n: int) -> tuple[tuple[float, ...], Ints]:
    """Edges of n strata with equally many held-out rows, relevant or not, and the stratum of each cell."""
    at = edges(grid[held.rows], n, "count")
    return at, np.searchsorted(at, grid[held.cells.user, held.cells.item])
