"""Estimators of your own: by law the library's where they are the same function, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError, NameFormatError, UndefinedError
from tests.examples import same, small_world
from tests.facts import facts

METRICS = ("mae", "rmse", "dcg@3", "rbp", "recall@3", "adg")


@ol.estimator("own_snips")
def own_snips(s):
    """Σwδ/Σw."""
    return s.wgain / s.weight


@ol.estimator("own_ips")
def own_ips(s):
    return s.wgain / s.cells


@ol.estimator("own_naive")
def own_naive(s):
    return s.gain / s.n


@ol.estimator("shrunk")
def shrunk(s):
    """snips, drawn towards the plain average by as much as 20 rows weigh."""
    return (s.wgain + 20 * s.gain / s.n) / (s.weight + 20)


TWINS = {"own_snips": "snips", "own_ips": "ips", "own_naive": "naive"}
ASKED = [own_snips, own_ips, own_naive, *TWINS.values()]


@pytest.fixture(scope="module")
def world():
    return small_world()


def assert_the_librarys(found):
    for own, theirs in TWINS.items():
        for metric in METRICS:
            pooled = metric in ("recall@3", "adg")
            if own == "own_ips" and pooled:
                assert {(metric, own), (metric, theirs)} <= set(found.skipped)
            elif not (own == "own_naive" and pooled):  # naive of a user metric is a mean over users
                assert_one(found, metric, own, theirs)


def assert_one(found, metric, own, theirs):
    for model in ("a", "b"):
        e, other = found[model, metric, own], found[model, metric, theirs]
        same([e.value, e.stderr, e.df, *e.interval()], [other.value, other.stderr, other.df, *other.interval()])
        same(e.influence, other.influence)
        assert e.diagnostics == other.diagnostics
        assert (e.cell_variance is None) == (other.cell_variance is None)
        if other.cell_variance is not None:
            same([*e.interval(over="cells")], [*other.interval(over="cells")])
    e, other = (found.difference("a", "b", metric=metric, estimator=name) for name in (own, theirs))
    same([e.value, e.stderr, *e.interval()], [other.value, other.stderr, *other.interval()])
    assert (e.cell_variance is None) == (other.cell_variance is None)
    same(e.cell_variance or 0.0, other.cell_variance or 0.0)


# -- by law --------------------------------------------------------------------------------------------------


def test_the_same_function_is_the_librarys_estimator(world):
    found = ol.evaluate(world.predictions, world.observe(3), metrics=METRICS, estimators=ASKED)
    assert_the_librarys(found)


def test_the_same_function_is_the_librarys_estimator_of_a_held_out_part(world):
    train, test = ol.split(world.observe(3), test=0.5, rng=0)
    found = ol.evaluate(world.predictions, test, metrics=METRICS, estimators=ASKED, exclude=train, threshold=4)
    assert_the_librarys(found)


def test_coverage_of_a_known_truth():
    """Users like these: the interval of a shrunk mean covers the truth about as often as it says."""
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(80):
        draw = small_world(users=60, items=12, seed=int(rng.integers(1 << 30)))
        found = ol.evaluate(draw.predictions, draw.observe(seed), metrics=["mae"], estimators=[own_snips])
        truth = ol.evaluate(draw.predictions, draw.everything(), metrics=["mae"], estimators=["naive"])
        covered += truth["a", "mae", "naive"].value in found["a", "mae", "own_snips"].interval()
    assert covered >= 72


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda s: abs(s.wgain / s.weight), ("complex step", "abs")),
        (lambda s: (s.wgain / s.weight).real, ("complex step", "np.real")),
        (lambda s: s.wgain / s.weight if s.weight > 10 else s.gain / s.n, ("arrays", "complex")),
        (lambda s: float(s.wgain) / s.weight, ("arrays", "complex")),
        (lambda _: 3.0, ("none of the totals",)),
        (lambda s: s.wgain, ("settle", "s.cells")),
        (lambda s: s.wgain / np.sqrt(s.weight), ("settle",)),
        (lambda s: np.sum(s.wgain / s.weight), ("element by element",)),
        (lambda s: s.wgain / s.weights, ("'weights'", "'weight'")),
        (lambda s: s.wgain / (s.weight - s.weight), ("finite",)),
        (lambda s: [s.wgain, s.weight], ("one finite real number",)),
        (lambda s, cap: s.wgain / cap, ("totals alone",)),
        (0.5, ("totals alone",)),
    ],
)  # fmt: skip
def test_a_function_without_a_derivative_or_that_is_no_mean_is_refused(function, says):
    with pytest.raises(InputError, match=facts("'mine'", *says)), np.errstate(all="ignore"):
        ol.estimator("mine")(function)


@pytest.mark.parametrize("name", ["snips", "naive", "snpbm", "lists"])
def test_a_name_of_the_library_is_taken(name):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", "of the library")):
        ol.estimator(name)


@pytest.mark.parametrize("name", ["", "Mine", "mine@3", "my own", 3, own_snips])
def test_a_name_has_a_form(name):
    with pytest.raises(NameFormatError, match="lower-case"):
        ol.estimator(name)


def test_a_scale_that_a_split_by_time_loses_is_refused(world):
    log = world.observe(3)
    part = log.take(np.arange(len(log)) % 2 == 0, share=None)
    found = ol.evaluate(world.predictions, part, metrics=["mae"], estimators=[own_snips, own_ips])
    assert ("mae", "own_ips") in found.skipped
    assert ("a", "mae", "own_snips") in found.estimates


@pytest.mark.parametrize("metric", ["ndcg", "map", "mrr", "hit@3", "auc"])
def test_metrics_that_are_no_sums_over_cells_are_refused(world, metric):
    with pytest.raises(UndefinedError, match=facts("own_snips", metric, "sums over cells")):
        ol.evaluate(world.predictions, world.observe(3), metrics=[metric], estimators=[own_snips])


def test_two_of_one_name_are_refused(world):
    other = ol.estimator("own_snips")(lambda s: s.gain / s.n)
    with pytest.raises(InputError, match="'own_snips'"):
        ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=[own_snips, other])


# -- no verdict rests on it ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lovers():
    world = ol.simulate.movie_lovers()
    return {name: world.predictions[name] for name in ("Y1", "Y2")}, world.observe(rng=0)


@pytest.mark.parametrize("own", [own_snips, own_naive, shrunk])
def test_alone_it_gives_no_verdict_where_snips_gives_one(lovers, own):
    models, log = lovers
    assert ol.audit(models, log, metrics=["mae"], estimators=["snips"]).verdict.level == "verdict"
    found = ol.audit(models, log, metrics=["mae"], estimators=[own])
    assert (found.verdict.level, found.verdict.winner, found.estimator) == ("none", None, own.name)
    assert "own-estimator" in {reason.code for reason in found.verdict.reasons}
    assert "estimand" not in {reason.code for reason in found.verdict.reasons}
    assert "library" in found.verdict.remedy or own is own_naive


def test_beside_the_librarys_the_verdict_is_theirs(lovers):
    models, log = lovers
    found = ol.audit(models, log, metrics=["mae"], estimators=[own_snips, "snips"])
    assert (found.verdict.winner, found.estimator) == ("Y1", "snips")
    assert ("mae", "own_snips") in found.contrasts
    assert "own_snips" not in str(found.verdict)  # nor does it testify


def test_neither_a_rehearsal_nor_a_plan_rests_on_it(lovers):
    models, log = lovers
    seen = ol.propensity.Logistic().fit(log)
    with pytest.raises(UndefinedError, match=facts("rehearse", "own_snips")):
        ol.audit(models, log, seen, metrics=["mae"], estimators=[own_snips], rehearse=2, check=False)
    found = ol.audit(models, log, metrics=["mae"], estimators=[own_snips, "snips"])
    with pytest.raises(UndefinedError, match=facts("plan", "own_snips", "by its own definition")):
        ol.plan(found.contrast("Y1", "Y2", metric="mae", estimator="own_snips"), impressions=20, power=0.8)
