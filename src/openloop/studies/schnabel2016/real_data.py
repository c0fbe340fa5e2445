"""Coat and Yahoo! R3 for Table 2: propensities, models chosen on the log, predictions of the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.data.datasets import Data
from openloop.data.splitting import split
from openloop.errors import InputError
from openloop.learners.mf import MF
from openloop.propensity.logistic import Logistic
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.selection import select
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, columns, feedback
from openloop.studies.schnabel2016.factorisation import METRICS
from openloop.studies.schnabel2016.pair_logistic import pair_propensities

T = TypeVar("T")

LOSSES = ("absolute", "squared")  # in the order of the table: MAE, MSE
FACTORS = (5, 10, 20, 40)
# The paper's λ ∈ {10⁻⁶, …, 1}, beside an average over ratings. By thirds of a decade where the choice is made.
LAMBDAS = (1e-6, 1e-5, 1e-4, 2.15e-4, 4.64e-4, 1e-3, 2.15e-3, 4.64e-3, 1e-2, 1e-1, 1.0)
QUICK_FACTORS, QUICK_LAMBDAS = FACTORS[2:3], LAMBDAS[4:6]
OFFSETS = (None, 0.0)  # penalised by λ too, or free as Eq. 14 prints
FOLDS, TOL, SWEEPS = 4, 1e-4, 60
SET_ASIDE = 0.05  # of the uniform ratings of Yahoo! R3, for Naive Bayes


# -- propensities of Coat ------------------------------------------------------------------------------------


def offset_propensities(given: Given, *, folds: int, seed: int) -> dict[str, npt.NDArray[Any]]:
    """A trial: section 5.1's model, with free offsets for every user and item beside the pairs."""
    log = feedback(given)
    model = Logistic(folds=folds, rng=seed).fit(log, given["user_covariates"], given["item_covariates"])
    return {"p": model.predict(log).used, "reg": np.array(model.reg_)}


# -- learning ------------------------------------------------------------------------------------------------


def predicted(
    given: Given, *, by: str, loss: str, seed: int, factors: Sequence[int], lambdas: Sequence[float]
) -> dict[str, npt.NDArray[Any]]:
    """A trial: d, λ and the offsets' penalty by cross-validation on the log, a fit to all of it, and what it predicts.

    `by` names the propensities in `given`, or is "naive". `prediction` is for the test cells, whose ratings it lacks.
    """
    log, weighted = feedback(given), by != "naive"
    beside_average = {reg * len(log): reg for reg in lambdas}  # MF's λ is added to a sum
    learner = MF(loss=loss, tol=TOL, iterations=SWEEPS, threads=1, rng=seed)  # pyright: ignore[reportArgumentType]
    found = select(
        learner, log, np.asarray(given[by], np.float64) if weighted else None,
        grid={"bias_reg": OFFSETS, "factors": factors, "reg": list(beside_average)},
        metric=METRICS[loss], folds=FOLDS, threads=1, rng=seed, estimator="ips" if weighted else "naive",
    )  # fmt: skip
    return {"prediction": found.model.predict(given["test_user"], given["test_item"]).astype(np.float64)}


# -- the data sets -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedData:
    """A log, propensities of its rows by name, the uniform ratings to test on, and what to know about them."""

    log: Feedback
    propensities: Mapping[str, npt.NDArray[Any]]
    test: Feedback
    notes: tuple[str, ...]

    @property
    def given(self) -> dict[str, npt.NDArray[Any]]:
        """What trials that predict are given: of the test set only which cells it has."""
        return {**columns(self.log), **self.propensities, "test_user": self.test.user, "test_item": self.test.item}


