"""Models of real libraries, wrapped: scored as the library does, whatever its ids."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import openloop as ol
from openloop.core.feedback import Array

U, I, K = 30, 20, 4
RNG = np.random.default_rng(0)
CELL = np.sort(RNG.choice(U * I, 260, replace=False))
USER, ITEM = np.divmod(CELL, I)
STARS = RNG.integers(1, 6, len(CELL)).astype(np.float64)
MATRIX = sp.csr_matrix((STARS.astype(np.float32), (USER, ITEM)), shape=(U, I))
PAIRS = RNG.integers(0, U, 100), RNG.integers(0, I, 100)  # rows of a model

IDS = {
    "rows": (np.arange(U), np.arange(I)),  # and not said
    "text": (
        np.array([f"u{k * 7 % U}" for k in range(U)], object),
        np.array([f"m{k}" for k in range(I)], object)[::-1],
    ),
    "gaps": (np.arange(U)[::-1] * 3 + 1000, np.roll(np.arange(I) ** 2, 3)),
}


@dataclass(frozen=True)
class Made:
    """A wrapped model, and what its library itself says of all cells, (U, I), in the order of the model's rows."""

    model: Any
    own: Array
    ids: str
    ranked: Array | None = None  # where it predicts another function of what it ranks by
    source: Any = None  # the library's model


def said(kind: str) -> dict[str, Any]:
    """The ids as `wrap` is told them."""
    return {} if kind == "rows" else dict(zip(("users", "items"), IDS[kind], strict=True))


def ratings(kind: str) -> Any:
    import pandas as pd

    users, items = IDS[kind]
    return pd.DataFrame({"user_id": users[USER], "item_id": items[ITEM], "rating": STARS})


def in_codes(own: Array, kind: str) -> Array:
    """The same cells in the codes of the log."""
    users, items = (np.argsort(ids) for ids in IDS[kind])
    return own[users][:, items]


class Library:
    """What holds for every model; `made` is a fixture that gives one."""

    def test_pairs_are_scored_as_the_library_does(self, made):
        (users, items), (u, i) = IDS[made.ids], PAIRS
        codes = made.model.users_.codes(users[u]), made.model.items_.codes(items[i])
        np.testing.assert_allclose(made.model.predict(*codes), made.own[u, i], rtol=0, atol=1e-5)

    def test_items_are_scored_as_the_library_does(self, made):
        wanted = in_codes(made.own if made.ranked is None else made.ranked, made.ids)
        np.testing.assert_allclose(made.model.scores(np.arange(U)), wanted, rtol=0, atol=1e-5)


def models(*names: str) -> Any:
    """A fixture of such models: the first with all kinds of ids, the others with text."""
    kinds = [(name, kind) for name in names for kind in (IDS if name == names[0] else ["text"])]
    return pytest.fixture(scope="class", params=kinds, ids="-".join)


# -- implicit ------------------------------------------------------------------------------------------------


class TestImplicit(Library):
    @models("als.AlternatingLeastSquares", "bpr.BayesianPersonalizedRanking", "lmf.LogisticMatrixFactorization")
    @classmethod
    def made(cls, request, implicit):  # noqa: ARG003, it must be there
        (module, _, title), kind = request.param[0].partition("."), request.param[1]
        with threadpool_limits(1, "blas"):  # which it warns about
            model = getattr(import_module(f"implicit.{module}"), title)(
                factors=K, iterations=5, random_state=0, num_threads=1
            )
            model.fit(MATRIX, show_progress=False)
        return Made(ol.wrap(model, **said(kind)), all_recommended(model), kind, source=model)

    def test_its_own_file_is_read(self, made, tmp_path):
        made.source.save(tmp_path / "implicit.npz")
        found = ol.load(tmp_path / "implicit.npz")
        np.testing.assert_allclose(found.scores(np.arange(U)), made.own, rtol=0, atol=1e-5)


def all_recommended(model: Any) -> Array:
    """The score of every item for every user, by `recommend`."""
    items, scores = model.recommend(np.arange(U), sp.csr_matrix((U, I)), N=I, filter_already_liked_items=False)
    found = np.full((U, I), np.nan)
    np.put_along_axis(found, items, scores, axis=1)
    return found


# -- LightFM -------------------------------------------------------------------------------------------------


class TestLightFM(Library):
    @models("bpr", "warp", "logistic")
    @classmethod
    def made(cls, request, lightfm):
        loss, kind = request.param
        model = lightfm.LightFM(no_components=K, loss=loss, random_state=0)
        model.fit((MATRIX > 3).astype(np.float32).tocoo(), epochs=3)
        u, i = np.indices((U, I)).reshape(2, -1).astype(np.int32)
        return Made(ol.wrap(model, **said(kind)), model.predict(u, i).reshape(U, I), kind)


