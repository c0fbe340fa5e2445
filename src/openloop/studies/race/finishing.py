"""What comes of a race on one data set: the predictions of every entrant, their metrics, and tables of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.core.metric import reaches
from openloop.studies.kit.results import Cell, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome, columns
from openloop.studies.race import measures
from openloop.studies.race.entrants import raced
from openloop.studies.race.measures import AUC, MAE, MSE, NDCG, RECALL, USER_AUC
from openloop.studies.race.protocol import Entrant
from openloop.studies.race.user_draws import Resampled, adjusted, resampled, user_draws
from openloop.support.wording import pvalue

LABELS = (3, 4)  # stars from which on a rating is a positive
DRAWS, QUICK_DRAWS = 2000, 200
AT_MOST = 8_000_000  # draws × users: 64 MB
DRAWING = 11  # the stream of draws of users, beside a run's seed
SIGNIFICANT = 0.05

Booleans = npt.NDArray[np.bool_]
Standing = Mapping[str, Resampled]  # by metric
Scored = Mapping[str, Mapping[int, Mapping[str, Standing]]]  # by words for the cells, label and entrant


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """A data set to race on: the log, p of all cells or of its rows, the uniform test set, and what else is known."""

    name: str
    log: Feedback
    p: Floats
    test: Feedback
    covariates: Mapping[str, npt.NDArray[Any]]
    notes: tuple[str, ...]

    @property
    def given(self) -> dict[str, npt.NDArray[Any]]:
        """What trials are given: of the test set only which cells it has."""
        cells = {"test_user": self.test.user, "test_item": self.test.item}
        return {**columns(self.log), **self.covariates, "p": self.p, **cells}

    @property
    def everywhere(self) -> Booleans:
        """All test cells."""
        return np.ones(len(self.test), np.bool_)

    @property
    def fresh(self) -> Booleans:
        """The test cells that are not in the log too."""
        return ~np.isin(self.test.cell, self.log.cell)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finish:
    """An entrant's predictions of the test cells, (seeds, n), and the settings that were chosen for it."""

    name: str
    predictions: Floats
    chosen: tuple[str, ...]


def finishes(run: Run, ground: Ground, entrants: Mapping[str, Entrant], seeds: int) -> list[Finish]:
    """Every entrant with every seed."""
    asked: list[dict[str, Any]] = [
        {"entrant": name, "seed": run.seed + s, "quick": run.quick} for name in entrants for s in range(seeds)
    ]
    outcomes = run.map(raced, ground.given, asked, f"racing on {ground.name}")
    by_name = (outcomes[at : at + seeds] for at in range(0, len(outcomes), seeds))
    return [_finish(name, mine) for name, mine in zip(entrants, by_name, strict=True)]


def _finish(name: str, outcomes: Sequence[Outcome]) -> Finish:
    predictions = np.array([outcome["prediction"] for outcome in outcomes])
    return Finish(name=name, predictions=predictions, chosen=tuple(dict.fromkeys(str(o["chosen"]) for o in outcomes)))


def counts_of(run: Run, test: Feedback) -> Floats:
    """Draws of the users who are tested, the same for every entrant: so differences are paired."""
    rng, tested = np.random.default_rng([run.seed, DRAWING]), np.unique(test.user)
    number = run.either(min(DRAWS, AT_MOST // test.n_users), QUICK_DRAWS)
    counts = np.zeros((1 + number, test.n_users))
    counts[:, tested] = user_draws(len(tested), number, rng)
    return counts


def standing(test: Feedback, finish: Finish, label: int, cells: Booleans, counts: Floats) -> Standing:
    """An entrant's metrics where positives begin at `label`, on some of the test cells, averaged over seeds."""
    user, truth, U = test.user[cells], test.rating[cells], test.n_users
    positive = reaches(truth, label)
    fits = [
        {
            **measures.ranking(user, prediction[cells], positive, U),
            **measures.rating(user, prediction[cells], truth, U),
        }
        for prediction in finish.predictions
    ]
    return {metric: resampled([fit[metric] for fit in fits], counts) for metric in fits[0]}


# -- tables --------------------------------------------------------------------------------------------------

SHOWN = (AUC, USER_AUC, NDCG, RECALL, MSE, MAE)
TESTED = (AUC, USER_AUC, NDCG, MSE, MAE)


def standings_table(name: str, caption: str, found: Mapping[str, Standing]) -> Table:
    """All entrants by all metrics."""
    rows: list[tuple[Cell, ...]] = [
        (who, *(Value(value=metrics[metric].value, error=metrics[metric].half) for metric in SHOWN))
        for who, metrics in found.items()
    ]
    return Table(
        name=name, caption=caption, columns=("", *SHOWN), rows=tuple(rows),
        error_is="half-width of the 95 % interval over resampled users",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gap:
    """An entrant less the baseline by one metric, and its p-value after Holm over all entrants."""

    difference: Resampled
    pvalue: float

    @property
    def significant(self) -> bool:
        """After Holm, at 5 %."""
        return self.pvalue < SIGNIFICANT

    def __str__(self) -> str:
        return f"{self.difference}, p {pvalue(self.pvalue)}"


def gaps(found: Mapping[str, Standing], baseline: str, metric: str) -> dict[str, Gap]:
    """Every entrant, less the baseline."""
    differences = {who: metrics[metric] - found[baseline][metric] for who, metrics in found.items() if who != baseline}
    p = adjusted(differences)
    return {who: Gap(difference=gap, pvalue=p[who]) for who, gap in differences.items()}


def gaps_table(name: str, caption: str, found: Mapping[str, Standing], baseline: str) -> Table:
    """Differences to the baseline with their intervals; a star where Holm's p-value is below 5 %."""
    by_metric = {metric: gaps(found, baseline, metric) for metric in TESTED}
    rows: list[tuple[Cell, ...]] = [
        (who, *(_starred(by_metric[metric][who]) for metric in TESTED)) for who in found if who != baseline
    ]
    return Table(name=name, caption=caption, columns=("", *TESTED), rows=tuple(rows))


def _starred(gap: Gap) -> str:
    return f"{gap.difference}{' *' if gap.significant else ''}"


def chosen_table(name: str, found: Sequence[Finish]) -> Table:
    """What cross-validation chose."""
    rows = tuple((one.name, "; ".join(one.chosen)) for one in found)
    caption = "Settings that cross-validation on the log chose, over seeds"
    return Table(name=name, caption=caption, columns=("", "chosen"), rows=rows)
