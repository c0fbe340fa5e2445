"""implicit: the product of its factors, rows found by id, and rows without ids that are never taken for a log's."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, InputError
from tests.elsewhere import ITEM_IDS, LOG, USER_IDS, Als, I, U, V, W, assert_evaluated_as, evaluated, in_codes
from tests.facts import facts


def positions(users, items):
    """The log's rows on ids that are these numbers."""
    ids = Vocabulary.of(users), Vocabulary.of(items)
    return Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=ids[0], items=ids[1])


def test_factors_are_found_by_id():
    assert_evaluated_as(ol.wrap(Als(), users=USER_IDS, items=ITEM_IDS), in_codes(V @ W.T))


# -- rows without ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["error", "zero"])
@pytest.mark.parametrize("rows", [U, U + 1, 2 * U], ids=["all but one id", "all ids", "half of the rows"])
def test_rows_without_ids_are_not_shifted_into_place(rows, unknown):
    # MovieLens counts from 1: its ids are positions, of other users, also where each of them has a row.
    log = positions(range(1, U + 1), range(I))
    with pytest.raises(AlignmentError, match=facts("'m'", f"{rows} rows of users", "users=", f"range({rows})")):
        evaluated(ol.wrap(Als(np.resize(V, (rows, 3)), W), unknown=unknown), log)


class Biased:
    """A model of one's own that keeps factors, and adds what they lack."""

    user_factors, item_factors, user_bias = V, W, np.arange(U)

    def predict(self, user, item):
        return (V @ W.T)[user, item] + self.user_bias[user]


def test_a_model_that_predicts_in_its_own_way_is_not_its_factors():
    with pytest.raises(InputError, match=facts("wrap", "Biased")):
        ol.wrap(Biased(), users=USER_IDS, items=ITEM_IDS)
    assert evaluated(Biased(), metrics=["mae"])["m", "mae", "naive"].value > 0  # it is in the log's codes


def test_the_number_of_ids_is_that_of_rows():
    with pytest.raises(AlignmentError, match=facts("users", (29,), "30 rows")):
        ol.wrap(Als(), users=USER_IDS[1:], items=ITEM_IDS)
