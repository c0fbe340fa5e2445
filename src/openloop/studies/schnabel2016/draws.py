"""Trials that draw logs of the semi-synthetic world, and estimate five models from each; and how far they err."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.data.simulate import World
from openloop.errors import InputError, listing
from openloop.estimators.bounds import generalisation_bound, inaccurate_bound, tail_bound
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.studies.kit.trials import Given
from openloop.studies.schnabel2016.worlds import DRAWS, MODELS, SAMPLES, TIES, losses, semi_synthetic, uniform_sample

METRICS = ("mse", "mae", "dcg@50")
STARS = (1, 2, 3, 4, 5)
ETA = 0.05
Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The estimates of every metric and model, (metrics, models) each, from one log."""

    naive: Floats
    ips: Floats
    snips: Floats


def estimated(delta: Floats, cells: npt.NDArray[np.int64], p: Floats) -> Sums:
    """Eqs. 5, 10 and 11 from δ (metrics, models, U·I), the observed cells and their propensities."""
    seen, w = np.take(delta, cells, axis=-1), 1.0 / p  # (metrics, models, n), (n,)
    weighted = seen @ w  # Σ wδ
    return Sums(naive=seen.mean(axis=-1), ips=weighted / delta.shape[-1], snips=weighted / w.sum())


def known(
    given: Given, *, alpha: float, seed: int, first: int, draws: int, break_ties: bool = False
) -> dict[str, Floats]:
    """A trial: draws `first`, … of O, with known propensities.

    naive, ips and snips are (draws, metrics, models); truth, and the bound of Proposition 3.1 on |R̂_IPS − R|, are
    (metrics, models). Tied items count as their average over random order, unless `break_ties` puts them in one.
    """
    world = semi_synthetic(given, alpha, seed)
    delta = losses(world, METRICS, np.random.default_rng([seed, TIES]) if break_ties else None)
    found = [estimated(delta, cells, np.asarray(log.propensity)) for _, log, cells in _logs(world, seed, first, draws)]
    return {
        "truth": delta.mean(axis=-1),
        "tail": _tails(delta, world.propensities),
        **{name: np.array([getattr(sums, name) for sums in found]) for name in ("naive", "ips", "snips")},
    }


def learned(
    given: Given, *, alpha: float, seed: int, first: int, draws: int, sizes: Sequence[int]
) -> dict[str, Floats]:
    """A trial: the same draws, with propensities by naive Bayes from uniform samples of each of the sizes.

    ips and snips are (draws, sizes, metrics, models), and so is `bias`, that of IPS by Lemma 5.1; (draws, sizes) are
    `unlikeness` and `spread`, the two terms of Theorem 5.2 for Δ = 1 and |H| = 5, and `missing`, the number of stars
    that the sample lacks.
    """
    world = semi_synthetic(given, alpha, seed)
    delta = losses(world, METRICS)
    stars = Stars.of(world, delta)
    found: list[dict[str, Any]] = []
    for draw, log, cells in _logs(world, seed, first, draws):
        for size in sizes:
            sample = uniform_sample(world, size, np.random.default_rng([seed, SAMPLES, draw, size]))
            model = NaiveBayes().fit(log, uniform=sample)
            sums = estimated(delta, cells, model.predict(log).used)
            missing = len(STARS) - len(np.unique(sample))
            found.append({"ips": sums.ips, "snips": sums.snips, "missing": missing, **stars.under(model)})
    arrays = {name: np.array([one[name] for one in found], np.float64) for name in found[0]}
    return {name: values.reshape(draws, len(sizes), *values.shape[1:]) for name, values in arrays.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stars:
    """What of a world depends on the stars of its cells alone, as propensities do."""

    code: npt.NDArray[np.int64]  # (U·I,), stars less 1
    P: Floats  # (5,)
    delta: Floats  # (5, metrics, models), Σδ/(U·I) of the cells with each star

    @classmethod
    def of(cls, world: World, delta: Floats) -> Stars:
        """Gather the cells of each star."""
        Y, P = world.ratings.ravel(), world.propensities.ravel()
        cells = [np.flatnonzero(np.equal(Y, r)) for r in STARS]
        return cls(
            code=(Y - 1).astype(np.int64),
            P=np.array([P[of_star[0]] for of_star in cells]),
            delta=np.array([delta[..., of_star].sum(axis=-1) / len(Y) for of_star in cells]),
        )

    def under(self, model: NaiveBayes) -> dict[str, Any]:
        """Lemma 5.1 and the terms of Theorem 5.2 with the propensities of a model."""
        by_rating = model.propensity_by_rating_
        absent = [r for r in STARS if float(r) not in by_rating]
        if absent:
            raise InputError(
                f"learned: a drawn log has no rating {listing(absent)}, so that its P̂ is 0; use a larger world or α."
            )
        P_hat = np.array([by_rating[float(r)] for r in STARS])  # (5,)
        grids = self.P[self.code], P_hat[self.code]  # (U·I,) each
        spread = generalisation_bound(0.0, grids[1], 1.0, len(MODELS), ETA)
        both = inaccurate_bound(0.0, *grids, 1.0, len(MODELS), ETA)
        # Eq. 15: Σ δ/(U·I) · [1 − P/P̂]
        bias = np.tensordot(1 - self.P / P_hat, self.delta, 1)  # (metrics, models)
        return {"bias": bias, "unlikeness": both - spread, "spread": spread}


def _logs(world: World, seed: int, first: int, draws: int) -> Iterator[tuple[int, Feedback, npt.NDArray[np.int64]]]:
    """Each draw's number, its log and the places of its cells in the grid."""
    for draw in range(first, first + draws):
        log = world.observe(np.random.default_rng([seed, DRAWS, draw]))
        yield draw, log, log.user.astype(np.int64) * log.n_items + log.item


def _tails(delta: Floats, P: Floats) -> Floats:
    return np.array([[tail_bound(one, P.ravel(), ETA) for one in of_metric] for of_metric in delta])


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Root mean squared error of an estimator over models and draws, with a 95 % interval over draws."""

    rmse: float
    low: float
    high: float


def accuracy(estimates: Floats, truth: Floats) -> Accuracy:
    """`estimates` (draws, models) against the truth (models,).

    Over draws t the squared error s_t, averaged over models, has mean s and standard error e; √s has the
    interval √s · exp(± z·e/2s) by the delta method on its logarithm, which keeps it above 0.
    """
    squares = np.square(estimates - truth).mean(axis=1)  # (draws,)
    s = float(squares.mean())
    if s == 0:
        return Accuracy(rmse=0.0, low=0.0, high=0.0)
    half = Z * float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2 * s)
    return Accuracy(rmse=math.sqrt(s), low=math.sqrt(s) * math.exp(-half), high=math.sqrt(s) * math.exp(half))
