"""Trials that draw logs of the semi-synthetic world and estimate five models from each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.core.moments import Moments
from openloop.data.simulate import World
from openloop.errors import InputError, listing
from openloop.estimators.bounds import generalisation_bound, inaccurate_bound, tail_bound
from openloop.estimators.weighted import ips, naive, snips
from openloop.metrics.naming import metric
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.schnabel2016.worlds import (
    ALPHA,
    DRAWS,
    MODELS,
    SAMPLES,
    TIES,
    Completion,
    losses,
    semi_synthetic,
    uniform_sample,
)

METRICS = ("mse", "mae", "dcg@50")
TITLES = {"mse": "MSE", "mae": "MAE", "dcg@50": "DCG@50"}
ESTIMATORS = {"ips": "IPS", "snips": "SNIPS", "naive": "Naive"}
ALPHAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
SIZES = (1, 3, 10, 30, 100, 300, 1_000, 10_000, 100_000)
DRAWN, BLOCK = 50, 10  # draws, as in the paper, and draws per trial where one takes long
STARS = (1, 2, 3, 4, 5)
ETA = 0.05


# -- what is run ---------------------------------------------------------------------------------------------


def alphas(run: Run) -> tuple[float, ...]:
    """The degrees of selection bias that are tried."""
    return run.either(ALPHAS, (ALPHA, 1.0))


def draws(run: Run) -> int:
    """How many logs are drawn of a world."""
    return run.either(DRAWN, 8)


def with_known(run: Run, world: Completion, tried: Sequence[float]) -> dict[float, Outcome]:
    """The outcome of the draws with known propensities, by α."""
    found = run.map(with_known_propensities, world.given, [drawing(run, alpha) for alpha in tried], "drawing logs")
    return dict(zip(tried, found, strict=True))


def drawing(run: Run, alpha: float) -> dict[str, Any]:
    """The setting of a trial that draws all logs of a world."""
    return {"alpha": alpha, "seed": run.seed, "first": 0, "draws": draws(run)}


def with_learned(run: Run, world: Completion) -> tuple[tuple[int, ...], Outcome]:
    """The sizes of the uniform samples, and the outcome of all draws with propensities learned from them."""
    sizes, block = run.either(SIZES, (10, 100_000)), min(BLOCK, draws(run))
    settings = [
        {"alpha": ALPHA, "seed": run.seed, "first": first, "draws": block, "sizes": sizes}
        for first in range(0, draws(run), block)
    ]
    found = run.map(with_learned_propensities, world.given, settings, "learning propensities")
    return sizes, {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def cut_fits(run: Run, world: Completion, sizes: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Where naive Bayes cut some P̂ to 1, by draw and size of the sample, (draws, sizes): in the fits of `with_learned`.

    Σ1/P̂ is U·I where none was cut.
    """
    semi, found = semi_synthetic(world.given, ALPHA, run.seed), np.zeros((draws(run), len(sizes)), bool)
    for draw, log in _logs(semi, run.seed, 0, draws(run)):
        for k, size in enumerate(sizes):
            sample = uniform_sample(semi, size, np.random.default_rng([run.seed, SAMPLES, draw, size]))
            found[draw, k] = max(NaiveBayes().fit(log, uniform=sample).propensity_by_rating_.values()) >= 1
    return found


# -- the trials ----------------------------------------------------------------------------------------------


def estimated(delta: Floats, metrics: Sequence[str], log: Feedback, p: Floats) -> dict[str, Floats]:
    """Eqs. 5, 10 and 11 by name, (metrics, models) each, from δ (metrics, models, U·I), a log and its propensities."""
    w = 1.0 / p

    def by_user(values: Floats) -> Floats:
        return np.bincount(log.user, values, log.n_users).astype(np.float64)[:, None]  # (U, 1)

    shared = {"n": by_user(np.ones(len(w))), "weight": by_user(w)}
    found = {each.__name__: np.empty(delta.shape[:2]) for each in (naive, ips, snips)}
    for (m, name), j in product(enumerate(metrics), range(delta.shape[1])):
        seen = delta[m, j][log.cell]  # (n,)
        sums = {**shared, "gain": by_user(seen), "wgain": by_user(w * seen)}
        moments = Moments(metric=metric(name), sums=sums, cells=np.full(log.n_users, float(log.n_items)))
        for each in (naive, ips, snips):
            found[each.__name__][m, j] = each(moments).value
    return found


def with_known_propensities(
    given: Given, *, alpha: float, seed: int, first: int, draws: int, break_ties: bool = False
) -> dict[str, Floats]:
    """A trial: draws `first`, … of O, with known propensities.

    naive, ips and snips are (draws, metrics, models); truth, and the bound of Proposition 3.1 on |R̂_IPS − R|, are
    (metrics, models). Tied items count as their average over random order, unless `break_ties` puts them in one.
    """
    world = semi_synthetic(given, alpha, seed)
    delta = losses(world, METRICS, np.random.default_rng([seed, TIES]) if break_ties else None)
    logs, P = _logs(world, seed, first, draws), world.propensities.ravel()
    found = [estimated(delta, METRICS, log, np.asarray(log.propensity)) for _, log in logs]
    return {
        "truth": delta.mean(axis=-1),
        "tail": np.array([[tail_bound(one, P, ETA) for one in of_metric] for of_metric in delta]),
        **{name: np.array([each[name] for each in found]) for name in ("naive", "ips", "snips")},
    }


def with_learned_propensities(
    given: Given, *, alpha: float, seed: int, first: int, draws: int, sizes: Sequence[int]
) -> dict[str, Floats]:
    """A trial: the same draws, with propensities by naive Bayes from uniform samples of each of the sizes.

    ips and snips are (draws, sizes, metrics, models), and so is `bias`, that of IPS by Lemma 5.1; (draws, sizes) are
    `unlikeness` and `spread`, the two terms of Theorem 5.2 for Δ = 1 and |H| = 5, and `missing`, the number of stars
    that the sample lacks.
    """
    world = semi_synthetic(given, alpha, seed)
    delta = losses(world, METRICS)
    stars = ByStar.of(world, delta)
    found: list[dict[str, Any]] = []
    for draw, log in _logs(world, seed, first, draws):
        for size in sizes:
            sample = uniform_sample(world, size, np.random.default_rng([seed, SAMPLES, draw, size]))
            model = NaiveBayes().fit(log, uniform=sample)
            by = estimated(delta, METRICS, log, model.predict(log).used)
            missing = len(STARS) - len(np.unique(sample))
            found.append({"ips": by["ips"], "snips": by["snips"], "missing": missing, **stars.under(model)})
    arrays = {name: np.array([one[name] for one in found], np.float64) for name in found[0]}
    return {name: values.reshape(draws, len(sizes), *values.shape[1:]) for name, values in arrays.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByStar:
    """What of a world depends on the stars of its cells alone, as propensities do."""

    code: npt.NDArray[np.int64]  # (U·I,), stars less 1
    P: Floats  # (5,)
    delta: Floats  # (5, metrics, models), Σδ/(U·I) of the cells with each star

    @classmethod
    def of(cls, world: World, delta: Floats) -> ByStar:
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


def _logs(world: World, seed: int, first: int, draws: int) -> Iterator[tuple[int, Feedback]]:
    """Each draw's number and its log."""
    for draw in range(first, first + draws):
        yield draw, world.observe(np.random.default_rng([seed, DRAWS, draw]))
