"""`python -m bench.intervals [logs]`: how often three kinds of 95 % interval over users hold the truth.

Every log has new users and the same items, as in `bench.trust.coverage`; the truth is that of 20,000 such users.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

import openloop as ol
from bench.trust.coverage import users_like_these
from bench.trust.worlds import by_rating

METRICS = ("mae", "dcg@10", "recall@10")
KINDS = ("influence and t", "percentile bootstrap", "openloop")
# name → users, the rate of observation at the highest rating, how much a star matters, ratings in the uniform sample
WORLDS = {
    "p known, 300 users": (300, 0.25, 1.4, 0),
    "p known, 40 users": (40, 0.25, 1.4, 0),
    "p known, 40 users, 2 % seen": (40, 0.1, 2.0, 0),
    "NaiveBayes, 100 ratings, 300 users": (300, 0.25, 1.4, 100),
    "NaiveBayes, 600 ratings, 300 users": (300, 0.25, 1.4, 600),
    "NaiveBayes, 10,000 ratings, 300 users": (300, 0.25, 1.4, 10_000),
}


def truths() -> dict[str, float]:
    """The value of each metric on all cells of very many users."""
    Y, prediction, _ = users_like_these(np.random.default_rng(0), 20_000)
    log = ol.simulate.World(ratings=Y, propensities=np.ones(Y.shape)).everything()
    result = ol.evaluate({"m": prediction}, log, metrics=METRICS, estimators=["snips"], threshold=4)
    return {metric: result["m", metric, "snips"].value for metric in METRICS}


def intervals(users: int, rate: float, step: float, size: int, seed: int) -> Iterator[tuple[str, str, Any]]:
    """Metric, kind and interval, of one log."""
    rng = np.random.default_rng([users, size, seed])
    Y, prediction, _ = users_like_these(rng, users)
    log = ol.simulate.World(ratings=Y, propensities=by_rating(Y, step, rate / step**2)).observe(rng=rng)
    drawn = rng.choice(users_like_these(rng, 300)[0].ravel(), size, replace=False) if size else None
    seen = None if drawn is None else ol.propensity.NaiveBayes().fit(log, uniform=drawn)
    plain = None if seen is None else ol.Propensities(values=seen.predict(log).values)
    asked = {"metrics": METRICS, "estimators": ["snips"], "threshold": 4}
    known, found = (ol.evaluate({"m": prediction}, log, p, **asked) for p in (plain, seen))
    for metric in METRICS:
        e = known["m", metric, "snips"]
        m = e.scored_users
        error = math.sqrt(np.square(e.influence).sum() / e.n_users**2 * m / (m - 1))
        yield metric, KINDS[0], stats.t.interval(0.95, m - 1, e.value, error)
        yield metric, KINDS[1], ol.bootstrap(e, replicates=1000, rng=seed).interval()
        yield metric, KINDS[2], found["m", metric, "snips"].interval()


def main(logs: int) -> None:
    """Print the table of docs/intervals.md."""
    truth = truths()
    print(f"| {logs} logs | interval | {' | '.join(METRICS)} |\n|---|---|{'---|' * len(METRICS)}")
    for name, world in WORLDS.items():
        held = {(metric, kind): 0 for kind in KINDS for metric in METRICS}
        for seed in range(logs):
            for metric, kind, (low, high) in intervals(*world, seed):
                held[metric, kind] += low <= truth[metric] <= high
        for kind in KINDS:
            rates = (f"{held[metric, kind] / logs:.3f}" for metric in METRICS)
            print(f"| {name} | {kind} | {' | '.join(rates)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
