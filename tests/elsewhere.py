"""Models of other libraries, as stand-ins: the attributes, shapes and answers of the real classes, and no more."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from tests.examples import small_world

WORLD = small_world()
U, I = WORLD.ratings.shape
USERS, ITEMS = Vocabulary.of([f"u{u:02}" for u in range(U)]), Vocabulary.of([100 + 7 * i for i in range(I)])
SEEN = WORLD.observe(1)
LOG = Feedback.from_arrays(SEEN.user, SEEN.item, SEEN.rating, users=USERS, items=ITEMS)

_RNG = np.random.default_rng(5)
# The order in which another library met the users and items: row r is the log's code ORDER[r].
USER_ORDER, ITEM_ORDER = _RNG.permutation(U), _RNG.permutation(I)
USER_IDS, ITEM_IDS = USERS.ids[USER_ORDER].tolist(), ITEMS.ids[ITEM_ORDER].tolist()
V, W = _RNG.normal(size=(U, 3)), _RNG.normal(size=(I, 3))  # by row
A, B, C = _RNG.normal(size=U), _RNG.normal(size=I), 3.0
ROW_OF_USER, ROW_OF_ITEM = np.argsort(USER_ORDER), np.argsort(ITEM_ORDER)

METRICS = ("mae", "ndcg@3", "recall@3")


def in_codes(by_row):
    """A grid by row of the model as a grid by code of the log."""
    return by_row[ROW_OF_USER][:, ROW_OF_ITEM]


def evaluated(model, log=LOG, metrics=METRICS, **options):
    return ol.evaluate({"m": model}, log, metrics=metrics, estimators=["naive"], **options)


def assert_evaluated_as(model, grid, metrics=METRICS):
    """A model is evaluated as the grid of its scores, by code of the log, is."""
    found, wanted = evaluated(model, metrics=metrics), evaluated(grid, metrics=metrics)
    for metric in metrics:
        np.testing.assert_allclose(
            found["m", metric, "naive"].value, wanted["m", metric, "naive"].value, rtol=1e-5, err_msg=metric
        )
    return found


class Als:
    """implicit.als.AlternatingLeastSquares."""

    def __init__(self, users=V, items=W):
        self.user_factors, self.item_factors = users, items

    def recommend(self, userid, user_items, N=10):
        raise AssertionError("nobody asks implicit for lists")


class LightFM:
    """lightfm.LightFM: embeddings of features, which without features are those of users and items."""

    def __init__(self):
        self.user_embeddings, self.item_embeddings, self.user_biases, self.item_biases = V, W, A, B

    def get_user_representations(self, features=None):
        return _represented(self.user_biases, self.user_embeddings, features)

    def get_item_representations(self, features=None):
        return _represented(self.item_biases, self.item_embeddings, features)

    def predict(self, user_ids, item_ids, item_features=None, user_features=None):
        return np.sum(V[user_ids] * W[item_ids], axis=1) + A[user_ids] + B[item_ids]


def _represented(bias, rows, features):
    return (bias, rows) if features is None else (features @ bias, features @ rows)


class Trainset:
    """surprise.Trainset of rows (inner user, inner item)."""

    def __init__(self, users=USER_IDS, items=ITEM_IDS):
        self._users, self._items = list(users), list(items)
        self.n_users, self.n_items, self.global_mean, self.rating_scale = len(users), len(items), C, (1, 5)
        self.ur = {u: [(i, 3.0) for i in range(len(items)) if (u + i) % 3] for u in range(len(users))}

    def to_raw_uid(self, inner):
        return self._users[inner]

    def to_raw_iid(self, inner):
        return self._items[inner]

    def inner(self, raw, among):
        return among.index(raw) if raw in among else None


class SVD:
    """surprise.SVD, biased or not, with its own answer about what the trainset lacks."""

    def __init__(self, biased=True, trainset=None):
        self.biased, self.trainset = biased, trainset or Trainset()
        self.pu, self.qi, self.bu, self.bi = V, W, A, B

    def user_vector(self, u):
        return self.pu[u]

    def estimate(self, u, i):
        known = u is not None and i is not None
        if not self.biased:
            return self.user_vector(u) @ self.qi[i] if known else None
        product = self.user_vector(u) @ self.qi[i] if known else 0.0
        return C + (0 if u is None else self.bu[u]) + (0 if i is None else self.bi[i]) + product

    def predict(self, uid, iid, r_ui=None, clip=True, verbose=False):
        inner = self.trainset.inner(uid, self.trainset._users), self.trainset.inner(iid, self.trainset._items)
        est = self.estimate(*inner)
        est = self.trainset.global_mean if est is None else est
        return SimpleNamespace(est=float(np.clip(est, 1, 5)) if clip else est)


class SVDpp(SVD):
    """surprise.SVDpp."""

    yj = np.random.default_rng(8).normal(size=(I, 3))

    def user_vector(self, u):
        rated = [i for i, _ in self.trainset.ur[u]]
        return self.pu[u] + self.yj[rated].sum(axis=0) / np.sqrt(len(rated))


class KNN(SVD):
    """An algorithm of Surprise that has no factors, or makes something else of them."""

    def user_vector(self, u):
        return self.pu[u] ** 2


def asked(algo, clip=True):
    """What an algorithm of Surprise says of every cell of the log, (U, I)."""
    return np.array([[algo.predict(u, i, clip=clip).est for i in ITEMS.ids.tolist()] for u in USERS.ids.tolist()])
