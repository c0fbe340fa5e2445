"""Selection by cross-validation under propensities: every number by hand, and the winner by simulation."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.learners import ADG, AUC, MF, WMF, Bias, Exposure, PureSVD, Stack
from tests.facts import facts


def liked_is_seen(users=100, items=80, seed=0):
    """Offsets, two factors and noise; a cell is the likelier observed the better it is liked, and p is 0.05 … 0.6."""
    rng = np.random.default_rng(seed)
    Y = 3 + 0.5 * rng.standard_normal((users, 1)) + 0.5 * rng.standard_normal(items)
    Y = Y + rng.standard_normal((users, 2)) @ rng.standard_normal((2, items)) + 0.3 * rng.standard_normal(Y.shape)
    return ol.simulate.World(ratings=Y, propensities=np.clip(0.3 * np.exp((Y - 4) / 1.5), 0.05, 0.6))


WORLD = liked_is_seen()
LOG = WORLD.observe(rng=1)
REGS = [0.01, 0.3, 1000.0]


def by_hand(reg, estimator, k=4, seed=3):
    """Section 6.1: train with p(k-1)/k, validate with p/k; beside the fold's smaller sum, λ is smaller."""
    values = []
    for train, held_out in ol.folds(LOG, k, rng=seed):
        model = MF(3, reg * len(train) / len(LOG), threads=1).fit(train, 1 / (train.propensity * (k - 1) / k))
        loss = (held_out.rating - model.predict(held_out.user, held_out.item)) ** 2
        w = 1 / (held_out.propensity * len(held_out) / len(LOG))
        whole = LOG.n_users * LOG.n_items
        values.append(
            {"naive": loss.mean(), "ips": (w * loss).sum() / whole, "snips": np.average(loss, weights=w)}[estimator]
        )
    return values


@pytest.fixture(scope="module")
def selection():
    return ol.select(MF(3), LOG, grid={"reg": REGS}, rng=3)


@pytest.mark.parametrize("estimator", ["naive", "ips", "snips"])
def test_the_value_of_a_setting_is_the_mean_over_folds(estimator):
    table = ol.select(MF(3), LOG, grid={"reg": [4.0]}, estimator=estimator, weighted=True, rng=3).table
    folds = by_hand(4.0, estimator)
    np.testing.assert_allclose(table.select(pl.col("^fold_.*$")).row(0), folds, rtol=1e-5)
    assert table["value"][0] == pytest.approx(np.mean(folds), rel=1e-5)
    assert 0 < table["stderr"][0] < table["value"][0]


@pytest.fixture
def fits(monkeypatch):
    """The parameters and the number of rows of every fit, as they are made."""
    seen = []
    for kind in (MF, Bias, WMF, ADG, AUC):

        def fit(self, feedback, *weights, own=kind.fit, **given):
            seen.append((self.get_params(), len(feedback)))
            return own(self, feedback, *weights, **given)

        monkeypatch.setattr(kind, "fit", fit)
    return seen


@pytest.mark.parametrize("bias_reg", [None, 0.0, 1.5])
def test_lambda_beside_a_sum_over_rows_is_the_same_for_each_row_in_every_fold_and_in_the_log(fits, bias_reg):
    found = ol.select(MF(3, bias_reg=bias_reg), LOG, grid={"reg": [4.0]}, rng=3)
    assert found.table["reg"].to_list() == [4.0]
    assert len({rows for _, rows in fits}) > 1
    for params, rows in fits:
        assert params["reg"] / rows == pytest.approx(4.0 / len(LOG), rel=1e-15)
        assert params["bias_reg"] is None or params["bias_reg"] / rows == pytest.approx(bias_reg / len(LOG), rel=1e-15)
    assert fits[-1][0]["reg"] == found.best["reg"] == found.model.reg == 4.0
    assert found.model.bias_reg == bias_reg


def test_the_winner_has_the_best_value_and_is_fitted_on_all_rows(selection):
    table = selection.table
    assert selection.best == {"reg": table["reg"][int(table["value"].arg_min())]}
    refitted = clone(MF(3)).set_params(**selection.best).fit(LOG, 1 / LOG.propensity)
    np.testing.assert_array_equal(refitted.scores([0, 1]), selection.model.scores([0, 1]))


def test_threads_change_no_bit(selection):
    for threads in (1, 3):
        assert ol.select(MF(3), LOG, grid={"reg": REGS}, threads=threads, rng=3).table.equals(selection.table)


