"""The bootstrap over users: an Estimate's own function of reweighted sums, without rereading the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate, Interval
from openloop.core.feedback import Floats
from openloop.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap:
    """Replicates of an estimate."""

    estimate: Estimate
    replicates: Floats = field(repr=False)  # (B,)

    @property
    def stderr(self) -> float:
        """The standard deviation of the replicates."""
        return float(np.nanstd(self.replicates, ddof=1))

    def interval(self, level: float = 0.95) -> Interval:
        """The percentile interval."""
        if not 0 < level < 1:
            msg = f"interval: level must lie strictly between 0 and 1, got {level}."
            raise InputError(msg)
        low, high = np.nanquantile(self.replicates, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(low), float(high))


def bootstrap(estimate: Estimate, *, replicates: int = 2000, rng: Any, threads: int | None = None) -> Bootstrap:
    """f(W·X) with W (replicates × users) of Poisson weights, drawn inside the kernel and never stored."""
    from openloop.kernels.bootstrap import bootstrap_sums

    if not isinstance(estimate, Estimate):  # pyright: ignore[reportUnnecessaryIsInstance]
        msg = f"bootstrap: takes an Estimate, such as result[model, metric, estimator], got {type(estimate).__name__}."
        raise InputError(msg)
    if replicates < 2:
        msg = f"bootstrap: replicates must be at least 2, got {replicates}."
        raise InputError(msg)
    seed = int(np.random.default_rng(rng).integers(2**63))
    totals = bootstrap_sums(estimate.columns, replicates, seed, threads=threads)  # (B, m)
    with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may leave out every user that counts
        return Bootstrap(estimate=estimate, replicates=np.asarray(estimate.function(totals), np.float64))
