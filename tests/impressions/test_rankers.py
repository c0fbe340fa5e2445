"""Tables, functions, recommenders and arrays of one ranker say the same; what is no ranker is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Vocabulary
from openloop.errors import AlignmentError, PredictionError, UnknownIdError
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import ShownSource
from openloop.learners import GlobalAverage
from tests.click_cases import log_of, world
from tests.facts import facts


def all_scores():
    return world().scores("a", log_of().users.ids)  # (U, I)


class Model:
    """A recommender in codes of the log."""

    def predict(self, user, item):
        return all_scores()[user, item]

    def scores(self, users):
        return all_scores()[users]


class Stepped(Model):
    """Its predictions are a function of the scores that makes ties of them."""

    linked = True

    def linear(self, user, item):
        return all_scores()[user, item]

    def predict(self, user, item):
        return np.round(all_scores()[user, item])


def forms():
    table = world().ranks(log_of())["a"]
    by_request = table.rename({"user": "id"}).join(requests(), on="id").drop("id")
    return {
        "ranks": table, "requests": by_request, "function": world().rankers["a"], "recommender": Model(),
        "stepped": Stepped(),
        "scores": table.with_columns(score=-table["rank"]).drop("rank"),
    }  # fmt: skip


def requests():
    import polars as pl

    return pl.DataFrame({"id": log_of().users.ids[log_of().user], "request": np.arange(log_of().n_requests)})


def source(model, log=None, **options):
    return ShownSource({"a": model}, log_of() if log is None else log, world().theta, ShownQuestion(**options))


def ranks(model, log=None, **options):
    made = source(model, log, **options)
    made.reduce([])
    return made.row_ranks()["a"]


@pytest.mark.parametrize("candidates", ["all", "shown"])
@pytest.mark.parametrize("metrics", ["clicks", "dcg"])
def test_every_form_gives_the_same_ranks(candidates, metrics):
    found = {name: ranks(model, candidates=candidates, metrics=metrics) for name, model in forms().items()}
    wanted = found["ranks"]
    for name, other in found.items():
        np.testing.assert_array_equal(other, wanted, err_msg=name)
    order = (
        np.argsort(np.argsort(-all_scores(), axis=1), axis=1)[log_of().user[log_of().request], log_of().item] + 1
    )  # (n,)
    if candidates == "all":
        cut = log_of().depth if metrics == "clicks" else log_of().n_items
        np.testing.assert_array_equal(wanted, np.where(order <= cut, order, 0))
    else:
        inside = np.argsort(np.argsort(order.reshape(-1, 3), axis=1), axis=1) + 1
        np.testing.assert_array_equal(wanted, inside.ravel())


def test_an_array_holds_the_ranks_of_rows():
    wanted = ranks(forms()["ranks"])
    np.testing.assert_array_equal(ranks(wanted.astype(np.int64)), wanted)


def test_what_is_not_listed_comes_last_as_shown():
    only = np.where(log_of().position == 3, 1, 0).astype(np.int32)
    found = ranks(only, candidates="shown").reshape(-1, 3)
    assert (found == [2, 3, 1]).all()


class Other(Model):
    items_ = Vocabulary.range(5)


@pytest.mark.parametrize(
    ("model", "error", "told"),
    [
        (GlobalAverage, PredictionError, ("GlobalAverage", "class")),
        (np.ones(3, np.int32), AlignmentError, (3, "int32")),
        (np.ones(3), AlignmentError, ("float64",)),
        (Other(), UnknownIdError, ("'a'", 1, "6 items", 5)),
        (lambda *_: np.ones(2), PredictionError, ("one score per pair", "(2,)")),
        (lambda users, _: np.full(len(users), np.nan), PredictionError, ("NaN",)),
        (object(), PredictionError, ("object", "ranker")),
    ],
    ids=["class", "length", "floats", "vocabulary", "shape", "nan", "object"],
)
def test_what_is_no_ranker(model, error, told):
    with pytest.raises(error, match=facts(*told)):
        ranks(model)


def test_what_a_recommender_raises_is_an_error_that_names_it():
    class Broken(Model):
        def predict(self, user, item):
            return {}["weights"]

        def scores(self, users):
            return {}["weights"]

    for candidates, asked in (("all", "user"), ("shown", "pairs")):
        told = rf"model 'a': asked about [\d,]+ {asked}.* KeyError: 'weights'; repair"
        with pytest.raises(PredictionError, match=told):
            ranks(Broken(), candidates=candidates)


def test_a_recommender_of_more_ids_is_found_by_id():
    users, items = log_of().users.ids, log_of().items.ids
    scores = np.hstack([all_scores()[::-1], np.full((len(users), 1), 99.0)])  # other rows, and an item more
    known = ol.wrap(scores, users=users[::-1], items=[*items, items.max() + 1])
    for candidates in ("all", "shown"):
        np.testing.assert_array_equal(ranks(known, candidates=candidates), ranks(Model(), candidates=candidates))


def test_what_there_is_to_know_of_a_wrapped_model_is_noted():
    users, items = log_of().users.ids, log_of().items.ids
    vectors = np.ones((len(users), 2)), np.ones((len(items), 2))
    known = ol.wrap(vectors, users=users, items=[*items[:-1], items.max() + 1], unknown="zero")
    assert any("model 'a'" in note and f"1 of {len(items)} items" in note for note in source(known).notes)


def test_candidates_that_the_log_does_not_name_are_refused():
    small = replace(log_of(), pool=np.full(log_of().n_requests, 4, np.int32))
    with pytest.raises(PredictionError, match=facts("'a'", 6, 'candidates="shown"')):
        ranks(Model(), small)
    assert ranks(Model(), small, candidates="shown").min() == 1


def test_a_recommender_needs_users_and_its_methods():
    bare = replace(log_of(), user=None, users=None)
    with pytest.raises(PredictionError, match=facts("users", "none")):
        ranks(Model(), bare)

    class Half:
        def predict(self, user, item):
            return all_scores()[user, item]

    with pytest.raises(PredictionError, match=facts("Half", "scores")):
        ranks(Half())


def test_a_function_ranks_for_requests_where_no_users_are_logged():
    bare = replace(log_of(), user=None, users=None)
    rank = ranks(lambda who, items: -((np.asarray(items) + who) % 6), bare)
    wanted = (log_of().item + log_of().request) % 6 + 1
    np.testing.assert_array_equal(rank, np.where(wanted <= 3, wanted, 0))
    with pytest.raises(PredictionError, match=facts("neither users nor requests")):
        ranks(lambda _, items: items, replace(bare, requests=None))


def test_probabilities_have_no_order():
    import polars as pl

    table = pl.DataFrame({"user": log_of().users.ids, "item": 0, "position": 1, "probability": 1.0})
    assert source(table).support.random == "a"
    with pytest.raises(PredictionError, match=facts("'a'", 'candidates="shown"')):
        ranks(table, candidates="shown")
