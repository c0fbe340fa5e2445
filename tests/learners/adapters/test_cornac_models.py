"""Cornac's models as learners here: Cornac's own numbers, under our codes, and rules for what it never saw."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from openloop.core.feedback import Feedback, Vocabulary
from openloop.core.propensities import Propensities
from openloop.data.simulate import checkerboard, movie_lovers, withhold_diagonal
from openloop.errors import DivergenceError, InputError, MissingPackageError, UndefinedError
from openloop.learners import CornacModel
from openloop.learners.adapters.cornac_models import Met, _arguments, _guarded
from tests.contracts import PersonalRecommenderContract, RecommenderContract
from tests.facts import facts

pytestmark = pytest.mark.usefixtures("cornac")


class CornacsModels:
    """The module `cornac.models`, imported at its first use: without Cornac this file is read, and its tests skip."""

    def __getattr__(self, name):
        return getattr(import_module("cornac.models"), name)


models = CornacsModels()


@pytest.fixture
def Dataset(cornac):
    return cornac.data.Dataset


class TestMF(PersonalRecommenderContract):
    def make(self):
        return CornacModel(models.MF(k=3, max_iter=200, learning_rate=0.05, lambda_reg=0.001, seed=0))


class TestBPR(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return CornacModel(models.BPR(k=4, max_iter=100, learning_rate=0.05, lambda_reg=0.001, seed=0))


@pytest.mark.usefixtures("torch")
class TestNeuMF(RecommenderContract):
    implicit = True

    def make(self):
        options = {"num_factors": 2, "layers": (4, 2), "num_epochs": 2, "batch_size": 64}
        return CornacModel(models.NeuMF(**options, backend="pytorch", verbose=False, seed=0))


def log() -> Feedback:
    return movie_lovers(users=12, items=9).observe(3)


# Users 0, 2 and items 1, 2 of a 3 × 4 grid: user 1 and items 0, 3 have no row.
HOLES = Feedback.from_arrays([0, 2, 2], [1, 1, 2], [5.0, 3.0, 1.0], users=3, items=4)


# -- by hand -------------------------------------------------------------------------------------------------


def test_most_popular_counts_rows_and_puts_unseen_items_with_the_least_popular():
    model = CornacModel(models.MostPop()).fit(HOLES)
    np.testing.assert_array_equal(model.scores([0, 1, 2]), [[1, 2, 1, 1]] * 3)


def test_an_unseen_item_gets_the_mean_where_that_is_asked_for():
    model = CornacModel(models.MostPop(), unknown="mean").fit(HOLES)
    np.testing.assert_array_equal(model.scores([2]), [[1.5, 2, 1, 1.5]])
    users, items = model.notes_
    assert re.search(facts("1 user", "no rating", "mean"), users)
    assert re.search(facts("2 items", "no rating", "mean"), items)


def test_unseen_users_and_items_are_an_error_where_that_is_asked_for():
    with pytest.raises(InputError, match=facts("1 user", "2 items", 'unknown="lowest"')):
        CornacModel(models.MostPop(), unknown="error").fit(HOLES)
    model = CornacModel(models.MostPop(), unknown="error").fit(checkerboard(4).everything())
    assert model.notes_ == ()


def test_an_unseen_user_is_the_mean_of_the_others():
    model = CornacModel(models.SVD(k=2, learning_rate=0.1, seed=1)).fit(HOLES)
    scores = model.scores([0, 1, 2])
    np.testing.assert_allclose(scores[1, 1:3], (scores[0, 1:3] + scores[2, 1:3]) / 2, rtol=1e-12)
    np.testing.assert_array_equal(scores[:, 0], scores.min(axis=1))
    np.testing.assert_array_equal(model.predict([1, 0, 1], [2, 3, 0]), scores[[1, 0, 1], [2, 3, 0]])


def test_no_pairs_have_no_predictions():
    model = CornacModel(models.GlobalAvg()).fit(log())
    assert model.predict([], []).shape == (0,)
    assert model.scores([]).shape == (0, 9)


# -- Cornac's own numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("BaselineOnly", {}),
        ("MF", {"k": 2, "learning_rate": 0.05}),
        ("PMF", {"k": 2, "learning_rate": 0.05, "variant": "linear"}),
        ("PMF", {"k": 2, "learning_rate": 0.05, "variant": "non_linear"}),
        ("WBPR", {"k": 2, "max_iter": 50}),
        ("EASE", {}),
    ],
)
def test_predictions_are_cornacs_under_our_ids(Dataset, name, options):
    model = getattr(models, name)(**options, seed=1)
    feedback = replace(log(), users=Vocabulary.of([f"user {n:02}" for n in range(12)]))
    feedback = feedback.take(feedback.user != 3)  # from there on our codes and Cornac's indices differ
    users, items = (
        v.ids[np.unique(c)].tolist() for v, c in ((feedback.users, feedback.user), (feedback.items, feedback.item))
    )
    columns = feedback.users.ids[feedback.user], feedback.items.ids[feedback.item].tolist(), feedback.rating.tolist()
    maps = {
        "global_uid_map": dict(zip(users, range(11), strict=True)),
        "global_iid_map": dict(zip(items, range(9), strict=True)),
    }
    theirs = model.clone().fit(Dataset.build(list(zip(*columns, strict=True)), **maps, seed=1))
    ours = CornacModel(model).fit(feedback)
    wanted = [[float(np.squeeze(theirs.score(theirs.uid_map[u], theirs.iid_map[i]))) for i in items] for u in users]
    np.testing.assert_allclose(ours.scores(feedback.users.codes(users)), wanted, rtol=1e-5, atol=1e-6)
    assert np.ptp(wanted) > 0.01
    assert ours.model_.recommend("user 05") == theirs.recommend("user 05")


def test_in_the_order_of_the_input_predictions_are_what_cornac_makes_of_the_file(Dataset):
    feedback = log()
    mixed = np.random.default_rng(3).permutation(len(feedback))
    user, item, rating = (column[mixed] for column in (feedback.user, feedback.item, feedback.rating))
    theirs = models.MF(k=3, max_iter=5, seed=1)
    theirs.fit(Dataset.from_uir(list(zip(user.tolist(), item.tolist(), rating.tolist(), strict=True)), seed=1))
    shuffled = Feedback.from_arrays(user, item, rating, users=feedback.n_users, items=feedback.n_items)
    ours = CornacModel(models.MF(k=3, max_iter=5, seed=1), order="input").fit(shuffled)
    wanted = [theirs.score(theirs.uid_map[u], theirs.iid_map[i]) for u, i in zip(user, item, strict=True)]
    np.testing.assert_allclose(ours.predict(user, item), np.ravel(wanted), rtol=1e-6)
    in_order = CornacModel(models.MF(k=3, max_iter=5, seed=1)).fit(shuffled)
    assert np.abs(in_order.predict(user, item) - np.ravel(wanted)).max() > 1e-3


@pytest.mark.usefixtures("torch")
def test_what_the_data_set_draws_may_have_a_seed_of_its_own():
    def scores(**options):
        return CornacModel(models.BPR(k=3, seed=1), **options).fit(log()).scores([0, 1])

    np.testing.assert_array_equal(scores(data_seed=1), scores())
    model = models.GMF(num_factors=3, seed=1, num_epochs=1, backend="pytorch")
    own, other = (CornacModel(model, data_seed=seed).fit(log()).scores([0, 1]) for seed in (1, 2))
    np.testing.assert_array_equal(CornacModel(model).fit(log()).scores([0, 1]), own)
    assert not np.array_equal(own, other)


def test_an_unknown_order_is_refused():
    with pytest.raises(InputError, match=facts("CornacModel", "order", "sorted", "input", "'file'")):
        CornacModel(models.MF(), order="file").fit(log())


def test_drawn_items_are_those_that_cornac_draws(Dataset):
    feedback = log()
    given = _arguments(feedback, Met(np.arange(len(feedback)), np.arange(12), np.arange(9)), 4)
    options = {"batch_size": 7, "shuffle": True, "binary": True, "num_zeros": 3}
    for theirs, ours in zip(
        Dataset(**given).uir_iter(**options), _guarded(Dataset)(**given).uir_iter(**options), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    pairs = (list(kind(**given).uij_iter(batch_size=7)) for kind in (Dataset, _guarded(Dataset)))
    for theirs, ours in zip(*pairs, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_nonnegative_factors_with_offsets_are_scored():
    model = CornacModel(models.NMF(k=2, max_iter=3, use_bias=True, seed=1)).fit(log())
    fitted = model.model_
    wanted = fitted.global_mean + fitted.u_biases[5] + fitted.i_biases + fitted.i_factors @ fitted.u_factors[5]
    np.testing.assert_allclose(model.scores([5])[0], wanted, rtol=1e-5)


def test_ratings_that_are_all_alike_still_rank():
    ones = replace(log(), rating=np.ones(len(log()), np.float32))
    scores = CornacModel(models.PMF(k=2, max_iter=5, variant="non_linear", seed=1)).fit(ones).scores([0])
    assert len(np.unique(scores)) == 9


# -- nothing but the model changes ---------------------------------------------------------------------------


def test_the_given_model_stays_as_it_was_and_a_fitted_one_is_trained_anew():
    given = models.BPR(k=2, max_iter=3, seed=0)
    first = CornacModel(given).fit(log())
    assert not given.is_fitted
    assert given.u_factors is None
    np.testing.assert_array_equal(CornacModel(first.model_).fit(log()).scores([0]), first.scores([0]))


def test_training_is_silent(capfd):
    CornacModel(models.BPR(k=2, max_iter=3, verbose=True, seed=0)).fit(log())
    assert capfd.readouterr() == ("", "")


def test_global_generators_keep_their_state(torch):
    gmf = models.GMF(num_factors=2, num_epochs=1, backend="pytorch", verbose=False, seed=9)
    generator, before = torch.random.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    CornacModel(gmf).fit(log())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), generator)


def test_a_seed_gives_the_same_bits_on_any_number_of_threads(torch):
    gmf = models.GMF(num_factors=16, num_epochs=2, backend="pytorch", verbose=False, seed=9)
    feedback, threads, answers = movie_lovers(users=60, items=50).observe(1), torch.get_num_threads(), []
    for n in (1, 2):
        torch.set_num_threads(n)
        answers.append(CornacModel(gmf).fit(feedback).scores([0, 1]))
        assert torch.get_num_threads() == n
    torch.set_num_threads(threads)
    np.testing.assert_array_equal(*answers)


def test_an_interrupt_passes_and_leaves_nothing_learned(monkeypatch):
    def interrupted(*_):
        np.random.seed(1)  # noqa: NPY002
        raise KeyboardInterrupt

    monkeypatch.setattr(models.MF, "_fit_cpu", interrupted)
    model, before = CornacModel(models.MF(k=2)), np.random.get_state()[1]  # noqa: NPY002
    with pytest.raises(KeyboardInterrupt):
        model.fit(log())
    assert not [name for name in vars(model) if name.endswith("_")]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# -- the door ------------------------------------------------------------------------------------------------


def test_weights_that_differ_are_refused_with_the_reason():
    feedback = log()
    model, weight = CornacModel(models.GlobalAvg()), np.linspace(1, 2, len(feedback))
    for call in (lambda: model.fit(feedback, weight), lambda: model.fit(replace(feedback, weight=weight))):
        with pytest.raises(InputError, match=facts("CornacModel", "sample_weight", 0.667, "weighted=False")):
            call()
    model.fit(feedback, Propensities(values=np.full(len(feedback), 0.2)))


def test_what_is_no_model_of_users_and_items_is_refused():
    for given in ("BPR", models.BPR, None, models.GRU4Rec()):
        with pytest.raises(InputError, match=facts("CornacModel", type(given).__name__)):
            CornacModel(given).fit(log())


def test_an_unknown_rule_for_the_unknown_is_refused():
    with pytest.raises(InputError, match=facts("CornacModel", "unknown", "lowest", "mean", "error", "'zero'")):
        CornacModel(models.MostPop(), unknown="zero").fit(log())


@pytest.mark.usefixtures("torch")
def test_a_user_who_rated_everything_is_refused_where_cornac_would_look_forever():
    full = checkerboard(4).everything()
    with pytest.raises(InputError, match=facts("4 users", "every item")):
        CornacModel(models.GMF(num_factors=2, backend="pytorch", seed=0)).fit(full)
    liked, _ = withhold_diagonal(full)
    CornacModel(models.GMF(num_factors=2, num_epochs=1, backend="pytorch", verbose=False, seed=0)).fit(liked)


def test_pairs_are_refused_where_no_item_has_less(Dataset):
    # user 0 likes both items alike, user 1 has one below the other
    feedback = Feedback.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [5, 5, 5, 4], users=2, items=2)
    rows = _guarded(Dataset)(**_arguments(feedback, Met(np.arange(len(feedback)), np.arange(2), np.arange(2)), None))
    with pytest.raises(InputError, match=facts("2 users", "every item")):
        rows.uij_iter()


def test_divergence_is_said():
    with pytest.raises(DivergenceError, match=facts("CornacModel", "MF", "learning rate")):
        CornacModel(models.MF(k=2, learning_rate=50.0, seed=0)).fit(log())


def test_saving_is_refused_with_the_reason(tmp_path):
    with pytest.raises(UndefinedError, match=facts("CornacModel", "pickle", "model.model_.save(folder)")):
        CornacModel(models.MostPop()).fit(log()).save(tmp_path / "model")


@pytest.mark.parametrize(
    ("missing", "name", "told"),
    [
        ("cornac.models", "MostPop", ("cornac", "openloop[cornac]")),
        ("torch", "MLP", ("MLP", "torch", "openloop[torch]")),
        ("tensorflow", "WMF", ("WMF", "tensorflow", 'zoo("WMF")')),
    ],
    ids=["cornac", "torch", "tensorflow"],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, missing, name, told):
    model = getattr(models, name)(**({"backend": "pytorch"} if name == "MLP" else {}))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingPackageError, match=facts("CornacModel", *told)):
        CornacModel(model).fit(log())


def test_a_model_that_wants_more_than_ratings_is_refused():
    with pytest.raises(InputError, match=facts("CornacModel", "VBPR", "'item_image'")):
        CornacModel(models.VBPR(seed=1)).fit(checkerboard(6).observe(0))
