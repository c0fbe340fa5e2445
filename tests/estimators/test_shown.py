"""Values of rankers: Open Bandit Pipeline's formulas, laws, truth of simulated worlds, θ's own error, and refusals."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

import openloop as ol
from openloop.core.impressions import Impressions
from openloop.errors import NameFormatError, UndefinedError
from openloop.estimators.shown import METHODS, reach, shown_method, shown_metric
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import ShownSource
from tests.click_cases import ALL, Fitted, apart, cut, log_of, randomised, world
from tests.examples import same
from tests.facts import facts


def evaluate(log, exam=None, models=None, estimators=ALL, **options):
    given = world().ranks(log) if models is None else models
    return ol.evaluate(given, log, world().theta if exam is None else exam, estimators=estimators, **options)


def moments(log, kind="pbm", exam=None, **options):
    asked = ShownQuestion(metrics="clicks", estimators="pbm", **options)
    theta = world().theta if exam is None else exam
    return ShownSource(world().ranks(log), log, theta, asked).moments("a", kind)


# -- by another program --------------------------------------------------------------------------------------


def test_values_are_those_of_open_bandit_pipeline():
    """SlateStandardIPS, SlateRewardInteractionIPS, SlateIndependentIPS, SelfNormalized…: reward·iw, over iw's mean."""
    log = log_of()
    ranks = world().ranks(log)["a"].sort("user", "item")["rank"].to_numpy().reshape(-1, 6)
    at = (ranks[log.user[log.request], log.item] == log.position).reshape(-1, 3).astype(float)
    prefix = np.cumprod(at, axis=1)
    iw = {
        "sips": np.repeat(prefix[:, -1:] / log.slate[:, None], 3, axis=1), "rips": prefix / log.prefix.reshape(-1, 3),
        "iips": at / log.propensity.reshape(-1, 3),
    }  # fmt: skip
    found, reward, n_slates = evaluate(log), log.reward.reshape(-1, 3), log.n_requests
    for name, w in iw.items():
        assert found["a", "clicks", name].value == pytest.approx((reward * w).sum() / n_slates, rel=1e-10)
        normalised = sum((reward[:, k] * w[:, k] / w[:, k].mean()).sum() for k in range(3)) / n_slates
        assert found["a", "clicks", f"sn{name}"].value == pytest.approx(normalised, rel=1e-10)


def test_the_slate_weight_is_that_of_the_pseudoinverse():
    """q_πᵀΓ⁺1_a with Γ = E[1_a 1_aᵀ] over all lists (Swaminathan et al. 2017), for every pool of up to five."""
    from itertools import permutations

    for m in range(1, 6):
        for K in range(1, m + 1):
            lists = np.array(list(permutations(range(m), K)))  # (L, K)
            one = np.zeros((len(lists), K, m))
            one[np.arange(len(lists))[:, None], np.arange(K), lists] = 1
            one = one.reshape(len(lists), -1)
            wanted = one[0] @ np.linalg.pinv(one.T @ one / len(lists), hermitian=True, rcond=1e-10) @ one.T  # (L,)
            log = Impressions.from_arrays(
                request=np.repeat(np.arange(len(lists)), K), position=np.tile(np.arange(1, K + 1), len(lists)),
                item=lists.ravel(), reward=np.zeros(lists.size), shuffled=np.full(lists.size, True),
                pool=np.full(lists.size, m), requests=ol.Vocabulary.range(len(lists)),
            )  # fmt: skip
            ranks = np.where(lists < K, lists + 1, 0).astype(np.int32).ravel()  # the model's list is 0, 1, …, K - 1
            source = ShownSource({"a": ranks}, log, None, ShownQuestion(estimators="pi"))
            same(source.moments("a", "pi").weight[:, 0], wanted, atol=1e-9)


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["snsips", "snrips", "sniips"])
def test_a_constant_reward_has_no_width(estimator):
    found = evaluate(replace(log_of(), reward=np.full(len(log_of()), 0.7)), estimators=[estimator])
    assert found["a", "clicks", estimator].value == pytest.approx(3 * 0.7)
    assert found["a", "clicks", estimator].stderr < 1e-12


def test_rewards_that_follow_examination_have_no_width_under_snpbm():
    log = log_of()
    found = evaluate(replace(log, reward=0.5 * world().theta[log.position - 1]), estimators=["snpbm"])
    assert found["a", "clicks", "snpbm"].value == pytest.approx(0.5 * world().theta.sum())
    assert found["a", "clicks", "snpbm"].stderr < 1e-12


