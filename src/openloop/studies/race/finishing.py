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
from openloop.studies.kit.trials import Outcome, Trial, columns
from openloop.studies.race import measures
from openloop.studies.race.measures import AUC, MAE, MSE, NDCG, NDCG_ONE, RECALL, USER_AUC
from openloop.studies.race.protocol import RATINGS, Entrant
from openloop.studies.race.published import beside
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
    """An entrant's predictions of the test cells, (seeds, n), by what it learned: ratings, or labels from 3 or 4 on."""

    name: str
    entrant: Entrant
    predictions: Mapping[int, Floats]
    chosen: tuple[str, ...]

    def scores(self, label: int) -> Floats:
        """What ranks the cells where positives begin at `label`, (seeds, n)."""
        return self.predictions[label if label in self.predictions else RATINGS]


def learned(entrant: Entrant) -> tuple[int, ...]:
    """What an entrant learns: ratings once, or the labels of each threshold."""
    return (RATINGS,) if entrant.learns == "rating" else LABELS


def finishes(run: Run, trial: Trial, ground: Ground, entrants: Mapping[str, Entrant], seeds: int) -> list[Finish]:
    """Every entrant with every seed, by the trial that looks it up by its name."""
    asked: list[dict[str, Any]] = [
        {"entrant": name, "label": label, "seed": run.seed + s, "quick": run.quick}
        for name, entrant in entrants.items()
        for label in learned(entrant)
        for s in range(seeds)
    ]
    found = run.map(trial, ground.given, asked, f"racing on {ground.name}")
    by_name: dict[str, list[tuple[int, Outcome]]] = {name: [] for name in entrants}
    for setting, outcome in zip(asked, found, strict=True):
        by_name[setting["entrant"]].append((setting["label"], outcome))
    return [_finish(name, entrants[name], outcomes) for name, outcomes in by_name.items()]


def _finish(name: str, entrant: Entrant, outcomes: Sequence[tuple[int, Outcome]]) -> Finish:
    predictions = {
        label: np.array([outcome["prediction"] for which, outcome in outcomes if which == label])
        for label in learned(entrant)
    }
    chosen = tuple(dict.fromkeys(str(outcome["chosen"]) for _, outcome in outcomes))
    return Finish(name=name, entrant=entrant, predictions=predictions, chosen=chosen)


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
    fits = [measures.ranking(user, score[cells], positive, U) for score in finish.scores(label)]
    if finish.entrant.rates:
        rated = [measures.rating(user, prediction[cells], truth, U) for prediction in finish.predictions[RATINGS]]
        fits = [{**ranked, **errors} for ranked, errors in zip(fits, rated, strict=True)]
    return {metric: resampled([fit[metric] for fit in fits], counts) for metric in fits[0]}


# -- tables --------------------------------------------------------------------------------------------------

SHOWN = (AUC, USER_AUC, NDCG, NDCG_ONE, RECALL, MSE, MAE)
BESIDE = {AUC: "auc", NDCG_ONE: "ndcg"}  # what the papers print, by their own convention
TESTED = (AUC, USER_AUC, NDCG, MSE, MAE)


def standings_table(
    name: str, caption: str, found: Mapping[str, Standing], entrants: Mapping[str, Entrant], *, printed: bool
) -> Table:
    """All entrants by all metrics, beside the published numbers where `printed`."""
    rows: list[tuple[Cell, ...]] = [
        (who, *(_cell(metric, metrics, entrants[who].printed if printed else "") for metric in SHOWN))
        for who, metrics in found.items()
    ]
    return Table(
        name=name, caption=caption, columns=("", *SHOWN), rows=tuple(rows),
        error_is="half-width of the 95 % interval over resampled users",
    )  # fmt: skip


def _cell(metric: str, metrics: Standing, printed: str) -> Value | None:
    if metric not in metrics:
        return None
    one = metrics[metric]
    if metric not in BESIDE:
        return Value(value=one.value, error=one.half)
    return beside(printed, BESIDE[metric], one.value, one.half)


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
    """Every entrant that has the metric, less the baseline."""
    differences = {
        who: metrics[metric] - found[baseline][metric]
        for who, metrics in found.items()
        if who != baseline and metric in metrics
    }
    p = adjusted(differences)
    return {who: Gap(difference=gap, pvalue=p[who]) for who, gap in differences.items()}


def gaps_table(name: str, caption: str, found: Mapping[str, Standing], baseline: str) -> Table:
    """Differences to the baseline with their intervals; a star where Holm's p-value is below 5 %."""
    by_metric = {metric: gaps(found, baseline, metric) for metric in TESTED}
    rows: list[tuple[Cell, ...]] = [
        (who, *(_starred(by_metric[metric].get(who)) for metric in TESTED)) for who in found if who != baseline
    ]
    return Table(name=name, caption=caption, columns=("", *TESTED), rows=tuple(rows))


def _starred(gap: Gap | None) -> str:
    return "" if gap is None else f"{gap.difference}{' *' if gap.significant else ''}"


def chosen_table(name: str, found: Sequence[Finish]) -> Table:
    """What cross-validation chose."""
    rows = tuple((one.name, "; ".join(one.chosen)) for one in found)
    caption = "Settings that cross-validation on the log chose, over seeds (and labels, where these are learned)"
    return Table(name=name, caption=caption, columns=("", "chosen"), rows=rows)
