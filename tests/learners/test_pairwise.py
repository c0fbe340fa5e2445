"""ADG and AUC: the contract, the same start, simulation with a known truth, and what they refuse."""

from __future__ import annotations

import _thread
import re
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, DivergenceError, EmptyError, InputError
from openloop.kernels.violators import Schedule, adg_updates_numpy, auc_updates_numpy
from openloop.learners.pairwise import ADG, AUC, CHUNK
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

BOTH = pytest.mark.parametrize("Learner", [ADG, AUC])


class TestADG(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return ADG(4, updates=60_000)


class TestAUC(PersonalRecommenderContract):
    implicit = True

    def make(self):
        # The withheld item counts as not liked, which more factors would learn.
        return AUC(1, updates=60_000)


def groups(users: int = 120, items: int = 90, seed: int = 0) -> tuple[Feedback, Feedback]:
    """Three kinds of users who like three kinds of items, some items much more known; train and test."""
    rng = np.random.default_rng(seed)
    known = 0.1 + 0.8 * rng.random(items) ** 3
    taste = np.where(np.arange(users)[:, None] % 3 == np.arange(items) % 3, 1.0, 0.08)
    user, item = np.nonzero(rng.random((users, items)) < taste * known)
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=users, items=items)
    return ol.split(log, test=0.3, rng=seed)


@pytest.fixture(scope="module")
def world():
    return groups()


def score(model, log, exclude=None, metric="adg"):
    found = ol.evaluate({"m": model}, log, metrics=[metric], estimators=["naive"], exclude=exclude)
    return found["m", metric, "naive"].value


def tiny(rating=(1, 1, 1), **columns) -> Feedback:
    return Feedback.from_arrays([0, 0, 1], [0, 2, 1], np.array(rating), users=3, items=4, **columns)


def state(model):
    return [model.user_factors_, model.item_factors_, model.item_bias_]


def same(a, b):
    for x, y in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(x, y)


# --- by law


@BOTH
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(world, Learner):
    first = Learner(8, updates=5_000).fit(world[0])
    same(first, Learner(8, updates=5_000).fit(world[0]))
    other = Learner(8, updates=5_000, rng=1).fit(world[0])
    assert not np.array_equal(first.item_factors_, other.item_factors_)


def test_both_begin_with_the_same_random_parameters(world):
    # A rate so small that a step rounds to nothing leaves the start.
    same(*(Learner(8, updates=100, rate=1e-60).fit(world[0]) for Learner in (ADG, AUC)))


def test_the_start_has_the_asked_deviation_and_no_bias(world):
    model = ADG(8, updates=1, rate=1e-60, init=0.5).fit(world[0])
    assert np.std(np.vstack([model.user_factors_, model.item_factors_])) == pytest.approx(0.5, rel=0.1)
    np.testing.assert_allclose(model.item_bias_, 0, atol=1e-20)


@BOTH
def test_a_start_that_is_given_is_where_it_begins(world, Learner):
    begun = AUC(8, updates=3_000).fit(world[0])
    for init in (begun, begun.factor_arrays()):
        same(Learner(8, updates=100, rate=1e-60, init=init).fit(world[0]), begun)