def test_the_influence_is_that_of_the_definitions():
    log = log_of()
    m, U, N = moments(log, "iips"), log.n_clusters, log.n_requests
    plain, normalised = (METHODS[name].estimate(m) for name in ("iips", "sniips"))
    same(plain.influence, U * (m.wgain.sum(1) - plain.value * m.requests) / N)
    W, V = m.weight.sum(0), m.wgain.sum(0) / m.weight.sum(0)
    same(normalised.influence, (U * (m.wgain - V * m.weight) / W).sum(1))
    m, theta = moments(log), world().theta
    found, r = METHODS["snpbm"].estimate(m), m.wgain.sum() / (m.weight @ theta).sum()
    same(found.influence, U * theta.sum() * (m.wgain.sum(1) - r * m.weight @ theta) / (m.weight @ theta).sum())


def test_ctr_is_clicks_over_positions():
    found = evaluate(log_of(), metrics=["clicks", "ctr"])
    for name in ALL:
        assert found["a", "ctr", name].value == pytest.approx(found["a", "clicks", name].value / 3)
    cut_log = cut(log_of())
    found, size = evaluate(cut_log, metrics=["clicks", "ctr"]), len(cut_log) / cut_log.n_requests
    assert found["a", "ctr", "snpbm"].value == pytest.approx(found["a", "clicks", "snpbm"].value / size)


def test_the_scale_of_weights_does_not_matter_where_they_are_normalised():
    log = log_of()
    scaled = replace(log, **{x: getattr(log, x) / 2 for x in ("propensity", "exposure", "prefix", "slate")})
    a, b = evaluate(log), evaluate(scaled)
    for name in ("snsips", "snrips", "sniips"):
        same(a["a", "clicks", name].value, b["a", "clicks", name].value)
        same(a["a", "clicks", name].stderr, b["a", "clicks", name].stderr)


def test_an_exact_imputation_makes_doubly_robust_exact():
    log = log_of()
    q = np.random.default_rng(0).random(6)
    exact = replace(log, reward=world().theta[log.position - 1] * q[log.item])
    found = evaluate(exact, estimators=[ol.dr(q, kind=kind) for kind in ("iips", "pbm", "rips")])
    ranks = world().ranks(log)["a"].sort("user", "rank")["item"].to_numpy().reshape(-1, 6)[:, :3]
    wanted = (q[ranks] @ world().theta)[log.user].mean()
    for name in ("iips_dr", "pbm_dr"):
        assert found["a", "clicks", name].value == pytest.approx(wanted)
    assert abs(found["a", "clicks", "rips_dr"].value - wanted) < 4 * found["a", "clicks", "rips_dr"].stderr


def test_dcg_under_certain_examination_is_the_discounted_sum():
    """Everything shown, θ = 1 and nothing random: dcg is Σλ(σ)c per request."""
    log = replace(log_of(depth=6, logging="deterministic"), candidates="shown")
    found = evaluate(log, np.ones(6), metrics=["dcg"], estimators=["pbm"])
    order = world().ranks(log)["a"].sort("user", "item")["rank"].to_numpy().reshape(-1, 6)
    wanted = (log.reward / np.log2(1 + order[log.user[log.request], log.item])).sum() / log.n_requests
    assert found["a", "dcg", "pbm"].value == pytest.approx(wanted)
    assert "discounted" in found["a", "dcg", "pbm"].estimand


# -- by simulation -------------------------------------------------------------------------------------------


def near(estimate, truth, errors=4.0):
    assert abs(estimate.value - truth) < errors * estimate.stderr, (estimate, truth)


@pytest.mark.parametrize("model", ["pbm", "cascade"])
def test_values_are_true_where_the_assumption_holds(model):
    truth, log = world(model=model).truth("a"), log_of(1, model=model, users=4000)
    found = evaluate(log, models=world(model=model).ranks(log))
    right = ALL if model == "pbm" else ("sips", "snsips", "rips", "snrips", "rips_dr")
    for name in right:
        near(found["a", "clicks", name], truth)


def test_lists_of_different_length():
    """The model's list is cut where the request's is: its value is the mean of Σ_{k≤K_n}."""
    log = cut(log_of(2, users=4000))
    depth = log.position[log.request_ptr[1:] - 1]
    items = world().ranks(log)["a"].sort("user", "rank")["item"].to_numpy().reshape(-1, 6)[:, :3]
    q = np.take_along_axis(world().attraction(log.users.ids), items, axis=1) * world().theta  # (U, K)
    truth = (q[log.user] * (np.arange(3) < depth[:, None])).sum(1).mean()
    found = evaluate(log)
    for name in ALL:
        near(found["a", "clicks", name], truth)
    own = evaluate(replace(log, exposure=None), estimators=["pbm", "snpbm"])
    for name in ("pbm", "snpbm"):
        near(own["a", "clicks", name], truth)


