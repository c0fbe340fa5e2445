"""Targets of balancing that do not fit are refused."""

from __future__ import annotations

import pytest

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.propensity.targets import margins_of
from tests.facts import facts

LOG = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 0], [1, 5, 5, 3], users=3, items=2)
USERS = Covariates(values=[[1, 0, 2.5], [0, 1, 0], [1, 0, 1]], names=("sex=f", "sex=m", "age"), ids=LOG.users)
ITEMS = Covariates(values=[[0, 1], [1, 0]], names=("kind=book", "kind=film"), ids=LOG.items)


@pytest.mark.parametrize(
    ("margins", "told"),
    [
        ({"sex": {"m": 0.4, "f": 0.5}}, ("margins['sex']", 0.9)),
        ({"sex": {"m": 1.4, "f": -0.4}}, ("margins['sex']", 1)),
        ({"sex": {"m": 1.0}}, ("margins['sex']", "'sex=f'", "'sex=m'")),
        ({"age": {"2.5": 1.0}}, ("margins['age']", "'age'", "as text")),
    ],
)
def test_margins_that_do_not_fit_the_column_are_refused(margins, told):
    with pytest.raises(InputError, match=facts(*told)):
        list(margins_of(margins, USERS, ITEMS))
