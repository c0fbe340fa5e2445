"""Table 2: parts that agree are told from parts that do not, over the users who have both."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.lim2015 import table2
from openloop.studies.lim2015.published import ADG, AUC
from tests.studies.lim2015.fitted import EQUAL, made_up

TEST = EQUAL[AUC]
LOWER = [0.8, 0.07, 0.24, 0.1, 0.15]  # map and ndcg are less on fewer items


def result(monkeypatch, *data):
    monkeypatch.setattr(table2, "all_fits", lambda _run: list(data))
    monkeypatch.setattr(table2, "further", lambda _run, d: d)
    return table2.table2(None)


def test_the_papers_pattern_is_found_where_it_is(monkeypatch):
    found = result(monkeypatch, made_up(EQUAL, validation=LOWER))
    assert [claim.holds for claim in found.claims] == [True] * 7


def test_measures_that_all_agree_and_measures_that_all_differ_are_told_apart(monkeypatch):
    alike = result(monkeypatch, made_up(EQUAL, validation=TEST))
    assert [claim.holds for claim in alike.claims] == [True, True, False] * 2 + [False]
    assert not any(claim.undecided for claim in alike.claims)
    apart = result(monkeypatch, made_up(EQUAL, validation=[0.5 * x for x in TEST]))
    assert [claim.holds for claim in apart.claims] == [False, False, True] * 2 + [False]
    assert not any(claim.undecided for claim in apart.claims[:6])
    other = made_up(EQUAL, validation=[x * (0.5 if k in (0, 3, 4) else 1) for k, x in enumerate(TEST)])
    assert result(monkeypatch, other).claims[-1].undecided == ""  # the unbiased are further off for sure


def test_the_difference_in_per_cent_of_test_by_hand():
    data = made_up(EQUAL, validation=LOWER)
    found = table2.validation_and_test(data, data.methods[0], "map")
    assert found.percent.value == pytest.approx(100 * (found.validation.value / found.test.value - 1))
    assert found.percent.value == pytest.approx(-30, abs=1)


def test_chance_is_no_difference_and_no_agreement(monkeypatch):
    rng = np.random.default_rng(0)
    data = made_up(EQUAL)
    for fit in data.fits:
        fit.outcome["validation"] = fit.outcome["test"] + rng.normal(0, 1, fit.outcome["test"].shape)
    *claims, everywhere = result(monkeypatch, data).claims
    no_difference, agreement, far = claims[:3]
    assert everywhere.undecided
    assert (no_difference.holds, agreement.holds, far.holds) == (True, False, False)
    assert [bool(claim.undecided) for claim in (no_difference, agreement, far)] == [False, True, True]


def test_differences_are_adjusted_over_both_tables():
    data = made_up(EQUAL)
    found, more = table2.adjusted(table2.compared([data]), table2.compared([data]))
    assert {p.together for p in (*found.values(), *more.values())} == {20}
    single = table2.compared([data])["made up", "map", AUC]
    assert found["made up", "map", AUC].holm >= single.percent.pvalue
    low, high = found["made up", "map", AUC].limits
    z = 3.0233  # of 1 - 0.025/20
    assert high - low == pytest.approx(2 * z * single.percent.stderr, rel=1e-4)


def test_the_papers_table_stands_beside_ours_on_its_data(monkeypatch):
    found = result(monkeypatch, made_up(EQUAL, validation=LOWER))
    assert [t.name for t in found.tables] == ["table2", "table2-published", "table2-further"]
    theirs = dict(found.tables[1].values())[f"ml-10m, MAP, {ADG} difference %"]
    assert (theirs.value, theirs.published) == (None, -23.43)
    own = result(monkeypatch, made_up(EQUAL, name="ml-10m", validation=LOWER))
    ours = dict(own.tables[1].values())[f"ml-10m, NDCG, {AUC} test"]
    assert (ours.value, ours.published) == (pytest.approx(0.3, abs=0.01), 0.3718)
