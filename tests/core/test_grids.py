"""Models that are about other users and items than the log are refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from openloop.core.feedback import Feedback, Vocabulary
from openloop.core.grids import check_ids, check_shape, check_vocabulary
from openloop.errors import AlignmentError, PredictionError
from tests.facts import facts

LOG = Feedback.from_arrays([0, 1], [0, 2], [1, 5], users=2, items=3)


def test_an_array_has_a_row_for_each_user_and_a_column_for_each_item():
    check_shape("f", (2, 3), LOG)
    with pytest.raises(PredictionError, match=facts("f", "(3, 2)", "2 users", "3 items")):
        check_shape("f", (3, 2), LOG)


@pytest.mark.parametrize("side", ["users", "items"])
def test_a_model_is_of_the_logs_ids_or_says_nothing_of_them(side):
    own = {"users_": LOG.users, "items_": LOG.items}
    check_vocabulary("f", SimpleNamespace(**own), LOG)
    check_vocabulary("f", SimpleNamespace(), LOG)
    with pytest.raises(AlignmentError, match=facts("f", side, "7 ids")):
        check_vocabulary("f", SimpleNamespace(**own | {f"{side}_": Vocabulary.range(7)}), LOG)


@pytest.mark.parametrize("side", ["users", "items"])
def test_a_fitted_model_is_asked_about_its_own_ids_only(side):
    own = {"users_": LOG.users, "items_": LOG.items}
    check_ids(SimpleNamespace(**own), LOG)
    with pytest.raises(AlignmentError, match=facts("fitted on", "7", "2 × 3", "like=")):
        check_ids(SimpleNamespace(**own | {f"{side}_": Vocabulary.range(7)}), LOG)
