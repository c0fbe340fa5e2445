"""Metrics on ranks: by hand, over all orders of ties, by Lim's theorems, and against trec_eval."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from ir_measures import AP, RR, P, R, Success, calc_aggregate, nDCG

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.metrics.ranking import ideal_discount
from tests.examples import same


def naive(metric, O, scores, *, rating=None, exclude=None, threshold=None):
    """The plain estimate from the cells of the mask O, each rated 5 unless ratings are given."""
    user, item = np.nonzero(O)
    Y = np.full(O.shape, 5.0) if rating is None else rating
    log = Feedback.from_arrays(user, item, Y[user, item], users=O.shape[0], items=O.shape[1])
    found = ol.evaluate(
        {"m": scores}, log, metrics=[metric], estimators=["naive"], exclude=exclude, threshold=threshold
    )
    return found["m", metric, "naive"].value


def discount(rank):
    return 1 / np.log2(1 + rank)


# -- by hand -------------------------------------------------------------------------------------------------

# Two users, five items in the order of their scores; user 0 likes ranks 1 and 4, user 1 likes rank 3.
SCORES = np.tile([5.0, 4.0, 3.0, 2.0, 1.0], (2, 1))
LIKED = np.zeros((2, 5), bool)
LIKED[0, [0, 3]] = LIKED[1, 2] = True


@pytest.mark.parametrize(
    ("metric", "first", "second"),
    [
        ("adg", (discount(1) + discount(4)) / 2, discount(3)),
        ("atop", ((1 - 0 / 4) + (1 - 3 / 4)) / 2, 1 - 2 / 4),
        ("auc", 1 - 2 / 6, 1 - 2 / 4),  # of 2 × 3 pairs two are wrong; of 1 × 4 two
        ("recall@3", 1 / 2, 1),
        ("ndcg", (discount(1) + discount(4)) / (discount(1) + discount(2)), discount(3)),
        ("ndcg@1", 1, 0),
        ("map", (1 / 1 + 2 / 4) / 2, 1 / 3),
        ("mrr", 1, 1 / 3),
        ("hit@2", 1, 0),
    ],
)
def test_user_metrics_by_hand(metric, first, second):
    same(naive(metric, LIKED, SCORES), (first + second) / 2)


def test_cell_metrics_by_hand_carry_the_papers_factors():
    Y = np.array([[4.0, 1, 2, 5, 3], [1.0, 1, 5, 1, 1]])
    seen = np.array([[1, 0, 0, 1, 0], [0, 0, 1, 0, 0]], bool)
    # Eqs. 8 and 9: I · Y · discount, and (I/k) · Y · 1{rank ≤ k}.
    same(naive("dcg", seen, SCORES, rating=Y), 5 * (4 * discount(1) + 5 * discount(4) + 5 * discount(3)) / 3)
    same(naive("dcg@3", seen, SCORES, rating=Y), 5 * (4 * discount(1) + 5 * discount(3)) / 3)
    same(naive("prec@3", seen, SCORES, rating=Y), 5 / 3 * (4 + 5) / 3)
    same(naive("precision@3", seen, SCORES, rating=Y), 5 / 3 * 2 / 3)
    # I · (1 − p) p^(rank − 1) of what is liked, with p = 0.8 and as named.
    same(naive("rbp", seen, SCORES, rating=Y), 5 * 0.2 * (1 + 0.8**3 + 0.8**2) / 3)
    same(naive("rbp:0.5", seen, SCORES, rating=Y), 5 * 0.5 * (1 + 0.5**3 + 0.5**2) / 3)


def test_users_without_a_relevant_item_are_left_out():
    LIKED_BY_ONE = LIKED.copy()
    LIKED_BY_ONE[1] = False
    same(naive("recall@3", LIKED_BY_ONE, SCORES), 1 / 2)


def test_the_threshold_decides_what_is_relevant():
    Y = np.where(LIKED, 3.0, 1.0)
    same(naive("recall@3", np.ones((2, 5), bool), SCORES, rating=Y, threshold=3), (1 / 2 + 1) / 2)


def test_a_user_who_likes_every_candidate_has_no_auc():
    all_liked = LIKED.copy()
    all_liked[1] = True
    same(naive("auc", all_liked, SCORES), 1 - 2 / 6)


def test_the_ideal_is_cut_at_k():
    same(ideal_discount(np.array([0.0, 1, 2, 5]), 2), [0, 1, 1 + discount(2), 1 + discount(2)])
    same(ideal_discount(np.array([3.0]), None), 1 + discount(2) + discount(3))


def test_rbp_of_everything_seen_is_the_textbooks_and_adds_up_to_less_than_one():
    everything = np.ones((2, 5), bool)
    Y = np.where(LIKED, 5.0, 1.0)
    same(naive("rbp", everything, SCORES, rating=Y), (0.2 * (1 + 0.8**3) + 0.2 * 0.8**2) / 2)  # Moffat & Zobel, Eq. 1
    same(naive("rbp", everything, SCORES), 1 - 0.8**5)  # all five are liked


def test_weights_debias_rbp_and_no_plain_average_does():
    """Which class rbp belongs to: a sum over cells that ips estimates; liked cells seen more often mislead naive."""
    rng = np.random.default_rng(0)
    taste = rng.random((150, 25)) ** 2
    Y = np.where(rng.random(taste.shape) < taste, 5.0, 1.0)
    seen = np.where(Y > 4, 0.6, 0.2) * rng.uniform(0.5, 1, Y.shape)
    world = ol.simulate.World(ratings=Y, propensities=seen, predictions={"m": taste + 0.3 * rng.random(Y.shape)})
    truth = naive("rbp", np.ones(Y.shape, bool), world.predictions["m"], rating=Y)
    found = [
        ol.evaluate(world.predictions, world.observe(rng=draw), metrics=["rbp"], estimators=["naive", "ips", "snips"])
        for draw in range(60)
    ]
    mean, error = (
        {e: f([r["m", "rbp", e].value for r in found]) for e in ("naive", "ips", "snips")} for f in (np.mean, np.std)
    )
    for estimator in ("ips", "snips"):
        assert abs(mean[estimator] - truth) < 3.5 * error[estimator] / np.sqrt(60)
    assert mean["naive"] > 1.3 * truth
    assert {found[0]["m", "rbp", e].estimand for e in ("ips", "snips")} == {"per cell"}


# -- by law: ties are their expectation over random order ----------------------------------------------------

EVERY = ("adg", "atop", "auc", "recall@2", "ndcg", "ndcg@2", "map", "mrr", "hit@2", "dcg", "dcg@3", "prec@2",
         "rbp", "rbp:0.5")  # fmt: skip


@pytest.mark.parametrize("metric", EVERY)
def test_ties_are_the_mean_over_all_orders(metric):
    scores = np.array([2.0, 1.0, 1.0, 1.0, 3.0, 1.0])
    liked = np.array([0, 1, 1, 0, 0, 1], bool)
    # Each of the 4! orders of the tied block is a user of its own; their mean is the expectation.
    tied = np.flatnonzero(scores == 1)
    orders = [dict(zip(tied, order, strict=True)) for order in permutations(np.linspace(0.6, 1.4, 4))]
    broken = np.array([[order.get(i, s) for i, s in enumerate(scores)] for order in orders])
    exact = naive(metric, np.tile(liked, (len(broken), 1)), broken)
    same(naive(metric, liked[None, :], scores[None, :]), exact)


@pytest.mark.parametrize("metric", EVERY)
def test_a_constant_model_scores_what_random_order_scores(metric):
    liked = np.array([1, 0, 1, 0, 0], bool)
    orders = np.array(list(permutations(range(5))), float)
    exact = naive(metric, np.tile(liked, (len(orders), 1)), orders)
    same(naive(metric, liked[None, :], np.ones((1, 5))), exact)


# -- Lim et al. 2015 -----------------------------------------------------------------------------------------

N_ITEMS, RELEVANT = 20, np.array([0, 2, 3, 7, 11, 18])
ORDER = np.random.default_rng(4).permutation(N_ITEMS).astype(float)


def expected(metric, m):
    """E[metric of a simple random sample of m relevant items], over all of them: one user a sample."""
    samples = list(combinations(RELEVANT, m))
    O = np.zeros((len(samples), N_ITEMS), bool)
    for u, sample in enumerate(samples):
        O[u, list(sample)] = True
    return naive(metric, O, np.tile(ORDER, (len(samples), 1)))


@pytest.mark.parametrize("metric", ["adg", "atop", "recall@5", "recall@10"])
def test_theorem_1_a_random_part_of_the_relevant_items_is_enough(metric):
    whole = expected(metric, 6)
    for m in range(1, 6):
        same(expected(metric, m), whole, err_msg=f"{m} of 6")


@pytest.mark.parametrize("metric", ["ndcg", "ndcg@5", "map", "mrr", "hit@5", "auc"])
def test_the_other_metrics_are_biased(metric):
    whole = expected(metric, 6)
    for m in range(1, 6):
        assert abs(expected(metric, m) - whole) > 1e-3, f"{m} of 6"


def test_theorem_2_gives_the_factor_of_ndcg():
    # E[NDCG_obs] = |O| · IDCG(|P|) / (|P| · IDCG(|O|)) · NDCG_comp
    whole = expected("ndcg", 6)
    for m in range(1, 7):
        idcg = ideal_discount(np.array([m, 6.0]), None)
        same(expected("ndcg", m), m * idcg[1] / (6 * idcg[0]) * whole, err_msg=f"{m} of 6")


# -- by another program: trec_eval, through ir_measures ------------------------------------------------------

TREC = {
    "ndcg": nDCG, "ndcg@10": nDCG @ 10, "map": AP, "recall@10": R @ 10, "mrr": RR, "hit@10": Success @ 10,
    "precision@10": P @ 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def lists():
    """40 users, 60 items, scores that are far apart even in single precision."""
    rng = np.random.default_rng(7)
    scores = np.argsort(rng.random((40, 60)), axis=1).astype(float)
    liked = rng.random((40, 60)) < rng.uniform(0.05, 0.4, (40, 1))
    liked[np.arange(40), rng.integers(60, size=40)] = True
    return scores, liked


@pytest.mark.parametrize("metric", TREC)
def test_trec_eval_agrees(metric, lists):
    scores, liked = lists
    # from ir_measures import calc_aggregate; calc_aggregate([nDCG, AP, …], qrels, run)
    qrels = {f"u{u}": {f"i{i}": int(liked[u, i]) for i in range(60)} for u in range(40)}
    run = {f"u{u}": {f"i{i}": float(scores[u, i]) for i in range(60)} for u in range(40)}
    theirs = calc_aggregate([TREC[metric]], qrels, run)[TREC[metric]]
    complete = metric.startswith("precision")  # naive is the textbook's only when every cell is seen
    O = np.ones_like(liked) if complete else liked
    same(naive(metric, O, scores, rating=np.where(liked, 5.0, 1.0)), theirs, rtol=1e-9)


# -- exclusion -----------------------------------------------------------------------------------------------


def test_excluded_items_leave_the_ranking_and_the_candidates():
    train = Feedback.from_arrays([0, 0, 1], [1, 2, 4], [1, 1, 1], users=2, items=5)
    same(naive("map", LIKED, SCORES, exclude=train), ((1 / 1 + 2 / 2) / 2 + 1 / 3) / 2)
    same(naive("atop", LIKED, SCORES, exclude=train), ((1 + 1 - 1 / 2) / 2 + (1 - 2 / 3)) / 2)
    same(naive("auc", LIKED, SCORES, exclude=train), (1 + (1 - 2 / 3)) / 2)


def test_a_scored_item_is_a_candidate_even_where_it_is_excluded():
    train = Feedback.from_arrays([0, 0], [0, 1], [5, 5], users=2, items=5)  # (0, 0) is scored too
    same(naive("mrr", LIKED, SCORES, exclude=train), (1 + 1 / 3) / 2)
