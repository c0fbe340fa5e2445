"""Bases: how they may be given, and that no model says anything of a row that it has seen."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners import DR, MF, Bias, Exposure, OrdinalMF, Popularity
from openloop.learners.crossing import latin_folds
from openloop.learners.stack_bases import bases_of, crossed, mean_of_folds
from tests.facts import facts

LOG = movie_lovers(users=30, items=20).observe(1)
W = np.ones(len(LOG))


def silent(_done, _text):
    pass


def test_learners_and_pairs():
    plain, half, equal = bases_of("Stack", [MF(), (MF(), 0.5), (Bias(), 0)])
    assert (plain.name, plain.power) == ("MF", 1.0)
    assert (half.name, half.power) == ("MF, w^0.5", 0.5)
    assert (equal.name, equal.power) == ("Bias, w^0", 0.0)


@pytest.mark.parametrize("given", [[], None, "MF", MF(), 3, {}])
def test_what_is_no_list_of_bases_is_refused(given):
    with pytest.raises(InputError, match=facts("Stack", "bases")):
        bases_of("Stack", given)


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


def test_a_base_that_is_no_factor_model_is_refused():
    (base,) = bases_of("Stack", [Popularity()])
    with pytest.raises(InputError, match=facts("Stack", "Popularity")):
        base.fitted(LOG, W)


def test_exposure_has_three_columns_by_folds():
    folds, bases = latin_folds("it", LOG, 4, 0), bases_of("Stack", [Bias(), Exposure(rank=2)])
    assert [base.by_folds for base in bases] == [False, True]
    held = list(crossed(bases, LOG, W, folds, silent, keep=[False, True]))
    assert [[column.name for column in made] for made in held[0].kept] == [
        [],
        ["exposure", "log n_u", "log n_i"],
    ]
    mean = mean_of_folds([one.kept[1] for one in held])
    u, i = np.indices((30, 20)).reshape(2, -1)
    wanted = np.mean([one.kept[1][2].at(u, i) for one in held], axis=0)
    rounding = len(held) * np.finfo(np.float32).eps  # of two sums in single precision, of terms that have one sign
    np.testing.assert_allclose(mean[2].at(u, i), wanted, rtol=rounding)
