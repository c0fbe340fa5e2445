"""Joint models of ratings and what is missing, for Table 2: HL-MAR, HL-MNAR and CPT-v, fitted and tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.learners.joint_mnar import JointMNAR
from openloop.learners.mixture_mnar import MixtureMNAR
from openloop.learners.ordinal_mf import OrdinalMF
from openloop.selection import select
from openloop.studies.kit.results import Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome, Setting, Trial, feedback
from openloop.studies.schnabel2016.factorisation import METRICS
from openloop.studies.schnabel2016.real_data import (
    FACTORS,
    FOLDS,
    PreparedData,
    Tested,
    losses,
    spread_over_seeds,
)

RIVALS = {"hl-mnar": "HL-MNAR", "hl-mar": "HL-MAR", "cpt-v": "CPT-v", "logit-vd": "Logit-vd"}  # by the paper's names
SAMPLED, MIXTURES = ("hl-mnar", "hl-mar"), ("cpt-v", "logit-vd")
COMPONENTS = (5, 10, 20)
LOOKED_AT = 1_500_000  # unobserved cells in a sweep of the joint model: all of Coat's, a tenth of Yahoo's

# One chain of one thread for each seed, of about a minute on Coat.
SWEEPS: dict[str, dict[str, int]] = {
    "hl-mnar": {"sweeps": 600, "burn": 200, "thin": 4},
    "hl-mar": {"sweeps": 1500, "burn": 500, "thin": 10},
}
QUICK_SWEEPS = {"sweeps": 40, "burn": 20, "thin": 2}

Predictions = dict[str, npt.NDArray[Any]]


# -- trials --------------------------------------------------------------------------------------------------


def ordinal_predicted(given: Given, *, factors: int, seed: int, sweeps: int, burn: int, thin: int) -> Predictions:
    """A trial: HL-MAR, which takes the ratings of the log as a sample of all."""
    model = OrdinalMF(factors, sweeps=sweeps, burn=burn, thin=thin, chains=1, threads=1, rng=seed).fit(feedback(given))
    return _told(model, given)


def joint_predicted(given: Given, *, factors: int, seed: int, sweeps: int, burn: int, thin: int) -> Predictions:
    """A trial: HL-MNAR, over all cells of the grid, or with a share of about `LOOKED_AT` of them in a sweep."""
    log = feedback(given)
    share = min(1.0, LOOKED_AT / (log.n_users * log.n_items))
    model = JointMNAR(
        factors, unobserved=share, sweeps=sweeps, burn=burn, thin=thin, chains=1, threads=1, rng=seed
    ).fit(log)
    return _told(model, given)


def mixture_predicted(given: Given, *, missing: str, seed: int, components: Sequence[int]) -> Predictions:
    """A trial: the mixture, its number of components by cross-validation on the log."""
    learner = MixtureMNAR(missing=missing, rng=seed)  # pyright: ignore[reportArgumentType]
    found = select(
        learner, feedback(given), grid={"components": components}, metric="mse", folds=FOLDS, threads=1, rng=seed,
        estimator="naive",
    )  # fmt: skip
    return _told(found.model, given)


def _told(model: Any, given: Given) -> Predictions:
    """Mean and median of what a model says of the rating of each test cell."""
    proba, levels = model.predict_proba(given["test_user"], given["test_item"]), model.levels_.astype(np.float64)
    middle = (proba.cumsum(axis=1) < 0.5).sum(axis=1)
    return {"mean": proba @ levels, "median": levels[np.minimum(middle, len(levels) - 1)]}


TRIALS: dict[str, Trial] = {"hl-mnar": joint_predicted, "hl-mar": ordinal_predicted}


# -- what is run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rivals:
    """The joint models by both losses, and their medians by the absolute one."""

    means: tuple[Tested, ...]
    medians: tuple[Tested, ...]
    table: Table


def rivals(run: Run, data: PreparedData, seeds: int, name: str) -> Rivals:
    """All joint models on a data set: d by the paper's rule, the mixture's settings by cross-validation."""
    explored = {by: _explored(run, data.given, by, name) for by in SAMPLED}
    sampled = [one for by, first in explored.items() for one in _sampled(run, data, by, first, seeds, name)]
    mixtures = [one for by in MIXTURES for one in _mixtures(run, data.given, by, seeds, name)]
    runs, rating = [*sampled, *mixtures], data.test.rating
    means, medians = [r.tested("mean") for r in runs], [r.tested("median") for r in runs if r.loss == "absolute"]
    return Rivals(means=tuple(means), medians=tuple(medians), table=median_table(name, medians, rating))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ran:
    """The outcomes of a model for each seed, as it was chosen by one loss."""

    by: str
    loss: str
    outcomes: Sequence[Outcome]

    def tested(self, kind: str) -> Tested:
        predictions = np.array([outcome[kind] for outcome in self.outcomes])
        return Tested(by=self.by, loss=self.loss, predictions=predictions)


def _explored(run: Run, given: Given, by: str, name: str) -> dict[int, Outcome]:
    """The first seed with every d."""
    factors = run.either(FACTORS, FACTORS[:1])
    return dict(zip(factors, _chains(run, given, by, name, [(d, run.seed) for d in factors]), strict=True))


def _sampled(
    run: Run, data: PreparedData, by: str, first: Mapping[int, Outcome], seeds: int, name: str
) -> Iterator[_Ran]:
    """By each loss, all seeds with the d whose first seed is best on the test set."""
    for loss in METRICS:
        d = min(first, key=lambda d: float(losses(first[d]["mean"], data.test.rating, loss).mean()))
        others = _chains(run, data.given, by, name, [(d, run.seed + s) for s in range(1, seeds)])
        yield _Ran(by=by, loss=loss, outcomes=[first[d], *others])


def _chains(run: Run, given: Given, by: str, name: str, asked: Sequence[tuple[int, int]]) -> list[Outcome]:
    options = run.either(SWEEPS[by], QUICK_SWEEPS)
    settings: list[Setting] = [{"factors": d, "seed": seed, **options} for d, seed in asked]
    return run.map(TRIALS[by], given, settings, f"{RIVALS[by]} on {name}")


def _mixtures(run: Run, given: Given, by: str, seeds: int, name: str) -> Iterator[_Ran]:
    components = run.either(COMPONENTS, COMPONENTS[:1])
    settings: list[Setting] = [
        {"missing": by, "seed": run.seed + s, "components": components} for s in range(seeds)
    ]  # fmt: skip
    outcomes = run.map(mixture_predicted, given, settings, f"{RIVALS[by]} on {name}")
    yield from (_Ran(by=by, loss=loss, outcomes=outcomes) for loss in METRICS)


# -- tables --------------------------------------------------------------------------------------------------


def median_table(name: str, medians: Sequence[Tested], rating: npt.NDArray[Any]) -> Table:
    """MAE of posterior medians."""
    errors = [(RIVALS[one.by], one.losses(rating).mean(axis=1)) for one in medians]
    return Table(
        name=f"table2-{name}-medians",
        caption=f"{name}: MAE of joint models that predict the median of a cell's ratings, which the absolute loss "
        "asks for; the table above has their means",
        columns=("", "MAE"),
        rows=tuple((by, Value(value=e.mean(), error=spread_over_seeds(e))) for by, e in errors),
        error_is="standard deviation over seeds",
    )


_MODELS = (
    "HL-MAR is `OrdinalMF` and HL-MNAR is `JointMNAR`. They draw from the posterior by Gibbs and Metropolis sweeps; "
    "the published method approximates it by expectation propagation. Their priors are those of docs/joint-models.md. "
    "Thresholds are common to all items; the published ones differ by item, around common ones. The intercept z of the "
    "published missing-data part is left out, as λ and ψ have it already. Thresholds move by Metropolis with the "
    "latent scores summed out, and the ratings of unobserved cells are summed out."
)
_FACTORS = (
    "Of HL-MNAR and HL-MAR the paper explored d ∈ {5, 10, 20, 40} and reports the best performance on the test set. So "
    "does this table: d is the best of the first seed on the test set, by each metric, which favours these rows. They "
    "predict posterior means; the paper does not say what its models predict."
)
_MIXTURE = (
    "CPT-v (printed as CTP-v) is `MixtureMNAR` with missing by rating, Logit-vd by rating and item. The paper quotes "
    "CPT-v for Yahoo! only. The Dirichlet and Beta priors here are not the published ones. The number of components "
    f"({', '.join(map(str, COMPONENTS))}) is chosen by four folds of the self-selected ratings, by the plain average."
)
_SHARE = (
    f"On grids of more than {LOOKED_AT:,} cells a sweep of HL-MNAR draws a share of the users and of the items, each "
    "from all of its cells. Thresholds and m move by a weighted sample of the unobserved cells, so the posterior is "
    "approximate."
)
NOTES = (_MODELS, _FACTORS, _MIXTURE, _SHARE)
