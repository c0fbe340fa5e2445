"""What the DCG of Table 1 owes to chance: other completions, users with few ones, the sample of SKEWED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.data.simulate import MARGINALS, World, five_predictions
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given
from openloop.studies.schnabel2016.tolerances import HALF_DIGIT, between_samples
from openloop.studies.schnabel2016.worlds import (
    ALPHA,
    DRAWS,
    MODELS,
    REDRAWS,
    Completion,
    completed,
    losses,
    semi_synthetic,
)

METRIC, TOP = "dcg@50", 50
OTHERS = 4  # samples of SKEWED


# -- trials --------------------------------------------------------------------------------------------------


def dcg_of_completion(
    given: Given, *, factors: int, reg: float, seed: int, alpha: float, marginals: Sequence[float]
) -> dict[str, npt.NDArray[Any]]:
    """A trial: ML100K completed with this d, λ and marginals; the DCG@50 of the models, true and as naive expects.

    `truth` and `naive` are (models,); `few` is the number of users with fewer than 50 ones.
    """
    Y = completed(given, factors=factors, reg=reg, seed=seed, marginals=marginals)["Y"]
    world = semi_synthetic({"Y": Y}, alpha, seed)
    delta, P = losses(world, [METRIC])[0], world.propensities.ravel()  # (models, U·I), (U·I,)
    # E[ΣOδ / ΣO] is ΣPδ / ΣP, but for terms of the order 1/ΣP.
    return {"truth": delta.mean(axis=-1), "naive": delta @ P / P.sum(), "few": np.array(few_ones(Y).sum())}


def rotate_without_few(given: Given, *, alpha: float, seed: int, draws: int) -> dict[str, Floats]:
    """A trial: the DCG@50 of ROTATE among users with at least 50 ones, `truth` (), and `naive` (draws,)."""
    world = semi_synthetic(given, alpha, seed)
    delta = losses(replace(world, predictions={"ROTATE": world.predictions["ROTATE"]}), [METRIC])[0, 0]  # (U·I,)
    many = ~few_ones(given["Y"])  # (U,)
    logs = (world.observe(np.random.default_rng([seed, DRAWS, draw])) for draw in range(draws))
    naive = [delta[log.cell][many[log.user]].mean() for log in logs]
    return {"truth": delta.reshape(world.ratings.shape)[many].mean(), "naive": np.array(naive)}


def few_ones(Y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """The users whose top 50 by ROTATE, which has the ones first, hold other stars too, (U,)."""
    return np.sum(np.equal(Y, 1), axis=1) < TOP


# -- other completions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtherCompletions:
    """The DCG@50 under d and λ that the held-out tenth cannot tell from the best, and under marginals moved one by one.

    `truth` and `naive` have a row for each of the `rivals` first, and then for each marginal, (rows, models) each.
    """

    rivals: int
    truth: Floats
    naive: Floats
    few: npt.NDArray[np.int64]  # users with fewer than 50 ones, (rivals,)

    def moves(self, name: str, ours: Floats) -> Floats:
        """How far `truth` or `naive` can be from ours: the farthest rival, and all marginals together, (models,).

        With m_k the move by the k-th marginal alone, moves d of all of them, |d| ≤ 1 and Σd = 0, add up to Σ d_k m_k
        to first order, which is at most Σ|m_k − median(m)|.
        """
        apart = getattr(self, name) - ours  # (rows, models)
        rivals, m = np.abs(apart[: self.rivals]), apart[self.rivals :]
        middle = np.median(m, axis=0) if len(m) else 0.0
        return rivals.max(axis=0, initial=0.0) + np.abs(m - middle).sum(axis=0)


def other_completions(run: Run, world: Completion) -> OtherCompletions:
    """The completions with rival d and λ, and with moved marginals; a quick run has none."""
    usual = (world.factors, world.reg)
    asked = [(*rival, MARGINALS) for rival in world.rivals] + [(*usual, p) for p in run.either(_moved(), [])]
    settings = [{"factors": d, "reg": reg, "seed": run.seed, "alpha": ALPHA, "marginals": p} for d, reg, p in asked]
    found = run.map(dcg_of_completion, world.log, settings, "completing ML100K otherwise")
    truth, naive = (
        np.array([one[name] for one in found]).reshape(-1, len(MODELS))  # also where there is none
        for name in ("truth", "naive")
    )
    few = np.array([int(one["few"]) for one in found[: len(world.rivals)]])
    return OtherCompletions(rivals=len(world.rivals), truth=truth, naive=naive, few=few)


def _moved() -> list[tuple[float, ...]]:
    """The marginals, each in turn half a unit of its last digit larger, and their sum 1 again."""
    larger = np.array(MARGINALS) + HALF_DIGIT * np.eye(len(MARGINALS))  # (5, 5)
    return [tuple(row) for row in (larger / larger.sum(axis=1, keepdims=True)).tolist()]


# -- other samples of SKEWED ---------------------------------------------------------------------------------


def other_samples(run: Run, world: Completion) -> dict[str, Floats]:
    """How far chance may put two samples of SKEWED apart in DCG@50, `truth` and as `naive` expects, (models,) each.

    A quick run, whose numbers are not held against the published ones, draws no samples and allows nothing.
    """
    truth, naive = (0.0, 0.0) if run.quick else variances_over_samples(world, run.seed)
    return {"truth": between_samples(truth), "naive": between_samples(naive)}


def variances_over_samples(world: Completion, seed: int) -> tuple[float, float]:
    """Of the DCG@50 of SKEWED, true and naive.

    It is a sum over users, Σ_u x_u, who are independent given Y. So it varies by Σ_u Var[x_u], and each variance is
    that over a few samples: all users together make it precise.
    """
    semi = semi_synthetic(world.given, ALPHA, seed)
    draws = (np.random.default_rng([seed, REDRAWS, number]) for number in range(OTHERS))
    x = np.array([_user_parts(semi, draw) for draw in draws])  # (samples, 2, U)
    truth, naive = x.var(axis=0, ddof=1).sum(axis=-1).tolist()
    return truth, naive


def _user_parts(semi: World, draw: np.random.Generator) -> Floats:
    """x_u of another sample of SKEWED: of its true DCG@50, Σ_i δ / (U·I), and of its naive, Σ_i P δ / ΣP, (2, U)."""
    Y, P = semi.ratings, semi.propensities
    sample = replace(semi, predictions={"SKEWED": five_predictions(Y, draw)["SKEWED"]})
    delta = losses(sample, [METRIC]).reshape(Y.shape)  # (U, I)
    return np.array([delta.sum(axis=1) / delta.size, (P * delta).sum(axis=1) / P.sum()])
