"""Logs for property tests: valid ones as a dict of columns, and the same with one thing wrong."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from openloop.errors import DuplicateError, InputError, PropensityError, RatingError

Columns = dict[str, list[Any]]

# Letters only at the edges: a delimited file does not keep the blanks around a field.
_WORDS = st.text(st.characters(codec="utf-8", categories=("L", "Nd", "P", "S")), min_size=1, max_size=6)

integer_ids = st.integers(-(2**63), 2**63 - 1)
small_ids = st.integers(0, 9)
text_ids = _WORDS
ratings = st.one_of(st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]), st.floats(-(2.0**100), 2.0**100, width=32))
propensities = st.floats(1e-100, 1)
times = st.integers(-(2**40), 2**40)


@st.composite
def logs(draw: st.DrawFn, *, ids: st.SearchStrategy[Any] | None = None, max_rows: int = 30) -> Columns:
    """Columns user, item, rating, propensity and time, no pair twice, rows in any order."""
    kind = ids if ids is not None else draw(st.sampled_from([integer_ids, small_ids, text_ids]))
    pairs = draw(st.lists(st.tuples(kind, kind), unique=True, min_size=1, max_size=max_rows))
    n = len(pairs)
    return {
        "user": [u for u, _ in pairs],
        "item": [i for _, i in pairs],
        "rating": draw(st.lists(ratings, min_size=n, max_size=n)),
        "propensity": draw(st.lists(propensities, min_size=n, max_size=n)),
        "time": draw(st.lists(times, min_size=n, max_size=n)),
    }


@st.composite
def invalid_logs(draw: st.DrawFn) -> tuple[Columns, type[InputError], int]:
    """A log with one broken row, the error it must give, and that row's position."""
    log = draw(logs(ids=small_ids))
    row = draw(st.integers(0, len(log["user"]) - 1))
    column, value, error = draw(st.sampled_from(_FAULTS))
    if column == "pair":
        for values in log.values():
            values.append(values[row])
    else:
        log[column][row] = value
    return log, error, row


_FAULTS: list[tuple[str, Any, type[InputError]]] = [
    ("pair", None, DuplicateError),
    ("user", None, InputError),
    ("item", None, InputError),
    ("rating", None, RatingError),
    ("rating", math.nan, RatingError),
    ("rating", math.inf, RatingError),
    ("rating", 1e300, RatingError),
    ("propensity", None, PropensityError),
    ("propensity", 0.0, PropensityError),
    ("propensity", 1e-200, PropensityError),
    ("propensity", -0.1, PropensityError),
    ("propensity", 1.5, PropensityError),
    ("time", None, InputError),
]
