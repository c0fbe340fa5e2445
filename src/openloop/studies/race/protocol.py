"""The race's one protocol: a learner is fitted and selected on the log alone, and then predicts the test cells.

This module knows nothing about which learners run, nor about the test ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.selection import select
from openloop.studies.kit.trials import Given, feedback

FOLDS, QUICK_FOLDS = 4, 2
FACTORS, QUICK_FACTORS = 20, 8
REGS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 25.0)  # λ of MF, beside a sum over rows

Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Start:
    """What a learner starts with: the log with the p of its rows, p of all cells where known, covariates, a seed.

    `factors` and `regs` are the size of factor models and the λ that are tried for them.
    """

    log: Feedback
    p: Floats  # (U, I) where the grid is known, else (n,)
    covariates: Mapping[str, npt.NDArray[Any]]
    seed: int
    quick: bool
    factors: int
    regs: tuple[float, ...] = REGS

    @property
    def folds(self) -> int:
        """Of cross-validation."""
        return QUICK_FOLDS if self.quick else FOLDS


class Entrant(NamedTuple):
    """A learner of the race, and the settings that selection tries; without any it is fitted as it is.

    `weighted`: fits are weighted by 1/p; selection always is under p.
    """

    learner: Callable[[Start], Any]
    grid: Grid
    weighted: bool = True

    def settings(self, *, quick: bool) -> Grid:
        """The grid; in a quick run the middle two of each list."""
        if not quick:
            return self.grid
        return {name: values[max(len(values) // 2 - 1, 0) :][:2] for name, values in self.grid.items()}


class Settled(NamedTuple):
    """A model fitted on the whole log, and the setting that was chosen for it."""

    model: Any
    chosen: Mapping[str, Any]


def starting(given: Given, *, seed: int, quick: bool) -> Start:
    """From the arrays of a trial."""
    log, p = feedback(given), np.asarray(given["p"], np.float64)
    rows = p[log.user, log.item] if p.ndim == 2 else p
    held = replace(log, propensity=rows)
    covariates = {name: given[name] for name in ("user_covariates", "item_covariates") if name in given}
    factors = QUICK_FACTORS if quick else FACTORS
    return Start(log=held, p=p, covariates=covariates, seed=seed, quick=quick, factors=factors)


def settled(entrant: Entrant, start: Start) -> Settled:
    """The entrant with the setting that cross-validation on the log chooses by its MSE under p, fitted on all rows."""
    learner, grid = entrant.learner(start), entrant.settings(quick=start.quick)
    if not grid:
        weight = 1 / np.asarray(start.log.propensity) if entrant.weighted else None
        return Settled(learner.fit(start.log, weight), {})
    found = select(
        learner, start.log, start.p, grid=grid, metric="mse", estimator="ips", folds=start.folds,
        weighted=entrant.weighted, threads=1, rng=start.seed,
    )  # fmt: skip
    return Settled(found.model, found.best)


def predicted(found: Settled, given: Given) -> dict[str, npt.NDArray[Any]]:
    """What a trial returns: the predictions of the test cells, and the chosen setting in words."""
    chosen = ", ".join(f"{name} = {value:g}" for name, value in found.chosen.items()) or "as it is"
    prediction = found.model.predict(given["test_user"], given["test_item"])
    return {"prediction": prediction.astype(np.float64), "chosen": np.array(chosen)}
