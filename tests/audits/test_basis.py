"""What the weights rest on, from models, numbers and logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openloop.audits.basis import Basis, unexposed
from openloop.core.levels import LevelSample
from openloop.core.propensities import Propensities
from tests.audits.cases import LOG

SAMPLE = LevelSample(levels=np.arange(1.0, 6.0), shares=np.full(5, 0.2), size=250, rows=1000)
ONES = np.full(len(LOG), 0.5)


class Model:
    """Predicts propensities of any rows."""

    unseen_share_ = 0.07

    def __init__(self, **known):
        self.known = known

    def predict(self, feedback):
        values = np.full(len(feedback), 0.5)
        base = values if self.known.get("base") else None
        return Propensities(values=values, fingerprint=feedback.fingerprint, **(self.known | {"base": base}))


def test_numbers_and_columns_are_given():
    for given in (None, ONES, Propensities(values=ONES)):
        assert Basis.of(given, LOG) == Basis()
    assert Basis.of("p", object()) == Basis()
    assert Basis.of("p", object(), blind=True) == Basis(blind=True)


def test_a_model_says_what_it_saw():
    assert Basis.of(Model(blind=True), LOG) == Basis(blind=True, unseen=0.07)
    assert Basis.of(Model(sample=SAMPLE), LOG) == Basis(sample=250, unseen=0.07)
    assert Basis.of(Model(sample=SAMPLE, base=True), LOG) == Basis(sample=250, balanced=True, unseen=0.07)


def test_positives_without_exposure_are_clicks():
    clicks = replace(LOG, propensity=None, positives=True)
    assert Basis.of(None, clicks) == Basis(positives=True, clicks=True)
    assert Basis.of(ONES, clicks) == Basis(positives=True)
    assert Basis.of(None, replace(LOG, positives=True)) == Basis(positives=True)  # the log says what was shown
    assert unexposed(clicks, None)
    assert not unexposed(clicks, ONES)
