"""Learners and grids to candidates: every setting once, in order, each with a learner of its own."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.learners import MF, Bias
from openloop.learners.base import Learner
from openloop.selection.candidates import candidates_of
from tests.facts import facts


class Around(Learner):
    """A learner with one inside, and a list of them."""

    def __init__(self, model=None, bases=(), value=0):
        self.model, self.bases, self.value = model, bases, value


def params(candidates, *names):
    return [tuple(each.learner.get_params().get(name) for name in names) for each in candidates]


def test_a_grid_is_all_combinations_in_the_order_of_its_values():
    found = candidates_of(MF(), {"factors": np.array([2, 3]), "reg": [1.0, 5.0]})
    assert params(found, "factors", "reg") == [(2, 1.0), (2, 5.0), (3, 1.0), (3, 5.0)]
    assert {each.names for each in found} == {("factors", "reg")}
    assert {each.kind for each in found} == {None}
    assert type(found[0].learner.factors) is int


KINDS = {"mf": MF(), "bias": Bias()}


@pytest.mark.parametrize(
    ("learner", "grid", "told"),
    [
        pytest.param(MF, None, ("ol.learners.MF()", MF), id="class"),
        pytest.param({"mf": MF}, None, ("ol.learners.MF()", MF), id="class among kinds"),
        pytest.param({}, None, ("learner",), id="no learner"),
        pytest.param({1: MF()}, None, ("text", 1), id="number as name"),
        pytest.param(MF(), {"regg": [1.0]}, ("MF", "'regg'", "'reg'"), id="unknown parameter"),
        pytest.param(Around(Bias()), {"model__factors": [1]}, ("Around", "'model__factors'"), id="unknown inside"),
        pytest.param(MF(), {"reg": 1.0}, ("grid['reg']", 1.0), id="no list"),
        pytest.param(MF(), {"loss": "squared"}, ("grid['loss']", "squared"), id="word for a list"),
        pytest.param(MF(), [], ("grid", "empty"), id="empty list"),
        pytest.param(MF(), {"reg": []}, ("grid", "empty"), id="no values"),
        pytest.param(MF(), [1], ("mappings", 1), id="list of numbers"),
        pytest.param(MF(), 3, ("grid", 3), id="number"),
        pytest.param(Around(), {"value": [1]}, ("grid", "'value'", "column"), id="column of the table"),
        pytest.param(KINDS, {"reg": [1.0]}, ("grid['reg']", "'mf'", "'bias'"), id="grid of one for kinds"),
        pytest.param(KINDS, {"mf": {"reg": []}}, ("grid['mf']", "empty"), id="empty grid of a kind"),
        pytest.param(KINDS, {"mf": {"reg": 2}}, ("grid['mf']['reg']", 2), id="no list of a kind"),
        pytest.param(KINDS, [{"reg": 1.0}], ("grid", "'mf'", "'bias'", "list"), id="list for kinds"),
    ],
)
def test_what_is_no_grid_is_refused(learner, grid, told):
    with pytest.raises(InputError, match=facts("select", *told)):
        candidates_of(learner, grid)
