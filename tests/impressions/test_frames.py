"""Impressions that stay in their engine give the numbers that rows in memory give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import InputError
from tests.click_cases import ALL, apart, cut, log_of, randomised, world
from tests.engines import EAGER, converter
from tests.facts import facts

EXPOSURE = ["x1", "x2", "x3"]
NAMES = {"position": "pos", "request": "rid", "reward": "click", "user": "uid", "item": "sku"}
LOGGED = {name: name for name in ("propensity", "prefix", "slate", "shuffled", "pool")} | {"exposure": EXPOSURE}


def framed(log):
    """The rows of a log in any order."""
    table = {"sku": log.items.ids[log.item], "pos": log.position, "click": log.reward, "rid": log.request}
    table |= {"uid": log.users.ids[log.user[log.request]]}
    table |= {name: getattr(log, name) for name in ("propensity", "prefix") if getattr(log, name) is not None}
    for name in ("slate", "shuffled", "pool"):
        if getattr(log, name) is not None:
            table[name] = getattr(log, name)[log.request]
    if log.exposure is not None:
        table |= dict(zip(EXPOSURE, log.exposure.T, strict=True))
    return pl.DataFrame(table).sample(fraction=1, shuffle=True, seed=0)


def lists(log):
    return {name: table.rename({"user": "uid", "item": "sku"}) for name, table in world().ranks(log).items()}


def evaluate(log, into=lambda frame: frame, exam=None, models=("a", "b"), **options):
    models = {name: into(lists(log)[name]) for name in models}
    return ol.evaluate(models, into(framed(log)), world().theta if exam is None else exam, **(NAMES | options))


def agree(found, wanted):
    kept = {key for key in wanted.estimates if not key[2].endswith("_dr")}
    assert set(found.estimates) == kept
    for key in kept:
        a, b = found[key], wanted[key]
        np.testing.assert_allclose([a.value, a.stderr], [b.value, b.stderr], rtol=1e-10, err_msg=str(key))
        assert (a.estimand, a.p_taken) == (b.estimand, b.p_taken)
        for name in ("reach", "effective_clicks", "effective_rows", "matches"):
            assert getattr(a.diagnostics, name) == pytest.approx(getattr(b.diagnostics, name)), key


@pytest.mark.parametrize("engine", EAGER)
def test_every_estimator_agrees_with_arrays_on_every_engine(engine):
    log = cut(log_of(users=100))
    exam = replace(randomised(log), fingerprint_="another log")
    options = {"metrics": ["clicks", "ctr", "dcg"], "estimators": ALL}
    agree(
        evaluate(log, converter(engine), exam, **LOGGED, **options),
        ol.evaluate(world().ranks(log), log, exam, **options),
    )


@pytest.mark.slow
def test_every_estimator_agrees_with_arrays_on_spark(spark):
    log = cut(log_of(users=60))
    options = {"estimators": ["rips", "sniips", "snpbm", "pi"]}
    wanted = ol.evaluate({"a": world().ranks(log)["a"]}, log, world().theta, **options)
    agree(evaluate(log, converter("spark", spark), models=["a"], **LOGGED, **options), wanted)


@pytest.mark.parametrize("engine", ["lazy", "duckdb"])
@pytest.mark.parametrize("case", ["propensity", "exposure", "shown", "apart"])
def test_every_kind_of_log_agrees(case, engine):
    log, options = log_of(users=100), {"estimators": ["iips", "sniips", "pbm", "snpbm", "sips"]}
    exam, names = replace(randomised(log), fingerprint_=""), dict(LOGGED)
    if case == "propensity":
        log, names = replace(log, exposure=None), names | {"exposure": None}
    elif case == "exposure":
        names["propensity"] = names["slate"] = None  # both follow
    elif case == "shown":
        bare = {"propensity": None, "exposure": None, "prefix": None, "slate": None}
        log, names = replace(log, **bare), names | bare
        options |= {"candidates": "shown", "metrics": ["clicks", "dcg"]}
    else:
        log = apart(log, [0.9, 0.5, 0.7])
        names = {"request": False, "propensity": "propensity", "exposure": EXPOSURE}
    wanted = ol.evaluate(world().ranks(log), log, exam, **options)
    found = evaluate(log, converter(engine), exam, **names, **options)
    agree(found, wanted)
    assert found.skipped.keys() == wanted.skipped.keys()


def test_lists_of_requests_and_logs_without_users():
    log = log_of(users=100)
    bare = replace(log, user=None, users=None)
    by_request = {
        name: pl.DataFrame({"uid": log.users.ids[log.user], "rid": np.arange(log.n_requests)})
        .join(table, on="uid")
        .drop("uid")
        for name, table in lists(log).items()
    }
    options = {"estimators": ["sniips", "snpbm"]}
    named = {name: table.rename({"rid": "request", "sku": "item"}) for name, table in by_request.items()}
    wanted = ol.evaluate(named, bare, world().theta, **options)
    given = NAMES | LOGGED | {"user": False}
    agree(ol.evaluate(by_request, framed(log), world().theta, **given, **options), wanted)


def test_above_a_set_number_of_users_rows_must_be_read():
    with pytest.raises(InputError, match=facts("max_users", 10, 100)):
        evaluate(log_of(users=100), estimators=["pbm"], max_users=10)


def test_doubly_robust_forms_need_rows_in_memory():
    found = evaluate(log_of(users=100), estimators=["iips", "iips_dr"], propensity="propensity")
    assert "ol.read" in found.skipped["clicks", "iips_dr"]
