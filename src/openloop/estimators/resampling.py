"""The bootstrap over users: an Estimate's own function of reweighted sums, without rereading the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate, Interval
from openloop.core.feedback import Floats
from openloop.errors import InputError
from openloop.support.arguments import check_level

ROUNDING = 1e-12  # of a value: sums in another order differ by less, and are a tie all the same
MAX_UNITS = 10_000  # more users are dealt to that many clusters: the sums of users add up to those of clusters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap:
    """Replicates of an estimate, from `ol.bootstrap`.

    Attributes:
        estimate: The estimate.
        replicates: Its value in each replicate, (B,).

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=["naive"])
        >>> len(ol.bootstrap(result["Y1", "mae", "naive"], replicates=100, rng=0).replicates)
        100
    """

    estimate: Estimate
    replicates: Floats = field(repr=False)  # (B,)

    @property
    def stderr(self) -> float:
        """The standard deviation of the replicates."""
        return float(np.nanstd(self.replicates, ddof=1))

    def interval(self, level: float = 0.95) -> Interval:
        """The percentile interval at a confidence `level`."""
        check_level("interval", level)
        low, high = np.nanquantile(self.replicates, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(low), float(high))


def bootstrap(
    estimate: Estimate, *, replicates: int = 2000, rng: Any, threads: int | None = None, device: str | None = None
) -> Bootstrap:
    """The Poisson bootstrap over users (Hanley & MacGibbon 2006): f(W·X), W (replicates × users) Poisson weights.

    The log is not read again, and W is drawn inside the kernel and never stored. Where propensities were fitted with a
    uniform sample that names no users, its part is drawn beside them.

    Args:
        estimate: The estimate, such as `result[model, metric, estimator]`.
        replicates: The number of replicates B.
        rng: A seed or a Generator.
        threads: The number of threads; by default all. It does not change the result.
        device: "cuda" adds up on a GPU, with the same weights.

    Returns:
        The replicates, with `.stderr` and the percentile `.interval(level)`.

    Raises:
        InputError: There is no estimate, or fewer than 2 replicates.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=["snips"])
        >>> draws = ol.bootstrap(result["Y1", "mae", "snips"], rng=0)
        >>> low, high = draws.interval(0.95)
        >>> round(low, 2), round(high, 2)
        (0.51, 0.59)
    """
    if not isinstance(estimate, Estimate):  # pyright: ignore[reportUnnecessaryIsInstance]
        msg = f"bootstrap: takes an Estimate, such as result[model, metric, estimator], got {type(estimate).__name__}."
        raise InputError(msg)
    if replicates < 2:
        raise InputError(f"bootstrap: replicates must be at least 2, got {replicates}.")
    seed = int(np.random.default_rng(rng).integers(2**63))
    totals = _sums(estimate.columns, replicates, seed, threads, device)  # (B, m)
    with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may leave out every user that counts
        values = np.asarray(estimate.function(totals), np.float64) + _sampled(estimate, replicates, seed)
    return Bootstrap(estimate=estimate, replicates=values)


def probability_of_being_best(
    estimates: Mapping[str, Estimate], better: str, *, replicates: int = 2000, rng: Any, threads: int | None = None
) -> dict[str, float]:
    """How often each model is the best in replicates that count every user alike for all; a tie is shared."""
    from openloop.kernels.bootstrap import bootstrap_sums

    seed = int(np.random.default_rng(rng).integers(2**63))
    columns = [_clustered(e.columns) for e in estimates.values()]
    totals = bootstrap_sums(np.hstack(columns), replicates, seed, threads=threads)  # (B, Σm)
    ends = np.cumsum([c.shape[1] for c in columns])
    parts = np.split(totals, ends[:-1], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may leave out every user that counts
        values = np.column_stack(
            [
                e.function(part) + _sampled(e, replicates, seed)
                for e, part in zip(estimates.values(), parts, strict=True)
            ]
        )
    values = values[np.isfinite(values).all(axis=1)]  # (B, models)
    best = (values.min(axis=1) if better == "lower" else values.max(axis=1))[:, None]
    top = np.abs(values - best) <= ROUNDING * np.abs(best)
    shares = (top / top.sum(axis=1, keepdims=True)).mean(axis=0) if len(values) else np.full(len(columns), np.nan)
    return dict(zip(estimates, shares.tolist(), strict=True))


def _sums(columns: Floats, replicates: int, seed: int, threads: int | None, device: Any) -> Floats:
    if device is None:
        from openloop.kernels.bootstrap import bootstrap_sums

        return bootstrap_sums(columns, replicates, seed, threads=threads)
    from openloop.kernels.cuda.bootstrap import bootstrap_sums as on_gpu

    return on_gpu(columns, replicates, seed, device=device)


def _sampled(estimate: Estimate, replicates: int, seed: int) -> Floats:
    """What another uniform sample would change, (B,); the same samples for estimates with the same seed."""
    if not len(estimate.sample_effects):
        return np.zeros(replicates)
    draws = np.random.default_rng(seed).standard_normal((replicates, len(estimate.sample_effects)))
    return draws @ estimate.sample_effects


def _clustered(columns: Floats) -> Floats:
    """The sums of clusters of users; which cluster a user is dealt to has nothing to do with its rows."""
    if len(columns) <= MAX_UNITS:
        return columns
    padded = np.zeros((-(-len(columns) // MAX_UNITS) * MAX_UNITS, columns.shape[1]))
    padded[: len(columns)] = columns
    return padded.reshape(-1, MAX_UNITS, columns.shape[1]).sum(axis=0)
