"""Worlds of known truth for the race: ML-100K completed, seen by rating, by activity and taste, or blindly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.data.simulate import MARGINALS, World, assign_marginals, observation_model
from openloop.learners.mf import MF
from openloop.propensity.logistic import Logistic
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.studies.kit.trials import Given, feedback
from openloop.studies.schnabel2016.worlds import uniform_sample

OBSERVED = 0.05  # the share of the cells that a log shows
ALPHA = 0.25  # of the observation model by rating
NOISE = 0.6  # beside values of standard deviation 1: what no model can predict
SPREAD = (0.15, 0.20, 0.30, 0.22, 0.13)  # shares of stars where taste, not the rating, is seen
LEAST, MOST = 0.002, 0.8  # p by activity, popularity and taste
TASTE = 0.8  # log p per standard deviation of the value
UNEVEN = 0.7  # the power of counts in p
SAMPLE = 600  # uniform ratings for naive Bayes
COMPLETION: dict[str, Any] = {"factors": 20, "reg": 5.0}
SHAPES = {False: (300, 400), True: (100, 120)}  # by whether the run is quick

# Streams of independent draws: np.random.default_rng([seed, stream, …]).
TRUTH, LOG, UNIFORM = range(21, 24)


def completed_values(given: Given, *, seed: int) -> dict[str, npt.NDArray[Any]]:
    """A trial: what MF says of every cell, (U, I), and how many rows each user and item has."""
    log = feedback(given)
    values = MF(**COMPLETION, threads=1, rng=seed).fit(log).scores(np.arange(log.n_users))
    return {
        "values": values.astype(np.float32),
        "activity": np.bincount(log.user, minlength=log.n_users),
        "popularity": np.bincount(log.item, minlength=log.n_items),
    }


class Excerpt(NamedTuple):
    """Some users and items: standardised values (U, I), and the counts of users and items in the real log."""

    values: Floats
    activity: Floats  # (U,)
    popularity: Floats  # (I,)


def excerpt(given: Given, seed: int, *, quick: bool) -> Excerpt:
    """Users drawn alike, items by their counts."""
    rng, (U, I) = np.random.default_rng([seed, TRUTH]), SHAPES[quick]
    n_u, n_i = given["activity"], given["popularity"]
    users = rng.choice(len(n_u), U, replace=False)
    items = rng.choice(len(n_i), I, replace=False, p=(n_i + 5) / np.sum(n_i + 5))
    g = given["values"][np.ix_(users, items)].astype(np.float64)
    return Excerpt((g - g.mean()) / g.std(), n_u[users].astype(np.float64), n_i[items].astype(np.float64))


# -- who is seen ---------------------------------------------------------------------------------------------


def by_rating(at: Excerpt, rng: np.random.Generator) -> World:
    """p by the rating alone, as in Schnabel et al. (2016), section 6.2."""
    Y = _stars(at, MARGINALS, rng)
    return World(ratings=Y, propensities=observation_model(Y, ALPHA, OBSERVED))


def by_taste(at: Excerpt, rng: np.random.Generator) -> World:
    """p by activity × popularity × taste: by the value behind the rating, not by its noise."""
    Y = _stars(at, SPREAD, rng)
    shape = at.activity[:, None] ** UNEVEN * (at.popularity + 3) ** UNEVEN * np.exp(TASTE * at.values)
    return World(ratings=Y, propensities=_of_shape(shape))


def blind(at: Excerpt, rng: np.random.Generator) -> World:
    """p by activity × popularity of other users and items: uneven, and without a word about ratings."""
    Y = _stars(at, SPREAD, rng)
    a, b = rng.permutation(at.activity), rng.permutation(at.popularity)
    return World(ratings=Y, propensities=_of_shape(a[:, None] ** UNEVEN * (b + 3) ** UNEVEN))


KINDS: dict[str, Callable[[Excerpt, np.random.Generator], World]] = {
    "rating": by_rating,
    "taste": by_taste,
    "blind": blind,
}


def _stars(at: Excerpt, marginals: tuple[float, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
    return assign_marginals(at.values + NOISE * rng.standard_normal(at.values.shape), marginals)


def _of_shape(shape: Floats) -> Floats:
    """p in proportion to a shape, cut to [LEAST, MOST], of mean OBSERVED."""
    k = 1.0 / shape.mean()
    for _ in range(50):
        k *= OBSERVED / np.clip(k * shape, LEAST, MOST).mean()
    return np.clip(k * shape, LEAST, MOST)


# -- what is known of p --------------------------------------------------------------------------------------


def world(given: Given, kind: str, seed: int, *, quick: bool) -> tuple[World, Feedback]:
    """A world of known truth, and a log of it with its true propensities."""
    made = KINDS[kind](excerpt(given, seed, quick=quick), np.random.default_rng([seed, TRUTH, list(KINDS).index(kind)]))
    return made, made.observe(np.random.default_rng([seed, LOG, list(KINDS).index(kind)]))


def known(by: str, made: World, log: Feedback, seed: int) -> Floats:
    """p of the rows as a method is told it: true, by naive Bayes from a uniform sample, or wrong.

    Wrong is a logistic regression with offsets of users and items alone: it sees neither ratings nor taste. Where
    selection is blind to both, it is right.
    """
    if by == "true":
        return np.asarray(log.propensity, np.float64)
    bare = replace(log, propensity=None)
    if by == "wrong":
        return Logistic(rng=seed).fit(bare).predict(bare).used
    sample = uniform_sample(made, SAMPLE, np.random.default_rng([seed, UNIFORM]))
    return NaiveBayes().fit(bare, uniform=sample).predict(bare).used