@pytest.mark.parametrize("column", ["exposure", "propensity"])
def test_rows_without_requests(column):
    """Per impression, positions as often as they were shown: Σ_k (N_k/n)·θ_k·q of the model's item at k."""
    whole = log_of(3, users=6000)
    log = apart(whole, [0.9, 0.4, 0.6])
    log = log if column == "exposure" else replace(log, exposure=None)
    items = world().ranks(whole)["a"].sort("user", "rank")["item"].to_numpy().reshape(-1, 6)[:, :3]
    q = np.take_along_axis(world().attraction(whole.users.ids), items, axis=1) * world().theta  # (U, K)
    truth = q[log.user[log.request], log.position - 1].mean()
    found = evaluate(log, models=world().ranks(whole), estimators=["iips", "sniips", "pbm", "snpbm", "sips", "pi"])
    for name in ("iips", "sniips", "pbm", "snpbm"):
        near(found["a", "clicks", name], truth)
        assert found["a", "clicks", name].estimand == "expected clicks per impression"
    assert {name for _, name in found.skipped} == {"sips", "pi"}


def test_a_deterministic_log_that_shows_everything():
    log = log_of(4, logging="deterministic", depth=6, users=2000)
    deep = world(logging="deterministic", depth=6)
    found = evaluate(log, deep.theta, deep.ranks(log), estimators=["pbm", "snpbm"])
    near(found["a", "clicks", "pbm"], deep.truth("a"))
    same(found["a", "clicks", "snpbm"].value, found["a", "clicks", "pbm"].value)


# -- θ's own error -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pbm", "snpbm", "pbm_dr", "iips_dr"])
@pytest.mark.parametrize("column", ["exposure", "propensity"])
def test_slopes_are_what_a_change_of_theta_changes(name, column):
    """The effect of an error e of log θ_j alone, given as a covariance, is e·∂V/∂log θ_j."""
    log, theta = cut(log_of()), world().theta
    log = log if column == "exposure" else replace(log, exposure=None)
    q = np.full(6, 0.3)
    asked = {"estimators": [ol.dr(q, kind=name.removesuffix("_dr")) if name.endswith("_dr") else name]}
    for j in (1, 2):
        psi = np.zeros((2, 3))
        psi[:, j] = 1e-3, -1e-3
        effect = evaluate(log, Fitted(theta, psi), **asked)["a", "clicks", name].sample_effects
        step = np.exp(1e-5 * (np.arange(3) == j))
        up, down = (evaluate(log, t, **asked)["a", "clicks", name].value for t in (theta * step, theta / step))
        slope = (up - down) / 2e-5
        assert np.sqrt((effect**2).sum()) / 1e-3 == pytest.approx(abs(slope), rel=1e-5, abs=1e-8)


def test_theta_of_this_log_moves_with_its_users():
    log = log_of()
    exam = randomised(log)
    found = evaluate(log, exam, estimators=["pbm", "snpbm", "iips"])
    plain = evaluate(log, exam.theta_, estimators=["pbm", "snpbm", "iips"])
    for name in ("pbm", "snpbm"):
        with_error, without = found["a", "clicks", name], plain["a", "clicks", name]
        assert (with_error.p_taken, without.p_taken) == ("corrected", "known")
        same(with_error.value, without.value)
        assert len(with_error.sample_effects) == 0
        assert with_error.stderr != pytest.approx(without.stderr, rel=1e-3)
    assert found["a", "clicks", "iips"].p_taken == "known"
    other = evaluate(log, replace(exam, fingerprint_="another"), estimators=["snpbm"])["a", "clicks", "snpbm"]
    assert other.p_taken == "corrected"
    assert other.stderr**2 == pytest.approx(plain["a", "clicks", "snpbm"].stderr ** 2 + other.sample_variance)


