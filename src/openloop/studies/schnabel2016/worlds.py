"""The semi-synthetic world of Schnabel et al. (2016): ML100K completed to Y, its observation model, five Ŷ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.blocks.block import Outcome
from openloop.core.feedback import Array, Floats
from openloop.data.simulate import MARGINALS, World, assign_marginals, five_predictions, observation_model
from openloop.data.splitting import split
from openloop.errors import InputError
from openloop.evaluation import evaluate
from openloop.kernels.ranking import ranks
from openloop.learners.mf import MF
from openloop.metrics.naming import metric
from openloop.metrics.rating import midpoints
from openloop.moments.rows import Rows, gains
from openloop.studies.kit.grids import EDGES, told
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, columns, feedback

ALPHA = 0.25  # the realistic observation model
OBSERVED = 0.05  # the share of the cells that a log shows, whatever α
MODELS = ("REC_ONES", "REC_FOURS", "ROTATE", "SKEWED", "COARSENED")

# Section 6.2 does not say which d and λ were tried; λ is added to a sum over ratings, as in Eq. 14.
FACTORS = (5, 10, 20, 40)
PENALTIES = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0)
HELD_OUT = 0.1

# Seeds of independent streams: np.random.default_rng([seed, stream, …]).
SPLIT, PREDICTIONS, DRAWS, SAMPLES, TIES, MOVIE_LOVERS, REDRAWS = range(1, 8)

StarGrid = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """Y (U, I) in stars 1 … 5, and the d and λ that completed it, with their 0/1 accuracy on the held-out tenth.

    `log` has the ratings that were there, and `shares` those of the stars 1 … 5 among them. `rivals` are the other
    d and λ whose accuracy is less than a standard error below the best.
    """

    ratings: StarGrid
    log: Given
    shares: Floats
    factors: int
    reg: float
    accuracy: float
    rivals: tuple[tuple[int, float], ...]

    @property
    def given(self) -> Given:
        """What the trials of the semi-synthetic items are given."""
        return {"Y": self.ratings}

    def __str__(self) -> str:
        return f"ML100K was completed with d = {self.factors} and λ = {self.reg:g}, as table1 says."

    @property
    def described(self) -> str:
        """How it was made."""
        (U, I) = self.ratings.shape
        d, reg = told(self.factors, FACTORS), told(self.reg, PENALTIES)
        return (
            f"ML100K ({U:,} users × {I:,} movies) was completed by matrix factorisation with free offsets (Eq. 14), "
            f"d = {d} and λ = {reg}, the best by the 0/1 accuracy of rounded predictions on a held-out tenth "
            f"({self.accuracy:.3f}). Section 6.2 does not say what was tried. Here d is one of "
            f"{', '.join(map(str, FACTORS))}, as in section 6.5, and λ one of "
            f"{', '.join(f'{one:g}' for one in PENALTIES)}. {EDGES}"
        )


def complete(run: Run) -> Completion:
    """ML100K completed: d and λ by 0/1 accuracy on a 90-10 split, then a fit to all ratings, then the marginals."""
    log = run.load("ml-100k").log
    given = columns(log)
    grid: list[dict[str, Any]] = [
        {"factors": d, "reg": reg, "seed": run.seed}
        for d in run.either(FACTORS, FACTORS[:1])
        for reg in run.either(PENALTIES, PENALTIES[4:5])
    ]
    found = [float(outcome["accuracy"]) for outcome in run.map(held_out_accuracy, given, grid, "completing ML100K")]
    best = int(np.argmax(found))
    Y = run.one(completed, given, **grid[best])["Y"]
    shares = np.array([np.mean(log.rating == star) for star in range(1, 6)])
    near = found[best] - math.sqrt(found[best] * (1 - found[best]) / (HELD_OUT * len(log)))
    rivals = [(g["factors"], g["reg"]) for at, g in enumerate(grid) if found[at] >= near and at != best]
    return Completion(
        ratings=Y, log=given, shares=shares, factors=grid[best]["factors"], reg=grid[best]["reg"],
        accuracy=found[best], rivals=run.either(tuple(rivals), ()),
    )  # fmt: skip


def held_out_accuracy(given: Given, *, factors: int, reg: float, seed: int) -> dict[str, float]:
    """A trial: the share of held-out ratings that the rounded prediction hits (section 6.2)."""
    train, test = split(feedback(given), test=HELD_OUT, rng=np.random.default_rng([seed, SPLIT]))
    model = _factorisation(factors, reg, seed).fit(train)
    result = evaluate({"mf": model}, test, metrics=["accuracy"], estimators=["naive"])
    return {"accuracy": result["mf", "accuracy", "naive"].value}


def completed(
    given: Given, *, factors: int, reg: float, seed: int, marginals: Sequence[float] = MARGINALS
) -> dict[str, StarGrid]:
    """A trial: every cell predicted from all ratings, and the predictions' order turned into stars."""
    log = feedback(given)
    values = _factorisation(factors, reg, seed).fit(log).scores(np.arange(log.n_users))  # (U, I)
    return {"Y": assign_marginals(values, marginals).astype(np.int8)}


