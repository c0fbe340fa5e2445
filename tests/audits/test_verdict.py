"""The verdict says what the evidence supports, and why not where it supports nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from openloop.audits.open_loop import against_open_loop
from openloop.audits.paradox import Pair as Models
from openloop.audits.paradox import Part, find
from openloop.audits.results import StrataLine, StrataTable
from openloop.audits.verdict import decide
from openloop.core.comparison import PairSums
from tests.facts import facts
from tests.verdicts import METRIC, comparison, evidence, mean, strata

RNG = np.random.default_rng(3)
USERS = RNG.normal(0.3, 0.1, 400)


def noisy(shift):
    return USERS + shift + RNG.normal(0, 0.02, 400)


CLEAR = {"mf": noisy(0.02), "bpr": noisy(0.0), "pop": noisy(-0.05)}
CLOSE = {"mf": noisy(0.0), "bpr": noisy(0.0), "pop": noisy(-0.05)}
STRONGER = {name: values + 0.1 * (name == "mf") for name, values in CLEAR.items()}
TURNED = {"mf": CLEAR["bpr"], "bpr": CLEAR["mf"], "pop": CLEAR["pop"]}
PARTS = {pair: PairSums(parts=(9.0, 4.0)) for pair in [("mf", "bpr"), ("mf", "pop"), ("bpr", "pop")]}


def test_the_model_that_beats_all_others_is_named_with_size_interval_and_p():
    found = decide(evidence(comparison(CLEAR, pairs=PARTS), best={(METRIC, "snips"): {"mf": 0.9985}}))
    assert found.winner == "mf"
    assert found.supported
    assert found.reasons == ()
    assert re.search(facts("mf beats", "bpr", "pop", "snips-ndcg@10"), found.headline)
    gap = (CLEAR["mf"] - CLEAR["bpr"]).mean()
    sure = ("95 %", "Holm p < 0.001", "1.5×", "2,400 of 4,000")
    assert re.search(facts("mf beats bpr", "snips-ndcg@10", f"{gap:.3g}", *sure), found.sentences[0])
    assert "mf beats pop" in found.sentences[1]
    assert re.search(facts("99.9 %", "bootstrap"), found.sentences[2])


def test_words_are_the_same_whichever_model_is_first_and_whether_lower_is_better():
    turned = {name: -CLEAR[name] for name in reversed(CLEAR)}
    found = decide(evidence(comparison(turned, better="lower")))
    plain = decide(evidence(comparison(CLEAR)))
    assert found.headline == plain.headline
    assert found.sentences[0] == plain.sentences[0]


def test_models_that_cannot_be_told_apart_are_no_choice():
    found = decide(evidence(comparison(CLOSE)))
    assert not found.supported
    assert re.search(facts("mf", "bpr", "told apart", "snips-ndcg@10"), found.headline)
    assert any(re.search(facts("mf", "bpr", "beat pop"), s) for s in found.sentences)


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        pytest.param({"users": 29}, facts("29 users"), id="few users"),
        pytest.param({"effective_size": 12.34}, facts("4,000 rows", 12.3), id="small effective size"),
        pytest.param({"largest_share": 0.25}, facts("one row", "25 %"), id="one heavy row"),
    ],
)
def test_thin_support_is_no_choice(seen, told):
    found = decide(evidence(comparison(CLEAR, **seen)))
    assert not found.supported
    assert re.search(told, found.headline)
    assert re.search(facts("mf", "bpr", "ahead"), found.sentences[0])
    assert "beats" not in found.sentences[0]


def test_a_plain_average_is_no_ground_for_a_choice():
    found = decide(evidence(comparison(CLEAR, estimators=["naive"])))
    assert not found.supported
    assert re.search(facts("copy", "old system"), found.headline)


def test_estimators_that_significantly_disagree_are_no_choice():
    result = comparison(CLEAR, estimators=["snips", "stratified"], other={(METRIC, "stratified"): TURNED})
    found = decide(evidence(result))
    assert not found.supported
    assert re.search(facts("disagree", "snips", "mf", "bpr", "stratified"), found.headline)


def test_an_estimator_that_cannot_tell_does_not_contradict():
    result = comparison(CLEAR, estimators=["snips", "ips"], other={(METRIC, "ips"): CLOSE})
    assert decide(evidence(result)).winner == "mf"


def test_a_plain_average_that_disagrees_is_mentioned_and_decides_nothing():
    result = comparison(CLEAR, estimators=["snips", "naive"], other={(METRIC, "naive"): TURNED})
    found = decide(evidence(result))
    assert found.winner == "mf"
    assert any(re.search(facts("plain average", "bpr"), s) for s in found.sentences)
    agreeing = comparison(CLEAR, estimators=["snips", "naive"], other={(METRIC, "naive"): STRONGER})
    assert any(re.search(facts("plain average", "mf"), s) for s in decide(evidence(agreeing)).sentences)


def test_strata_that_agree_are_counted():
    tables = [strata([CLEAR, CLEAR, TURNED, CLEAR], [10, 10, 10, 10])]
    found = decide(evidence(comparison(CLEAR), strata=tables))
    assert re.search(facts("3 of 4 strata", "propensity"), found.sentences[0])
    assert re.search(facts("4 of 4 strata", "propensity"), found.sentences[1])
    with_shares = decide(evidence(comparison(CLEAR), strata=two_strata(CLOSE, 0.3)))
    assert re.search(facts("strata of propensity", "population"), with_shares.sentences[0])
    tied = [strata([CLEAR, dict.fromkeys(CLEAR, USERS), CLEAR], [10, 10, 10])]
    assert re.search(facts("2 of 3 strata", "tied in 1"), decide(evidence(comparison(CLEAR), strata=tied)).sentences[0])


def paradox(preferred):
    a, b = (0.3, 0.2) if preferred == "mf" else (0.2, 0.3)
    parts = (
        Part(name="Q1", a=a, b=b, rows=90, significant=True),
        Part(name="Q2", a=b, b=a, rows=10, significant=True),
    )
    whole = Part(name="naive", a=b, b=a, rows=100, significant=True)
    return find([Models(a="mf", b="bpr", aggregate=whole, strata=parts, metric=METRIC)])


def test_a_paradox_that_the_weights_resolve_is_told():
    found = decide(evidence(comparison(CLEAR), paradoxes=paradox("mf")))
    assert found.winner == "mf"
    assert any("reversal" in s for s in found.sentences)


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


def test_a_pair_is_told_once_and_many_are_counted():
    twice = (*paradox("mf"), *(replace(p, pair=replace(p.pair, by="age")) for p in paradox("mf")))
    found = decide(evidence(comparison(CLEAR), paradoxes=twice))
    assert sum("reversal" in s for s in found.sentences) == 1
    names = [f"m{k}" for k in range(5)]
    many = tuple(replace(p, pair=replace(p.pair, b=name)) for name in names for p in paradox("mf"))
    found = decide(evidence(comparison(CLEAR), paradoxes=many))
    assert sum("reversal" in s for s in found.sentences) == 3
    assert any(re.search(facts("paradox", "2 more pairs"), s) for s in found.sentences)


def test_another_metric_by_which_another_model_is_better_is_told():
    result = comparison(CLEAR, metrics=[METRIC, "recall@10"], other={("recall@10", "snips"): TURNED})
    found = decide(evidence(result))
    assert found.winner == "mf"
    assert any(re.search(facts("snips-recall@10", "bpr beats mf"), s) for s in found.sentences)


# -- what a verdict may not rest on --------------------------------------------------------------------------


def test_the_plain_average_under_another_name_is_no_ground_for_a_choice():
    result = comparison(CLEAR, estimators=["stratified@1", "naive"])  # the same values
    found = decide(evidence(result))
    assert not found.supported
    assert re.search(facts("stratified@1", "selection"), found.headline)


def test_equal_weights_are_the_plain_average_by_assumption_and_said_so():
    result = comparison(CLEAR, estimators=["snips", "ips", "naive"], effective_size=4000.0)
    found = decide(evidence(result, assumes="nobody chose what was observed"))
    assert found.winner == "mf"
    assert any(re.search(facts("propensities", "nobody chose what was observed"), s) for s in found.sentences)
    assert any(re.search(facts("snips", "plain average"), s) for s in found.sentences)
    assert not any("first too" in s for s in found.sentences)  # the same numbers are no second witness


def test_weights_that_do_not_add_up_are_no_ground_for_what_needs_them():
    found = decide(evidence(comparison(CLEAR, estimators=["ips"], mass=83.8)))
    assert re.search(facts("weights", 83.8), found.headline)
    immune = comparison(CLEAR, estimators=["snips", "ips"], other={(METRIC, "ips"): TURNED}, mass=83.8)
    assert decide(evidence(immune)).winner == "mf"  # such an ips contradicts nobody


def test_a_leak_cannot_win():
    found = decide(evidence(comparison(CLEAR), leaks=("mf",)))
    assert re.search(facts("mf", "leak"), found.headline)
    assert decide(evidence(comparison(CLEAR), leaks=("pop",))).winner == "mf"


def test_doubts_come_first():
    found = decide(evidence(comparison(CLEAR), doubts=("nobody knows",)))
    assert "nobody knows" in found.headline
    assert [str(r) for r in found.reasons] == ["nobody knows"]


def test_flags_of_the_verdicts_own_estimates_are_told():
    found = decide(evidence(comparison(CLEAR, flags=("stratum 1 has no scored row",))))
    assert any("stratum 1 has no scored row" in s for s in found.sentences)


def test_estimators_of_other_quantities_do_not_contradict():
    result = comparison(CLEAR, estimators=["snips", "stratified"], other={(METRIC, "stratified"): TURNED})
    assert decide(evidence(result, pooled=frozenset([METRIC]))).winner == "mf"
    same = comparison(CLEAR, estimators=["snips", "clipped@5"], other={(METRIC, "clipped@5"): TURNED})
    assert not decide(evidence(same, pooled=frozenset([METRIC]))).supported


def open_loop(values):
    sample = comparison(values, estimators=["naive"])
    return against_open_loop(comparison(CLEAR), sample, 500)


def test_an_open_loop_that_says_the_reverse_is_no_choice():
    found = decide(evidence(comparison(CLEAR), open_loop=open_loop(TURNED)))
    assert not found.supported
    assert re.search(facts("open loop", "bpr ahead", "mf"), found.headline)


def test_an_open_loop_that_agrees_is_told():
    found = decide(evidence(comparison(CLEAR), open_loop=open_loop(CLEAR)))
    assert found.winner == "mf"
    told = facts("open loop", "500 rows", "mf first", "snips", "3 of 3 pairs")
    assert any(re.search(told, s) for s in found.sentences)


def test_models_that_are_the_same_to_every_user_are_called_so():
    found = decide(evidence(comparison({"a": USERS, "b": USERS})))
    assert not found.supported
    assert re.search(facts("a and b", "the same", "every user", "snips-ndcg@10"), found.headline)


def test_one_user_gives_no_interval():
    one = {"a": np.array([1.0]), "b": np.array([0.0])}
    found = decide(evidence(comparison(one), best={(METRIC, "snips"): {"a": 1.0}}))
    assert "1 user " in found.headline
    assert not any("nan" in s or "bootstrap" in s for s in (*found.sentences, *map(str, found.reasons)))
