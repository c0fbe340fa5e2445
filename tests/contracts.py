"""What every propensity model and every recommender promises; a test class inherits the promises.

    class TestUniform(PropensityModelContract):
        def make(self):
            return Uniform()

The worlds are small and their answers obvious: on the checkerboard user u's withheld item is u.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from openloop.core.feedback import Feedback, Vocabulary, frozen
from openloop.core.protocols import PropensityModel, Recommender, predicted_block
from openloop.data.simulate import checkerboard, movie_lovers, withhold_diagonal
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.testing import check_propensity_model, check_recommender


class ModelContract:
    """The manner of scikit-learn, which both protocols follow."""

    def make(self) -> Any:
        raise NotImplementedError

    def log(self) -> Feedback:
        raise NotImplementedError

    def fit(self, model: Any, feedback: Feedback) -> Any:
        """Override where fit wants more than feedback."""
        return model.fit(feedback)

    def fitted(self) -> Any:
        return self.fit(self.make(), self.log())

    def answers(self, model: Any) -> np.ndarray:
        """What the model says, to compare two models by."""
        raise NotImplementedError

    def test_init_only_assigns(self):
        model = self.make()
        assert set(vars(model)) == set(model.get_params(deep=False))

    def test_fit_returns_self_and_learned_state_ends_in_an_underscore(self):
        model = self.make()
        before = set(vars(model))
        assert self.fit(model, self.log()) is model
        learned = set(vars(model)) - before
        assert learned
        assert [name for name in learned if not name.endswith("_")] == []

    def test_fit_leaves_the_parameters_alone(self):
        model = self.make()
        before = {name: id(value) for name, value in model.get_params().items()}
        self.fit(model, self.log())
        assert {name: id(value) for name, value in model.get_params().items()} == before

    def test_a_clone_is_unfitted_and_learns_the_same_bits(self):
        model = self.fitted()
        twin = clone(model)
        assert not [name for name in vars(twin) if name.endswith("_")]
        np.testing.assert_array_equal(self.answers(self.fit(twin, self.log())), self.answers(model))

    def test_a_second_fit_forgets_the_first(self):
        log, model = self.log(), self.make()
        self.fit(model, log.take(np.arange(0, len(log), 2), share=np.full((len(log) + 1) // 2, 0.5)))
        np.testing.assert_array_equal(self.answers(self.fit(model, log)), self.answers(self.fitted()))

    def test_a_pickle_answers_alike(self):
        model = self.fitted()
        twin = pickle.loads(pickle.dumps(model))  # noqa: S301, it was pickled here
        np.testing.assert_array_equal(self.answers(twin), self.answers(model))


class PropensityModelContract(ModelContract):
    """A model of who saw what, on a log of the movie lovers."""

    #: False where p depends on the unseen rating, or is known for observed cells only.
    has_matrix = True
    #: False where p is not computed cell by cell, but given or looked up by rating.
    has_margins = True
    #: The expected number of observed cells, Σp over the grid, is the size of the log.
    sums_to_log = True
    #: Fitting counts rows, and a part of a log must say how much of it it is.
    needs_share = True

    def log(self) -> Feedback:
        return movie_lovers(users=30, items=20).observe(7)

    def answers(self, model: Any) -> np.ndarray:
        return model.predict(self.log()).values

    def test_it_is_a_propensity_model(self):
        assert isinstance(self.make(), PropensityModel)

    def test_unfitted_it_says_so(self):
        with pytest.raises(NotFittedError, match="fit"):
            self.make().predict(self.log())
        with pytest.raises(NotFittedError, match="fit"):
            self.make().matrix()

    def test_the_public_check_finds_nothing(self):
        check_propensity_model(self.make(), log=self.log(), fit=self.fit)

    def test_predictions_belong_to_their_feedback(self):
        log = self.log()
        p = self.fitted().predict(log)
        assert p.check(log) is p
        assert np.all((p.values > 0) & (p.values <= 1))

    def test_a_part_has_the_propensities_of_the_whole(self):
        log, model = self.log(), self.fitted()
        keep = np.arange(len(log)) % 3 == 0
        part = log.take(keep, share=np.full(int(keep.sum()), 1 / 3))
        np.testing.assert_allclose(model.predict(part).values, model.predict(log).values[keep], rtol=1e-12)

    def test_the_order_of_the_input_does_not_matter(self):
        log = self.log()
        mix = np.random.default_rng(0).permutation(len(log))
        columns = {"users": log.users, "items": log.items, "propensity": log.propensity[mix]}
        mixed = Feedback.from_arrays(log.user[mix], log.item[mix], log.rating[mix], **columns)
        values = self.fit(self.make(), mixed).predict(mixed).values
        np.testing.assert_array_equal(values, self.answers(self.fitted()))

    @pytest.mark.parametrize("side", ["users", "items"])
    def test_another_grid_is_refused(self, side):
        log, model = self.log(), self.fitted()
        ids = getattr(log, side).ids
        for other in (Vocabulary(ids + 1000), Vocabulary.range(len(ids) + 1)):  # other ids, another size
            with pytest.raises(AlignmentError, match=type(model).__name__):
                model.predict(replace(log, **{side: other}))

    def test_matrix_is_what_predict_looks_up_or_undefined(self):
        log, model = self.log(), self.fitted()
        if not self.has_matrix:
            with pytest.raises(UndefinedError, match=type(model).__name__):
                model.matrix()
            return
        P = model.matrix()
        assert P.shape == (log.n_users, log.n_items)
        assert np.all((P > 0) & (P <= 1))
        np.testing.assert_allclose(model.predict(log).values, P[log.user, log.item], rtol=1e-12)

    def test_the_matrix_sums_to_the_log_where_the_class_says_so(self):
        if self.has_matrix:
            assert np.isclose(self.fitted().matrix().sum(), len(self.log()), rtol=1e-4) == self.sums_to_log
        else:
            assert not self.sums_to_log

    def test_margins_are_the_sums_of_the_matrix_or_undefined(self):
        model = self.fitted()
        assert hasattr(model, "margins") == self.has_margins
        if self.has_margins and self.has_matrix:
            by_user, by_item = model.margins()
            np.testing.assert_allclose(by_user, model.matrix().sum(axis=1), rtol=1e-9)
            np.testing.assert_allclose(by_item, model.matrix().sum(axis=0), rtol=1e-9)
        elif self.has_margins:
            with pytest.raises(UndefinedError, match=type(model).__name__):
                model.margins()

    def test_refit_on_the_same_log_says_the_same(self):
        model = self.fitted()
        again = model.refit(self.log())
        assert again is not model
        # What was chosen by cross-validation may be kept, and the optimum be approached from elsewhere.
        np.testing.assert_allclose(self.answers(again), self.answers(model), rtol=1e-6)

    def test_a_table_is_no_feedback(self):
        with pytest.raises(InputError, match=r"takes a Feedback, got dict; read the log with ol\.read"):
            self.fit(self.make(), {"user": [1]})

    def test_a_part_without_a_share_is_refused_or_not_needed(self):
        log = self.log()
        part = log.take(np.arange(len(log)) % 2 == 0, share=None)
        if not self.needs_share:
            assert len(self.fit(self.make(), part).predict(part)) == len(part)
            return
        with pytest.raises(UndefinedError, match=f"{type(self.make()).__name__}.*share.*fit on the whole log"):
            self.fit(self.make(), part)


class RecommenderContract(ModelContract):
    """A model of ratings or preferences, on a checkerboard without its diagonal."""

    size = 20
    #: True for a learner of positives: it sees the liked cells only, each with rating 1.
    implicit = False
    #: True where a prediction is a function of the score, `link`, as a probability is of its logit.
    has_link = False
    #: False for a learner that needs p itself, or takes no weights at all: weights are refused.
    weighted = True

    def log(self) -> Feedback:
        shown, _ = withhold_diagonal(checkerboard(self.size).everything())
        if not self.implicit:
            return shown
        liked = shown.take(shown.rating == 5)
        return replace(liked, rating=np.ones(len(liked), np.float32))

    def answers(self, model: Any) -> np.ndarray:
        return model.scores(np.arange(self.size))

    def test_it_is_a_recommender(self):
        assert isinstance(self.make(), Recommender)

    def test_unfitted_it_says_so(self):
        with pytest.raises(NotFittedError, match="fit"):
            self.make().predict([0], [0])
        with pytest.raises(NotFittedError, match="fit"):
            self.make().scores([0])

    def test_scores_are_a_finite_block_of_users_by_items(self):
        scores = self.fitted().scores([3, 0, 3])
        assert scores.shape == (3, self.size)
        assert scores.dtype.kind == "f"
        assert np.isfinite(scores).all()

    def test_the_public_check_finds_nothing(self):
        check_recommender(self.make(), log=self.log(), fit=self.fit)

    def test_predict_agrees_with_scores(self):
        model = self.fitted()
        user, item = (codes.ravel() for codes in np.indices((self.size, self.size)))
        predicted, scores = model.predict(user, item), self.answers(model)
        assert predicted.shape == user.shape
        expected = model.link(scores) if self.has_link else scores
        np.testing.assert_allclose(predicted, expected[user, item], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(predicted_block(model, np.arange(self.size)), expected)

    def test_a_link_keeps_the_order_of_scores(self):
        model = self.fitted()
        scores = np.sort(self.answers(model).ravel())
        assert hasattr(model, "link") or not self.has_link
        assert getattr(model, "linked", False) == self.has_link  # what others ask before they take scores for ratings
        linked = model.link(scores) if hasattr(model, "link") else scores
        assert np.all(np.diff(linked) >= 0)
        assert np.array_equal(linked, scores) != self.has_link

    def test_unit_weights_are_no_weights(self):
        log, model = self.log(), self.make()
        needs_p, takes_weights = getattr(model, "needs_propensities", False), getattr(model, "takes_weights", True)
        assert self.weighted == (takes_weights and not needs_p)
        if not self.weighted:
            with pytest.raises(InputError, match=r"sample_weight.*propensities="):
                model.fit(log, sample_weight=frozen(np.ones(len(log))))
            return
        model.fit(log, sample_weight=frozen(np.ones(len(log))))
        np.testing.assert_allclose(self.answers(model), self.answers(self.fitted()), rtol=1e-5, atol=1e-6)

    def test_weights_of_another_length_are_refused(self):
        log = self.log()
        with pytest.raises(InputError, match="sample_weight"):
            self.make().fit(log, sample_weight=np.ones(len(log) + 1))


class PersonalRecommenderContract(RecommenderContract):
    """A recommender that tells users apart, as a table of popular items does not."""

    def test_the_withheld_item_of_user_u_is_u(self):
        u, i = np.indices((self.size, self.size))
        seen = ((u + i) % 2 == 0) & (u != i)
        candidates = np.where(seen, -np.inf, self.answers(self.fitted()))
        np.testing.assert_array_equal(candidates.argmax(axis=1), np.arange(self.size))