def semi_synthetic(given: Given, alpha: float, seed: int) -> World:
    """Y with P of the observation model and the five Ŷ, which are the same whatever α."""
    Y = given["Y"]
    predictions = five_predictions(Y, np.random.default_rng([seed, PREDICTIONS]))
    return World(ratings=Y, propensities=observation_model(Y, alpha, OBSERVED), predictions=dict(predictions))


def uniform_sample(world: World, size: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """The ratings of cells drawn uniformly, none twice: MCAR data, which serve propensities and are never scored."""
    Y = world.ratings.ravel()
    if not 1 <= size <= Y.size:
        raise InputError(f"uniform_sample: size must be from 1 to {Y.size:,}, the cells of the world; got {size}.")
    return Y[rng.choice(Y.size, size, replace=False, shuffle=False)]


def _factorisation(factors: int, reg: float, seed: int) -> MF:
    # Eq. 14 penalises V and W, and leaves the offsets free.
    return MF(factors=factors, reg=reg, bias_reg=0.0, threads=1, rng=seed)


def losses(world: World, metrics: Sequence[str], tie_breaks: np.random.Generator | None = None) -> Floats:
    """δ of every cell, (metrics, models, U·I): Eq. 1 is its average over the cells.

    Items that a model ties count as their average over random order; `tie_breaks` puts them in one such order.
    """
    U, I = world.ratings.shape
    Y = world.ratings.ravel().astype(np.float64)  # (U·I,)
    rows = Rows(
        user=np.repeat(np.arange(U, dtype=np.int32), I), rating=Y, relevant=np.greater_equal(Y, 4.0).astype(np.float64),
        cells=np.full(U, float(I)), user_start=np.array([0, U]), middles=midpoints(np.unique(Y)),
    )  # fmt: skip
    wanted = [metric(name) for name in metrics]
    found = np.empty((len(metrics), len(world.predictions), U * I))
    for j, Y_hat in enumerate(world.predictions.values()):
        above, tied = _ranks(Y_hat if tie_breaks is None else _untied(Y_hat, tie_breaks))
        outcome = Outcome(prediction=Y_hat.ravel().astype(np.float64), above=above, tied=tied)
        for m, each in enumerate(wanted):
            found[m, j] = gains(each, rows, outcome)
    return found


def _ranks(scores: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """h and e of every cell, (U·I,) each."""
    U, I = scores.shape
    every = np.tile(np.arange(I, dtype=np.int32), U)
    above, tied = ranks(lambda users: scores[users], np.arange(U + 1) * I, every, I, threads=1)
    return above.astype(np.int64), tied.astype(np.int64)


def _untied(Y_hat: Array, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Scores in the order of Ŷ, ties broken at random: the place of each item, from the bottom."""
    order = np.lexsort((rng.random(Y_hat.shape), Y_hat), axis=1)  # (U, I)
    places = np.broadcast_to(np.arange(Y_hat.shape[1], dtype=np.float32), Y_hat.shape)
    scores = np.empty(Y_hat.shape, np.float32)
    np.put_along_axis(scores, order, places, axis=1)
    return scores
