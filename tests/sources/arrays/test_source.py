"""What the rows of a Feedback can say, and what they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.evaluation import prepared
from openloop.sources.question import Question
from tests.examples import same, small_world

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"]}


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_time():
    log = Feedback.from_arrays(
        LOG.user, LOG.item, LOG.rating, users=30, items=12, propensity=LOG.propensity,
        time=np.random.default_rng(0).random(len(LOG)),
    )  # fmt: skip
    return ol.split(log, test=0.3, by="time")


@pytest.mark.parametrize(
    ("name", "estimator"),
    [("mae", "ips"), ("mae", "clipped@2"), ("mae", "clipped"), ("mae", "dr"), ("adg", "ips_eq3")],
)
def test_a_split_by_time_refuses_what_needs_the_scale_of_p(by_time, name, estimator):
    with pytest.raises(UndefinedError, match=r"split by time, so the probability .* is known only up to a factor"):
        ol.evaluate(MODELS, by_time[1], metrics=[name], estimators=[estimator], imputation=np.full((30, 12), 3.0))


@pytest.mark.parametrize(
    ("name", "estimator"),
    [("mae", "naive"), ("mae", "snips"), ("mae", "stratified"), ("adg", "snips"), ("adg", "clipped@2")],
)
def test_a_split_by_time_serves_what_is_a_ratio(by_time, name, estimator):
    found = ol.evaluate(MODELS, by_time[1], metrics=[name], estimators=[estimator])
    assert np.isfinite(found["a", name, estimator].value)


def test_a_split_by_time_says_that_its_weights_are_right_up_to_a_factor(by_time):
    train, test = by_time
    result = ol.evaluate(MODELS, test, metrics=["mae"], estimators=["snips"])
    assert any("its weights are 1/p" in note and "unknown factor" in note for note in result.notes)
    flags = result["a", "mae", "snips"].diagnostics.flags
    assert not any("add up to" in flag for flag in flags)  # Σw need not be the population
    ranked = ol.evaluate(MODELS, test, metrics=["adg"], estimators=["snips", "stratified"], exclude=train)
    assert any("depends on p" in note and "exclude=" in note for note in ranked.notes)


def test_over_cells_an_unknown_scale_is_taken_conservatively(by_time):
    _, test = by_time
    unknown = ol.evaluate(MODELS, test, metrics=["mae"], estimators=["snips"])["a", "mae", "snips"]
    certain = test.take(slice(None), share=np.full(len(test), 1e-6))  # 1 − p·s is nearly 1
    nearly = ol.evaluate(MODELS, certain, metrics=["mae"], estimators=["snips"])["a", "mae", "snips"]
    same(unknown.cell_variance, nearly.cell_variance, rtol=1e-5)


def test_only_rankings_lose_what_is_excluded():
    train, test = ol.split(LOG, test=0.5, rng=0)
    options = {"metrics": ["mae", "dcg@3"], "estimators": ["ips", "snips"]}
    whole, without = (ol.evaluate(MODELS, test, WORLD.propensities, exclude=e, **options) for e in (None, train))
    for estimator in ("ips", "snips"):
        assert whole["a", "mae", estimator].value == without["a", "mae", estimator].value
        assert whole["a", "dcg@3", estimator].value != without["a", "dcg@3", estimator].value


def test_a_floor_is_in_the_diagnostics():
    raised = ol.Propensities(values=LOG.propensity, floor=0.5)
    found = ol.evaluate(MODELS, LOG, raised, metrics=["mae"], estimators=["snips", "clipped@1.5"])
    assert found["a", "mae", "snips"].diagnostics.clipped_share == np.mean(LOG.propensity < 0.5) > 0
    assert found["a", "mae", "snips"].diagnostics.cap is None
    assert found["a", "mae", "clipped@1.5"].diagnostics.cap == 1.5


def test_a_floor_says_what_it_leaves_of_the_weight():
    p = np.full(len(LOG), 0.5)
    p[0] = 0.1
    asked = {"metrics": ["mae"], "estimators": ["snips", "clipped@1.5"]}
    found = ol.evaluate(MODELS, LOG, ol.Propensities(values=p, floor=0.5), **asked)
    kept = 2 * len(p) / (2 * len(p) + 8)  # the first row counts 2 for 10
    assert found["a", "mae", "snips"].diagnostics.kept_weight == pytest.approx(kept)
    assert found["a", "mae", "clipped@1.5"].diagnostics.kept_weight == pytest.approx(kept * 0.75)
    assert ol.evaluate(MODELS, LOG, p, **asked)["a", "mae", "snips"].diagnostics.kept_weight is None


@pytest.mark.parametrize(("name", "score"), [("recall@3", 3 / 12), ("prec@3", 1.0), ("precision@3", 1.0)])
def test_if_everything_were_liked_all_lists_of_a_whole_log_would_score_the_same(name, score):
    asked = Question(metrics=[name], estimators=["snips"])
    ready = prepared(WORLD.predictions, WORLD.everything(), None, asked)
    found = ready.source.listed(ready.metrics[0])
    assert found == pytest.approx(dict.fromkeys(WORLD.predictions, score))


def test_a_list_that_is_shown_more_scores_more_if_everything_were_liked():
    log = Feedback.from_arrays([0, 0, 1], [0, 2, 1], [1, 5, 1], users=2, items=3, propensity=[0.5, 0.25, 0.5])
    best = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    ready = prepared({"a": best, "b": -best}, log, None, Question(metrics=["recall@1"], estimators=["snips"]))
    # weights 2, 4 and 2: a's list holds the first row, b's the second
    assert ready.source.listed(ready.metrics[0]) == pytest.approx({"a": 0.25, "b": 0.5})


def test_without_propensities_only_naive_is_left():
    plain = replace(LOG, propensity=None)
    result = ol.evaluate(MODELS, plain, metrics=["mae"], estimators=["naive", "ips", "snips", "stratified"])
    assert result.estimators == ("naive",)
    assert all("needs propensities" in reason for reason in result.skipped.values())


def test_a_log_without_relevant_rows_still_has_its_cell_metrics():
    result = ol.evaluate(MODELS, LOG, metrics=["mae", "adg", "map"], estimators=["naive"], threshold=9)
    assert result.metrics == ("mae",)
    assert "no scored rating reaches the threshold 9" in result.skipped["adg", "naive"]


# -- threads -------------------------------------------------------------------------------------------------


class Factors:
    """A recommender that is a matrix product."""

    def __init__(self, users, items):
        rng = np.random.default_rng(0)
        self.arrays = rng.normal(size=(users, 8)), rng.normal(size=(items, 8)), rng.normal(size=items)

    def factor_arrays(self):
        return self.arrays

    def scores(self, users):
        P, Q, b = self.arrays
        return P[users] @ Q.T + b

    def predict(self, user, item):
        P, Q, b = self.arrays
        return (P[user] * Q[item]).sum(axis=1) + b[item]


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    world = small_world(users=3000, items=40)  # three blocks of users
    log = world.observe(1)
    models = {"array": world.predictions["b"], "factors": Factors(3000, 40)}
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("openloop.kernels.ranking.os.cpu_count", lambda threads=threads: threads)
        results.append(ol.evaluate(models, log, metrics=["mae", "dcg@5", "ndcg", "auc"], estimators=["naive", "snips"]))
    first, *others = results
    for other in others:
        for key, estimate in first.estimates.items():
            assert other[key].value == estimate.value
            np.testing.assert_array_equal(other[key].influence, estimate.influence)
            assert other[key].cell_variance == estimate.cell_variance


# -- what they are -------------------------------------------------------------------------------------------


def source(log=LOG, models=MODELS, metrics=("mae",), **options):
    asked = Question(metrics=metrics, estimators=["snips"], **options)
    return prepared(models, log, None, asked).source


def test_a_source_says_what_is_scored():
    found = source(threshold=3).about()
    assert (found.rows, found.users, found.items, found.threshold) == (len(LOG), 30, 12, 3)
    assert found.scored_users == len(set(LOG.user.tolist()))
    assert dict(found.ratings) == {float(y): int(np.sum(LOG.rating == y)) for y in range(1, 6)}
    assert found.excluded is None
    train, test = ol.split(LOG, test=0.3, rng=0)
    assert source(test, exclude=train, metrics=["dcg"]).about().excluded == len(train)


def test_strata_are_counted_in_rows_and_items():
    found = source().facts((2, "count"))
    first = LOG.propensity <= found.limits[0][1]
    assert found.rows == (int(first.sum()), int((~first).sum()))
    assert found.items == (len(set(LOG.item[first].tolist())), len(set(LOG.item[~first].tolist())))
    assert found.limits[1] == (LOG.propensity[~first].min(), LOG.propensity.max())
    assert abs(found.rows[0] - found.rows[1]) <= 1


def test_a_grouping_has_the_strata_of_its_labels():
    labels = np.where(LOG.item < 4, "old", "<b>new</b>")
    found = source(groups={"age": labels}).facts("age")
    assert found.names == ("<b>new</b>", "old")
    assert found.rows == (int((LOG.item >= 4).sum()), int((LOG.item < 4).sum()))
    assert found.items == (8, 4)
    assert found.limits == (None, None)


def test_groups_follow_the_rows_that_are_kept():
    some = LOG.user < 20
    frame = pl.DataFrame({"user": LOG.user[some], "item": LOG.item[some], "score": LOG.rating[some]})
    found = source(models={"a": frame}, groups={"user": LOG.user.astype(str) < "1"}, missing="drop").facts("user")
    assert sum(found.rows) == int(some.sum())


def test_groups_need_a_label_a_row_and_few_labels():
    with pytest.raises(AlignmentError, match=r"groups\['g'\]: must have one label for each of"):
        source(groups={"g": ["a", "b"]})
    with pytest.raises(InputError, match="labels are too many; merge them"):
        source(groups={"g": np.arange(len(LOG))})


def test_a_model_that_says_the_ratings_is_found_out():
    copy = {"a": WORLD.ratings.astype(float)}
    assert source(models=copy).answers("a").copied == 1
    constant = source(models={"a": np.full((30, 12), 2.5)}).answers("a")
    assert (constant.low, constant.high, constant.copied) == (2.5, 2.5, 0)
    said = source().answers("a")
    wanted = MODELS["a"][LOG.user, LOG.item]
    assert (said.low, said.high) == (wanted.min(), wanted.max())


def test_ranks_alone_say_nothing_about_ratings():
    ranks = pl.DataFrame({"user": [0, 1], "item": [3, 4], "rank": [1, 1]})
    assert source(models={"a": ranks}, metrics=["recall@1"]).answers("a") is None


# -- remarks -------------------------------------------------------------------------------------------------


def test_a_model_with_one_score_for_all_items_of_a_user_is_noted():
    import openloop as ol

    rng = np.random.default_rng(0)
    user, item = np.divmod(np.sort(rng.choice(20 * 15, 120, replace=False)), 15)
    log = ol.Feedback.from_arrays(user, item, np.ones(120), users=20, items=15, positives=True)
    scores = rng.normal(size=(20, 15))
    flat = scores.copy()
    flat[:3] = 0.5
    options = {"metrics": ["recall@5"], "estimators": ["naive"]}
    found = ol.evaluate({"flat": flat, "fine": scores}, log, **options)
    assert (
        [note for note in found.notes if "same score" in note]
        == [note for note in found.notes if "'flat'" in note and "3 of 20 users" in note]
        != []
    )
    train = log.take(log.user % 2 == 0, origin=log.fingerprint)
    test = log.take(log.user % 2 == 1, origin=log.fingerprint)
    left = ol.evaluate({"flat": flat, "fine": scores}, test, exclude=train, **options)
    assert any("'flat'" in note and "1 of 10 users" in note for note in left.notes)
    assert any(
        "same score" in note for note in ol.audit({"flat": flat, "fine": scores}, log, metrics=["recall@5"]).notes
    )


def test_pairs_that_are_scored_and_excluded_are_noted():
    import openloop as ol

    log = ol.Feedback.from_arrays([0, 0, 1], [0, 1, 2], np.ones(3), users=2, items=4, positives=True)
    train = ol.Feedback.from_arrays([0, 1], [0, 1], np.ones(2), users=2, items=4, positives=True)
    found = ol.evaluate({"a": np.ones((2, 4))}, log, exclude=train, metrics=["recall@1"], estimators=["naive"])
    assert any("1 scored pairs" in note and "exclude=" in note for note in found.notes)
