"""PyTorch: modules asked about positions, in evaluation mode, and then as they were."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError, PredictionError
from tests.elsewhere import ITEM_IDS, USER_IDS, V, W, assert_evaluated_as, evaluated, in_codes
from tests.facts import facts

SCORES = V @ W.T


class Module:
    """torch.nn.Module: a product with dropout, so that training mode shows."""

    def __init__(self, column=False):
        self.training, self.part, self.column = True, SimpleNamespace(training=False), column

    def parameters(self):
        return iter([SimpleNamespace(device="cpu")])

    def modules(self):
        return iter([self, self.part])

    def eval(self):
        self.training = self.part.training = False

    def state_dict(self):
        return {}

    def forward(self, user, item):
        assert user.dtype == np.int64
        assert not sys.modules["torch"].gradients
        found = SCORES[user, item] * (0 if self.training else 1)
        return found[:, None] if self.column else found

    __call__ = forward


@pytest.fixture
def stand_in(monkeypatch):
    tensor = type("Tensor", (), {})  # which SciPy looks for where torch is imported
    torch = SimpleNamespace(gradients=True, as_tensor=lambda values, **_: values, Tensor=tensor)

    @contextmanager
    def no_grad():
        torch.gradients = False
        yield
        torch.gradients = True

    torch.no_grad = no_grad
    monkeypatch.setitem(sys.modules, "torch", torch)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("column", [False, True], ids=["scores", "a column of scores"])
def test_a_module_is_asked_in_evaluation_mode_and_left_as_it_was(column):
    module = Module(column)
    assert_evaluated_as(ol.wrap(module, users=USER_IDS, items=ITEM_IDS), in_codes(SCORES))
    assert module.training
    assert not module.part.training


def test_positions_without_ids_are_refused():
    with pytest.raises(InputError, match=facts("Module", "users=", "items=")):
        ol.wrap(Module())
    with pytest.raises(InputError, match=facts("Module", "items=")):
        ol.wrap(Module(), users=USER_IDS)
    with pytest.raises(PredictionError, match=facts("'m'", "Module", "ol.wrap")):
        evaluated(Module())
