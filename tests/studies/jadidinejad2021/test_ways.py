"""The methods by name: strata that partition, weights that match what was held out, and a rule for their number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.estimators.stratified import edges
from openloop.studies.jadidinejad2021 import as_coded, methods, ways
from openloop.studies.jadidinejad2021.instances import closed_cells, strata_of
from openloop.studies.jadidinejad2021.models import given_of, places, relevant
from openloop.studies.jadidinejad2021.ways import NUMBERS
from tests.studies.jadidinejad2021 import many


def test_the_five_columns_as_coded():
    held, _, _ = many.held()
    found = ways.coded(held)
    assert list(found) == ["holdout", "ips", "stratified", "q1", "q2"]
    p = as_coded.propensities(held.given["item"], many.ITEMS, many.USERS)
    share = np.mean(as_coded.strata(p[held.rows[1]], 2)[held.shown] == 0)
    assert 0 < share < 1
    q1, q2 = (found[name](None).value() for name in ("q1", "q2"))
    assert found["stratified"](None).value() == pytest.approx(share * q1 + (1 - share) * q2)
    cells = held.cells.where(held.shown[held.relevant])
    gain = as_coded.ips_gain(p, held.split.order)[cells.item]
    assert found["ips"](10).value() == pytest.approx(methods.snips(cells, "coded", 10, gain).value())


def unknown():
    """A held-out part with a user and an item of whom training shows nothing."""
    held, scores, _ = many.held()
    given, part = held.given, held.split
    gone = (given["user"][part.train] != 3) & (given["item"][part.train] != 5)
    order = part.order[part.order != 5]
    split = replace(part, train=part.train[gone], order=order)
    found = [placed(given, split, s) for s in scores.values()]
    cells = methods.stacked(found, "closed", *relevant(given, split.test), many.USERS)
    return replace(held, split=split, cells=cells), found


def placed(given, split, scores):
    columns = [given[name][split.train] for name in ("user", "item", "rating")]
    train = Feedback.from_arrays(*columns, users=many.USERS, items=many.ITEMS)
    return {"closed": places(scores, train, split.order, *relevant(given, split.test))}


def test_as_coded_the_same_rows_count_here_and_in_the_instances():
    held, found = unknown()
    user, item = held.rows
    train = held.given["user"][held.split.train]
    kept = np.isin(user, train) & (item != 5)
    assert 3 not in train
    assert np.any(user == 3)
    assert np.any(item == 5)
    assert held.shown.tolist() == kept.tolist()
    rows, masks = strata_of(held.given, held.split)
    cells, inside = closed_cells(held.given, found, held.split, rows, masks)
    coded = ways.coded(held)
    for name, line in (("holdout", "Holdout"), ("q1", "Q1"), ("q2", "Q2")):
        theirs = methods.holdout(cells.where(inside[line]), "coded", None).value()
        assert coded[name](None).value() == pytest.approx(theirs)
    assert coded["stratified"].keywords["share"] == pytest.approx([masks["Q1"].mean(), masks["Q2"].mean()])
    # Had the others counted, holdout would have another value; ours count them.
    everyone = methods.holdout(held.cells, "coded", None).value()
    assert np.abs(coded["holdout"](None).value() - everyone).min() > 1e-4
    assert len(ways.ours(held, {})["holdout"].args[0].user) == len(held.cells.user) > len(cells.user)


def test_strata_as_printed_have_equal_size():
    held, _, log = many.held()
    eq7 = ways.propensity(given_of(log), kind="eq7")["p"]
    found = ways.printed(held, eq7)
    n = [int(found[name].args[0].user.size) for name in ("q1", "q2")]
    assert sum(n) == len(held.cells.user)
    share = found["stratified"].keywords["share"]
    assert share == pytest.approx([0.5, 0.5], abs=0.1)


def test_propensities_expect_the_rows_of_the_log():
    log = many.logs()[1]
    for kind in ("eq7", *ways.PROPENSITIES):
        p = ways.propensity(given_of(log), kind=kind)["p"]
        total = np.broadcast_to(p, (many.USERS, many.ITEMS)).sum()
        assert total == pytest.approx(len(log), rel=0.1 if kind == "calibrated" else 1e-3)


def test_covariates_reach_the_logistic_model():
    rng = np.random.default_rng(0)
    given = given_of(many.logs()[1])
    more = {"user_covariates": rng.normal(size=(many.USERS, 2)), "item_covariates": rng.normal(size=(many.ITEMS, 2))}
    plain, wider = (ways.propensity(g, kind="logistic")["p"] for g in (given, given | more))
    assert np.abs(plain - wider).max() > 1e-6


def test_a_candidate_is_observed_with_pi():
    held, _, _ = many.held()
    s = held.split.share
    assert ways.observed_with(held, np.array([0.5]), "all") == pytest.approx([0.5 * s])
    assert ways.observed_with(held, np.array([0.5]), "outside") == pytest.approx([0.5 * s / (1 - 0.5 * (1 - s))])
    assert ways.observed_with(held, np.array([1.0]), "outside") == pytest.approx([1.0])


def test_ours_by_name_and_by_rule():
    held, _, _ = many.held()
    p = {"popularity": np.linspace(0.7, 0.05, many.ITEMS)}
    found = ways.ours(held, p, "outside", {"popularity": 3})
    assert list(found) == [
        "holdout", "snips, popularity", "snips of adg, popularity", "5 strata, popularity", "strata by rule, popularity"
    ]  # fmt: skip
    three = ways.catalogued(held, ways.grid_of(held, p["popularity"]), "outside", 3)
    assert found["strata by rule, popularity"](None).value() == pytest.approx(three(None).value())


def test_catalogue_shares_count_candidates():
    held, _, _ = many.held()
    grid = ways.grid_of(held, np.where(np.arange(many.ITEMS) < 10, 0.6, 0.1))
    everything = ways.catalogued(held, grid, "all", 2).keywords["share"]
    outside = ways.catalogued(held, grid, "outside", 2).keywords["share"]
    assert everything == pytest.approx([0.75, 0.25])
    assert outside[1] < 0.25  # the often observed items are more often in the training part


# ------------------------------------------------------------------------------------------ number of strata


def gains(levels, n=600, noise=0.05, rng=0):
    """Gains of four models that rise in equal steps with p, and p."""
    rng = np.random.default_rng(rng)
    p = rng.permutation(n) / n
    return np.floor(p * levels) / levels + noise * rng.normal(size=(4, n)), p


def equal(p):
    """1 to 10 strata of equal count."""
    return [np.searchsorted(edges(p, n, "count"), p) for n in NUMBERS]


def test_the_rule_judges_the_strata_that_are_used(monkeypatch):
    held, _, _ = many.held()
    grid = ways.grid_of(held, np.linspace(0.7, 0.05, many.ITEMS))
    judged = []
    monkeypatch.setattr(ways, "errors_within", lambda _, strata, __: judged.extend(strata) or np.ones((10, 9)))
    ways.number_of_strata(held, grid, "outside", 0)
    used = [ways.catalogued(held, grid, "outside", n).keywords["stratum"] for n in NUMBERS]
    assert [s.tolist() for s in judged] == [s.tolist() for s in used]
    of_relevant = equal(grid[held.cells.user, held.cells.item])
    assert any((a != b).any() for a, b in zip(judged, of_relevant, strict=True))  # edges are those of all rows


def test_the_rule_finds_steps():
    gain, p = gains(4)
    errors = ways.errors_within(gain, equal(p), np.random.default_rng(0))
    assert ways.least_number(errors, NUMBERS) == 4


def test_the_rule_takes_one_stratum_where_p_says_nothing():
    gain, p = np.random.default_rng(0).normal(size=(4, 600)), np.random.default_rng(1).random(600)
    errors = ways.errors_within(gain, equal(p), np.random.default_rng(0))
    assert errors.mean(axis=1)[0] == pytest.approx(1)
    assert ways.least_number(errors, NUMBERS) == 1


def test_a_model_without_any_gain_does_not_count():
    gain, p = gains(4)
    gain[0] = 0.0
    errors = ways.errors_within(gain, equal(p), np.random.default_rng(0))
    assert np.isfinite(errors).all()
    assert errors.mean(axis=1)[0] == pytest.approx(1)


def test_the_smallest_number_within_a_standard_error_is_taken():
    errors = np.array([[2.0, 2.0], [1.1, 1.0], [0.5, 1.5], [3.0, 3.0]])  # the least mean is 1, its standard error 0.5
    assert ways.least_number(errors, (1, 2, 3, 4)) == 2
