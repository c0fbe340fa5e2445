"""Scores: laws, and the numbers of ol.evaluate."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
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


def test_the_ideal_puts_heavy_cells_first():
    weight = np.array([1.0, 3.0, 2.0])
    expected = 3 + 1 / np.log2(3)
    assert scores.ideal(weight, np.array([0, 0, 1]), 2, None) == pytest.approx([expected, 2])
    assert scores.ideal(weight, np.array([0, 0, 1]), 2, 1) == pytest.approx([3, 2])


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


def test_snips_of_adg_is_openloops():
    """ol.evaluate(models, test, p, metrics=["adg"], estimators=["snips"], exclude=train, threshold=4)"""
    held, known, log = many.held()
    train, test = many.parts(log, held.split)
    model = ol.propensity.Popularity(gamma=1.0).fit(log)
    ours = methods.ours(held, {"popularity": model.item_propensities_})["snips of adg, popularity"](None).value
    found = ol.evaluate(known, test, model, metrics=["adg"], estimators=["snips"], exclude=train, threshold=4)
    assert ours == pytest.approx([found[m, "adg", "snips"].value for m in known])


def test_eq_3_is_openloops():
    """ol.evaluate(models, test, p, metrics=["ndcg"], estimators=["ips_eq3"], exclude=None, threshold=4)"""
    held, known, log = many.held()
    _, test = many.parts(log, held.split)
    model = ol.propensity.Popularity().fit(log)
    p = model.item_propensities_[held.cells.item] * held.split.share
    found = ol.evaluate(known, test, model, metrics=["ndcg"], estimators=["ips_eq3"], exclude=None, threshold=4)
    ours = scores.ips_eq3(held.cells, "all", None, 1 / p).value
    assert ours == pytest.approx([found[m, "ndcg", "ips_eq3"].value for m in known])