def coat(run: Run, data: Data) -> PreparedData:
    """Coat with three sets of propensities."""
    log, test = data.log, needed(data.open_loop, "test.ascii")
    published = needed(data.propensities, "propensities.ascii")
    X, Z = needed(data.user_covariates, "user_features.ascii"), needed(data.item_covariates, "item_features.ascii")
    given = {**columns(log), "user_covariates": X.values, "item_covariates": Z.values}
    pairs = run.one(pair_propensities, given, folds=FOLDS, seed=run.seed)
    offsets = run.one(offset_propensities, given, folds=FOLDS, seed=run.seed)
    theirs = published[log.user, log.item]
    like = {name: float(np.corrcoef(p, theirs)[0, 1]) for name, p in (("pairs", pairs["p"]), ("offsets", offsets["p"]))}
    note = (
        f"Propensities of Coat by logistic regression: on all {X.values.shape[1] * Z.values.shape[1]} pairs of "
        f"covariates and a constant, as section 6.5 has it (penalty {float(pairs['reg']):g} by cross-validated "
        f"log-likelihood), and with an offset for each user and item as section 5.1 has it (penalty "
        f"{float(offsets['reg']):g}). Their correlation with the published ones over the log is {like['pairs']:.3f} "
        f"and {like['offsets']:.3f}."
    )
    by = {"pairs": pairs["p"], "offsets": offsets["p"], "published": theirs}
    return PreparedData(log=log, propensities=by, test=test, notes=(note,))


def needed(part: T | None, file: str) -> T:
    """A part of a data set that its loader can do without, and the study cannot."""
    if part is None:
        raise InputError(f"table2: needs {file}, which is not in the folder of the data set; fetch it again.")
    return part


def yahoo(log: Feedback, uniform: Feedback, seed: int) -> PreparedData:
    """Yahoo! R3: a twentieth of the uniform ratings serves Naive Bayes, and only the rest is tested."""
    test, sample = split(uniform, test=SET_ASIDE, rng=np.random.default_rng([seed, 2]))
    model = NaiveBayes().fit(log, uniform=replace(sample, uniform=True))
    by_rating = ", ".join(f"{p:.4f} of {r:g}" for r, p in model.propensity_by_rating_.items())
    note = (
        f"Yahoo! R3: {len(sample):,} uniform ratings were set aside for Naive Bayes and are not among the "
        f"{len(test):,} that are tested. Propensities of ratings: {by_rating}."
    )
    return PreparedData(log=log, propensities={"bayes": model.predict(log).used}, test=test, notes=(note,))


# -- what came out -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """A method's predictions of the test cells by one loss, (seeds, n)."""

    by: str
    loss: str
    predictions: Floats

    def losses(self, rating: npt.NDArray[Any]) -> Floats:
        """δ of each test cell, (seeds, n): Eq. 2 or 3."""
        return losses(self.predictions, rating, self.loss)


def losses(prediction: Floats, rating: npt.NDArray[Any], loss: str) -> Floats:
    """Squared or absolute errors."""
    e = prediction - rating
    return np.square(e) if loss == "squared" else np.abs(e)


def spread_over_seeds(means: Floats) -> float | None:
    """The standard deviation over seeds; None of one."""
    return float(means.std(ddof=1)) if len(means) > 1 else None


def tested(run: Run, given: Given, methods: Sequence[str], seeds: int, name: str) -> list[Tested]:
    """Every method by both losses."""
    options: dict[str, Any] = {
        "factors": run.either(FACTORS, QUICK_FACTORS),
        "lambdas": run.either(LAMBDAS, QUICK_LAMBDAS),
    }
    asked: list[dict[str, Any]] = [
        {"by": by, "loss": loss, "seed": run.seed + s, **options}
        for by in methods
        for loss in METRICS
        for s in range(seeds)
    ]
    found = run.map(predicted, given, asked, f"learning on {name}")
    together = [found[first : first + seeds] for first in range(0, len(found), seeds)]
    return [
        Tested(by=setting["by"], loss=setting["loss"], predictions=np.array([o["prediction"] for o in outcomes]))
        for setting, outcomes in zip(asked[::seeds], together, strict=True)
    ]  # fmt: skip
