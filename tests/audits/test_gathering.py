"""What an audit asks beside estimates: the ends of a metric's gains, checks of models, and the setting in words."""

from __future__ import annotations

import math

import pytest

import openloop as ol
from openloop.audits.checks import benchmarks_of, check_of
from openloop.audits.gathering import all_rows, gains_of_ends, rare_share
from openloop.metrics.naming import metric
from tests.audits.cases import LOG, WORLD


@pytest.mark.parametrize("on", ["prediction", "rank"])
def test_a_source_is_asked_about_all_rows_by_a_metric_of_that_kind(on):
    assert (all_rows(on).on, all_rows(on).kind) == (on, "cell")


def test_gains_run_from_the_worst_rank_to_the_best():
    own = ol.metric("mine", on="rank", better="higher")(lambda rank: 1.0 / rank)
    lower = ol.metric("other", on="rank", better="lower")(lambda rank: 1.0 * rank)
    assert gains_of_ends(own, 4) == pytest.approx((0.25, 1.0))
    assert gains_of_ends(lower, 4) == pytest.approx((4.0, 1.0))
    assert gains_of_ends(metric("recall@3"), 4) is None


def test_gains_of_a_loss_of_ones_own_are_unknown():
    own = ol.metric("gap", on="prediction", better="lower")(lambda y, p: (y - p) ** 2)
    assert all(math.isnan(gain) for gain in gains_of_ends(own, 4))


def test_only_a_fitted_model_is_checked():
    assert check_of(LOG.propensity, LOG, 0) is None
    assert check_of(ol.propensity.Popularity().fit(LOG), False, 0) is None  # no check is wanted
    assert benchmarks_of(LOG.propensity, LOG) == ()


class Told:
    """A source with that share of Σw on rare items, and so many rows on others; None where it is unknown."""

    def __init__(self, found):
        self.found = found

    def weight_on_rare(self, fewest):
        return self.found


@pytest.mark.parametrize(("found", "share"), [(None, 0.0), ((0.4, 99), 0.0), ((0.4, 100), 0.4)])
def test_the_share_of_rare_items_is_known_and_leaves_enough_rows(found, share):
    assert rare_share(Told(found)) == share


def test_the_setting_says_where_propensities_come_from():
    found = ol.audit(WORLD.predictions, LOG, metrics=["mae"], check=False)
    assert (found.setting.log, found.setting.propensity) == ("a log in memory", "the log's own")
