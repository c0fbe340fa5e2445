"""The verdict says what the evidence supports, and why not where it supports nothing."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from openloop.audits.basis import Basis
from openloop.audits.contrasts import contrasts
from openloop.audits.open_loop import against_open_loop
from openloop.audits.paradox import Pair as Models
from openloop.audits.paradox import Part, find
from openloop.audits.results import StrataLine, StrataTable
from openloop.audits.verdict import decide
from openloop.core.comparison import PairSums
from tests.facts import facts
from tests.verdicts import METRIC, comparison, evidence, mean

RNG = np.random.default_rng(3)
USERS = RNG.normal(0.3, 0.1, 400)


def noisy(shift):
    return USERS + shift + RNG.normal(0, 0.02, 400)


CLEAR = {"mf": noisy(0.02), "bpr": noisy(0.0), "pop": noisy(-0.05)}
CLOSE = {"mf": noisy(0.0), "bpr": noisy(0.0), "pop": noisy(-0.05)}
TURNED = {"mf": CLEAR["bpr"], "bpr": CLEAR["mf"], "pop": CLEAR["pop"]}
PARTS = {pair: PairSums(parts=(0.0, 9.0, 4.0)) for pair in [("mf", "bpr"), ("mf", "pop"), ("bpr", "pop")]}


def test_the_model_that_beats_all_others_is_named_with_size_interval_and_p():
    found = decide(evidence(comparison(CLEAR, pairs=PARTS), best={(METRIC, "snips"): {"mf": 0.9985}}))
    assert found.winner == "mf"
    assert found.supported
    assert found.reasons == ()
    assert re.search(facts("mf beats", "bpr", "pop", "recall@10", "per relevant item"), found.headline)
    gap = (CLEAR["mf"] - CLEAR["bpr"]).mean()
    sure = ("95 %", "Holm p < 0.001", "1.5×", "2,400 of 4,000")
    assert re.search(facts("mf beats bpr", "snips", f"{gap:.3g}", *sure), found.sentences[0])
    assert "mf beats pop" in found.sentences[1]
    assert re.search(facts("A/B test", "mf", "bpr", "users per arm"), found.sentences[2])
    assert re.search(facts("as known", "propensity_model="), found.sentences[3])
    assert re.search(facts("99.9 %", "bootstrap"), found.sentences[4])


def test_models_that_cannot_be_told_apart_are_no_choice():
    found = decide(evidence(comparison(CLOSE)))
    assert not found.supported
    assert re.search(facts("cannot tell", "mf", "bpr", "recall@10", "per relevant item"), found.headline)
    assert any(re.search(facts("mf", "bpr", "beat pop"), s) for s in found.sentences)


def test_a_plain_average_is_no_ground_for_a_choice():
    found = decide(evidence(comparison(CLEAR, estimators=["naive"])))
    assert not found.supported
    assert re.search(facts("copy", "old system"), found.headline)


def test_estimators_that_significantly_disagree_are_no_choice():
    result = comparison(CLEAR, estimators=["snips", "clipped@5"], other={(METRIC, "clipped@5"): TURNED})
    found = decide(evidence(result))
    assert not found.supported
    assert re.search(facts("disagree", "snips", "mf", "bpr", "clipped@5"), found.headline)


def paradox(preferred):
    a, b = (0.3, 0.2) if preferred == "mf" else (0.2, 0.3)
    parts = (
        Part(name="Q1", a=a, b=b, rows=90, significant=True),
        Part(name="Q2", a=b, b=a, rows=10, significant=True),
    )
    whole = Part(name="naive", a=b, b=a, rows=100, significant=True)
    return find([Models(a="mf", b="bpr", aggregate=whole, strata=parts, metric=METRIC)])


def two_strata(first, share):
    """Q1 has nine tenths of the rows, and `first` values."""
    lines = (
        StrataLine(name="Q1", kind="stratum", rows=90, share=share, estimates={m: mean(v) for m, v in first.items()}),
        StrataLine(name="Q2", kind="stratum", rows=10, share=None if share is None else 1 - share,
             estimates={m: mean(v) for m, v in CLEAR.items()}),
    )  # fmt: skip
    return (StrataTable(metric=METRIC, by="propensity (2 of equal width)", lines=lines),)


@pytest.mark.parametrize(("share", "part"), [(0.8, "80 % of the population"), (None, "90 % of the rows")])
def test_most_of_the_population_that_prefers_the_other_model_is_no_choice(share, part):
    found = decide(evidence(comparison(CLEAR), strata=two_strata(TURNED, share)))
    assert not found.supported
    turned = ("Q1", "propensity (2 of equal width)", part, "bpr ahead", "mf")
    assert re.search(facts(*turned), found.headline)
    assert "paradox" not in found.headline
    told = decide(evidence(comparison(CLEAR), strata=two_strata(TURNED, share), paradoxes=paradox("bpr")))
    assert re.search(facts(*turned, "paradox"), told.headline)


def test_rows_that_are_many_only_because_they_are_likely_do_not_stand_against_the_winner():
    found = decide(evidence(comparison(CLEAR), paradoxes=paradox("bpr"), strata=two_strata(TURNED, 0.2)))
    assert found.winner == "mf"
    assert any("reversal" in s for s in found.sentences)  # but it is told


# -- what a verdict may not rest on --------------------------------------------------------------------------


def test_the_plain_average_under_another_name_is_no_ground_for_a_choice():
    result = comparison(CLEAR, estimators=["stratified@1", "naive"])  # the same values
    found = decide(evidence(result))
    assert not found.supported
    assert re.search(facts("stratified@1", "selection"), found.headline)


def test_errors_that_are_the_same_in_every_row_need_no_correction():
    still = {"mf": np.full(200, 0.3), "bpr": np.full(200, 0.3)}
    same = decide(evidence(comparison(still, estimators=["snips", "naive"])))
    assert [reason.code for reason in same.reasons] == ["same"]
    assert not re.search("selection", same.headline)
    assert any(re.search(facts("weights", "change nothing"), s) for s in same.sentences)
    moving = decide(evidence(comparison(CLEAR, estimators=["stratified@1", "naive"])))
    assert "biased" in {reason.code for reason in moving.reasons}


def test_weights_that_do_not_add_up_are_no_ground_for_what_needs_them():
    for estimator in ("ips", "snips"):  # a part of the population that is never seen is missing from both
        found = decide(evidence(comparison(CLEAR, estimators=[estimator]), mass=83.8))
        assert found.level == "none"
        assert re.search(facts("weights", 83.8), found.headline)
    other = comparison(CLEAR, estimators=["snips", "ips"], other={(METRIC, "ips"): TURNED}, mass=83.8)
    assert decide(evidence(other)).winner == "mf"  # an ips whose own weights do not add up contradicts nobody


def test_a_leak_cannot_win():
    found = decide(evidence(comparison(CLEAR), leaks=("mf",)))
    assert re.search(facts("mf", "leak"), found.headline)
    assert decide(evidence(comparison(CLEAR), leaks=("pop",))).winner == "mf"


def test_estimators_of_other_quantities_do_not_contradict():
    naive = comparison(CLEAR, estimators=["snips", "naive"], other={(METRIC, "naive"): TURNED})
    assert decide(evidence(naive)).winner == "mf"
    averaged = comparison(CLEAR, estimators=["snips", "stratified"], other={(METRIC, "stratified"): TURNED})
    assert decide(evidence(averaged)).winner == "mf"  # snips with averaged weights is no second witness


def open_loop(values):
    sample = comparison(values, estimators=["naive"])
    return against_open_loop(comparison(CLEAR), sample, 500)


def test_an_open_loop_that_says_the_reverse_is_no_choice():
    found = decide(evidence(comparison(CLEAR), open_loop=open_loop(TURNED)))
    assert not found.supported
    assert re.search(facts("open loop", "bpr ahead", "mf"), found.headline)


# -- assumptions and estimands -------------------------------------------------------------------------------

PAIR = {"mf": CLEAR["mf"], "bpr": CLEAR["bpr"]}
BLIND, CLICKS = Basis(blind=True), Basis(positives=True, clicks=True)


def tilted(values=PAIR, **known):
    """Evidence whose contrasts have these critical values."""
    basis = known.pop("basis", Basis())
    found = evidence(comparison(values), basis=basis, ranked=basis.positives)
    return replace(found, contrasts={f: tuple(replace(c, **known) for c in own) for f, own in found.contrasts.items()})


def test_blind_propensities_give_a_conditional_finding_with_its_remedy():
    found = decide(tilted(basis=BLIND, rho=1.7, rho_low=1.4))
    assert (found.level, found.winner, found.leader, found.supported) == ("conditional", None, "mf", False)
    assert found.unbeaten == ("mf", "bpr")  # ahead is not beaten
    told = facts("mf is ahead of bpr", "recall@10", "per relevant item", "extra star", "1.30 times", "1.70 times")
    assert re.search(told, found.headline)
    (pair,) = found.pairs
    assert (pair.better, pair.level, pair.estimand) == ("mf", "conditional", "per relevant item")
    assert (pair.assumption.name, pair.assumption.flips_at, pair.assumption.required) == ("rho", 1.7, 1.5)
    assert pair.assumption.holds_to == pytest.approx(1.3)
    assert [(r.code, r.value, r.limit) for r in pair.reasons] == [("rho", 1.4, 1.5)]
    assert re.search(facts("200 ratings", "random", "ol.propensity.Balanced(model)"), found.remedy)
    assert str(found).endswith(found.remedy)


def test_an_order_that_holds_for_nothing_is_no_finding():
    assert decide(tilted(basis=BLIND, rho=1.2, rho_low=1.004)).level == "none"
    assert decide(tilted(basis=BLIND, rho=1.2, rho_low=1.02)).level == "conditional"
    turned = decide(tilted(basis=CLICKS, kappa=0.0, kappa_low=0.0))  # per relevant item the other is ahead
    assert (turned.level, turned.reasons[0].code) == ("none", "per-user")


def test_blind_propensities_whose_order_holds_give_a_verdict():
    found = decide(tilted(basis=BLIND, rho=math.inf, rho_low=1.5))
    assert (found.level, found.winner, found.reasons, found.remedy) == ("verdict", "mf", (), "")
    assert found.pairs[0].assumption.holds_to == pytest.approx(1.375)
    assert "beats" in found.headline


def ranked(**known):
    return replace(tilted(**known), ranked=True)


def test_rankings_by_blind_propensities_must_hold_while_these_are_a_bit_off():
    sure = {"rho": math.inf, "rho_low": math.inf}
    assert decide(ranked(basis=BLIND, **sure, gamma=1.3, gamma_low=1.1)).level == "verdict"
    found = decide(ranked(basis=BLIND, **sure, gamma=1.2, gamma_low=1.08))
    assert (found.level, found.leader, found.told) == ("conditional", "mf", ())
    assert re.search(facts("mf is ahead of bpr", "propensities are off", "1.06 times", "1.20 times"), found.headline)
    given = found.pairs[0].assumption
    assert (given.name, given.flips_at, given.required) == ("gamma", 1.2, 1.1)
    assert [(r.code, r.value, r.limit) for r in found.reasons] == [("gamma", 1.08, 1.1)]
    assert any(re.search(facts("verdict", "1.1 times"), s) for s in found.sentences)
    assert found.records()["pairs"][0]["assumption"]["name"] == "gamma"
    assert decide(ranked(basis=BLIND, **sure, gamma=1.2, gamma_low=1.004)).level == "none"
    assert decide(ranked(basis=BLIND, **sure)).reasons[0].code == "gamma"  # not known
    # not of ratings, nor of p that was given
    assert decide(tilted(basis=BLIND, **sure, gamma=1.2, gamma_low=1.08)).level == "verdict"
    assert decide(ranked(gamma=1.2, gamma_low=1.08)).level == "verdict"


def test_a_list_that_the_weights_still_show_more_is_no_ground():
    basis = Basis(sample=200, balanced=True)
    even = ranked(basis=basis)
    assert decide(replace(even, listed={"mf": 0.3, "bpr": 0.3})).level == "verdict"
    found = decide(replace(even, listed={"mf": 0.4, "bpr": 0.3}))
    assert (found.level, found.reasons[0].code) == ("none", "lists")
    assert re.search(facts("mf", "bpr", "1.56 times"), found.headline)  # .4/.6 over .3/.7
    assert "logging what was shown" in found.remedy


def test_what_ratings_could_do_to_blind_propensities_must_be_known():
    found = decide(tilted(basis=BLIND))
    assert found.level == "none"
    assert found.reasons[0].code == "rho"


def test_given_propensities_need_no_assumption():
    assert decide(tilted(rho=1.1, rho_low=1.01)).level == "verdict"


@pytest.mark.parametrize(("size", "level"), [(199, "conditional"), (200, "verdict")])
def test_with_200_ratings_drawn_at_random_balanced_weights_decide(size, level):
    basis = Basis(sample=size, balanced=True)
    assert decide(tilted(basis=basis, rho=1.7, rho_low=1.4)).level == level


def test_clicks_say_up_to_which_share_of_exposure_the_order_holds():
    found = decide(tilted(basis=CLICKS, kappa=0.67, kappa_low=2 / 3))
    assert found.level == "conditional"
    assert re.search(facts("mf is ahead of bpr", "50 %", "popularity", "exposure", "67 %"), found.headline)
    assert any("positives only" in s for s in found.sentences)
    assert re.search(facts("exposure", "impressions"), found.remedy)
    sure = decide(tilted(basis=CLICKS, kappa=math.inf, kappa_low=math.inf))
    assert (sure.level, sure.winner) == ("verdict", "mf")
    never = decide(tilted(basis=CLICKS, kappa=math.inf, kappa_low=0.8))
    assert re.search(facts("60 %", "never reverses"), never.headline)


def test_one_pair_without_an_answer_leaves_none():
    found = tilted(CLEAR, basis=BLIND, rho=math.inf, rho_low=math.inf)
    own = tuple(replace(c, holm_without=0.4) if c.models == {"mf", "bpr"} else c for c in found.own)
    verdict = decide(replace(found, contrasts={found.family: own}))
    assert verdict.level == "none"
    assert verdict.unbeaten == ("mf", "bpr")  # both beat pop
    assert re.search(facts("cannot tell mf from bpr", "one user"), verdict.headline)
    levels = {pair.models: pair.level for pair in verdict.pairs}
    assert levels == {
        frozenset(("mf", "bpr")): "none", frozenset(("mf", "pop")): "verdict", frozenset(("bpr", "pop")): "verdict"
    }  # fmt: skip


def test_a_metric_that_no_weights_debias_gets_a_finding():
    found = decide(evidence(comparison(PAIR, metrics=["ndcg@10"])))
    assert (found.level, found.reasons[0].code) == ("none", "estimand")
    assert re.search(facts("ndcg@10", "on what was seen"), found.headline)
    assert "mf is ahead of bpr" in found.sentences[0]
    assert re.search(facts("recall@10", "dcg@10"), found.remedy)


def test_users_or_relevant_items_where_it_matters_which_count_once():
    both = ["snips", "snips_user"]
    turned = comparison(PAIR, estimators=both, other={(METRIC, "snips_user"): TURNED})
    found = decide(evidence(turned))
    assert (found.level, found.reasons[0].code) == ("none", "per-user")
    assert re.search(facts("per relevant item mf", "per user bpr"), found.headline)
    close = comparison(PAIR, estimators=both, other={(METRIC, "snips_user"): CLOSE})
    assert decide(evidence(close)).level == "verdict"  # not significantly
    assert decide(evidence(comparison(PAIR, estimators=["snips_user"]))).level == "verdict"


@pytest.mark.parametrize("estimator", ["clipped@20", "stratified"])
def test_every_average_over_relevant_items_is_held_against_that_over_users(estimator):
    turned = comparison(PAIR, estimators=[estimator, "snips_user"], other={(METRIC, "snips_user"): TURNED})
    found = decide(evidence(turned))
    assert (found.level, found.reasons[0].code) == ("none", "per-user")


@pytest.mark.parametrize(("relevant", "level"), [(5.0, "verdict"), (4.0, "none")])
def test_users_with_few_relevant_rows_have_no_ratio_of_their_own(relevant, level):
    found = decide(evidence(comparison(PAIR, estimators=["snips_user"], typical_relevant=relevant)))
    assert found.level == level
    assert [r.code for r in found.reasons] == ([] if level == "verdict" else ["few-relevant"])


def test_a_baseline_is_compared_with_each_and_no_other_pairs_are():
    result = comparison(CLEAR)
    own = {(METRIC, "snips"): contrasts(result, METRIC, "snips", "pop")}
    found = decide(replace(evidence(result), contrasts=own))
    assert (found.level, found.winner, found.leader, found.unbeaten) == ("verdict", None, None, ("mf", "bpr"))
    assert re.search(facts("mf and bpr beat pop"), found.headline)
    assert found.pair("mf", "bpr") is None
    best = {(METRIC, "snips"): contrasts(result, METRIC, "snips", "mf")}
    assert decide(replace(evidence(result), contrasts=best)).winner == "mf"
    middle = {(METRIC, "snips"): contrasts(result, METRIC, "snips", "bpr")}
    found = decide(replace(evidence(result), contrasts=middle))
    assert (found.winner, found.unbeaten) == ("mf", ("mf",))
    assert "mf beats bpr on" in found.headline
