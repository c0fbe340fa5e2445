"""Joint models of ratings and of what is observed, at size: sweeps over a large grid; and worlds drawn from the model.

There is no peer: targets limit seconds and bytes themselves. The worlds are those of bench.joint_recovery and of tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from bench.harness import Result, Side, compare, make_input, race

# users, items, numbers in u and v
SIZES = {"full": (15_400, 1_000, 20), "quick": (200, 100, 4)}
DENSITY = 0.05
SHARES = {"all unobserved cells": 1.0, "a tenth of them": 0.1}
SECONDS = {1.0: 20.0, 0.1: 5.0}
BYTES = 4 * 2**30
ROUNDS = {"full": 3, "quick": 2}
MODULE = "bench.joint_models"
RISING = (-3.5, -2.8, -2.1, -1.4, -0.7)  # m of five levels: what is liked is rated


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    make_input(MODULE, folder, size)
    results: list[Result] = []
    for name, share in SHARES.items():
        found = race({name: Side(call=f"{MODULE}:sweeps", rest=(str(share),))}, folder, ROUNDS[size])[name]
        what = f"JointMNAR, a sweep of {SIZES[size][0]:,} × {SIZES[size][1]:,}, {name}"
        results += [
            compare(what, found.best, target=SECONDS[share], note=found.value),
            compare(f"{what}, memory", found.peak, target=BYTES, note="the whole process, input included", unit="B"),
        ]
    return results


def make(folder: Path, size: str) -> None:
    U, I, d = SIZES[size]
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((U, I)) < DENSITY)
    np.savez(folder / "joint.npz", user=user, item=item, rating=rng.integers(1, 6, len(user)), shape=[U, I, d])


def sweeps(folder: Path, share: str) -> Any:
    """What makes one more sweep of one chain."""
    from concurrent.futures import ThreadPoolExecutor

    from openloop.core.feedback import Feedback
    from openloop.learners.chains import SweepKey
    from openloop.learners.solvers import joint_state, ordinal_gibbs
    from openloop.learners.solvers.joint_gibbs import sweep
    from openloop.learners.solvers.joint_state import JointRows
    from openloop.learners.solvers.ordinal_gibbs import OrdinalRows

    given = np.load(folder / "joint.npz")
    U, I, d = given["shape"].tolist()
    log = Feedback.from_arrays(given["user"], given["item"], given["rating"], users=U, items=I)
    pool = ThreadPoolExecutor()
    ordinal = OrdinalRows.of(log, log.rating.astype(np.int16) - 1, 5)
    rows = JointRows.of(ordinal, float(share), float(np.log(DENSITY / (1 - DENSITY))), pool)
    first = ordinal_gibbs.begin(ordinal, d, 0, 0)
    at = {"state": joint_state.begin(first, rows, 3, SweepKey(seed=0, chain=0, sweep=0, burning=True)), "sweep": 1}

    def one() -> str:
        key = SweepKey(seed=0, chain=0, sweep=at["sweep"], burning=True)
        at["state"], at["sweep"] = sweep(rows, at["state"], key, pool), at["sweep"] + 1
        return f"{len(log):,} rows, d = {d}"

    return one


# -- worlds --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointWorld:
    """A log that was drawn from the joint model, all its ratings (U, I), and what they were drawn from."""

    log: Any
    rating: Any
    level_mean: Any  # m, (L,)
    by_user: Any  # λ, (U, L)
    by_item: Any  # ψ, (I, L)
    observed: Any  # P(observed | level), (U, I, L)
    chances: Any  # P(level), (U, I, L)

    @property
    def unseen(self) -> Any:
        """The cells that the log does not have, (U, I)."""
        unseen = np.ones(self.rating.shape, bool)
        unseen[self.log.user, self.log.item] = False
        return unseen


def joint_world(
    seed: int, shape: tuple[int, int] = (60, 50), level_mean: Any = RISING, spread: float = 0.4
) -> JointWorld:
    """Ratings of five levels; λ and ψ spread by `spread` around m and 0, and vectors of two and one numbers."""
    from openloop.core.feedback import Feedback

    rng, (U, I), m = np.random.default_rng(seed), shape, np.asarray(level_mean, np.float64)
    u, v = rng.normal([0.8, 0.0], 0.7, (U, 2)), rng.normal([0.2, 0.0], 0.9, (I, 2))
    scale = np.sqrt(np.outer(*(4 / rng.gamma(5, size=n) for n in (U, I))))
    cuts, mean = np.array([-1.2, -0.3, 0.5, 1.3]), u @ v.T
    level = np.searchsorted(cuts, mean + scale * rng.standard_normal((U, I)))
    chances = np.diff(ndtr((cuts - mean[..., None]) / scale[..., None]), axis=2, prepend=0, append=1)
    by_user, by_item = m + spread * rng.standard_normal((U, len(m))), spread * rng.standard_normal((I, len(m)))
    common = 0.5 * rng.standard_normal((U, 1)) @ rng.standard_normal((1, I))
    p = expit(common[..., None] + by_user[:, None] + by_item)  # (U, I, L)
    seen = rng.random((U, I)) < np.take_along_axis(p, level[..., None], axis=2)[..., 0]
    user, item = np.nonzero(seen)
    log = Feedback.from_arrays(user, item, level[seen] + 1, users=U, items=I)
    truth = {"level_mean": m, "by_user": by_user, "by_item": by_item, "observed": p, "chances": chances}
    return JointWorld(log=log, rating=level + 1, **truth)


# -- judging a fit -------------------------------------------------------------------------------------------


def held_by(world: JointWorld, model: Any) -> dict[str, float]:
    """Shares of true values that lie in 90 % intervals of draws."""
    truth = {
        # The mean of ψ and of eᵀf over cells is m's as well.
        "m": _logits(world).mean(axis=(0, 1)),
        "λ": centred(world.by_user),
        "ψ": centred(world.by_item),
    }
    drawn = {"m": _drawn_means(model), "λ": centred(model.user_effect_draws_), "ψ": centred(model.item_effect_draws_)}
    found = {}
    for name, values in drawn.items():
        low, high = np.quantile(values, [0.05, 0.95], axis=0 if name == "m" else 1)
        found[name] = float(np.mean((low <= truth[name]) & (truth[name] <= high)))
    return found


def centred(effects: Any) -> Any:
    """Effects less their mean over users or items, and then less their mean over levels: what eᵀf and m leave open."""
    away = effects - effects.mean(axis=0)
    return away - away.mean(axis=-1, keepdims=True)


def _logits(world: JointWorld) -> Any:
    return np.log(world.observed / (1 - world.observed))


def _drawn_means(model: Any) -> Any:
    """The mean logit of each level over all cells, by draw, (S, L)."""
    common = model.user_missing_draws_.mean(axis=0) * model.item_missing_draws_.mean(axis=0)  # (S, d′)
    effects = model.user_effect_draws_.mean(axis=0) + model.item_effect_draws_.mean(axis=0)  # (S, L)
    return effects + common.sum(axis=1, keepdims=True)


def errors(world: JointWorld, model: Any) -> float:
    """The mean squared error of predictions at the cells that the log does not have."""
    predicted = model.scores(np.arange(len(world.rating)))
    return float(np.mean((predicted - world.rating)[world.unseen] ** 2))
