"""What models share: any cell's p gives the grid and its margins, and a part counts for the whole."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import UndefinedError
from openloop.propensity import base
from openloop.propensity.base import CellModel, counts, row_counts
from tests.facts import facts


class Sloping(CellModel):
    """p = (1 + u + i)/100, and a side table that fit was given."""

    def __init__(self, step: int = 1) -> None:
        self.step = step

    def fit(self, feedback, table=None):
        return self._remember(feedback, "a note", table=table)

    def _at(self, user, item):
        return (1.0 + self.step * user + item) / 100


def log_of(n=6, share=1.0):
    return Feedback.from_arrays(np.arange(n) % 3, np.arange(n) // 3, np.ones(n), users=3, items=4, share=share)


@pytest.mark.parametrize("block", [1, 5, 2**21])
def test_matrix_and_margins_come_from_the_cells_in_blocks(monkeypatch, block):
    monkeypatch.setattr(base, "BLOCK", block)
    model = Sloping().fit(log_of())
    P = model.matrix()
    np.testing.assert_allclose(P, (1 + np.arange(3)[:, None] + np.arange(4)) / 100)
    assert not P.flags.writeable
    np.testing.assert_allclose(model.margins()[0], P.sum(axis=1))
    np.testing.assert_allclose(model.margins()[1], P.sum(axis=0))


def test_refit_hands_on_what_fit_was_given():
    model = Sloping(step=2).fit(log_of(), table="ages")
    again = model.refit(log_of(4))
    assert (again.step, again.side_, again.notes_) == (2, {"table": "ages"}, ("a note",))


def test_a_matrix_beyond_memory_is_refused_with_what_works_instead(monkeypatch):
    monkeypatch.setattr(base, "MAX_GRID", 11)
    with pytest.raises(UndefinedError, match=facts("Sloping", "3 × 4", "predict(feedback)")):
        Sloping().fit(log_of()).matrix()


def test_rows_of_a_part_stand_for_the_rows_of_the_log():
    log = log_of(4, share=np.array([0.5, 0.25, 1.0, 0.5]))  # users 0, 1, 2, 0
    by_user, by_item = counts(None, log)
    assert by_user.tolist() == [4.0, 4.0, 1.0]
    assert by_item.tolist() == [7.0, 2.0, 0.0, 0.0]
    assert row_counts(None, log).sum() == 9
