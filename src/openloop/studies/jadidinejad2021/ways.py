"""The evaluation methods by name, in three columns: as coded, as printed, and ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.estimators.stratified import catalogue_cells, edges
from openloop.studies.jadidinejad2021 import as_coded, methods
from openloop.studies.jadidinejad2021.methods import Cells, Ints, Mask, Scored
from openloop.studies.jadidinejad2021.models import THRESHOLD, Given, Split, shown, stream

Method = Callable[[int | None], Scored]  # of the cut k
PROPENSITIES = ("popularity", "logistic", "calibrated")
STRATA = 5  # openloop's default
NUMBERS = tuple(range(1, 11))  # Figure 4: 1 to 10 strata
FOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """What a method may look at: the held-out part, its relevant cells under each model, the log before it."""

    given: Given
    split: Split
    cells: Cells

    @property
    def rows(self) -> tuple[Array, Array]:
        """User and item of all held-out rows."""
        return self.given["user"][self.split.test], self.given["item"][self.split.test]

    @property
    def relevant(self) -> Array:
        """Which of them are relevant: the cells."""
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


def propensity(given: Given, *, kind: str) -> dict[str, Array]:
    """A trial: P (U, I) or (I,) by "eq7", "popularity" (γ = 1), "logistic" or "calibrated", from the whole log."""
    from openloop.propensity import Calibrated, Logistic, Popularity

    log = _log(given)
    if kind in ("eq7", "popularity"):
        model = Popularity(gamma=None if kind == "eq7" else 1.0).fit(log)
        return {"p": np.asarray(model.item_propensities_)}
    side = {f"{s}_features": given[f"{s}_covariates"] for s in ("user", "item") if f"{s}_covariates" in given}
    model = Logistic() if kind == "logistic" else Calibrated(Logistic())
    return {"p": np.asarray(model.fit(log, **side).matrix())}


def _log(given: Given) -> Feedback:
    users, items = (int(n) for n in given["shape"])
    return Feedback(
        user=given["user"].astype(np.int32), item=given["item"].astype(np.int32),
        rating=given["rating"].astype(np.float32), users=Vocabulary.range(users), items=Vocabulary.range(items),
    )  # fmt: skip


# -- as coded and as printed ---------------------------------------------------------------------------------


def coded(held: Held, strata: int = 2) -> dict[str, Method]:
    """The five columns of Table 6, as the published code computes them."""
    U, I = held.shape
    p = as_coded.propensities(held.given["item"], I, U)
    cells = held.cells.where(held.shown[held.relevant])
    gain = as_coded.ips_gain(p, held.split.order)[cells.item]
    row = coded_strata(held, p, strata)
    # The code's IPS normalises by the ideal of its own gains, which makes it snips.
    ips = partial(methods.snips, weight=gain)
    return _five(cells, "coded", row, held.relevant[held.shown], strata, ips)


def coded_strata(held: Held, p: Floats, n: int) -> Ints:
    """The stratum of each row that counts as coded, p (I,); edges come of all held-out rows, as in the code."""
    return as_coded.strata(p[held.rows[1]], n)[held.shown]


def printed(held: Held, eq7: Floats, strata: int = 2) -> dict[str, Method]:
    """The same by the text: Eq. 7, Eq. 3, "equal size strata" (section 7.1), "the ranking of all items"."""
    at = edges(eq7[held.rows[1]], strata, "count")
    row = np.searchsorted(at, eq7[held.rows[1]])
    weight = 1 / eq7[held.cells.item]
    ips = partial(methods.ips_eq3, weight=weight)
    return _five(held.cells, "all", row, held.relevant, len(at) + 1, ips)


def _five(cells: Cells, among: str, row: Ints, relevant: Array, strata: int, ips: Any) -> dict[str, Method]:
    """`row` is the stratum of each row, `relevant` says which of the rows are the cells."""
    mine = row[relevant]
    share = np.bincount(row, minlength=strata) / len(row)

    def inside(s: int) -> Method:
        return partial(methods.holdout, cells.where(mine == s), among)

    return {
        "holdout": partial(methods.holdout, cells, among),
        "ips": partial(ips, cells, among),
        "stratified": partial(methods.stratified, cells, among, stratum=mine, share=share),
        "q1": inside(0),
        f"q{strata}": inside(strata - 1),
    }


# -- ours ----------------------------------------------------------------------------------------------------


def ours(
    held: Held, p: Mapping[str, Floats], among: str = "outside", chosen: Mapping[str, int] | None = None
) -> dict[str, Method]:
    """Ours: holdout, and with each propensity snips of nDCG, snips of adg, and strata weighted by the catalogue.

    `p` are the log's, (U, I) or (I,) each. `chosen` adds the number of strata that the rule chose to the default one.
    """
    found: dict[str, Method] = {"holdout": partial(methods.holdout, held.cells, among)}
    for name, values in p.items():
        grid = grid_of(held, values)
        weight = 1 / observed_with(held, grid[held.cells.user, held.cells.item], among)
        found[f"snips, {name}"] = partial(methods.snips, held.cells, among, weight=weight)
        found[f"snips of adg, {name}"] = partial(methods.pooled, held.cells, among, weight=weight)
        found[f"{STRATA} strata, {name}"] = catalogued(held, grid, among, STRATA)
        if chosen is not None:
            found[f"strata by rule, {name}"] = catalogued(held, grid, among, chosen[name])
    return found


def grid_of(held: Held, p: Floats) -> Floats:
    """p of every cell, (U, I), where it may be given for items alone."""
    return np.broadcast_to(p, held.shape)


def observed_with(held: Held, p: Floats, among: str) -> Floats:
    """With which probability the held-out part observes a candidate: p·s, or π = p·s/(1 − p·t) outside training."""
    s = held.split.share
    return p * s / (1 - p * (1 - s)) if among == "outside" else p * s


def number_of_strata(held: Held, grid: Floats, among: str, seed: int) -> tuple[int, Floats]:
    """The number of strata by the rule, and the mean error with each number, (10,); of nDCG without a cut."""
    strata = [_strata(held, grid, n)[1] for n in NUMBERS]
    errors = errors_within(held.cells.discounts(among, None), strata, stream(seed, "folds"))
    return least_number(errors, NUMBERS), errors.mean(axis=1)


def catalogued(held: Held, grid: Floats, among: str, n: int) -> Method:
    """n strata of equal count, each with the share that it has of the candidates."""
    at, mine = _strata(held, grid, n)
    train = held.split.train if among == "outside" else held.split.train[:0]
    share = catalogue_cells(grid, at, (held.given["user"][train], held.given["item"][train])).sum(axis=0)
    return partial(methods.stratified, held.cells, among, stratum=mine, share=share / share.sum())


def _strata(held: Held, grid: Floats, n: int) -> tuple[tuple[float, ...], Ints]:
    """Edges of n strata with equally many held-out rows, relevant or not, and the stratum of each cell."""
    at = edges(grid[held.rows], n, "count")
    return at, np.searchsorted(at, grid[held.cells.user, held.cells.item])


# -- how many strata -----------------------------------------------------------------------------------------


def errors_within(gain: Floats, strata: Sequence[Ints], rng: np.random.Generator) -> Floats:
    """How unlike the feedback is within strata, (cells,) for each way to form them: squared errors, (ways, cells).

    The stratification principle asks for strata within which the feedback is as alike as possible. What a stratum
    averages are the gains of relevant cells, (M, cells); each is foretold by the mean of its stratum over other folds,
    and a model's squared errors are relative to their mean with one stratum. Looks at the held-out part alone.
    """
    n = gain.shape[1]
    fold = rng.permutation(np.arange(n) % FOLDS)
    found = [_errors(gain, stratum, fold) for stratum in strata]  # (M, cells) each
    plain = _errors(gain, np.zeros(n, np.int64), fold).mean(axis=1, keepdims=True)
    varied = plain[:, 0] > 0
    return np.array([(errors[varied] / plain[varied]).mean(axis=0) for errors in found])


def least_number(errors: Floats, numbers: tuple[int, ...]) -> int:
    """The smallest number whose error is within a standard error of the least (Breiman et al. 1984, section 3.4.3)."""
    mean = errors.mean(axis=1)
    best = int(np.argmin(mean))
    enough = mean <= mean[best] + errors[best].std(ddof=1) / np.sqrt(errors.shape[1])
    return numbers[int(np.argmax(enough))]


def _errors(gain: Floats, stratum: Ints, fold: Ints) -> Floats:
    member = np.eye(stratum.max() + 1)[stratum]  # (cells, S)
    found = np.empty(gain.shape)
    for f in np.unique(fold):
        out = fold == f
        size = member[~out].sum(axis=0)
        means = np.where(size > 0, gain[:, ~out] @ member[~out] / np.maximum(size, 1), gain[:, ~out].mean(1)[:, None])
        found[:, out] = np.square(gain[:, out] - means[:, stratum[out]])
    return found