def test_intervals_cover_with_theta_fitted_on_the_log():
    """θ taken as known, an interval falls out of the band that a coverage of 95 % has in so many logs."""
    least = binom.ppf(0.005, 60, 0.95) / 60
    deep = world(depth=6, logging="deterministic", shuffle=0.08, users=250, base=-0.5)
    truth, inside, known = deep.truth("a"), [], []
    for seed in range(60):
        log = replace(deep.observe(seed), propensity=None, exposure=None)
        exam = randomised(log)
        for kept, theta in ((inside, exam), (known, exam.theta_)):
            found = ol.evaluate({"a": deep.ranks(log)["a"]}, log, theta, estimators=["snpbm"])
            kept.append(truth in found["a", "clicks", "snpbm"].interval())
    assert np.mean(known) < least <= np.mean(inside)


# -- diagnostics and refusals --------------------------------------------------------------------------------


def test_diagnostics_say_what_an_estimate_rests_on():
    log = log_of()
    m, seen = moments(log, "iips"), evaluate(log)["a", "clicks", "iips"].diagnostics
    at = m.weight.sum(0)
    assert seen.matches == tuple(m.matches.astype(int))
    assert seen.effective_rows == pytest.approx(min(at**2 / m.squares))
    assert seen.effective_clicks == pytest.approx(m.wgain.sum() ** 2 / m.click_squares)
    assert seen.reach == pytest.approx((at * world().theta).sum() / (log.n_requests * world().theta.sum()))
    assert any("effective clicks" in flag for flag in evaluate(log)["a", "clicks", "sips"].diagnostics.flags)


def test_a_log_cut_below_the_models_list_is_refused():
    cut_world = world(items=10, depth=5, logging="deterministic")
    log = cut_world.observe(0)
    with pytest.raises(UndefinedError, match=facts("snpbm", "0.99", 'candidates="shown"')):
        ol.evaluate(cut_world.ranks(log), log, cut_world.theta, estimators=["snpbm"])
    shown = replace(log, candidates="shown")
    found = ol.evaluate(cut_world.ranks(log), shown, cut_world.theta, estimators=["snpbm"])
    assert found["a", "clicks", "snpbm"].diagnostics.reach == pytest.approx(1)
    assert "reordering what was shown" in found["a", "clicks", "snpbm"].estimand


def test_two_rankers_that_show_half_of_the_items_are_refused_too():
    two = world(items=10, depth=5, logging="two-rankers", users=1000)
    log = two.observe(0)
    m = ShownSource(two.ranks(log), log, two.theta, ShownQuestion()).moments("a", "pbm")
    assert reach(m)[0] < 0.95
    with pytest.raises(UndefinedError, match=facts("snpbm", "0.99")):
        ol.evaluate(two.ranks(log), log, two.theta, estimators=["snpbm"])


def test_certain_propensities_of_one_list_are_no_support():
    """π0 = 1 at the shown position says that other items have no chance there."""
    log = log_of(logging="deterministic", depth=6)
    log = replace(log, propensity=np.ones(len(log)))
    with pytest.raises(UndefinedError, match=facts("snpbm", "every position")):
        ol.evaluate(world(depth=6).ranks(log), log, world(depth=6).theta, estimators=["snpbm"])


def test_a_position_that_nothing_matches_is_refused():
    log = log_of()
    models = {"a": np.where(log.position == 2, 0, log.position).astype(np.int32)}
    with pytest.raises(UndefinedError, match=facts("sniips", "position 2", "'a'")):
        evaluate(log, models=models, estimators=["sniips"])
    with pytest.raises(UndefinedError, match=facts("pbm", "none")):
        evaluate(log, models={"a": np.zeros(len(log), np.int32)}, estimators=["pbm"])


def test_affine_is_right_under_trust_and_pbm_is_not():
    trust = world(model="trust", users=4000)
    log = trust.observe(5)
    a, b = trust.affine
    models, both = trust.ranks(log), SimpleNamespace(theta_=a, offset_=b)
    found = evaluate(log, both, models, ["affine"])["a", "clicks", "affine"]
    near(found, trust.truth("a"))
    assert evaluate(log, a, models, ["pbm"])["a", "clicks", "pbm"].value < found.value


@pytest.mark.parametrize(
    ("name", "parse"),
    [("snppm", shown_method), ("snips", shown_method), ("recall@5", shown_metric), ("click", shown_metric)],
)
def test_names_that_are_none_are_refused(name, parse):
    with pytest.raises(NameFormatError, match=facts(repr(name))):
        parse(name)


def test_names_parse_back():
    assert all(shown_method(name.upper()).name == name for name in METHODS)
    assert shown_method(METHODS["pi"]) is METHODS["pi"]
    assert shown_metric(" CTR ") == "ctr"