# -- Surprise ------------------------------------------------------------------------------------------------


@cache
def surprise_model(name: str, kind: str, **options: Any) -> Any:
    """An algorithm fitted to the ratings by their raw ids, of which it has its own inner ones."""
    surprise: Any = import_module("surprise")
    data = surprise.Dataset.load_from_df(ratings(kind), surprise.Reader(rating_scale=(1, 5)))
    with contextlib.redirect_stdout(io.StringIO()):
        return getattr(surprise, name)(**options).fit(data.build_full_trainset())


def estimates(model: Any, users: Any, items: Any, *, clip: bool) -> Array:
    return np.array([[model.predict(u, i, clip=clip).est for i in items] for u in users])


FACTORED = {"n_factors": 3, "n_epochs": 5, "random_state": 0}
ALGORITHMS = {
    "SVD": ("SVD", FACTORED), "SVDpp": ("SVDpp", FACTORED), "NMF": ("NMF", FACTORED),
    "SVD without biases": ("SVD", FACTORED | {"biased": False, "init_mean": 0.5}),
    "NMF with biases": ("NMF", FACTORED | {"biased": True}),
    "KNNBasic": ("KNNBasic", {}), "BaselineOnly": ("BaselineOnly", {}),
}  # fmt: skip


class TestSurprise(Library):
    @models(*ALGORITHMS)
    @classmethod
    def made(cls, request, surprise):  # noqa: ARG003
        (name, kind), (users, items) = request.param, IDS[request.param[1]]
        model = surprise_model(ALGORITHMS[name][0], kind, **ALGORITHMS[name][1])
        cut, free = (estimates(model, users.tolist(), items.tolist(), clip=clip) for clip in (True, False))
        return Made(ol.wrap(model), cut, kind, ranked=free)


# -- LensKit -------------------------------------------------------------------------------------------------

SCORERS = {
    "als.BiasedMFScorer": {"embedding_size": K, "epochs": 3},
    "als.ImplicitMFScorer": {"embedding_size": K, "epochs": 3},
    "knn.ItemKNNScorer": {"max_nbrs": 5},
    "basic.BiasScorer": {},
}


@cache
def pipeline(name: str, kind: str, make: str) -> Any:
    module, _, title = name.partition(".")
    scorer = getattr(import_module(f"lenskit.{module}"), title)(**SCORERS[name])
    found = getattr(import_module("lenskit.pipeline"), make)(scorer)
    found.train(import_module("lenskit.data").from_interactions_df(ratings(kind)))
    return found


def run(found: Any, node: str, users: Array, items: Array) -> Array:
    wanted = import_module("lenskit.data").ItemList(item_ids=items)
    return np.array([found.run(node, query=user, items=wanted).scores() for user in users], np.float64)


class TestLensKit(Library):
    @models(*SCORERS)
    @classmethod
    def made(cls, request, lenskit):  # noqa: ARG003
        name, kind = request.param
        found = pipeline(name, kind, "predict_pipeline")
        # What a scorer of neighbours lacks has no score, and its predictor falls back on the mean.
        ranked = run(found, "scorer", *IDS[kind])
        return Made(
            ol.wrap(found), run(found, "rating-predictor", *IDS[kind]), kind, np.nan_to_num(ranked, nan=-np.inf)
        )


# -- FAISS ---------------------------------------------------------------------------------------------------

V, W = (RNG.normal(size=(n, K)).astype(np.float32) for n in (U, I))


class TestFaiss(Library):
    @models("IndexFlatIP", "IndexFlatL2")
    @classmethod
    def made(cls, request, faiss):
        name, kind = request.param
        index = getattr(faiss, name)(K)
        index.add(W)
        own = searched(index, np.arange(I))
        return Made(ol.wrap((V, index), **said(kind)), own, kind)


def searched(index: Any, ids: Array) -> Array:
    """The nearness of every item to every user, by `search`; a distance is far from near."""
    near, found = index.search(V, I)
    row = {value: row for row, value in enumerate(ids.tolist())}
    own = np.empty((U, I), np.float32)
    np.put_along_axis(own, np.vectorize(row.get)(found), -near if index.metric_type == 1 else near, axis=1)
    return own


# -- scikit-learn --------------------------------------------------------------------------------------------


class TestScikitLearn(Library):
    @models("NMF", "TruncatedSVD", "PCA")
    @classmethod
    def made(cls, request):
        (name, kind), X = request.param, MATRIX.astype(np.float64)
        more = {"init": "nndsvda", "max_iter": 5000} if name == "NMF" else {}
        model = getattr(import_module("sklearn.decomposition"), name)(K, random_state=0, **more)
        X = X.toarray() if name == "PCA" else X
        return Made(ol.wrap((model.fit(X), X), **said(kind)), model.inverse_transform(model.transform(X)), kind)
