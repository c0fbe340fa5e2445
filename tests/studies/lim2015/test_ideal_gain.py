"""The printed IDCG: NDCG over it by hand, and published numbers that rule it out."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.lim2015 import ideal_gain
from openloop.studies.lim2015.ideal_gain import LEAST_RATIO, as_printed, ndcg_table, published_ratios, textbook_claim
from openloop.studies.lim2015.published import TABLE1
from tests.studies.lim2015.fitted import EQUAL, USERS, made_up


def test_the_misprinted_idcg_by_hand():
    data = made_up(EQUAL)
    flat = data._replace(fits=[f._replace(outcome=f.outcome | {"test": np.ones((5, USERS))}) for f in data.fits])
    # |S_u| is 1 … 5 for a fifth of the users each, and ADG is 1: NDCG as printed is n / Σ_{j=1}^{n} 1/log2(j + 2)
    wanted = [n / sum(1 / np.log2(j + 2) for j in range(1, n + 1)) for n in range(1, 6)]
    assert as_printed(flat, flat.methods[0]).value == pytest.approx(np.mean(wanted), rel=1e-12)
    assert min(wanted) == pytest.approx(LEAST_RATIO)


def test_the_published_ndcg_cannot_be_as_printed():
    below = {name for (name, _), ratio in published_ratios().items() if ratio < LEAST_RATIO}
    assert below == {"amazon-games", "lastfm-msd"}


def test_the_claim_about_it_is_not_counted_and_the_table_has_both():
    claim = textbook_claim()
    assert (claim.holds, claim.counted) == (True, False)
    assert len(ndcg_table([made_up(EQUAL)]).rows) == 2 + len(TABLE1)


def test_without_a_ratio_below_the_least_it_does_not_hold_and_says_so(monkeypatch):
    monkeypatch.setattr(ideal_gain, "published_ratios", lambda: {("data", "learner"): LEAST_RATIO})
    claim = textbook_claim()
    assert not claim.holds
    assert claim.found.endswith("no published ratio is below that")
