"""`python -m bench.joint_propensities [--logs N]`: propensities of joint models where p depends on the unseen rating.

In worlds of known truth and on Coat, beside models that do not see the rating and models that see a uniform sample.
Writes its tables between the marks in docs/choosing.md; `--quick` prints them for one log. Trials are kept: a run that
was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bench.harness import ROOT, data_folder
from bench.pages import SimulatedPage, kept
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.data.splitting import folds
from openloop.evaluation import evaluate
from openloop.learners.baselines import Bias, GlobalAverage
from openloop.learners.joint_mnar import JointMNAR
from openloop.learners.mf import MF
from openloop.learners.mixture_mnar import MixtureMNAR
from openloop.propensity.balanced import Balanced
from openloop.propensity.known import Known
from openloop.propensity.logistic import Logistic
from openloop.propensity.low_rank import LowRank
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.propensity.uniform import Uniform
from openloop.support.wording import counted

Floats = npt.NDArray[np.float64]

U, I, OBSERVED = 250, 200, 0.1
SHARES = (0.2, 0.25, 0.25, 0.2, 0.1)  # of the levels
WORLDS = ("the rating", "rating, user and item", "user and item alone", "surprise")
SMALL, LARGE = 200, 2000  # ratings of a uniform sample
WAYS = ("ips", "snips")
LOGS, FOLDS = 3, 4
CHAIN = {"sweeps": 600, "burn": 200, "thin": 4, "chains": 1, "threads": 1}
COAT_CHAIN = {"sweeps": 900, "burn": 300, "thin": 6, "chains": 1, "threads": 1}


# -- worlds --------------------------------------------------------------------------------------------------


def world(name: str) -> World:
    """Ratings of a taste of rank 2, an item's quality and chance; being observed depends on what the name says."""
    rng = np.random.default_rng(0)
    taste = rng.standard_normal((U, 2)) @ rng.standard_normal((2, I)) / np.sqrt(2)
    quality, chance = rng.standard_normal(I), rng.standard_normal((U, I))
    score = 0.7 * quality + 0.8 * taste + 0.8 * chance
    Y = 1.0 + np.searchsorted(np.quantile(score, np.cumsum(SHARES)[:-1]), score)
    active, known = 0.5 * rng.standard_normal((U, 1)), quality + 0.5 * rng.standard_normal(I)
    slope = 0.6 + 0.2 * rng.standard_normal((U, 1))
    logits = {
        "the rating": 0.6 * Y,
        "rating, user and item": slope * Y + active + 0.5 * known,
        "user and item alone": active + known,
        "surprise": 1.2 * chance,
    }[name]
    item_means = np.broadcast_to(Y.mean(axis=0), Y.shape)
    predictions = {"four": np.full(Y.shape, 4.0), "item means": item_means, "taste": np.clip(2.75 + taste, 1, 5)}
    return World(ratings=Y, propensities=_levelled(logits), predictions=predictions)


