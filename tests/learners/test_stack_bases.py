"""Bases say nothing of a row that they have seen."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners import DR, MF, Bias, Exposure, OrdinalMF
from openloop.learners.crossing import latin_folds
from openloop.learners.stack_bases import bases_of, crossed
from tests.facts import facts

LOG = movie_lovers(users=30, items=20).observe(1)


def silent(_done, _text):
    pass


@pytest.mark.parametrize(
    "given",
    [
        [MF],
        ["mf"],
        [DR()],
        [OrdinalMF()],
        [(Exposure(), 0.5)],
        [MF(), (MF(), "half")],
        [(MF(), np.nan)],
        [(MF(), 1, 2)],
        [None],
    ],
)
def test_what_is_no_base_is_refused_by_its_number(given):
    with pytest.raises(InputError, match=facts("Stack", f"base {len(given)}")):
        bases_of("Stack", given)


class Memory(Bias):
    """Says how it was fitted."""

    seen: list = []  # noqa: RUF012, shared on purpose: copies are fitted

    def fit(self, feedback, sample_weight=None, propensities=None):
        Memory.seen.append((self.reg, feedback.cell, np.asarray(sample_weight)))
        return super().fit(feedback, sample_weight, propensities)


def test_models_never_see_the_rows_that_they_are_asked_about():
    Memory.seen = []
    w = np.random.default_rng(0).exponential(size=len(LOG))
    folds = latin_folds("it", LOG, 4, 0)
    asked = []
    for held, (reg, cells, given) in zip(
        crossed(bases_of("Stack", [(Memory(reg=8.0), 0.5)]), LOG, w, folds, silent, keep=[False]),
        Memory.seen,
        strict=False,
    ):
        assert not np.isin(cells, LOG.cell[held.rows]).any()
        assert len(cells) + held.rows.sum() == len(LOG)
        assert reg == pytest.approx(8.0 * len(cells) / len(LOG))
        keep = np.isin(LOG.cell, cells)
        np.testing.assert_array_equal(given, w[keep] ** 0.5)
        asked.append(np.flatnonzero(held.rows))
    np.testing.assert_array_equal(np.sort(np.concatenate(asked)), np.arange(len(LOG)))
