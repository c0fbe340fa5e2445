"""Selection by cross-validation under propensities: every number by hand, and the winner by simulation."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.learners import ADG, AUC, MF, WMF, Bias, Popularity, PureSVD
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


def test_it_is_a_model_and_a_table(selection):
    model, table = selection
    assert model is selection.model
    assert table.columns == ["reg", "value", "stderr", "fold_1", "fold_2", "fold_3", "fold_4", "best", "problem"]
    assert table["reg"].to_list() == REGS
    assert table["best"].sum() == 1


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

        def fit(self, feedback, sample_weight=None, own=kind.fit):
            seen.append((self.get_params(), len(feedback)))
            return own(self, feedback, sample_weight)

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


def test_a_penalty_outside_the_grid_is_scaled_too(fits):
    ol.select(MF(reg=4.0), LOG, grid={"factors": [2]}, rng=3)
    assert all(params["reg"] / rows == pytest.approx(4.0 / len(LOG), rel=1e-15) for params, rows in fits)


def test_offsets_alone_are_a_sum_over_rows_as_well(fits):
    ol.select(Bias(), LOG, grid={"reg": [5.0]}, rng=3)
    assert all(params["reg"] / rows == pytest.approx(5.0 / len(LOG), rel=1e-15) for params, rows in fits)


@pytest.mark.parametrize("learner", [WMF(2, rng=0), ADG(2, updates=100, rng=0), AUC(2, updates=100, rng=0)])
def test_lambda_beside_all_cells_or_in_each_step_is_as_it_is(fits, learner):
    ol.select(learner, LOG, grid={"reg": [0.02]}, metric="adg", rng=3)
    assert {params["reg"] for params, _ in fits} == {0.02}


def test_the_winner_has_the_best_value_and_is_fitted_on_all_rows(selection):
    table = selection.table
    assert selection.best == {"reg": table["reg"][int(table["value"].arg_min())]}
    refitted = clone(MF(3)).set_params(**selection.best).fit(LOG, 1 / LOG.propensity)
    np.testing.assert_array_equal(refitted.scores([0, 1]), selection.model.scores([0, 1]))


def test_too_little_and_too_much_penalty_lose(selection):
    assert selection.best == {"reg": 0.3}


def test_weighting_and_validation_are_ips_where_the_log_has_propensities_and_naive_elsewhere(selection):
    explicit = ol.select(MF(3), LOG, grid={"reg": REGS}, estimator="ips", weighted=True, rng=3)
    assert explicit.table.equals(selection.table)
    bare = Feedback(user=LOG.user, item=LOG.item, rating=LOG.rating, users=LOG.users, items=LOG.items)
    naive = ol.select(MF(3), bare, grid={"reg": REGS}, rng=3)
    assert naive.table.equals(ol.select(MF(3), LOG, grid={"reg": REGS}, estimator="naive", weighted=False, rng=3).table)
    assert not naive.table.equals(selection.table)


def test_propensities_may_come_as_values_as_an_array_or_from_a_model(selection):
    bare = Feedback(user=LOG.user, item=LOG.item, rating=LOG.rating, users=LOG.users, items=LOG.items)
    for given in (ol.Propensities(values=LOG.propensity), np.array(LOG.propensity)):
        assert ol.select(MF(3), bare, given, grid={"reg": REGS}, rng=3).table.equals(selection.table)
    model = ol.propensity.Uniform().fit(bare)
    uniform = ol.select(MF(3), bare, model, grid={"reg": REGS}, rng=3).table
    naive = ol.select(MF(3), bare, grid={"reg": REGS}, rng=3).table
    np.testing.assert_allclose(uniform["value"], naive["value"], rtol=1e-5)


def test_the_scale_of_p_leaves_snips_alone():
    half = ol.Propensities(values=LOG.propensity / 2)
    a, b = (ol.select(MF(3), LOG, p, grid={"reg": REGS}, estimator="snips", rng=3).table for p in (None, half))
    np.testing.assert_allclose(a["value"], b["value"], rtol=1e-5)


def test_a_grid_is_all_combinations_or_a_list_of_settings():
    grid = ol.select(MF(), LOG, grid={"factors": [2, 3], "reg": [3.0, 5.0]}, rng=0)
    assert grid.table.select("factors", "reg").rows() == [(2, 3.0), (2, 5.0), (3, 3.0), (3, 5.0)]
    listed = ol.select(MF(), LOG, grid=[{"factors": 3, "reg": 3.0}, {"factors": 2, "reg": 5.0}], rng=0)
    assert listed.table["value"].to_list() == [grid.table["value"][2], grid.table["value"][1]]


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


def test_any_learner_can_be_selected():
    chosen = ol.select(Bias(), LOG, grid={"reg": [0.1, 5.0, 1e6]}, metric="mae", estimator="snips", rng=0)
    assert chosen.best == {"reg": 5.0}
    assert ol.select(Popularity(), LOG, grid=[{}], metric="adg", estimator="snips", rng=0).best == {}


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


def test_settings_may_name_different_parameters():
    found = ol.select(MF(3), LOG, grid=[{"reg": 1000.0}, {"factors": 2, "reg": 0.3}, {"factors": 1}], rng=3)
    assert found.table.select("reg", "factors").rows() == [(1000.0, 3), (0.3, 2), (5.0, 1)]
    assert found.best == {"reg": 0.3, "factors": 2}


@pytest.mark.parametrize(("metric", "usual"), [("mae", "ips"), ("adg", "snips"), ("ndcg@5", "snips"), ("auc", "naive")])
def test_a_metric_has_a_usual_estimator(metric, usual):
    options = {"grid": {"factors": [2]}, "metric": metric, "rng": 3}
    found = ol.select(PureSVD(), LOG, **options).table
    assert found.equals(ol.select(PureSVD(), LOG, estimator=usual, weighted=True, **options).table)


def test_models_of_cornac_are_the_same_whatever_the_threads(cornac):
    settings = [{"model": cornac.models.BPR(k=k, max_iter=20, seed=1)} for k in (2, 3, 4)]
    learner = ol.learners.CornacModel(settings[0]["model"])
    one, two = (
        ol.select(learner, LOG, grid=settings, metric="adg", weighted=False, threads=threads, rng=0).table
        for threads in (1, 2)
    )
    assert one.drop("model").equals(two.drop("model"))


def test_what_cannot_be_selected_is_refused():
    grid = {"reg": [1.0]}
    for learner, log, options, told in (
        (MF(), {"user": [1]}, {"grid": grid}, ("select", "Feedback", "dict", "ol.read")),
        (MF, LOG, {"grid": grid}, ("select", "ol.learners.MF()", MF)),
        (MF(), LOG, {"grid": {"regg": [1.0]}}, ("select", "MF", "'regg'", "'reg'")),
        (MF(), LOG, {"grid": {"reg": 1.0}}, ("select", "grid['reg']", 1.0)),
        (MF(), LOG, {"grid": []}, ("select", "grid", "empty")),
        (MF(), LOG, {"grid": [1, 2]}, ("select", "mappings", 1)),
        (MF(), LOG, {"grid": grid, "threads": 0}, ("select", "threads", 1, 0)),
        (MF(), LOG, {"grid": {"reg": []}}, ("select", "grid", "empty")),
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


@pytest.mark.parametrize("named", ["reg", ("lam",)])
def test_penalties_that_a_learner_does_not_have_are_refused(named):
    learner = type("Mine", (ol.learners.Bias,), {"penalties_beside_row_sum": named})()
    with pytest.raises(InputError, match=facts("Mine.penalties_beside_row_sum", "'reg'", repr(named))):
        ol.select(learner, LOG, grid={"reg": [1.0]}, metric="mae")


def test_a_penalty_below_zero_is_reported_as_it_was_given():
    _, table = ol.select(ol.learners.Bias(), LOG, grid={"reg": [-1.0, 1.0]}, metric="mae", rng=0)
    assert re.search(facts("reg", "-1.0"), table["problem"][0])
