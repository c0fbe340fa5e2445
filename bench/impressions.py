"""`python -m bench.impressions [--rows N]`: seconds and memory for θ, values and intervals of two rankers.

Lists of 10 out of 1,000 items, one request in five shuffled, 20 requests a user; rankers are ranks of the shown rows.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np

import openloop as ol
from openloop.core.feedback import Vocabulary
from openloop.core.impressions import Impressions

DEPTH, ITEMS, REQUESTS = 10, 1000, 20  # REQUESTS: per user
GIB = 2**20  # of the kilobytes that the system counts


def made(rows: int) -> tuple[Impressions, dict[str, np.ndarray]]:
    """A log of clicks θ_k·q_i, θ_k = 1/k, and the rank of each row under two rankers."""
    rng = np.random.default_rng(0)
    N = rows // DEPTH
    first = rng.integers(ITEMS, size=N, dtype=np.int32)
    item = ((first[:, None] + np.arange(DEPTH, dtype=np.int32)) % ITEMS).ravel()  # (N·K,) distinct within a request
    position = np.tile(np.arange(1, DEPTH + 1, dtype=np.int32), N)
    attraction = rng.uniform(0.05, 0.5, ITEMS)
    log = Impressions(
        request=np.repeat(np.arange(N, dtype=np.int32), DEPTH), position=position, item=item,
        reward=(rng.random(N * DEPTH) < attraction[item] / position).astype(np.float64),
        items=Vocabulary.range(ITEMS), requests=Vocabulary.range(N), users=Vocabulary.range(N // REQUESTS + 1),
        user=(np.arange(N) // REQUESTS).astype(np.int32), shuffled=rng.random(N) < 0.2,
        propensity=np.full(N * DEPTH, 1 / DEPTH), pool=np.full(N, DEPTH, np.int32),
    )  # fmt: skip
    ranks = position.reshape(N, DEPTH)
    return log, {name: rng.permuted(ranks, axis=1).ravel() for name in ("a", "b")}


def measured(rows: int) -> dict[str, float]:
    """Seconds of each step, and the peak of memory in GiB, the log itself included."""
    log, rankers = made(rows)
    began = time.perf_counter()
    exam = ol.propensity.Examination(by="randomised").fit(log)
    fitted = time.perf_counter()
    result = ol.evaluate(rankers, log, exam, metrics=["clicks"], estimators=["snpbm", "sniips"])
    result.difference("a", "b", metric="clicks", estimator="snpbm").interval()
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB
    return {"rows": len(log), "examination": fitted - began, "values": done - fitted, "peak GiB": peak}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was measured."""
    asking = argparse.ArgumentParser(prog="bench.impressions", description=__doc__)
    asking.add_argument("--rows", type=int, default=50_000_000)
    for name, value in measured(asking.parse_args(arguments).rows).items():
        print(f"{name}: {value:,.1f}")


if __name__ == "__main__":
    main()