def test_a_ranking_metric_excludes_the_training_part_and_higher_wins():
    table = ol.select(
        PureSVD(), LOG, grid={"factors": [1, 3, 20]}, metric="ndcg@10", estimator="naive", weighted=False, rng=3
    ).table
    train, held_out = next(iter(ol.folds(LOG, 4, rng=3)))
    model = PureSVD(3).fit(train)
    found = ol.evaluate({"m": model}, held_out, metrics=["ndcg@10"], estimators=["naive"], exclude=train)
    assert table["fold_1"][1] == pytest.approx(found["m", "ndcg@10", "naive"].value)
    assert table["value"].arg_max() == table["best"].arg_true()[0]


def test_selection_under_propensities_is_nearer_to_the_truth_than_without():
    truth = []  # offsets alone in a world of two factors: what cannot fit everything must choose where to fit
    for weighted in (True, False):
        chosen = ol.select(
            MF(0), LOG, grid={"reg": [0.1, 0.3, 1.0, 3.0]}, weighted=weighted,
            estimator="ips" if weighted else "naive", rng=0,
        )  # fmt: skip
        truth.append(np.mean((chosen.model.scores(np.arange(100)) - WORLD.ratings) ** 2))
    assert truth[0] < 0.85 * truth[1]


def test_a_setting_that_cannot_be_fitted_has_its_reason_and_the_others_go_on():
    found = ol.select(MF(20, solver="cholesky", bias_reg=1.0), LOG, grid={"reg": [0.0, 4.0]}, rng=0)
    assert found.table["value"][0] is None
    assert re.search(facts("MF", "sweep 1", "larger reg"), found.table["problem"][0])
    assert found.best == {"reg": 4.0}
    assert ol.select(MF(), LOG, grid={"factors": [1000, 2]}, rng=0).best == {"factors": 2}
    with pytest.raises(UndefinedError, match=facts("select", "no setting", "MF", "nan")):
        ol.select(MF(20, solver="cholesky", bias_reg=1.0), LOG, grid={"reg": [0.0]}, rng=0)


def test_what_cannot_be_selected_is_refused():
    grid = {"reg": [1.0]}
    for learner, log, options, told in (
        (MF(), {"user": [1]}, {"grid": grid}, ("select", "Feedback", "dict", "ol.read")),
        (MF, LOG, {"grid": grid}, ("select", "ol.learners.MF()", MF)),
        (MF(), LOG, {"grid": {"regg": [1.0]}}, ("select", "MF", "'regg'", "'reg'")),
        (MF(), LOG, {"grid": grid, "threads": 0}, ("select", "threads", 1, 0)),
        (MF(), LOG, {"grid": grid, "propensities": "p"}, ("select", "propensities", "Propensities", "str")),
        (MF(), LOG, {"grid": grid, "folds": 1}, ("folds", 1, f"{len(LOG):,}")),
    ):
        with pytest.raises(InputError, match=facts(*told)):
            ol.select(learner, log, **options)
    bare = Feedback(user=LOG.user, item=LOG.item, rating=LOG.rating, users=LOG.users, items=LOG.items)
    with pytest.raises(UndefinedError, match=facts("select", "weighted=True", "propensities")):
        ol.select(MF(), bare, grid=grid, weighted=True)
    other = ol.propensity.Uniform().fit(LOG).predict(LOG.take(np.arange(len(LOG)) % 2 == 0))
    with pytest.raises(AlignmentError, match="Propensities"):
        ol.select(MF(), LOG, other, grid=grid)


# -- kinds of learners ---------------------------------------------------------------------------------------


class NeedsP(Bias):
    """A learner that takes p itself, and without it refuses."""

    needs_propensities = True

    def fit(self, feedback, sample_weight=None, propensities=None):
        if propensities is None:
            raise UndefinedError("NeedsP: needs p; pass propensities=.")
        return super().fit(feedback, propensities=propensities)


def test_the_kind_of_learner_is_selected_with_its_setting(selection):
    kinds = {"flat": MF(0), "mf": MF(3), "bias": Bias()}
    grid = {"mf": {"reg": REGS}, "bias": [{"reg": 5.0}]}
    found = ol.select(kinds, LOG, grid=grid, rng=3)
    assert found.table["learner"].to_list() == ["flat", "mf", "mf", "mf", "bias"]
    assert found.table.columns[:3] == ["learner", "reg", "value"]
    assert found.table.filter(pl.col("learner") == "mf").drop("learner", "best").equals(selection.table.drop("best"))
    assert found.best == {"learner": "mf", "reg": 0.3}
    np.testing.assert_array_equal(found.model.scores([0]), selection.model.scores([0]))


