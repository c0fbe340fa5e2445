"""Facts about a frame are the same on every engine, and those of the arrays."""

from __future__ import annotations

from itertools import product

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.core.weights import WeightSummary
from openloop.estimators import stratified
from openloop.sources.frames import facts as frame_facts
from tests.engines import EAGER, converter


def opened(frame, engine):
    native = converter(engine)(frame)
    return nw.from_native(pl.DataFrame(native).lazy() if engine == "pyarrow" else native)


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("kind", [pl.Int32, pl.Int64, pl.String])
def test_pairs_that_stand_twice_are_counted(engine, kind):
    for pairs, wanted in (([(1, 2), (2, 1)], 0), ([(1, 2), (2, 1), (1, 2)], 1), ([], 0)):
        frame = pl.DataFrame(pairs, schema=["u", "i"], orient="row", schema_overrides={"u": pl.Int64, "i": pl.Int64})
        frame = frame.with_columns(pl.all().cast(kind))
        assert frame_facts.repeats(opened(frame, engine)) == wanted, pairs


def test_large_and_negative_integers_do_not_collide():
    frame = pl.DataFrame({"u": [0, 1, -1], "i": [2**31, 0, 2**31]})
    assert frame_facts.repeats(nw.from_native(frame)) == 0


@pytest.mark.parametrize("engine", EAGER)
def test_rows_and_conditions_are_counted(engine):
    frame = opened(pl.DataFrame({"x": [1.0, None, 3.0]}), engine)
    assert frame_facts.rows(frame) == 3
    assert frame_facts.count(frame, frame_facts.absent(nw.col("x"))) == 1


@pytest.mark.parametrize("engine", EAGER)
def test_the_weights_are_summed_as_in_arrays(engine):
    w = 1 / np.random.default_rng(0).uniform(1e-3, 1, 500)
    found = frame_facts.weight_summary(opened(pl.DataFrame({"w": w}), engine))
    wanted = WeightSummary.of(w)
    np.testing.assert_array_equal(found.histogram, wanted.histogram)
    assert (found.n, found.largest) == (wanted.n, wanted.largest)
    np.testing.assert_allclose([found.total, found.squares], [wanted.total, wanted.squares], rtol=1e-12)


@pytest.mark.parametrize("engine", EAGER)
def test_the_edges_of_strata_are_those_of_arrays(engine):
    for distinct, bins, strata in product((2, 7, 400), ("count", "width"), (1, 3, 10)):
        rng = np.random.default_rng(distinct)
        p = rng.choice(rng.uniform(0.01, 1, distinct), 500)
        found, wanted = (
            frame_facts.edges(opened(pl.DataFrame({"p": p}), engine), strata, bins),
            stratified.edges(p, strata, bins),
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=f"{strata} strata, {bins}, {distinct} distinct")
