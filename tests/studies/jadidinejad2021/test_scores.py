"""Scores: laws, and the numbers of ol.evaluate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.errors import UndefinedError
from openloop.estimators.stratified import stratified
from openloop.evaluation import prepared
from openloop.sources.plan import Request
from openloop.sources.question import Question
from openloop.studies.jadidinejad2021 import methods, scores
from openloop.studies.jadidinejad2021.scores import RankedCells
from tests.studies.jadidinejad2021 import many


def cells(ranks, user, n_users=2):
    """RankedCells of one model with these ranks, nothing tied."""
    h = np.array(ranks) - 1
    places = np.array([[h, np.ones_like(h), h, np.ones_like(h), ranks]])
    return RankedCells(user=np.array(user), item=np.arange(len(user)), places=places, n_users=n_users)


@pytest.mark.parametrize("among", ["outside", "all", "coded"])
def test_ndcg_by_hand(among):
    found = cells([1, 3, 2], [0, 0, 1])
    ideal = 1 + 1 / np.log2(3)
    by_user = np.array([(1 + 1 / 2) / ideal, 1 / np.log2(3)])
    assert scores.holdout(found, among, None).value == pytest.approx([by_user.mean()])
    assert scores.holdout(found, among, 1).value == pytest.approx([0.5])
    assert scores.holdout(found, among, None).reweighted(np.eye(2))[:, 0] == pytest.approx(by_user)


def test_a_user_without_a_cell_is_left_out():
    found = scores.holdout(cells([1, 2], [0, 0], n_users=3), "all", None)
    assert found.value == pytest.approx([1.0])
    assert np.isnan(found.reweighted(np.eye(3))[1:]).all()


def test_an_item_that_the_code_does_not_rank_earns_nothing():
    c = cells([1, 0], [0, 1])
    assert c.discounts("coded", None)[0].tolist() == [1, 0]


def test_the_ideal_puts_heavy_cells_first():
    weight = np.array([1.0, 3.0, 2.0])
    expected = 3 + 1 / np.log2(3)
    assert scores.ideal(weight, np.array([0, 0, 1]), 2, None) == pytest.approx([expected, 2])
    assert scores.ideal(weight, np.array([0, 0, 1]), 2, 1) == pytest.approx([3, 2])


def test_scaled_weights_leave_snips_alone_and_equal_ones_make_it_holdout():
    held, _, _ = many.held()
    w = np.random.default_rng(0).uniform(1, 9, len(held.cells.user))
    for method in (scores.snips, scores.snips_of_adg):
        assert method(held.cells, "all", 10, 3 * w).value == pytest.approx(method(held.cells, "all", 10, w).value)
    plain = scores.holdout(held.cells, "all", 10).value
    assert scores.snips(held.cells, "all", 10, np.full(len(w), 4.0)).value == pytest.approx(plain)
    assert scores.ips_eq3(held.cells, "all", 10, np.full(len(w), 4.0)).value == pytest.approx(4 * plain)


def test_one_stratum_is_holdout_and_an_empty_one_gives_its_share_away():
    held, _, _ = many.held()
    stratum = np.zeros(len(held.cells.user), np.int64)
    plain = scores.holdout(held.cells, "all", None).value
    for share in ([1.0], [0.2, 0.8]):
        found = scores.stratified(held.cells, "all", None, stratum, np.array(share))
        assert found.value == pytest.approx(plain)


def test_without_a_cell_there_is_no_score():
    held, _, _ = many.held()
    with pytest.raises(UndefinedError, match="ndcg"):
        scores.holdout(held.cells.where(held.cells.user < 0), "all", None)


def test_weightings_of_users_are_those_users_again():
    held, _, _ = many.held()
    w = np.random.default_rng(0).uniform(1, 9, len(held.cells.user))
    half = np.arange(many.USERS) < many.USERS // 2
    found = scores.snips_of_adg(held.cells, "outside", None, w)
    inside = half[held.cells.user]
    part = scores.snips_of_adg(held.cells.where(inside), "outside", None, w[inside])
    values = found.reweighted(np.array([np.ones(many.USERS), half, 2.0 * half]))
    assert values[0] == pytest.approx(found.value)
    assert values[1] == pytest.approx(part.value)
    assert values[2] == pytest.approx(part.value)


def test_strata_are_marginalised_by_hand():
    # Stratum 0 is each user's first cell, at ranks 1 and 3; stratum 1 only user 1's second, at rank 2.
    found = cells([1, 3, 2], [0, 1, 1])
    scored = scores.stratified(found, "all", None, np.array([0, 0, 1]), np.array([0.25, 0.75]))
    assert scored.value == pytest.approx([0.25 * (1 + 1 / 2) / 2 + 0.75 / np.log2(3)])


@pytest.mark.parametrize("k", [5, None])
def test_openloops_estimators_give_the_same_numbers(k):
    """ol.evaluate(models, test, p, metrics=["ndcg@5"], estimators=[...], exclude=train, threshold=4)"""
    held, known, log = many.held()
    train, test = many.parts(log, held.split)
    model = ol.propensity.Popularity(gamma=1.0).fit(log)
    ours = methods.ours(held, {"popularity": model.item_propensities_})
    ndcg = "ndcg" if k is None else f"ndcg@{k}"
    names = {"naive": "holdout", "snips": "snips, popularity"}
    found = ol.evaluate(known, test, model, metrics=[ndcg], estimators=list(names), exclude=train, threshold=4)
    for estimator, name in names.items():
        assert ours[name](k).value == pytest.approx([found[m, ndcg, estimator].value for m in known])


@pytest.mark.parametrize("k", [5, None])
def test_the_papers_strata_are_openloops(k):
    """ol.evaluate(models, test, p, metrics=["ndcg@5"], estimators=["stratified@2:count:observed"], threshold=4)"""
    held, known, log = many.held()
    _, test = many.parts(log, held.split)
    model = ol.propensity.Popularity(gamma=1.0).fit(log)
    ndcg, name = "ndcg" if k is None else f"ndcg@{k}", "stratified@2:count:observed"
    found = ol.evaluate(known, test, model, metrics=[ndcg], estimators=[name], exclude=None, threshold=4)
    printed = methods.printed(held, model.item_propensities_)["stratified"](k).value
    assert printed == pytest.approx([found[m, ndcg, name].value for m in known])


def test_ours_has_the_strata_of_openloops_sums_with_the_catalogues_shares():
    """ol.evaluate has no nDCG with these shares: the estimator is given them, and openloop's own sums."""
    held, known, log = many.held()
    train, test = many.parts(log, held.split)
    model = ol.propensity.Popularity(gamma=1.0).fit(log)
    asked = Question(metrics=["ndcg"], estimators=["naive"], exclude=train, threshold=4)
    source, ndcg = prepared(known, test, model, asked).source, ol.metric("ndcg")
    requests = [Request(metric=ndcg, models=(m,), strata=(methods.STRATA, "count")) for m in known]
    sums = source.moments(requests)
    wanted = [stratified(sums[r], sums[r].catalogue.sum(axis=0)).value for r in requests]
    ours = methods.ours(held, {"popularity": model.item_propensities_})["5 strata, popularity"](None).value
    assert ours == pytest.approx(wanted)


