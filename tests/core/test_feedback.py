"""Feedback sorts, checks and remembers."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    AlignmentError,
    DuplicateError,
    EmptyError,
    InputError,
    PropensityError,
    RatingError,
    UnknownIdError,
)
from tests.facts import facts


def three(**changes):
    """Cells (0, 1), (0, 3), (2, 0) of a 3 × 4 grid."""
    columns = {"user": [0, 0, 2], "item": [1, 3, 0], "rating": [5, 1, 3]}
    return Feedback(**({"users": Vocabulary.range(3), "items": Vocabulary.range(4)} | columns | changes))


def test_from_arrays_sorts_every_column_and_remembers_the_rows():
    log = Feedback.from_arrays(
        [2, 0, 0], [0, 3, 1], [3, 1, 5], users=3, items=4, propensity=[0.3, 0.1, 0.5], time=[30, 10, 50]
    )
    assert log.cell.tolist() == [1, 3, 8]
    assert log.rating.tolist() == [5, 1, 3]
    assert log.propensity.tolist() == [0.5, 0.1, 0.3]
    assert log.time.tolist() == [50, 10, 30]
    assert log.row.tolist() == [2, 1, 0]
    assert log.align([30, 10, 50]).tolist() == log.time.tolist()


def test_the_population_may_be_larger_than_what_was_observed():
    log = three()
    assert (log.n_users, log.n_items, len(log)) == (3, 4, 3)
    assert log.user_ptr.tolist() == [0, 2, 2, 3]
    assert repr(log) == "Feedback(3 of 3 users × 4 items)"


def test_a_part_keeps_its_rows_population_and_place_in_the_input():
    log = Feedback.from_arrays([2, 0, 0], [0, 3, 1], [3, 1, 5], users=3, items=4)
    part = log.take(log.rating > 2, share=np.full(2, 0.5), origin=log.fingerprint)
    assert part.rating.tolist() == [5, 3]
    assert (part.n_users, part.n_items) == (3, 4)
    assert part.align(["x", "y", "z"]).tolist() == ["z", "x"]  # the input still had three rows
    assert part.share.tolist() == [0.5, 0.5]


def test_the_fingerprint_is_that_of_the_cells():
    log = three()
    assert log.fingerprint == three(rating=[1, 1, 1]).fingerprint
    assert log.fingerprint != three(item=[1, 2, 0]).fingerprint
    assert log.fingerprint != three(items=Vocabulary.range(5)).fingerprint


@pytest.mark.parametrize(
    ("changes", "error", "refusal"),
    [
        pytest.param({"user": [], "item": [], "rating": []}, EmptyError, facts("Feedback", "rows"), id="no rows"),
        pytest.param({"rating": [5, 1]}, AlignmentError, facts("rating", (2,), (3,)), id="short rating"),
        pytest.param({"propensity": [0.5]}, AlignmentError, facts("propensity", (1,), (3,)), id="short propensity"),
        pytest.param({"user": [0, 0, 3]}, UnknownIdError, facts("user codes", 2, 3), id="user code too large"),
        pytest.param({"item": [-1, 3, 0]}, UnknownIdError, facts("item codes", -1, 3), id="item code too small"),
        pytest.param({"user": [0, 2, 0]}, InputError, facts("sorted", "Feedback.from_arrays"), id="unsorted"),
        pytest.param(
            {"user": [0, 0, 0], "item": [1, 1, 3]}, DuplicateError, facts("user", "item", 0, 1), id="repeated cell"
        ),
        pytest.param({"rating": [5, np.nan, 3]}, RatingError, facts(1, "ratings", "row 2"), id="rating nan"),
        pytest.param({"rating": [5, np.inf, 3]}, RatingError, facts(1, "ratings", "row 2"), id="rating inf"),
        pytest.param(
            {"propensity": [0.5, 0, 1]},
            PropensityError,
            facts("Feedback.propensity", "1 of 3", "are 0"),
            id="propensity 0",
        ),
        pytest.param(
            {"propensity": [0.5, 1.5, 1]},
            PropensityError,
            facts("Feedback.propensity", "1 of 3", "(0, 1]", 1.5),
            id="propensity above 1",
        ),
        pytest.param(
            {"propensity": [0.5, np.nan, 1]},
            PropensityError,
            facts("Feedback.propensity", "1 of 3", "(0, 1]", np.nan),
            id="propensity nan",
        ),
        pytest.param({"weight": [1, -1, 1]}, InputError, facts("weight", -1.0), id="negative weight"),
        pytest.param({"share": np.array([0.5, 0, 1])}, InputError, facts("share", "(0, 1]", 0.0), id="share 0"),
    ],
)
def test_what_is_not_a_log_is_refused(changes, error, refusal):
    with pytest.raises(error, match=refusal):
        three(**changes)


@pytest.mark.parametrize("codes", [[0.5, 0, 2], [0, 0, 2**32 + 2], ["0", "0", "2"]])
def test_codes_must_be_whole_numbers_of_the_grid(codes):
    with pytest.raises(InputError, match="user"):
        three(user=np.array(codes))


def test_an_array_of_another_length_does_not_align():
    with pytest.raises(AlignmentError, match=facts("align", 3, (2,))):
        three().align([1, 2])
