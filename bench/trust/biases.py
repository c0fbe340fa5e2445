"""Worlds made of real data, and eight ways in which a log of them is biased.

MovieLens is completed by factorisation plus noise, so that every rating is known. Coat's ratings of randomly drawn
garments are taken as they are: a log of them is a log of the whole grid, whose every cell was drawn with one chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

import openloop as ol
from bench.trust.worlds import Draw, Flags, Floats
from openloop.data.datasets import Data
from openloop.studies.kit.trials import Given

MARGINALS = (0.12, 0.18, 0.3, 0.25, 0.15)  # of the completed ratings
NOISE = 0.6  # of a rating, in standard deviations of what the factorisation says
FEWEST, MOST = 0.002, 0.5  # p near 0 is never seen; near 1 it is no longer a product of its parts
MOST_OF_FEW = 0.9  # p of a cell that only a small chance made visible: the product of both stays small


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """All ratings (U, I), how much each is liked apart from chance, and which cells can be seen at all.

    `popular` (1, I) are the items' rows in the real log, as logarithms of mean 0 and deviation 1; `chance` is the
    probability with which a cell was made one that can be seen.
    """

    Y: npt.NDArray[np.float32]
    value: Floats
    popular: Floats
    known: Flags
    chance: float


def given_of(data: Data, users: int, items: int) -> dict[str, npt.NDArray[np.float32]]:
    """The arrays of a data set that its worlds are made of: a factorisation of its log, and its uniform ratings."""
    keep_users, keep_items = _kept(data, users, items)
    fitted = ol.learners.MF(factors=10, reg=7.0, tol=1e-3, threads=1, rng=0).fit(data.log)
    value = fitted.scores(keep_users)[:, keep_items].astype(np.float32)
    rows = np.bincount(data.log.item, minlength=data.log.n_items)[keep_items].astype(np.float32)
    drawn = np.zeros((data.log.n_users, data.log.n_items), np.float32)
    if data.open_loop is not None:
        drawn[data.open_loop.user, data.open_loop.item] = data.open_loop.rating
    return {"value": value, "rows": rows, "drawn": drawn[np.ix_(keep_users, keep_items)]}


def _kept(data: Data, users: int, items: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Users at random, items in proportion to their rows; all of them where ratings were drawn uniformly."""
    U, I = data.log.n_users, data.log.n_items
    if data.open_loop is not None:
        return np.arange(U), np.arange(I)
    draw, rows = np.random.default_rng(0), np.bincount(data.log.item, minlength=I) + 3.0
    chosen = draw.choice(I, min(items, I), replace=False, p=rows / rows.sum())
    return np.sort(draw.choice(U, min(users, U), replace=False)), np.sort(chosen)


def truth_of(given: Given, draw: Draw) -> Truth:
    """A world: noise is drawn anew, but real uniform ratings stay what they are."""
    value = _standard(given["value"])
    noisy = value + NOISE * draw.standard_normal(value.shape)
    Y, known = ol.simulate.assign_marginals(noisy, MARGINALS), np.ones(value.shape, np.bool_)
    if given["drawn"].any():
        known = given["drawn"] > 0
        Y = np.where(known, given["drawn"], Y).astype(np.float32)
    popular = _standard(np.log(given["rows"] + 1.0))[None, :]
    return Truth(Y=Y, value=value, popular=popular, known=known, chance=float(known.mean()))


def _standard(values: npt.NDArray[np.float32] | Floats) -> Floats:
    exact = np.asarray(values, np.float64)
    return (exact - exact.mean()) / exact.std()


# Each way gives log p up to a constant, (U, I) or what broadcasts to it.


def _by_stars(step: float, truth: Truth, _: Draw) -> Floats:
    return np.log(step) * (truth.Y - 3.0)


def _popular_and_rating(truth: Truth, _: Draw) -> Floats:
    return 0.8 * truth.popular + np.log(1.5) * (truth.Y - 3.0)


def _item(truth: Truth, _: Draw) -> Floats:
    return 1.0 * truth.popular


def _hidden_taste(truth: Truth, _: Draw) -> Floats:
    return 0.5 * truth.value


def _old_model(truth: Truth, draw: Draw) -> Floats:
    """Scores of the model that ran before: an imperfect view of what is liked, with a weakness for popular items."""
    return truth.value + 0.5 * truth.popular + 0.8 * draw.standard_normal(truth.value.shape)


def _closed_loop(truth: Truth, draw: Draw) -> Floats:
    return 0.6 * _old_model(truth, draw)


def _covariates(truth: Truth, draw: Draw) -> Floats:
    """Groups of users see groups of items, as by age and genre."""
    U, I = truth.Y.shape
    group, genre = draw.integers(0, 4, U), draw.integers(0, 6, I)
    return draw.normal(0.0, 0.8, (4, 6))[np.ix_(group, genre)]


def _position(truth: Truth, draw: Draw) -> Floats:
    """Items are looked at down a list that an old model made."""
    rank = (-_old_model(truth, draw)).argsort(axis=1).argsort(axis=1) + 1.0
    return -0.7 * np.log(rank)


BIASES: dict[str, Callable[[Truth, Draw], Floats]] = {
    "rating, weak": partial(_by_stars, 1.2),
    "rating, strong": partial(_by_stars, 2.0),
    "popularity × rating": _popular_and_rating,
    "item": _item,
    "hidden taste": _hidden_taste,
    "closed loop": _closed_loop,
    "covariates": _covariates,
    "position": _position,
}


def propensities(name: str, truth: Truth, observed: float, draw: Draw) -> Floats:
    """p (U, I) of a way of being biased, with more and less active users, of this mean where cells can be seen."""
    active = 0.5 * draw.standard_normal((len(truth.Y), 1))
    most = MOST if truth.chance == 1 else MOST_OF_FEW
    shape = np.broadcast_to(np.exp(BIASES[name](truth, draw) + active), truth.Y.shape)
    k = 1.0
    for _ in range(50):
        k *= observed / float(np.clip(k * shape, FEWEST, most)[truth.known].mean())
    return np.clip(k * shape, FEWEST, most)


def step_of(p: Floats, truth: Truth) -> float:
    """How many times likelier to be seen one more star makes a cell, within items: what ρ is to allow for."""
    y, log_p = truth.Y - truth.Y.mean(axis=0), np.log(p) - np.log(p).mean(axis=0)
    return float(np.exp(np.sum(y * log_p) / np.sum(y * y)))