# -- checkpoints ---------------------------------------------------------------------------------------------

BOTH = {"mf": MF(3), "bias": Bias(), "p": NeedsP(), "wrong": MF(3, -1.0)}
GRIDS = {"mf": {"reg": REGS}}


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_checkpoint_changes_no_bit_and_a_second_call_fits_the_winner_alone(tmp_path, fits):
    plain = ol.select(BOTH, LOG, grid=GRIDS, rng=3)
    kept = ol.select(BOTH, LOG, grid=GRIDS, rng=3, checkpoint=tmp_path / "new" / "kept")
    before = contents(tmp_path / "new" / "kept")
    assert len(before) == 4 * 6
    fits.clear()
    again = ol.select(BOTH, LOG, grid=GRIDS, rng=3, checkpoint=tmp_path / "new" / "kept")
    assert [rows for _, rows in fits] == [len(LOG)]
    assert plain.table.equals(kept.table)
    assert plain.table.equals(again.table)
    np.testing.assert_array_equal(plain.model.scores([0, 1]), again.model.scores([0, 1]))
    assert contents(tmp_path / "new" / "kept") == before


def test_what_was_stopped_goes_on(tmp_path, monkeypatch):
    own, fitted = Bias.fit, []

    def fit(self, *args, **given):
        fitted.append(self.reg)
        if len(fitted) == 6:
            raise KeyboardInterrupt
        return own(self, *args, **given)

    monkeypatch.setattr(Bias, "fit", fit)
    options = {"grid": {"reg": [1.0, 5.0]}, "metric": "mae", "rng": 3, "threads": 1}
    with pytest.raises(KeyboardInterrupt):
        ol.select(Bias(), LOG, checkpoint=tmp_path, **options)
    assert len(contents(tmp_path)) == 5
    found = ol.select(Bias(), LOG, checkpoint=tmp_path, **options)
    assert len(fitted) == 6 + 3 + 1
    assert found.table.equals(ol.select(Bias(), LOG, **options).table)


def test_every_question_has_its_own_folds(tmp_path, fits):
    bare, other = replace(LOG, propensity=None), replace(LOG, rating=LOG.rating[::-1].copy())
    calls = [
        (LOG, {}), (bare, {}), (other, {}), (LOG, {"rng": 4}), (LOG, {"metric": "mae"}), (LOG, {"estimator": "snips"}),
        (LOG, {"metric": "adg"}), (LOG, {"metric": "adg", "threshold": 3.0}), (LOG, {"weighted": False}),
        (LOG, {"folds": 3}), (LOG, {"propensities": np.full(len(LOG), 0.5)}), (LOG, {"grid": {"reg": [2.0]}}),
    ]  # fmt: skip
    for log, options in calls:
        fits.clear()
        found = ol.select(Bias(), log, checkpoint=tmp_path, **options).table
        assert len(fits) == options.get("folds", 4) + 1
        assert found.equals(ol.select(Bias(), log, **options).table)


# -- learners of several ---------------------------------------------------------------------------------------


def test_bases_of_a_stack_and_how_it_ends_are_selected(tmp_path):
    bases = [[MF(2, 0.3), (MF(2, 0.4), 0.0)], [MF(2, 0.3), Exposure(2)]]
    grid = {"bases": bases, "final": ["refit", "folds"]}
    found = ol.select(Stack([MF()], folds=2), LOG, grid=grid, folds=2, rng=3, checkpoint=tmp_path)
    assert found.table["bases"].to_list() == [str(each) for each in bases for _ in range(2)]
    assert found.table["final"].to_list() == ["refit", "folds"] * 2
    assert found.table["value"].n_unique() == 4
    again = ol.select(Stack([MF()], folds=2), LOG, grid=grid, folds=2, rng=3, checkpoint=tmp_path)
    assert again.table.equals(found.table)
    by_hand = clone(Stack(**found.best, folds=2)).fit(LOG, 1 / LOG.propensity)
    np.testing.assert_array_equal(by_hand.scores([0, 1]), again.model.scores([0, 1]))


def test_errors_of_ratings_are_refused_where_every_row_is_a_positive():
    """A model that predicts 1 of all cells has none."""
    liked = replace(LOG, rating=np.ones(len(LOG), np.float32), positives=True)
    with pytest.raises(UndefinedError, match=facts("select", "mse", "recall@10")):
        ol.select(MF(2), liked, grid={"reg": [1.0]})
    found = ol.select(WMF(2), liked, grid={"reg": [0.01, 1.0]}, metric="recall@10", weighted=False, rng=0)
    assert found.table["value"].null_count() == 0
