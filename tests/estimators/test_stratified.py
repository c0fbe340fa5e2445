"""Strata: known answers, edges, shares, empty strata, and what the influence includes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.core.moments import Moments
from openloop.data.simulate import World
from openloop.estimators.edges import edges
from openloop.estimators.stratified import stratified
from openloop.metrics.naming import metric
from tests.examples import METRICS, same, small_world
from tests.facts import facts

# -- known answers -------------------------------------------------------------------------------------------


def treatment(*strata):
    """The moments of patients, one row each: (recovered, treated) by stratum."""
    rows = [(s, j < recovered) for s, (recovered, treated) in enumerate(strata) for j in range(treated)]
    n, gain = np.zeros((2, len(rows), len(strata)))
    for u, (s, well) in enumerate(rows):
        n[u, s], gain[u, s] = 1, well
    return Moments(metric=metric("accuracy"), sums={"n": n, "gain": gain}, cells=np.ones(len(rows)), edges=(0.5,))


def test_kidney_stones():
    # Jadidinejad et al. 2021, Table 1a and Eq. 5: small and large stones, shares pooled over both treatments.
    a, b = treatment((81, 87), (192, 263)), treatment((234, 270), (55, 80))
    pooled = [87 + 270, 263 + 80]
    assert stratified(a, share=pooled).value == pytest.approx(0.8325, abs=5e-5)
    assert stratified(b, share=pooled).value == pytest.approx(0.7789, abs=5e-5)
    # The paradox: without strata B looks better.
    assert (81 + 192) / 350 < (234 + 55) / 350


# -- shares --------------------------------------------------------------------------------------------------

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"], "b": WORLD.predictions["b"]}
DELTA = np.abs(LOG.rating - MODELS["a"][LOG.user, LOG.item])


def in_strata(p, n=3):
    at = edges(LOG.propensity, n)
    return np.searchsorted(at, p)


def evaluated(estimator, p=None, name="mae", **options):
    result = ol.evaluate({"a": MODELS["a"]}, LOG, p, metrics=[name], estimators=[estimator], **options)
    return result["a", name, estimator]


def test_catalogue_shares_come_from_the_grid_where_it_is_known():
    s, grid = in_strata(LOG.propensity), in_strata(WORLD.propensities)
    shares = np.bincount(grid.ravel()) / grid.size
    means = np.bincount(s, DELTA) / np.bincount(s)
    found = evaluated("stratified@3", WORLD.propensities)
    same(found.value, shares @ means)
    same(found.diagnostics.shares, shares)
    g = shares[s] / np.bincount(s)[s] * (DELTA - means[s])  # linearised
    same(found.cell_variance, ((1 - LOG.propensity) * g**2).sum())
    # Over users the shares are random too: each user brings its own cells.
    cells = np.array([np.bincount(row, minlength=3) for row in grid])  # (U, S)
    per_user = np.bincount(LOG.user, g, minlength=30) + (cells @ means - 12 * found.value) / 360
    same(found.influence, 30 * (per_user - per_user.mean()))


def test_catalogue_shares_are_estimated_by_the_weights_where_it_is_not():
    s, w = in_strata(LOG.propensity), 1 / LOG.propensity
    W, n = np.bincount(s, w), np.bincount(s)
    means = np.bincount(s, DELTA) / n
    theta = W @ means / W.sum()
    found = evaluated("stratified@3")
    same(found.value, theta)
    same(found.diagnostics.shares, W / W.sum())
    g = (W[s] / n[s] * (DELTA - means[s]) + w * (means[s] - theta)) / W.sum()  # linearised, shares included
    same(found.cell_variance, ((1 - LOG.propensity) * g**2).sum())
    per_user = np.bincount(LOG.user, g, minlength=30)
    same(found.influence, 30 * (per_user - per_user.mean()))


def test_observed_shares_of_a_cell_metric_are_naive_again_and_say_so():
    found = evaluated("stratified@3:observed")
    plain = evaluated("naive")
    same(found.value, plain.value)
    same(found.influence, plain.influence)
    same(found.cell_variance, plain.cell_variance)
    assert any("naive" in flag for flag in found.diagnostics.flags)


def test_strata_that_are_the_levels_of_p_make_estimated_shares_snips():
    levels = np.array([0.1, 0.3, 0.8])
    p = levels[np.random.default_rng(0).integers(3, size=len(LOG))]
    one, other = evaluated("stratified", p), evaluated("snips", p)
    same(one.value, other.value)
    same(one.influence, other.influence)
    same(one.cell_variance, other.cell_variance)


@pytest.mark.parametrize("name", METRICS)
def test_one_stratum_is_naive(name):
    share = ":observed" if metric(name).pooled else ""  # else it is the mean over relevant rows, not over users
    one, plain = evaluated(f"stratified@1{share}", name=name), evaluated("naive", name=name)
    same(one.value, plain.value)
    same(one.influence, plain.influence, atol=1e-9)


# -- user metrics: shares of relevant cells ------------------------------------------------------------------


def ranked_hits(k=3):
    scores = MODELS["a"]
    return (scores[LOG.user] > scores[LOG.user, LOG.item][:, None]).sum(axis=1) < k


@pytest.mark.parametrize("p", [None, WORLD.propensities])
def test_a_pooled_metric_has_the_shares_of_relevant_cells(p):
    # θ = Σ_s W_s/W · h_s/n_s over relevant rows; a known grid says nothing of which cells are relevant.
    liked = LOG.rating >= 4
    s, w, hit = in_strata(LOG.propensity)[liked], 1 / LOG.propensity[liked], ranked_hits()[liked]
    W, n = np.bincount(s, w), np.bincount(s)
    means = np.bincount(s, hit) / n
    theta = W @ means / W.sum()
    found = evaluated("stratified@3", p, name="recall@3")
    same(found.value, theta)
    same(found.diagnostics.shares, W / W.sum())
    assert found.estimand == "per relevant item"
    g = (W[s] / n[s] * (hit - means[s]) + w * (means[s] - theta)) / W.sum()  # linearised, shares included
    per_user = np.bincount(LOG.user[liked], g, minlength=30)
    same(found.influence, 30 * (per_user - per_user.mean()))


# -- coarse strata -------------------------------------------------------------------------------------------


def spanning(share, factor):
    """A log of which `share` of the population lies in a stratum where p spans a factor, by 2 strata of width."""
    low = np.repeat([0.01, 0.01 * factor], 100)
    others = round((1 / low).sum() * (1 - share) / share * 0.5)
    p = np.concatenate([low, np.full(others, 0.5)])
    user = np.arange(len(p)) % 50
    return Feedback.from_arrays(user, np.arange(len(p)), np.full(len(p), 3.0), users=50, items=len(p), propensity=p)


@pytest.mark.parametrize(("share", "factor", "flagged"), [(0.3, 3.1, True), (0.3, 2.9, False), (0.2, 3.1, False)])
def test_coarse_strata_are_flagged(share, factor, flagged):
    log = spanning(share, factor)
    guess = np.full((log.n_users, log.n_items), 2.0)
    result = ol.evaluate({"a": guess}, log, metrics=["mae"], estimators=["stratified@2:width", "stratified@2:observed"])
    flags = result["a", "mae", "stratified@2:width"].diagnostics.flags
    assert any(re.search(facts("coarse", f"{share:.0%}", 3), flag) for flag in flags) == flagged
    assert not any("coarse" in flag for flag in result["a", "mae", "stratified@2:observed"].diagnostics.flags)


def test_an_empty_stratum_is_named_and_its_share_spread():
    m = treatment((8, 10), (0, 0), (3, 10))
    found = stratified(m, share=[0.5, 0.2, 0.3])
    same(found.value, (0.5 * 0.8 + 0.3 * 0.3) / 0.8)
    assert re.search(facts("stratum", "2 of 3", "20.0%"), found.diagnostics.flags[-1])
    full = stratified(treatment((8, 10), (3, 10)), share=[0.5, 0.3])
    same(found.influence, full.influence)


# -- simulation with known truth -----------------------------------------------------------------------------

SHIFT = np.random.default_rng(0).normal(
    0, 1, 120
)  # of the log odds of being seen, by item; what is seen is also easier
DRAWS = 60
FORMS = ("stratified", "stratified@5:count", "stratified@10:width:observed")


def drawn(rng):
    """300 users like all others: their ratings, chances of being seen, predictions of ratings and scores to rank by."""
    p = 1 / (1 + np.exp(3 - SHIFT - rng.normal(0, 0.5, (300, 1))))
    Y = np.where(rng.random(p.shape) < 1 / (1 + np.exp(1 - 0.5 * SHIFT)), 5, 2).astype(np.float32)
    error = np.abs(rng.normal(0, 1, p.shape)) * np.exp(-0.35 * SHIFT)
    scores = 0.7 * SHIFT + rng.normal(0, 1, p.shape)
    return World(ratings=Y, propensities=p, predictions={"mae": Y - error, "recall@10": scores})


def true_values(world):
    scores = world.predictions["recall@10"]
    top = scores >= np.sort(scores, axis=1)[:, [-10]]
    return {
        "mae": np.abs(world.ratings - world.predictions["mae"]).mean(),
        "recall@10": top[world.ratings >= 4].mean(),  # per relevant item
    }


@pytest.fixture(scope="module")
def simulated():
    """Relative bias and coverage by metric and estimator, over users."""
    rng = np.random.default_rng(1)
    many = [true_values(drawn(rng)) for _ in range(DRAWS)]
    truth = {name: float(np.mean([values[name] for values in many])) for name in many[0]}
    found = {(name, form): [] for name in truth for form in FORMS}
    for _ in range(DRAWS):
        world = drawn(rng)
        result = ol.evaluate(world.predictions, world.observe(rng), metrics=[*truth], estimators=FORMS, pairs=())
        for (name, form), values in found.items():
            e = result[name, name, form]
            values.append((e.value / truth[name] - 1, truth[name] in e.interval()))
    return {key: np.mean(values, axis=0) for key, values in found.items()}


def test_strata_of_equal_mass_leave_little_bias(simulated):
    # Over 150 draws: −1.5 % with 89 % coverage, five strata of equal count −6.5 % with 19 %; the standard error of a
    # mean over 60 draws is 0.4 %, of a share 4 to 5 %.
    bias, covered = simulated["mae", "stratified"]
    assert -0.03 < bias < 0
    assert covered > 0.75
    bias, covered = simulated["mae", "stratified@5:count"]
    assert bias < -0.045
    assert covered < 0.4


def test_recall_is_that_of_relevant_items(simulated):
    # Over 150 draws: +2 % with 94 % coverage, the paper's form +51 %; the standard error of a mean is 1.3 %.
    bias, covered = simulated["recall@10", "stratified"]
    assert abs(bias) < 0.06
    assert covered > 0.85
    bias, covered = simulated["recall@10", "stratified@10:width:observed"]
    assert bias > 0.3
    assert covered == 0
