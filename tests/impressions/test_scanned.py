"""Impressions that are scanned give what rows in memory give, to the bit in any order and blocks; and are checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.blocks.store import Budget
from openloop.errors import DuplicateError, EmptyError, InputError, PredictionError, PropensityError, RatingError
from openloop.impressions import source
from tests.click_cases import ALL, apart, cut, log_of, randomised, taken, world
from tests.engines import EAGER, converter
from tests.facts import facts

EXPOSURE = ["x1", "x2", "x3"]
CASES = ("full", "other log", "propensity", "exposure", "shown", "gapped", "apart", "no users", "known")


def framed(log, seed=0):
    """The rows of a log in any order."""
    table = {"sku": log.items.ids[log.item], "pos": log.position, "click": log.reward}
    table |= {} if log.requests is None else {"rid": log.requests.ids[log.request]}
    table |= {} if log.users is None else {"uid": log.users.ids[log.user[log.request]]}
    table |= {name: getattr(log, name) for name in ("propensity", "prefix") if getattr(log, name) is not None}
    for name in ("slate", "shuffled", "pool"):
        if getattr(log, name) is not None:
            table[name] = getattr(log, name)[log.request]
    if log.exposure is not None:
        table |= dict(zip(EXPOSURE, log.exposure.T, strict=True))
    return pl.DataFrame(table).sample(fraction=1, shuffle=True, seed=seed)


def columns(frame):
    names = {"position": "pos", "reward": "click", "item": "sku"}
    names |= {role: name if name in frame.columns else False for role, name in (("request", "rid"), ("user", "uid"))}
    names |= {name: name for name in ("propensity", "prefix", "slate", "shuffled", "pool") if name in frame.columns}
    return names | ({"exposure": EXPOSURE} if "x1" in frame.columns else {})


def bare(log, *names):
    return replace(log, **dict.fromkeys(names))


def lists_of_requests(log):
    of_users = pl.DataFrame({"user": log.users.ids[log.user], "request": log.requests.ids})
    return {name: of_users.join(table, on="user").drop("user") for name, table in world().ranks(log).items()}


def case(name):
    """A log, rankers, an examination and options."""
    log, options = cut(log_of(users=100)), {"metrics": ["clicks", "ctr", "dcg"], "estimators": ALL}
    exam, models = randomised(log), world().ranks(log)
    if name == "other log":
        exam = replace(exam, fingerprint_="another log")
    elif name == "propensity":
        log = bare(log, "exposure")
        models = lists_of_requests(log)
    elif name == "exposure":
        log = replace(log, propensity=None, slate=None)  # both follow
    elif name == "shown":
        log = replace(bare(log, "propensity", "exposure", "prefix", "slate"), candidates="shown")
    elif name == "gapped":
        log = taken(log_of(users=100), np.arange(3 * log.n_requests) % 7 != 1, candidates="shown")
    elif name == "apart":
        log = apart(log_of(users=100), [0.9, 0.5, 0.7])
    elif name == "no users":
        models, log, exam = lists_of_requests(log), bare(log, "user", "users"), world().theta
    elif name == "known":
        models, log = dict(world().rankers), replace(log, candidates="shown")
        rewards = np.linspace(0, 1, 6)
        robust = [ol.dr(rewards, kind=kind) for kind in ("rips", "iips", "pbm")]
        options |= {"estimators": [name for name in ALL if not name.endswith("_dr")] + robust}
    return log, models, exam, options


def scanned(log, models, exam, options, into=lambda frame: frame, seed=0):
    models = {name: into(model) if isinstance(model, pl.DataFrame) else model for name, model in models.items()}
    return ol.evaluate(models, opened(log, framed(log, seed), into), exam, **options)


def opened(log, frame, into=lambda frame: frame):
    return ol.scan(into(frame), **columns(frame), candidates=log.candidates)


def assert_same(found, wanted):
    assert set(found.estimates) == set(wanted.estimates)
    assert (found.skipped, set(found.notes)) == (wanted.skipped, set(wanted.notes))
    for key, a in found.estimates.items():
        b = wanted[key]
        np.testing.assert_allclose([a.value, a.stderr], [b.value, b.stderr], rtol=1e-10, err_msg=str(key))
        assert (a.estimand, a.p_taken, a.n_users) == (b.estimand, b.p_taken, b.n_users)
        for name in ("reach", "effective_clicks", "effective_rows", "matches"):
            assert getattr(a.diagnostics, name) == pytest.approx(getattr(b.diagnostics, name)), key


@pytest.mark.parametrize("name", CASES)
def test_scanned_logs_are_as_those_in_memory(name):
    log, models, exam, options = case(name)
    assert_same(scanned(log, models, exam, options), ol.evaluate(models, log, exam, **options))


@pytest.mark.parametrize("engine", EAGER)
def test_every_engine_gives_the_same_bits(engine):
    log, models, exam, options = case("full")
    found, wanted = scanned(log, models, exam, options, converter(engine)), scanned(log, models, exam, options)
    assert bits(found) == bits(wanted)


@pytest.mark.slow
def test_spark_gives_the_same_bits(spark):
    log, models, exam, options = case("full")
    found = scanned(log, models, exam, options, converter("spark", spark))
    assert bits(found) == bits(scanned(log, models, exam, options))


def bits(found):
    return {key: (e.value, e.stderr, e.deviations.tobytes()) for key, e in found.estimates.items()}


@pytest.mark.parametrize("name", ["full", "gapped", "no users", "apart"])
def test_blocks_and_the_order_of_rows_change_no_bit(name, monkeypatch):
    log, models, exam, options = case(name)
    wanted = scanned(log, models, exam, options)
    for blocks in (1, 16, 256):
        width = 256 // blocks
        monkeypatch.setattr(source, "bounds", lambda _, w=width: [(first, first + w) for first in range(0, 256, w)])
        assert bits(scanned(log, models, exam, options, seed=blocks)) == bits(wanted)


def test_rows_beyond_the_budget_of_memory_go_to_disk_and_give_the_same_bits(monkeypatch):
    log, models, exam, options = case("full")
    wanted = scanned(log, models, exam, options)
    monkeypatch.setattr(source, "Budget", lambda: Budget(0))
    assert bits(scanned(log, models, exam, options)) == bits(wanted)
    with pytest.raises(PredictionError, match=facts("'b'", "no list")):
        scanned(log, models | {"b": models["b"].head(6)}, exam, options)


def test_ids_of_text_are_ids():
    log, models, exam, options = case("full")
    names = ol.Vocabulary.of([f"u{user:020d}" for user in log.users.ids])
    named = {
        name: table.with_columns(user=pl.format("u{}", pl.col("user").cast(pl.String).str.zfill(20)))
        for name, table in models.items()
    }
    wanted = ol.evaluate(models, log, exam, **options)
    assert_same(scanned(replace(log, users=names), named, exam, options), wanted)


def test_a_column_of_ranks_is_a_ranker():
    log, _, exam, options = case("full")
    frame = framed(log).with_columns(placed=pl.col("pos"))
    found = ol.evaluate({"as shown": "placed"}, opened(log, frame), exam, **options)
    assert_same(found, ol.evaluate({"as shown": log.position}, log, exam, **options))
    with pytest.raises(PredictionError, match=facts("'as shown'", "column")):
        ol.evaluate({"as shown": "placed"}, log, exam, **options)
    with pytest.raises(PredictionError, match=facts("'as shown'", "column")):
        ol.evaluate({"as shown": log.position}, opened(log, frame), exam, **options)


def test_lists_of_users_and_of_requests_together():
    log, models, exam, options = case("full")
    mixed = {"a": models["a"], "b": lists_of_requests(log)["b"]}
    assert_same(scanned(log, mixed, exam, options), ol.evaluate(models, log, exam, **options))


# -- by hand -------------------------------------------------------------------------------------------------

LOG = {
    "request": [1, 1, 2, 2], "user": [7, 7, 8, 8], "item": [10, 11, 10, 12], "pos": [1, 2, 1, 2],
    "click": [0.0, 1, 1, 0], "p": [0.5, 0.5, 0.5, 0.5],
}  # fmt: skip
LISTS = {"user": [7, 7, 8, 8], "item": [10, 11, 10, 12], "rank": [1, 2, 1, 2]}


def evaluate(log=None, lists=None, **named):
    chosen = {"position": "pos", "reward": "click", "propensity": "p"} | named
    scanned_log = ol.scan(pl.DataFrame(LOG | (log or {})), **chosen)
    return ol.evaluate({"a": pl.DataFrame(LISTS | (lists or {}))}, scanned_log, estimators=["iips"])


def test_values_by_hand():
    assert evaluate()["a", "clicks", "iips"].value == pytest.approx(2.0)  # 2 clicks of weight 2 in 2 requests
    assert evaluate(lists={"rank": [2, 1, 1, 2]})["a", "clicks", "iips"].value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("log", "error", "told"),
    [
        ({"pos": [1, 2, 0, 2]}, InputError, ("position", "1 of 4")),
        ({"pos": [1, 1, 1, 2]}, DuplicateError, ("position", "1 times")),
        ({"click": [0.0, 1, None, 0]}, RatingError, ("reward", "1 of 4")),
        ({"click": [0.0, 1, -1, 0]}, RatingError, ("reward", "1 of 4")),
        ({"p": [0.5, 0.5, 0, 2]}, PropensityError, ("propensity", "2 of 4")),
        ({"user": [7, 9, 8, 8]}, InputError, ("request", "user")),
        ({"item": [10, None, 10, 12]}, InputError, ("item", "1 of 4")),
    ],
    ids=["position", "twice", "missing", "negative", "propensity", "users", "item"],
)
def test_what_is_no_log(log, error, told):
    with pytest.raises(error, match=facts(*told)):
        evaluate(log)


@pytest.mark.parametrize("other", range(9, 30))
def test_a_request_has_one_user_in_whichever_bucket(other):
    with pytest.raises(InputError, match=facts("request", "user")):
        evaluate({"user": [7, other, 8, 8]})


def test_what_a_log_must_have():
    with pytest.raises(PredictionError, match=facts("'a'", "users", "none")):
        evaluate(user=False)
    with pytest.raises(InputError, match=facts("exposure", 1, 2)):
        evaluate(exposure=["p"], propensity=None)
    with pytest.raises(InputError, match=facts("candidates", "positions")):
        ol.read(pl.DataFrame(LOG), candidates="shown")
    with pytest.raises(EmptyError, match=facts("no rows")):
        ol.evaluate({"a": pl.DataFrame(LISTS)}, ol.scan(pl.DataFrame(LOG).head(0), position="pos", reward="click"))
