"""Experiments whose measures are made up from effects, so that what should come out of them is known."""

from __future__ import annotations

import numpy as np

from openloop.studies.lim2015.designs import CELLS, EQUAL_UPDATES, OF_AUC, POPULARITY, SVD, ArmFits, SettingSearch
from openloop.studies.lim2015.effects import signs
from openloop.studies.lim2015.protocol import Fit
from openloop.studies.lim2015.published import MEASURES

USERS, FOLDS, STEPS = 200, 2, 1000


def made_up(effects, *, steps=0.0, cells=CELLS, name="ml-100k", levels=(12, 0), noise=0.0, own=0.002, seed=0):
    """Every measure is 0.3 ± items/2 ± until/2, less `steps` for MF-AUC at equal updates.

    The weight's effect is added where violators are weighted and items are drawn until one: C is constant elsewhere.
    MF-ADG − MF-AUC is the sum of the three. `noise` is common to the users of a fit, `own` is a user's own in a fit.
    """
    rng = np.random.default_rng(seed)
    taste = rng.normal(0, 0.05, (len(MEASURES), USERS))

    def outcome(mean):
        measures = mean + taste + rng.normal(0, noise) + rng.normal(0, own, taste.shape)
        tally = np.array([1250.0, STEPS, 0.9 * STEPS, 500.0])
        return {"test": measures, "validation": measures.copy(), "tally": tally}

    def mean(arm):
        if arm == EQUAL_UPDATES:
            return mean(OF_AUC) - steps
        if arm not in CELLS:
            return 0.1
        (from_all, _, until), (items, weight, drawing) = signs(arm), effects
        return 0.3 + (from_all * items + until * drawing) / 2 + weight * (arm.weighted and arm.until)

    arms = (*cells, EQUAL_UPDATES, SVD, POPULARITY)
    found = {(n, arm): [search(arm, outcome(mean(arm))) for _ in range(FOLDS)] for n in levels for arm in arms}
    given = {"shape": np.array([USERS, 1700]), "user": np.repeat(np.arange(USERS), 20)}
    return ArmFits(name, given, levels, arms, found)


def search(arm, outcome):
    """The choice of the second of three settings, or of the least rank."""
    if arm in (SVD, POPULARITY):
        del outcome["tally"]
        tried = ({"factors": 4}, {"factors": 8}) if arm == SVD else ({},)
        return SettingSearch(Fit(tried[0], outcome), tried)
    tried = tuple({"rate": 0.1 * 2**k, "reg": 0.05 * 2**k} for k in (-1, 0, 1))
    budget = [1250, 1250] if arm == EQUAL_UPDATES else [STEPS, 30 * STEPS]
    return SettingSearch(Fit({"budget": budget, **tried[1]}, outcome), tried)
