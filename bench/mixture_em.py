"""An iteration of EM for a mixture of users, 10 components on 15,400 × 1,000 cells, against dense matrices in NumPy.

The peer does what one writes first: ratings as one dense matrix of ones, users × (item, level), whose products with the
tables of components give the sums over observed cells. Its arithmetic is the same, so both likelihoods are too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, make_input, race

SIZES = {"full": (15_400, 1_000, 10), "quick": (200, 100, 3)}  # users, items, components
DENSITY, LEVELS = 0.05, 5
SECONDS = 0.3
ROUNDS = {"full": 3, "quick": 2}
MODULE = "bench.mixture_em"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    make_input(MODULE, folder, size)
    results: list[Result] = []
    for missing in ("cpt-v", "logit-vd"):
        what = f"MixtureMNAR, an iteration of EM, {missing}"
        sides = {"ours": Side(call=f"{MODULE}:iteration", rest=(missing,))}
        sides |= {"dense": Side(call=f"{MODULE}:dense")} if missing == "cpt-v" else {}
        found = race(sides, folder, ROUNDS[size])
        ours, peer = found["ours"], found.get("dense")
        results.append(compare(what, ours.best, target=SECONDS, note=f"log-likelihood {ours.value:.6f}"))
        if peer is not None:
            same = f"log-likelihood {peer.value:.6f}"
            results.append(compare(f"{what}, by dense matrices", ours.best, peer.best, target=0.5, note=same))
    return results


def make(folder: Path, size: str) -> None:
    U, I, Z = SIZES[size]
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((U, I)) < DENSITY)
    np.savez(folder / "mixture.npz", user=user, item=item, level=rng.integers(LEVELS, size=len(user)), shape=[U, I, Z])


def _start(folder: Path, missing: str) -> Any:
    """The rows, priors and the first parameters."""
    from openloop.kernels.mixture_em import RatedCells
    from openloop.learners.solvers.mixture import Priors, start

    given = np.load(folder / "mixture.npz")
    U, I, Z = given["shape"].tolist()
    cells = RatedCells.of(given["user"], given["item"], given["level"], (U, I, LEVELS))
    offsets = None if missing == "cpt-v" else 1.0
    priors = Priors(users=1.0, ratings=20.0 * cells.shares, cells=1.0, offset_sd=offsets)
    return cells, priors, start(cells, Z, np.random.default_rng(0))


def iteration(folder: Path, missing: str) -> Any:
    """What makes an E step and an M step; its value is the log-likelihood per cell after one of them."""
    from openloop.kernels.mixture_em import components, expected
    from openloop.learners.solvers.mixture import step

    cells, priors, first = _start(folder, missing)

    def one() -> Any:
        given, _ = components(cells, first.mixture)
        after = step(expected(cells, first.mixture, given), priors, first)
        return lambda: float(components(cells, after.mixture)[1].sum() / cells.rows)

    return one


def dense(folder: Path) -> Any:
    """The same for `cpt-v`, with ratings as a dense matrix."""
    from scipy.special import logit

    from openloop.kernels.mixture_em import components

    cells, priors, first = _start(folder, "cpt-v")
    O = cells.by_user.toarray()  # (U, I·L)
    (U, I, L), at = cells.shape, first.mixture

    def one() -> Any:
        unseen = at.unseen_levels  # (I, L, Z)
        q = unseen.sum(axis=1)  # (I, Z)
        table = np.log(at.beta * at.seen[:, :, None]).reshape(I * L, -1)
        absent = 1 - O.reshape(U, I, L).sum(axis=2)  # (U, I)
        joint = O @ table + absent @ np.log(q) + np.log(at.theta)  # (U, Z)
        given = np.exp(joint - joint.max(axis=1, keepdims=True))
        given /= given.sum(axis=1, keepdims=True)
        seen = (O.T @ given).reshape(I, L, -1)
        every = seen + unseen / q[:, None] * (absent.T @ given)[:, None]
        theta, beta = given.sum(axis=0) + priors.users, every + priors.ratings[:, None]
        mu = (seen.sum(axis=(0, 2)) + priors.cells) / (every.sum(axis=(0, 2)) + 2 * priors.cells)
        after = type(first)(
            theta=theta / theta.sum(), beta=beta / beta.sum(axis=1, keepdims=True), s=logit(mu), omega=first.omega
        )
        return lambda: float(components(cells, after.mixture)[1].sum() / cells.rows)

    return one