@BOTH
def test_a_start_is_not_written_to(world, Learner):
    begun = AUC(8, updates=3_000).fit(world[0])
    before = [x.copy() for x in state(begun)]
    model = Learner(8, updates=3_000, init=begun).fit(world[0])
    assert not np.array_equal(model.user_factors_, begun.user_factors_)
    for x, y in zip(before, state(begun), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_clone_keeps_the_fitted_start(world):
    model = ADG(8, updates=3_000, init=AUC(8, updates=3_000).fit(world[0]))
    same(clone(model).fit(world[0]), model.fit(world[0]))


@BOTH
def test_a_fit_is_the_updates_of_its_kernel(Learner):
    # The twin begins where the learner does, with the stream that follows in the same generator.
    log = tiny()
    model = Learner(2, 0.1, updates=50, rate=0.2, init=0.5, rng=3).fit(log)
    rng = np.random.default_rng(3)
    V, W = (np.float32(0.5) * rng.standard_normal((n, 2), np.float32) for n in (3, 4))
    V[2] = 0
    theta = (V, W, np.zeros(4, np.float32))
    likes, _ = model._likes(log, np.ones(3))
    args = (likes, 100.0) if Learner is ADG else (likes,)
    twin = adg_updates_numpy if Learner is ADG else auc_updates_numpy
    found, hinges = twin(theta, *args, Schedule(0.2, 0.1, 50), rng.integers(2**64, dtype=np.uint64), 50)
    for x, y in zip(state(model), theta, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    np.testing.assert_allclose(model.history_, [[found / 50, hinges / 50]], rtol=1e-4)


@BOTH
def test_unit_weights_give_the_same_bits_as_none(world, Learner):
    plain = Learner(8, updates=5_000).fit(world[0])
    same(plain, Learner(8, updates=5_000).fit(world[0], sample_weight=np.full(len(world[0]), 1.0)))


@BOTH
def test_a_weight_of_almost_nothing_is_like_an_item_not_liked(Learner):
    # Users 0 … 9 like item 0 with a weight of 1e-12, and item 1: only item 1 is ever moved up.
    user, item = np.repeat(np.arange(10), 2), np.tile([0, 1], 10)
    log = Feedback.from_arrays(user, item, np.ones(20), users=10, items=4)
    model = Learner(2, updates=5_000).fit(log, sample_weight=np.where(item == 0, 1e-12, 1.0))
    scores = model.scores(np.arange(10))
    assert np.all(scores.argmax(axis=1) == 1)
    assert scores[:, 0].max() < scores[:, 1].min()


def test_rows_below_the_threshold_are_as_if_they_were_not_there():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((20, 15)) < 0.5)
    log = Feedback.from_arrays(user, item, rng.integers(1, 6, len(user)), users=20, items=15)
    liked = log.take(log.rating >= 4)
    same(AUC(3, updates=2_000).fit(log), AUC(3, updates=2_000).fit(liked))
    same(ADG(3, updates=2_000).fit(log), ADG(3, updates=2_000, threshold=4).fit(liked))
    same(
        ADG(3, updates=2_000, threshold=2).fit(log),
        ADG(3, updates=2_000, threshold=1).fit(log.take(log.rating >= 2)),
    )


@BOTH
def test_history_has_a_line_for_each_chunk(Learner):
    model = Learner(2, updates=2 * CHUNK + 10).fit(tiny())
    assert model.history_.shape == (3, 2)
    assert np.all(model.history_[:, 0] <= 1)
    assert np.all(model.history_ >= 0)


@BOTH
def test_threads_learn_as_well_as_one(world, Learner):
    train, test = world
    one, two = (score(Learner(8, updates=100_000, threads=n).fit(train), test, train) for n in (1, 2))
    assert two == pytest.approx(one, rel=0.1)


# --- by simulation


def popular(log: Feedback) -> np.ndarray:
    return np.tile(np.bincount(log.item, minlength=log.n_items).astype(float), (log.n_users, 1))


@BOTH
def test_it_beats_popularity_where_tastes_differ(world, Learner):
    train, test = world
    model = Learner(8, updates=200_000).fit(train)
    for metric in ("adg", "recall@10", "map"):
        assert score(model, test, train, metric) > 1.2 * score(popular(train), test, train, metric)


def test_adg_raises_the_adg_of_what_it_learns_from(world):
    train, _ = world
    found = [score(ADG(8, reg=0.01, updates=n).fit(train), train) for n in (1, 3_000, 100_000)]
    assert found[0] < found[1] < found[2]


def test_adg_puts_more_at_the_top_than_auc_with_the_same_start(world):
    train, _ = world
    a = ADG(4, 0.01, gamma=2, updates=200_000).fit(train)  # up to 45 draws
    b = AUC(4, 0.01, updates=200_000).fit(train)
    assert score(a, train) > score(b, train)
    assert score(a, train, metric="ndcg@10") > score(b, train, metric="ndcg@10")


# --- difficult data


@BOTH
def test_users_without_positives_are_ranked_by_the_biases(Learner):
    model = Learner(2, updates=500).fit(tiny())
    np.testing.assert_array_equal(model.scores([2])[0], model.item_bias_)
    _, users, items = model.notes_
    assert re.search(facts("1 user", "no positive", "item biases"), users)
    assert re.search(facts("1 item", "no positive"), items)


@BOTH
def test_notes_say_how_many_rows_are_positives(Learner):
    assert re.search(facts("2 of 3", "positives", 4), Learner(2, updates=10).fit(tiny((5, 3, 4))).notes_[0])


@BOTH
def test_one_item_leaves_nothing_to_rank(Learner):
    log = Feedback.from_arrays([0, 1], [0, 0], [1, 1], users=2, items=1)
    model = Learner(1).fit(log)
    assert re.search(facts("one item"), model.notes_[-1])
    assert np.isfinite(model.scores([0, 1])).all()
    assert model.history_.shape == (0, 2)


def test_auc_does_not_draw_users_who_like_everything():
    log = Feedback.from_arrays([0, 0, 0, 1], [0, 1, 2, 1], np.ones(4), users=2, items=3)
    start = AUC(2, updates=300, rate=1e-60).fit(log)
    model = AUC(2, updates=300).fit(log)
    assert re.search(facts("1 user", "every item"), model.notes_[-1])
    np.testing.assert_array_equal(model.user_factors_[0], start.user_factors_[0])
    assert model.scores([1]).argmax() == 1
    assert not any("every item" in note for note in ADG(2, updates=300).fit(log).notes_)


def test_auc_stays_as_it_began_where_everybody_likes_everything():
    log = Feedback.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], np.ones(4), users=2, items=2)
    model = AUC(2).fit(log)
    assert np.isfinite(model.scores([0, 1])).all()
    assert model.history_.shape == (0, 2)