def test_snips_of_adg_is_openloops():
    """ol.evaluate(models, test, p, metrics=["adg"], estimators=["snips"], exclude=train, threshold=4)"""
    held, known, log = many.held()
    train, test = many.parts(log, held.split)
    model = ol.propensity.Popularity(gamma=1.0).fit(log)
    ours = methods.ours(held, {"popularity": model.item_propensities_})["snips of adg, popularity"](None).value
    found = ol.evaluate(known, test, model, metrics=["adg"], estimators=["snips"], exclude=train, threshold=4)
    assert ours == pytest.approx([found[m, "adg", "snips"].value for m in known])


def test_ips_of_binary_dcg_ranks_models_as_snips_of_adg_does():
    """ol.evaluate(models, test, p, metrics=["dcg"], estimators=["ips"], exclude=None), liked being 1 and all else 0"""
    held, known, log = many.held()
    model = ol.propensity.Popularity(gamma=1.0).fit(log)
    binary = replace(log, rating=(log.rating >= 4).astype(np.float32))
    _, test = many.parts(binary, held.split)
    ours = methods.ours(held, {"popularity": model.item_propensities_}, "all")["snips of adg, popularity"](None).value
    found = ol.evaluate(known, test, model, metrics=["dcg"], estimators=["ips"], exclude=None)
    ratio = ours / [found[m, "dcg", "ips"].value for m in known]
    assert ratio == pytest.approx(np.full(len(known), ratio[0]))


def test_eq_3_is_openloops():
    """ol.evaluate(models, test, p, metrics=["ndcg"], estimators=["ips_eq3"], exclude=None, threshold=4)"""
    held, known, log = many.held()
    _, test = many.parts(log, held.split)
    model = ol.propensity.Popularity().fit(log)
    p = model.item_propensities_[held.cells.item] * held.split.share
    found = ol.evaluate(known, test, model, metrics=["ndcg"], estimators=["ips_eq3"], exclude=None, threshold=4)
    ours = scores.ips_eq3(held.cells, "all", None, 1 / p).value
    assert ours == pytest.approx([found[m, "ndcg", "ips_eq3"].value for m in known])
