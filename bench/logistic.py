"""Logistic propensities of Coat, against scikit-learn's LogisticRegression on the explicit design.

The design has a column for each product of covariates and for each user and item; offsets are scaled up there, so
that the penalty on them, which scikit-learn cannot leave out, is as good as none. Its build counts, as a user has
to build it. Two ways of theirs: a dense design with newton-cholesky, and a sparse one with newton-cg. The target
on time counts against the faster, that on memory against each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, data_folder, make_input, missing, race

NAME = "logistic, Coat"
ROUNDS = {"full": 3, "quick": 1}
REG = 100.0  # what cross-validation chooses on Coat
SCALE = 1000.0
TARGET = 0.1
PARITY = 1e-6
MODULE = "bench.logistic"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    if make_input(MODULE, folder, size) is None:
        return [missing(NAME, "the data set 'coat' is neither in $OPENLOOP_DATA nor in ../shared/data")]
    found = race({name: Side(call=f"{MODULE}:{name}") for name in ("ours", "sparse", "dense")}, folder, ROUNDS[size])
    ours, peers = found["ours"], {name: found[name] for name in ("sparse", "dense")}
    gap = max(abs(ours.value / peer.value - 1) for peer in peers.values())
    times = ", ".join(f"{name} {peer.best:.3g} s" for name, peer in peers.items())
    note = f"{times}; penalised log-likelihoods {ours.value:.4f} and {peers['sparse'].value:.4f}, {gap:.0e} apart"
    if gap > PARITY:
        return [missing(NAME, f"the optima differ: {note}", ours.best)]
    grown = "beside libraries and input"
    return [
        compare(NAME, ours.best, min(peer.best for peer in peers.values()), target=TARGET, note=note),
        *(compare(f"{NAME}, memory, {name}", ours.grown, peer.grown, target=TARGET, note=grown, unit="B")
          for name, peer in peers.items()),
    ]  # fmt: skip


def make(folder: Path, size: str) -> str | None:
    source = data_folder("coat")
    if source is None and size == "full":
        return None
    O, X, Z = invented() if source is None else coat(source)
    users = slice(None) if size == "full" else slice(0, 20)
    rated = O[users].any(axis=0)  # without a row an item has no finite offset
    np.savez(folder / "coat.npz", O=O[users][:, rated], X=X[users], Z=Z[rated])
    return str(source)


def coat(source: Path) -> tuple[Any, Any, Any]:
    X, Z = (np.loadtxt(source / "user_item_features" / f"{side}_features.ascii") for side in ("user", "item"))
    return np.loadtxt(source / "train.ascii") > 0, X, Z


def invented() -> tuple[Any, Any, Any]:
    """Of Coat's shape, for a trial without it: 24 rows for each user, and covariates of 0 and 1."""
    rng = np.random.default_rng(0)
    O = np.argsort(rng.random((20, 300)), axis=1) < 24
    return O, rng.integers(2, size=(20, 14)).astype(float), rng.integers(2, size=(300, 33)).astype(float)


def load(folder: Path) -> tuple[Any, Any, Any]:
    with np.load(folder / "coat.npz") as file:
        return file["O"], file["X"], file["Z"]


def ours(folder: Path) -> Any:
    import openloop as ol
    from openloop.propensity import Logistic

    O, X, Z = load(folder)
    user, item = np.nonzero(O)
    log = ol.Feedback.from_arrays(user, item, np.ones(len(user)), users=len(O), items=len(Z))
    return lambda: Logistic(reg=REG).fit(log, X, Z).log_likelihood_


def sparse(folder: Path) -> Any:
    from scipy.sparse import csr_array, hstack

    O, X, Z = load(folder)

    def design() -> Any:
        u, i, offset = cells(O)
        # A column of Z at a time, kept sparse: 0/1 covariates have few products that are not 0.
        products = [csr_array(X[u] * Z[i, c][:, None]) for c in range(Z.shape[1])]
        at = np.arange(len(u))
        return hstack([*products, *(csr_array((offset, (at, code))) for code in (u, i))]).tocsr()

    return fitted(O, X.shape[1] * Z.shape[1], design, "newton-cg")


def dense(folder: Path) -> Any:
    O, X, Z = load(folder)

    def design() -> Any:
        u, i, offset = cells(O)
        D = np.zeros((O.size, X.shape[1] * Z.shape[1] + sum(O.shape)))
        D[:, : -sum(O.shape)] = (X[u][:, :, None] * Z[i][:, None, :]).reshape(O.size, -1)
        for code, start in ((u, -sum(O.shape)), (i, -len(Z))):
            D[np.arange(O.size), start + code] = offset
        return D

    return fitted(O, X.shape[1] * Z.shape[1], design, "newton-cholesky")


def cells(O: Any) -> tuple[Any, Any, Any]:
    u, i = (code.ravel() for code in np.indices(O.shape))
    return u, i, np.full(O.size, SCALE)


def fitted(O: Any, products: int, design: Any, solver: str) -> Any:
    from sklearn.linear_model import LogisticRegression

    y = O.ravel().astype(float)

    def timed() -> float:
        D = design()
        model = LogisticRegression(C=1 / REG, fit_intercept=False, solver=solver, tol=1e-8, max_iter=200).fit(D, y)
        z = D @ model.coef_[0]
        return float(np.sum(y * z - np.logaddexp(0, z)) - REG / 2 * np.sum(np.square(model.coef_[0, :products])))

    return timed
