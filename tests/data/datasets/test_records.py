"""The nouns of data sets check themselves."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.datasets.records import Archive, Data, Dataset, Part, Scale, Shape
from openloop.errors import AlignmentError, InputError, PropensityError, UnknownIdError
from tests.facts import facts


def log(users=2, items=3):
    return Feedback.from_arrays([0, 1], [0, 2], [1.0, 2.0], users=users, items=items)


def test_a_data_set_says_what_it_holds():
    data = Data(name="x", log=log(), open_loop=log(), propensities=np.full((2, 3), 0.5))
    assert repr(data) == "Data('x', Feedback(2 of 2 users × 3 items), open_loop 2 rows, with propensities)"
    assert not data.propensities.flags.writeable


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"open_loop": log(users=3)}, AlignmentError, ("x", "log", "open_loop", "vocabularies")),
        ({"propensities": np.full((3, 2), 0.5)}, AlignmentError, ("x", "propensities", (2, 3), (3, 2))),
        ({"propensities": np.zeros((2, 3))}, PropensityError, ("x", "propensities", "6 of 6", 0)),
        (
            {"item_covariates": Covariates(values=np.eye(2), names=("a", "b"), ids=Vocabulary.range(2))},
            UnknownIdError, ("item covariates", 2, 3, "log.items"),
        ),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_the_log_are_refused(given, error, told):
    with pytest.raises(error, match=facts(*told)):
        Data(name="x", log=log(), **given)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Shape(users=290, items=300, rows=6960, open_loop=4640), "290 × 300; 6,960 + 4,640"),
        (Shape(users=943, items=1682, rows=100_000), "943 × 1,682; 100,000"),
        (Shape(version="many rows"), "many rows"),
    ],
)
def test_a_shape_in_words(shape, words):
    assert str(shape) == words


@pytest.mark.parametrize(
    ("scale", "told", "outside"),
    [
        (Scale(least=1, most=5, step=1), ("whole numbers", 1, 5), [True, True, False, True, False, True]),
        (Scale(least=0.5, most=5, step=0.5), (5, "steps", 0.5), [True, False, False, True, False, True]),
        (Scale(least=0), ("numbers", 0), [False] * 6),
    ],
)
def test_a_scale_knows_what_lies_outside(scale, told, outside):
    assert re.search(facts(*told), str(scale))
    assert scale.outside(np.array([0, 0.5, 1, 4.2, 5, 9], dtype=np.float32)).tolist() == outside


@pytest.mark.parametrize("given", [{}, {"archive": Archive(url="https://x/y.zip"), "apply": "ask"}])
def test_a_data_set_is_either_downloaded_or_asked_for(given):
    with pytest.raises(InputError, match=facts("'x'", "archive", "apply")):
        Dataset(
            name="x", title="", home="", terms="", parts=(Part(role="a", patterns=("a",)),), shapes=(Shape(),), **given
        )
