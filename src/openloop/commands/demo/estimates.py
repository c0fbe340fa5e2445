"""Five models in a world whose truth is known, judged by what a biased log shows of it.

The setting of Schnabel et al. (2016), section 3.4 and Table 1, on a made-up Y.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from openloop.core.comparison import Comparison, Key
from openloop.data.simulate import World, schnabel_world
from openloop.errors import InputError
from openloop.evaluation import evaluate
from openloop.support.atomic import Recorded
from openloop.support.progress import Step, silent
from openloop.support.wording import joined

METRICS = ("mae", "dcg@50")
ESTIMATORS = ("naive", "ips", "snips", "stratified")
ALPHA, OBSERVED, LEVEL = 0.25, 0.05, 0.95
USERS, ITEMS = 944, 1683  # ML100K, as in the paper

MIN_USERS, MIN_ITEMS = 10, 50
MAX_CELLS = 50_000_000  # about 6 GiB
BLOCK = 2**18  # cells whose truth is computed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An estimate and its interval, beside the truth."""

    truth: float
    value: float
    low: float
    high: float

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        # Rounding aside: where δ is constant in each stratum, the interval is a point.
        slack = 1e-9 * abs(self.truth)
        return self.low - slack <= self.truth <= self.high + slack


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How an estimator orders the models; a wrong pair is (preferred, truly better)."""

    metric: str
    estimator: str
    pairs: int
    wrong: tuple[tuple[str, str], ...]

    @property
    def right(self) -> bool:
        """Whether no pair is in the wrong order."""
        return not self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration(Recorded):
    """Judgements by model × metric × estimator; intervals over cells: these users and items, another log."""

    users: int
    items: int
    seed: int
    observed: int  # |O|, the rows of the log
    better: dict[str, str]
    judgements: dict[Key, Judgement]

    def __getitem__(self, key: Key) -> Judgement:
        return self.judgements[key]

    @property
    def models(self) -> tuple[str, ...]:
        """The five predictions, in the paper's order."""
        return tuple(dict.fromkeys(model for model, _, _ in self.judgements))

    def order(self, metric: str, estimator: str) -> Order:
        """The pairs of models in the wrong order; a tie of models that differ is wrong."""
        sign = 1 if self.better[metric] == "lower" else -1
        wrong: list[tuple[str, str]] = []
        pairs = list(combinations(self.models, 2))
        for a, b in pairs:
            x, y = self[a, metric, estimator], self[b, metric, estimator]
            truly, seen = sign * (x.truth - y.truth), sign * (x.value - y.value)
            if truly * seen < 0 or (seen == 0 and truly != 0):
                wrong.append((b, a) if truly < 0 else (a, b))
        return Order(metric=metric, estimator=estimator, pairs=len(pairs), wrong=tuple(wrong))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One plain record per judgement."""
        for (model, metric, estimator), judged in self.judgements.items():
            names = {"model": model, "metric": metric, "estimator": estimator}
            yield names | asdict(judged) | {"covers": judged.covers}

    def orders(self) -> list[Order]:
        """The order of each metric and estimator."""
        return [self.order(metric, estimator) for metric in METRICS for estimator in ESTIMATORS]

    def setting(self) -> str:
        """What is judged, in plain words."""
        cells = self.users * self.items
        return (
            f"A made-up world of {self.users:,} users × {self.items:,} items, where every rating is known. "
            f"People rate what they like: one star is seen {ALPHA**-3:.0f} times less often than four or "
            f"five. The log has {self.observed:,} of {cells:,} ratings ({self.observed / cells:.1%}). Five models "
            f"are judged by it; ± is half of a {LEVEL:.0%} interval over logs of the same users and items."
        )

    def findings(self) -> list[str]:
        """What was seen, in plain words."""
        return [*(_naive_words(self, metric) for metric in METRICS), _weighted_words(self)]

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        world = {"users": self.users, "items": self.items, "seed": self.seed, "alpha": ALPHA}
        return {
            "world": world | {"share_observed": OBSERVED, "rows_observed": self.observed},
            "level": LEVEL,
            "interval_over": "cells",
            "estimates": list(self.rows()),
            "orders": [asdict(order) | {"right": order.right} for order in self.orders()],
            "findings": self.findings(),
        }


def demonstrate(users: int = USERS, items: int = ITEMS, *, seed: int = 0, step: Step = silent) -> Demonstration:
    """Make a world, draw one log of it, and compare the estimates with the truth."""
    _check(users, items, seed)
    step("making a world", 0.0)
    draw = np.random.default_rng(seed)
    world = schnabel_world(users, items, alpha=ALPHA, observed=OBSERVED, rng=draw)
    log = world.observe(draw)
    step("estimating from the log", 0.1)
    result = evaluate(
        world.predictions,
        log,
        world.propensities,
        metrics=METRICS,
        estimators=ESTIMATORS,
        pairs=[],
        level=LEVEL,
    )
    truth = truths(world, lambda what, done: step(what, 0.3 + 0.7 * done))
    return Demonstration(
        users=users, items=items, seed=seed, observed=len(log), better=dict(result.better),
        judgements=_judged(result, truth),
    )  # fmt: skip


def truths(world: World, step: Step = silent) -> dict[tuple[str, str], float]:
    """R of each prediction and metric (Eq. 1): naive where every cell is seen, some users at a time."""
    U, I = world.ratings.shape
    size = max(1, BLOCK // I)
    total = {(model, metric): 0.0 for model in world.predictions for metric in METRICS}
    for start in range(0, U, size):
        step("computing the truth", start / U)
        part = _some_users(world, slice(start, start + size))
        # The share of the block in Σ_u; each of its users has I cells.
        weight = len(part.ratings) / U
        found = evaluate(part.predictions, part.everything(), metrics=METRICS, estimators=["naive"], pairs=[])
        for (model, metric, _), estimate in found.estimates.items():
            total[model, metric] += weight * estimate.value
    return total


def _some_users(world: World, users: slice) -> World:
    predictions = {name: Y_hat[users] for name, Y_hat in world.predictions.items()}
    return World(ratings=world.ratings[users], propensities=world.propensities[users], predictions=predictions)


def _judged(result: Comparison, truth: dict[tuple[str, str], float]) -> dict[Key, Judgement]:
    found: dict[Key, Judgement] = {}
    for (model, metric, estimator), e in result.estimates.items():
        # The truth is that of exactly these users and items; only what the log shows of them is random.
        low, high = e.interval(LEVEL, over="cells")
        found[model, metric, estimator] = Judgement(truth=truth[model, metric], value=e.value, low=low, high=high)
    return found


def _check(users: int, items: int, seed: int) -> None:
    for name, given, least in (("users", users, MIN_USERS), ("items", items, MIN_ITEMS), ("seed", seed, 0)):
        if given < least:
            raise InputError(f"demonstrate: {name} must be at least {least}, got {given}; choose a larger number.")
    if users * items > MAX_CELLS:
        raise InputError(
            f"demonstrate: users × items must be at most {MAX_CELLS:,}, since every cell is held in memory, "
            f"got {users:,} × {items:,}; choose fewer."
        )


# -- words ---------------------------------------------------------------------------------------------------


def _naive_words(shown: Demonstration, metric: str) -> str:
    """What one would conclude from plain averages over the log."""
    judged = [shown[model, metric, "naive"] for model in shown.models]
    ratios = [j.value / j.truth for j in judged]
    order, held = shown.order(metric, "naive"), sum(j.covers for j in judged)
    verdict = "ranks the models correctly" if order.right else f"prefers {_mistake(shown, order)}"
    return (
        f"By {metric}, naive {verdict}. Its values are {min(ratios):.2g} to {max(ratios):.2g} times the "
        f"truth; {held} of its {len(judged)} intervals contain the truth."
    )


def _mistake(shown: Demonstration, order: Order) -> str:
    """The wrong pair whose true values differ most."""
    truth = {model: shown[model, order.metric, order.estimator].truth for model in shown.models}
    a, b = max(order.wrong, key=lambda pair: abs(math.log(truth[pair[0]] / truth[pair[1]])))
    ratio = truth[a] / truth[b]
    lower = shown.better[order.metric] == "lower"
    worse = f"error is {ratio:.3g} times as large" if lower else f"gain is only {ratio:.0%} as large"
    return f"{a} to {b}, although its true {worse}"


def _weighted_words(shown: Demonstration) -> str:
    """What knowing the propensities changes."""
    names = ESTIMATORS[1:]
    judged = [j for (_, _, estimator), j in shown.judgements.items() if estimator in names]
    held = sum(j.covers for j in judged)
    return (
        f"With the known propensities, {_verdict(shown, names)}; {held} of their {len(judged)} intervals "
        f"contain the truth, where {LEVEL:.0%} should."
    )


def _verdict(shown: Demonstration, estimators: Sequence[str]) -> str:
    alike: dict[tuple[str, str], list[str]] = {}  # who makes the same mistake
    for order in shown.orders():
        if order.estimator in estimators and order.wrong:
            alike.setdefault((order.metric, _mistake(shown, order)), []).append(order.estimator)
    if not alike:
        return f"{joined(estimators)} put every pair in the right order"
    return "; ".join(
        f"{joined(names)} prefer{'s' if len(names) == 1 else ''} {mistake} (by {metric})"
        for (metric, mistake), names in alike.items()
    )