@BOTH
def test_no_positive_at_all_is_an_error_with_a_remedy(Learner):
    with pytest.raises(EmptyError, match=facts(Learner.__name__, 4, 3, "threshold=")):
        Learner(2).fit(tiny((3, 2, 1)))


@BOTH
@pytest.mark.parametrize("bad", [{"rate": 1e6}, {"rate": 5.0, "reg": 1.0}])
def test_divergence_is_said(world, Learner, bad):
    with pytest.raises(DivergenceError, match=facts(Learner.__name__, f"rate={bad['rate']:g}", "smaller rate")):
        Learner(8, **bad).fit(world[0])


# --- what is refused


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [("factors", 0), ("factors", 5), ("factors", 2.5), ("reg", -1), ("reg", np.nan), ("rate", 0), ("rate", np.inf),
     ("updates", 0), ("updates", 1e6), ("threads", 0), ("init", 0.0), ("init", np.nan), ("init", "normal"),
     ("init", True), ("init", None), ("threshold", np.nan), ("threshold", "4"), ("rng", -1), ("rng", None)],
)  # fmt: skip
def test_a_parameter_out_of_range_is_named(Learner, name, value):
    with pytest.raises(InputError, match=facts(f"{Learner.__name__}: {name}")):
        Learner(**({"factors": 2} | {name: value})).fit(tiny())


@pytest.mark.parametrize("gamma", [0, -1, np.nan, "100"])
def test_gamma_is_positive(gamma):
    with pytest.raises(InputError, match=facts("ADG", "gamma", repr(gamma))):
        ADG(2, gamma=gamma).fit(tiny())


@BOTH
@pytest.mark.parametrize("weight", [[1, 1, 0], [1, 1, -1], [1, np.nan, 1]])
def test_weights_must_be_positive(Learner, weight):
    with pytest.raises(InputError, match=facts(Learner.__name__, "sample_weight", "1 of 3")):
        Learner(2).fit(tiny(), sample_weight=weight)


@BOTH
def test_a_start_of_another_shape_is_refused(Learner):
    V, W, b = np.ones((3, 2)), np.ones((4, 2)), np.zeros(4)
    for arrays in ((V, W), (V[:2], W, b), (V, W, b[:3]), (V[:, :1], W, b)):
        with pytest.raises(AlignmentError, match=facts(Learner.__name__, "init", (3, 2), (4, 2), (4,))):
            Learner(2, init=arrays).fit(tiny())
    with pytest.raises(InputError, match=facts(Learner.__name__, "init", "finite")):
        Learner(2, init=(V, W * np.nan, b)).fit(tiny())


@BOTH
def test_a_start_from_other_users_or_an_unfitted_model_is_refused(Learner):
    begun = AUC(2, updates=10).fit(replace(tiny(), users=Vocabulary.of(["a", "b", "c"])))
    with pytest.raises(AlignmentError, match=facts(Learner.__name__, "init", "other users")):
        Learner(2, init=begun).fit(tiny())
    with pytest.raises(NotFittedError):
        Learner(2, init=AUC(2)).fit(tiny())


@pytest.fixture
def interruptible():
    """A process that was started in the background ignores interrupts; this one hears them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@BOTH
def test_an_interrupt_ends_the_fit(world, Learner, interruptible):
    model, alarm = Learner(2, updates=10**10), threading.Timer(0.2, _thread.interrupt_main)  # about an hour
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(world[0])
    alarm.join()
    assert not hasattr(model, "users_")


@BOTH
def test_a_bar_on_a_stream_that_is_no_terminal_says_nothing(world, Learner, capsys):
    Learner(2, updates=100, progress=True).fit(world[0])
    assert capsys.readouterr().err == ""
