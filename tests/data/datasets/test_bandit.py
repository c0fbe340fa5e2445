"""Open Bandit: impressions with propensities, which are no log of users and items."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.errors import UndefinedError
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


def test_the_old_name_of_the_propensity_is_known(tmp_path):
    write("open-bandit", tmp_path)
    for file in (tmp_path / "open-bandit").rglob("*.csv"):
        file.write_text(file.read_text().replace("propensity_score", "action_prob"))
    assert datasets.rows("open-bandit", tmp_path).collect()["propensity_score"].sum() == pytest.approx(0.612125)


def test_there_is_no_log_without_users(tmp_path):
    write("open-bandit", tmp_path)
    with pytest.raises(UndefinedError, match=facts("open-bandit", "user ids", "datasets.rows('open-bandit')")):
        datasets.load("open-bandit", tmp_path)
