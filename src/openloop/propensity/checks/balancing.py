"""What balancing did to a model's weights: the means that it moved, and how the weights spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.core.propensities import Propensities
from openloop.core.weights import effective_size

BINS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A mean that was balanced, as the share of a rating: of the rows, weighted before and after, and its target."""

    name: str
    rows: float
    before: float
    after: float
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """The means that were balanced, the effective rows before and after, and histograms of the weights, as shares."""

    moved: tuple[Moved, ...]
    effective_before: float
    effective_after: float
    edges: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


def balancing(model: Any, feedback: Feedback, p: Propensities) -> Balancing | None:
    """What a balanced model did; None for one that is not."""
    if p.base is None:
        return None
    before, after = 1.0 / p.base, p.weights
    low, high = (float(limit([limit(before), limit(after)])) for limit in (np.min, np.max))
    edges = np.geomspace(low * (1 - 1e-9), max(high, low * 1.01) * (1 + 1e-9), BINS + 1)
    return Balancing(
        moved=tuple(_moved(model, feedback, before, after)),
        effective_before=effective_size(before), effective_after=effective_size(after),
        edges=_numbers(edges), before=_shares(before, edges), after=_shares(after, edges),
    )  # fmt: skip


def _moved(model: Any, feedback: Feedback, before: Floats, after: Floats) -> list[Moved]:
    found: list[Moved] = []
    for target in model.targets_:
        H = target.columns(feedback)  # (n, K)
        means = (H.mean(axis=0), before @ H / before.sum(), after @ H / after.sum(), target.means)
        found += [
            Moved(name=name, rows=rows, before=b, after=a, target=t)
            for name, rows, b, a, t in zip(target.names, *(m.tolist() for m in means), strict=True)
        ]
    return found


def _shares(w: Floats, edges: Floats) -> tuple[float, ...]:
    return _numbers(np.histogram(w, edges)[0] / len(w))


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
