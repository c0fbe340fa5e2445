"""Fits whose measures are made up, so that what should come out of them is known."""

from __future__ import annotations

import numpy as np

from openloop.studies.lim2015.protocol import LONGER, SVD, Fit, Fits
from openloop.studies.lim2015.published import ADG, AUC, MEASURES

FOLDS, USERS, UPDATES = 4, 50, 10
STEPPED = {AUC: 0.1, ADG: 0.7}  # the shares of updates that take a step


def positives(seed, users=60, items=80, share=0.4):
    """Positives of two tastes, as they are given to a trial."""
    rng = np.random.default_rng(seed)
    taste = np.where((np.arange(users)[:, None] + np.arange(items)) % 2, share, share / 8)
    user, item = np.nonzero(rng.random((users, items)) < taste)
    return {"user": user, "item": item, "shape": np.array([users, items])}


def outcome(test, noise, validation=None, stepped=np.nan):
    """Measures of test and of validation, (measures,), with noise (measures, U)."""
    test = np.asarray(test, float)[:, None] + noise
    validation = test.copy() if validation is None else np.asarray(validation, float)[:, None] + noise
    return {"test": test, "validation": validation, "stepped": stepped}


def made_up(measures, name="made up", validation=None, seed=0):
    """Fits of a data set: `measures` maps AUC, ADG, SVD and longer ones, (learner, True), to values of MEASURES."""
    fits = []
    for fold in range(FOLDS):
        noise = np.random.default_rng([seed, fold]).normal(0, 0.01, (len(MEASURES), USERS))
        for key, values in measures.items():
            learner, more = key if isinstance(key, tuple) else (key, False)
            setting = {"fold": fold, "learner": learner}
            if learner != SVD:
                setting |= {"updates": UPDATES * LONGER if more else UPDATES, "reg": 0.1, "rate": 0.2}
            else:
                setting |= {"factors": 5}
            own = noise + np.random.default_rng([seed, fold, len(fits)]).normal(0, 0.001, noise.shape)
            fits.append(Fit(setting, outcome(values, own, validation, STEPPED.get(learner, np.nan))))
    given = {"shape": np.array([USERS, 70]), "user": np.zeros(300, int)}
    return Fits(name, given, UPDATES, fits, (USERS, 90, 400))


LOW, HIGH = [0.8, 0.1, 0.3, 0.1, 0.15], [0.7, 0.2, 0.4, 0.2, 0.25]
AS_PUBLISHED = {AUC: LOW, ADG: HIGH, SVD: [0.01] * 5, (AUC, True): LOW, (ADG, True): HIGH}
REVERSED = {AUC: HIGH, ADG: LOW, SVD: [0.9] * 5, (AUC, True): HIGH, (ADG, True): LOW}
EQUAL = {AUC: LOW, ADG: LOW, SVD: LOW, (AUC, True): LOW, (ADG, True): LOW}
