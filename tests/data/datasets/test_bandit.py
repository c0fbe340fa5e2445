"""Open Bandit: impressions with propensities, which are no log of users and items."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.errors import InputError
from tests.data.datasets.originals import write
from tests.facts import facts


def test_every_impression_keeps_its_policy_campaign_and_propensity(tmp_path):
    rows = datasets.rows("open-bandit", write("open-bandit", tmp_path)).collect()
    told = rows.select("policy", "campaign", "item_id", "position", "click", "propensity_score").rows()
    assert told == [
        ("bts", "all", 79, 1, 0, 0.087125),
        ("bts", "men", 3, 2, 1, 0.5),
        ("random", "all", 14, 2, 0, 0.0125),
        ("random", "all", 15, 3, 1, 0.0125),
    ]
    assert rows["user-item_affinity_1"].to_list() == [None, 1.0, None, None]
    assert "" not in rows.columns


def test_a_policy_of_a_campaign_is_a_log_of_impressions_without_users_and_requests(tmp_path):
    write("open-bandit", tmp_path)
    log = datasets.impressions("open-bandit", tmp_path, policy="random", campaign="all")
    assert (log.requests, log.users, log.n_requests) == (None, None, 2)
    assert (log.item.tolist(), log.position.tolist(), log.reward.tolist()) == ([14, 15], [2, 3], [0, 1])
    assert log.propensity.tolist() == [0.0125, 0.0125]
    assert log.n_items == 80  # the other policy shows item 79
    assert log.shuffled.tolist() == [True, True]
    other = datasets.impressions("open-bandit", tmp_path, policy="bts", campaign="men")
    assert (other.item.tolist(), other.reward.tolist(), other.shuffled.tolist()) == ([3], [1], [False])


@pytest.mark.parametrize(
    ("chosen", "told"),
    [({"campaign": "mens"}, ("campaign", "'mens'", "'men'")), ({"campaign": "men"}, ("policy", "'random'", "'bts'"))],
)
def test_a_policy_or_campaign_that_is_not_there_is_named(tmp_path, chosen, told):
    write("open-bandit", tmp_path)
    with pytest.raises(InputError, match=facts(*told)):
        datasets.impressions("open-bandit", tmp_path, **chosen)
