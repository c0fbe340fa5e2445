"""Ranking metrics over a whole catalogue, against `ranking_eval` of Cornac, on MovieLens-1M-half.

Same factors (a truncated SVD of the training part), same split, positives from rating 4 on, training items out
of the ranking. Without ties nDCG@10, Recall@10, AUC and MAP mean the same in both; in a tie Cornac counts a loss
for AUC and the last place for MAP, where openloop takes the expectation. Cornac's MRR agrees when evaluated
alone: beside a metric @k it reads a list that is sorted down to k only. Precision@10 is left out: Cornac
averages it over users, openloop defines it over cells. Cornac leaves out of the ranking only what was rated at
the threshold or above in training, so its training part gets the threshold as every rating.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.environments import environment
from bench.harness import Result, Side, SideError, compare, data_folder, make_input, missing, race

NAME = "cornac ranking_eval"
METRICS = ("ndcg@10", "recall@10", "auc", "map", "mrr")
FACTORS = 64
POSITIVE = 4.0
ROUNDS = {"full": 4, "quick": 2}
TARGET = 1 / 100
TOLERANCE = 1e-6
MODULE = "bench.cornac_ranking"


def run(folder: Path, size: str, *, install: bool = True) -> list[Result]:
    if size == "full" and data_folder("ml-1m-half") is None:
        return [missing(NAME, "ml-1m-half is neither in $OPENLOOP_DATA nor in ../shared/data")]
    make_input(MODULE, folder, size)
    sides = {"ours": Side(call=f"{MODULE}:ours")}
    try:
        python = environment("cornac", install=install)
    except SideError as error:
        return [missing(NAME, str(error), race(sides, folder, ROUNDS[size])["ours"].best)]
    sides["peer"] = Side(call=f"{MODULE}:peer", python=python)
    found = race(sides, folder, ROUNDS[size])
    alone = race({"mrr": Side(call=f"{MODULE}:peer_mrr", python=python)}, folder, 1)["mrr"].value["mrr"]
    ours, peer = found["ours"], found["peer"]
    note = f"{agreement(ours.value, peer.value, alone)}; our first call took {ours.first:.2g} s"
    return [compare(NAME, ours.best, peer.best, target=TARGET, note=note)]


def agreement(ours: dict[str, float], peer: dict[str, float], mrr: float) -> str:
    """Where the values differ, and by how much."""
    gaps = {name: abs(ours[name] - (mrr if name == "mrr" else peer[name])) for name in METRICS}
    beyond = [f"{name} by {gap:.1e}" for name, gap in gaps.items() if gap > TOLERANCE]
    verdict = f"values DIFFER: {', '.join(beyond)}" if beyond else f"values agree to {max(gaps.values()):.0e}"
    return f"{verdict}, with Cornac's MRR alone ({mrr:.6f}; beside @10 it gives {peer['mrr']:.6f})"


def make(folder: Path, size: str) -> None:
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    user, item, rating = movielens() if size == "full" else invented()
    rng = np.random.default_rng(1)
    test = rng.random(len(user)) < 0.2
    shape = (int(user.max()) + 1, int(item.max()) + 1)
    U, s, Vt = svds(csr_array((rating[~test], (user[~test], item[~test])), shape=shape), k=FACTORS, rng=rng)
    # Items that training never saw would all have factors of 0, and tie.
    Q = Vt.T + 1e-3 * rng.standard_normal(Vt.T.shape)
    np.savez(
        folder / "log.npz", user=user, item=item, rating=rating, test=test,
        P=(U * s).astype(np.float32), Q=np.ascontiguousarray(Q, np.float32),
    )  # fmt: skip


def movielens() -> tuple[Any, Any, Any]:
    path = Path(str(data_folder("ml-1m-half"))) / "ratings.dat"
    rows = np.array([line.split("::")[:3] for line in path.read_text(encoding="latin-1").splitlines()], np.int64)
    user, item = (np.unique(column, return_inverse=True)[1] for column in rows.T[:2])
    return user, item, rows[:, 2].astype(np.float64)


def invented() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((80, 120)) < 0.3)
    return user, item, rng.integers(1, 6, len(user)).astype(np.float64)


def load(folder: Path) -> dict[str, Any]:
    with np.load(folder / "log.npz") as file:
        return {name: file[name] for name in file.files}


class Factors:
    """A model that is its factors: openloop asks it for nothing else, `scores` marks it as a recommender."""

    def __init__(self, P: Any, Q: Any) -> None:
        self.P, self.Q = P, Q

    def scores(self, users: Any) -> Any:
        """P Qᵀ."""
        return self.P[users] @ self.Q.T

    def factor_arrays(self) -> tuple[Any, Any, None]:
        """P, Q and no bias."""
        return self.P, self.Q, None


def ours(folder: Path) -> Any:
    import openloop as ol

    log = load(folder)
    sizes = {"users": len(log["P"]), "items": len(log["Q"])}
    train, test = (
        ol.Feedback.from_arrays(log["user"][part], log["item"][part], log["rating"][part], **sizes)
        for part in (~log["test"], log["test"])
    )
    model = Factors(log["P"], log["Q"])

    def timed() -> dict[str, float]:
        result = ol.evaluate(
            {"svd": model}, test, metrics=METRICS, estimators=["naive"], exclude=train, threshold=POSITIVE
        )
        return {name: result["svd", name, "naive"].value for name in METRICS}

    return timed


def peer(folder: Path) -> Any:
    from cornac.metrics import AUC, MAP, MRR, NDCG, Recall

    metrics = (NDCG(k=10), Recall(k=10), AUC(), MAP(), MRR())
    return cornac_side(folder, dict(zip(METRICS, metrics, strict=True)))


def peer_mrr(folder: Path) -> Any:
    from cornac.metrics import MRR

    return cornac_side(folder, {"mrr": MRR()})


def cornac_side(folder: Path, metrics: dict[str, Any]) -> Any:
    from cornac.data import Dataset
    from cornac.eval_methods.base_method import ranking_eval
    from cornac.models import Recommender

    log = load(folder)
    P, Q = log["P"], log["Q"]
    users, items = ({i: i for i in range(len(F))} for F in (P, Q))

    def dataset(part: Any, rating: Any) -> Any:
        columns = (log["user"][part], log["item"][part], rating[part])
        return Dataset(num_users=len(P), num_items=len(Q), uid_map=users, iid_map=items, uir_tuple=columns)

    class Given(Recommender):
        def score(self, user_idx: int, item_idx: int | None = None) -> Any:
            return Q @ P[user_idx] if item_idx is None else Q[item_idx] @ P[user_idx]

    train = dataset(~log["test"], np.full(len(log["rating"]), POSITIVE))
    test = dataset(log["test"], log["rating"])
    model = Given("svd").fit(train)

    def timed() -> dict[str, float]:
        values, _ = ranking_eval(model, list(metrics.values()), train, test, rating_threshold=POSITIVE)
        return dict(zip(metrics, map(float, values), strict=True))

    return timed