def _levelled(logits: Floats) -> Floats:
    """Chances with these logits and a constant that makes OBSERVED the expected share of all cells."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(logits + middle).mean() < OBSERVED else (low, middle)
    return expit(logits + low)


def models(log: Feedback, sample: Floats, chain: Mapping[str, int], seed: int) -> Iterator[tuple[str, Any]]:
    """Propensities that know the log alone, or a uniform sample of ratings beside it."""
    yield "naive", Uniform().fit(log)
    yield "`Logistic`", Logistic().fit(log)
    yield "`LowRank`", LowRank().fit(log)
    yield "`JointMNAR`", JointMNAR(rng=seed, **chain).fit(log).propensities_
    yield '`MixtureMNAR("cpt-v")`', MixtureMNAR(rng=seed).fit(log).propensities_
    yield '`MixtureMNAR("logit-vd")`', MixtureMNAR(missing="logit-vd", rng=seed).fit(log).propensities_
    yield f"`Balanced(Logistic())`, {SMALL} ratings", Balanced(Logistic()).fit(log, uniform=sample[:SMALL])
    yield f"`NaiveBayes`, {SMALL} ratings", NaiveBayes().fit(log, uniform=sample[:SMALL])
    if len(sample) >= LARGE:
        yield f"`NaiveBayes`, {LARGE:,} ratings", NaiveBayes().fit(log, uniform=sample[:LARGE])


def world_errors(_given: Any, *, name: str, seed: int) -> dict[str, Floats]:
    """A trial: for each model of p, estimated less true MSE by way and prediction, (2, predictions)."""
    made = world(name)
    log = made.observe(seed)
    sample = np.random.default_rng([seed, 1]).choice(made.ratings.ravel(), LARGE, replace=False)
    truth = np.array([np.mean((Y - made.ratings) ** 2) for Y in made.predictions.values()])
    found: dict[str, Floats] = {}
    for model, p in [("true p", Known(made.propensities).fit(log)), *models(log, sample, CHAIN, seed)]:
        told = evaluate(made.predictions, log, p, metrics=["mse"], estimators=list(WAYS), pairs=[])
        values = np.array([[told[key, "mse", way].value for key in made.predictions] for way in WAYS])
        found[model] = values - truth
    return found


def world_table(logs: int) -> Iterator[str]:
    """Root mean squared errors of ips and snips over logs and predictions, by those of naive."""
    columns: list[dict[str, Floats]] = []
    for name in WORLDS:
        trials = kept(world_errors, [{"name": name, "seed": seed} for seed in range(logs)], f"worlds of {name}")
        square = {model: np.mean([o[model] ** 2 for o in trials], axis=(0, 2)) for model in trials[0]}  # (ways,)
        columns.append({model: np.sqrt(e / square["naive"]) for model, e in square.items()})
    yield f"| model | {' | '.join(WORLDS)} |"
    yield "|---" * (len(WORLDS) + 1) + "|"
    for model in columns[0]:
        cells = [" / ".join(f"{e:.2f}" for e in column[model]) for column in columns]
        yield f"| {model} | {' | '.join(cells)} |"


# -- Coat ----------------------------------------------------------------------------------------------------


def coat_given() -> dict[str, npt.NDArray[Any]] | None:
    """The files of Coat, or None where they are not."""
    folder = data_folder("coat")
    if folder is None:
        return None
    names = {"log": "train", "test": "test", "users": "user_item_features/user_features"}
    names["items"] = "user_item_features/item_features"
    return {name: np.loadtxt(folder / f"{file}.ascii") for name, file in names.items()}


LEARNERS: dict[str, Callable[[], Any]] = {
    "average": GlobalAverage,
    "offsets": Bias,
    "factors": lambda: MF(factors=5, reg=10.0, rng=0),
    "loose factors": lambda: MF(factors=20, reg=1.0, rng=0),
}


def coat_errors(given: Mapping[str, npt.NDArray[Any]], *, seed: int) -> dict[str, Floats]:
    """A trial: for each model of p, estimated less true MAE and MSE of four learners, and the mean rating.

    Learners are fitted on three quarters of the log and scored on the last, which is each quarter in turn. The truth is
    their error at uniformly drawn cells that the log does not have.
    """
    Y, test = given["log"], given["test"]
    user, item = np.nonzero(Y)
    log = Feedback.from_arrays(user, item, Y[user, item], users=Y.shape[0], items=Y.shape[1])
    asked = np.random.default_rng(seed).permutation(test[test > 0])
    P: dict[str, Any] = dict(models(log, asked[:SMALL], COAT_CHAIN, seed))
    P["`Logistic`, covariates"] = Logistic().fit(log, given["users"], given["items"])
    wanted = np.nonzero((test > 0) & (Y == 0))
    errors: dict[str, list[Floats]] = {name: [] for name in P}
    for train, held in folds(log, FOLDS, rng=seed):
        fitted = {name: make().fit(train) for name, make in LEARNERS.items()}
        truth = np.array([_errors(model.predict(*wanted) - test[wanted]) for model in fitted.values()])
        for name, model in P.items():
            told = evaluate(fitted, held, model, metrics=["mae", "mse"], estimators=["snips"], pairs=[])
            values = [[told[key, metric, "snips"].value for metric in ("mae", "mse")] for key in fitted]
            errors[name].append(np.array(values) - truth)  # (learners, metrics)
    weights = {name: model.predict(log).weights for name, model in P.items()}
    return {
        name: np.append(np.mean(errors[name], axis=0).ravel(), np.average(log.rating, weights=weights[name]))
        for name in P
    }


def _errors(e: Floats) -> list[float]:
    return [float(np.abs(e).mean()), float(np.square(e).mean())]


COAT = (
    "On Coat: errors of `snips` for the MAE and MSE of four learners, fitted on three quarters of the log and scored "
    "on the last, each quarter in turn; the truth is their error at uniformly drawn cells that are not in the log. "
    "Root mean squares over learners, and the mean rating of the weighted log."
)


def coat_table() -> Iterator[str]:
    """Root mean squares over learners."""
    given = coat_given()
    if given is None:
        yield "Coat is neither in $OPENLOOP_DATA nor in ../shared/data."
        return
    (found,) = kept(coat_errors, [{"seed": 0}], "Coat", given)
    yield "| model | error of MAE | error of MSE | mean rating |"
    yield "|---|---|---|---|"
    for name, values in found.items():
        *_, mean = values
        mae, mse = np.sqrt(np.mean(values[:-1].reshape(-1, 2) ** 2, axis=0))
        yield f"| {name} | {mae:.3f} | {mse:.3f} | {mean:.3f} |"
    test = given["test"]
    yield f"| truth: the uniform ratings | 0 | 0 | {test[test > 0].mean():.3f} |"


# -- the page ------------------------------------------------------------------------------------------------


def tables(logs: int, *_: Any) -> Iterator[str]:
    """What is put between the marks."""
    yield f"Over {counted(logs, 'log')} of each world and three predictions:"
    yield "\n".join(world_table(logs))
    yield COAT
    yield "\n".join(coat_table())


PAGE = SimulatedPage(
    name="bench.joint_propensities",
    about=__doc__,
    path=ROOT / "docs" / "choosing.md",
    marks=("<!-- measured by python -m bench.joint_propensities -->", "<!-- end of what joint models measured -->"),
    tables=tables,
    quick=1,
    logs=LOGS,
)

if __name__ == "__main__":
    PAGE.main()
