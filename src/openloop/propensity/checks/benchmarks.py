"""What a Γ is like: how far leaving a part of the model out moves p, to compare with how far p may be off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import LEAST, Feedback, Floats
from openloop.propensity.logistic import Logistic

MOST = 12  # covariates that are each left out in turn: more refits would take too long
SHARE = 0.95  # of the rows: how far the odds move in these


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Without one part of the model the odds of p move by up to this factor either way, in 95 % of the rows."""

    without: str
    factor: float

    def __str__(self) -> str:
        return f"leaving out {self.without} moves the odds of p by up to {self.factor:.3g}× in {SHARE:.0%} of the rows"


def benchmarks(model: Any, log: Feedback) -> tuple[Benchmark, ...]:
    """How far p moves without user offsets, item offsets or a covariate, on the log that the model was fitted on.

    Of logistic models only, whose refits are quick. With covariates each is left out in turn, and the offsets stay;
    without any there are offsets alone.
    """
    if not isinstance(model, Logistic):
        return ()
    p = model.predict(log).values
    return tuple(Benchmark(without=what, factor=moved(p, other)) for what, other in _reduced(model, log))


def moved(p: Floats, other: Floats) -> float:
    """The 95 % quantile over rows of the larger of two odds over the smaller."""
    logits = [np.log(x) - np.log1p(-x) for x in (np.clip(q, LEAST, 1 - 1e-12) for q in (p, other))]
    return float(np.exp(np.quantile(np.abs(logits[0] - logits[1]), SHARE)))


def _reduced(model: Logistic, log: Feedback) -> Iterator[tuple[str, Floats]]:
    """What is left out, and the p of the rows without it."""
    if model.weights_ is None:
        by_user, by_item = model.margins()  # offsets make each Σp the count, so without the other side p is its share
        yield "user offsets", (by_item / log.n_users)[log.item]
        yield "item offsets", (by_user / log.n_items)[log.user]
        return
    given = {"user_features": model.user_covariates_, "item_features": model.item_covariates_}
    if sum(len(c.names) for c in given.values() if c is not None) > MOST:
        return
    for side, covariates in given.items():
        for name in () if covariates is None or len(covariates.names) < 2 else covariates.names:
            fewer = given | {side: _without(covariates, name)}
            yield name, Logistic(reg=model.reg_).fit(log, **fewer).predict(log).values


def _without(covariates: Covariates | None, name: str) -> Covariates | None:
    if covariates is None:
        return None
    kept = [k for k, other in enumerate(covariates.names) if other != name]
    return Covariates(
        values=covariates.values[:, kept], names=tuple(covariates.names[k] for k in kept), ids=covariates.ids
    )
