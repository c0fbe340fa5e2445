"""A made-up closed loop and many made-up models: some follow what is popular, some what is liked, some neither."""

from __future__ import annotations

from functools import cache

import numpy as np

from openloop.core.feedback import Feedback
from openloop.studies.jadidinejad2021 import experiment, models
from openloop.studies.jadidinejad2021.agreement import Agreement
from openloop.studies.jadidinejad2021.fits import ModelFits
from openloop.studies.jadidinejad2021.methods import HeldOutCells
from tests.studies.jadidinejad2021.worlds import outcome

USERS, ITEMS = 120, 40


class Plain:
    """A run that computes everything on the spot."""

    seed = 0

    def __init__(self, *names, quick=True):
        self.names, self.quick = names, quick

    def either(self, full, quick):
        return quick if self.quick else full

    def present(self, *names):
        return tuple(name for name in names if name in self.names)

    def map(self, trial, given, settings, what):
        return [trial(given, **setting) for setting in settings]


def logs(rng=0):
    """What is liked, a log that shows popular items far more often, and an open loop."""
    rng = np.random.default_rng(rng)
    p = 0.7 / (1 + np.arange(ITEMS) / 3)
    taste = rng.normal(size=(USERS, 3)) @ rng.normal(size=(3, ITEMS))
    liked = taste + rng.normal(size=(USERS, ITEMS)) > 0
    rating = np.where(liked, 5.0, 2.0)
    both = []
    for observed in (rng.random((USERS, ITEMS)) < p, rng.random((USERS, ITEMS)) < 0.25):
        user, item = np.nonzero(observed)
        both.append(Feedback.from_arrays(user, item, rating[user, item], users=USERS, items=ITEMS))
    return taste, *both


def scores_of(taste, models=14, rng=1):
    """Models between taste and popularity, from mostly noise to hardly any."""
    rng = np.random.default_rng(rng)
    popular = -np.arange(ITEMS) / 10.0
    noise = rng.normal(size=(models, USERS, ITEMS))
    share, level = rng.random(models), rng.uniform(0.1, 2, models)
    return {f"m{j}": share[j] * taste + (1 - share[j]) * popular + level[j] * noise[j] for j in range(models)}


def fits_of(given, known, splits):
    """The trials of models with these scores."""
    each = (*range(splits), models.WHOLE)
    outcomes = {split: [outcome(given, s, split, 0) for s in known.values()] for split in each}
    return ModelFits(given=given, models=tuple(known), outcomes=outcomes, splits=splits, seed=0)


@cache
def some_experiment(splits=3, name="coat"):
    """The experiment of Table 6, as if these models had been fitted."""
    taste, log, drawn = logs()
    fits = fits_of(models.given_of(log, drawn), scores_of(taste), splits)
    return experiment.evaluated(Plain(), name, fits, models.given_of(log))


def held(split=0, names=("m0", "m1", "m2")):
    """The held-out part of one split, under a few of the models, and their scores."""
    taste, log, drawn = logs()
    given, known = models.given_of(log, drawn), scores_of(taste)
    found = [outcome(given, known[name], split, 0) for name in names]
    return HeldOutCells.of(given, found, split, 0), {name: known[name] for name in names}, log


def parts(log, split):
    """Training and held-out part as a split of openloop makes them."""
    return (
        log.take(np.sort(split.train), share=1 - split.share, origin=log.fingerprint),
        log.take(split.test, share=split.share, origin=log.fingerprint),
    )


def agreed(means, noise=None, *, splits=2):
    """An Agreement of methods with these mean τ; `noise` is the standard error over users, 0.01 unless given.

    Noise is not shared between methods.
    """
    names, draws = tuple(means), 60
    values = np.empty((len(names), 4, splits, 1 + draws))
    values[:] = np.array(list(means.values()))[:, None, None, None]
    rng = np.random.default_rng(0)
    for at, name in enumerate(names):
        wave = rng.permutation(np.where(np.arange(draws) % 2, 1.0, -1.0))
        values[at, ..., 1:] += (noise or {}).get(name, 0.01) * wave
    return Agreement(methods=names, values=values)
