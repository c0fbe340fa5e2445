"""Facts about a frame are the same on every engine, and those of the arrays."""

from __future__ import annotations

from itertools import product

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.core.weights import WeightSummary
from openloop.estimators import edges
from openloop.sources.frames import facts as frame_facts
from openloop.sources.frames.collecting import Fact
from openloop.sources.frames.facts import FrameLadder
from openloop.support.frames import absent, rows
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
    assert rows(frame) == 3
    assert frame_facts.count(frame, absent(nw.col("x"))) == 1


@pytest.mark.parametrize("engine", EAGER)
def test_the_weights_are_summed_as_in_arrays(engine):
    w = 1 / np.random.default_rng(0).uniform(1e-3, 1, 500)
    found = frame_facts.weight_summary(
        Fact(lambda: frame_facts.weight_query(opened(pl.DataFrame({"w": w}), engine), "w"))
    )
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
            FrameLadder(opened(pl.DataFrame({"p": p}), engine)).edges(strata, bins),
            edges.edges(p, strata, bins),
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=f"{strata} strata, {bins}, {distinct} distinct")


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("kind", ["two", "seven", "many", "equal masses", "one octave", "nearly one value"])
def test_edges_of_equal_mass_are_those_of_arrays_to_the_last_bit(engine, kind):
    rng = np.random.default_rng(3)
    p = {
        "two": rng.choice([0.2, 0.5], 300),
        "seven": rng.choice(rng.uniform(0.01, 1, 7), 500),
        "many": rng.uniform(0.001, 1, 3000),
        "equal masses": np.repeat([0.1, 0.2, 0.3, 0.4, 0.5], [100, 200, 300, 400, 500]),
        "one octave": rng.uniform(0.5, 1, 3000),
        "nearly one value": rng.uniform(0.3, 0.3001, 3000),
    }[kind]
    frame = opened(pl.DataFrame({"p": p}), engine)
    for strata in (1, 2, 5, 10):
        assert FrameLadder(frame).edges(strata, "mass") == edges.edges(p, strata), strata


@pytest.mark.parametrize("engine", EAGER)
def test_strata_know_their_rows_and_their_least_and_largest_propensities(engine):
    p = np.random.default_rng(0).uniform(0.01, 1, 700)
    asked = [(5, "mass"), (2, "width"), (4, "count")]
    ladder = FrameLadder(opened(pl.DataFrame({"p": p}), engine), asked)
    for strata, bins in asked:
        of = np.searchsorted(edges.edges(p, strata, bins), p, side="left")
        rows, limits = ladder.strata(strata, bins)
        assert rows == np.bincount(of).tolist()
        assert limits.tolist() == [[p[of == s].min(), p[of == s].max()] for s in range(of.max() + 1)]


def test_values_are_looked_up_once_for_all_strata_that_were_foreseen(monkeypatch):
    looked, plain = [], frame_facts.collected
    monkeypatch.setattr(frame_facts, "collected", lambda frame: looked.append(1) or plain(frame))
    frame = opened(pl.DataFrame({"p": np.random.default_rng(0).uniform(0.01, 1, 700)}), "polars")
    ladder = FrameLadder(frame, [(5, "mass"), (2, "width"), (4, "count")])
    for strata, bins in ((2, "width"), (5, "mass"), (4, "count"), (5, "mass")):
        ladder.edges(strata, bins)
    assert len(looked) == 1


@pytest.mark.parametrize("engine", EAGER)
def test_items_are_counted_in_each_stratum_of_several(engine):
    frame = opened(pl.DataFrame({"i": [0, 0, 1, 2, 2], "p": [0.1, 0.9, 0.1, 0.9, 0.9]}), engine)
    level = nw.when(nw.col("p") > 0.5).then(1.0).otherwise(0.0)
    assert frame_facts.items_within(frame, [(level, 2), (nw.lit(0.0), 1)]) == [[2, 2], [3]]
