"""Γ*₉₅ where the truth is exactly at Γ₀: the models are equal, and p is off by Γ₀ in the direction that hurts most."""

from __future__ import annotations

from typing import Any

import numpy as np

import openloop as ol
from bench.trust.parts import Asked, Goal, Part, Table, missed, with_error
from openloop.studies.kit.trials import Given

BATCH = 100
AT = (1.2, 1.5, 2.0)
BAND = (0.015, 0.04)
USERS, ITEMS = 300, 60


def trial(_: Given, *, at: float, first: int, count: int) -> dict[str, Any]:
    """Γ*₉₅ of some logs; 1 where the order is not even significant."""
    return {"gamma_low": [_one_log(np.random.default_rng([int(1000 * at), seed]), at)
                          for seed in range(first, first + count)]}  # fmt: skip


def _one_log(draw: np.random.Generator, at: float) -> float:
    """A log of cells seen with the tilted p, that carries the p it should have had.

    1/p′ − 1 = λ(1/p − 1), λ = 1/Γ₀ where B errs less than A and Γ₀ elsewhere: those cells are seen too often.
    """
    Y = draw.integers(1, 6, (USERS, ITEMS)).astype(float)
    own = np.exp(0.3 * draw.standard_normal((2, USERS, 1)))
    errors = own * np.abs(draw.standard_normal((2, USERS, ITEMS)))  # alike in both models
    p = np.clip(
        0.1 * np.exp(0.5 * draw.standard_normal((1, ITEMS)) + 0.3 * draw.standard_normal((USERS, 1))), 0.01, 0.5
    )
    tilt = np.where(errors[0] > errors[1], 1 / at, at)
    seen = draw.random(Y.shape) < 1 / (1 + tilt * (1 / p - 1))
    user, item = np.nonzero(seen)
    log = ol.Feedback.from_arrays(user, item, Y[seen], users=USERS, items=ITEMS, propensity=p[seen])
    models = {"A": Y + errors[0], "B": Y + errors[1]}
    found = ol.audit(models, log, metrics=["mae"], estimators=["snips"], strata=[2])
    low = found.contrast("A", "B", metric="mae", estimator="snips").gamma_low
    return 1.0 if low is None else low


def measure(asked: Asked) -> Part:
    """How often Γ*₉₅ lies above Γ₀."""
    rows: list[tuple[str, ...]] = []
    astray: list[str] = []
    for at in AT:
        settings = [{"at": at, **batch} for batch in asked.batches(asked.sizes.turning, BATCH)]
        found = asked.run.map(trial, {}, settings, f"Γ*₉₅ at {at:g}")
        above = np.concatenate([outcome["gamma_low"] for outcome in found]) > at
        rows.append((f"{at:g}", f"{len(above):,}", with_error(float(above.mean()), len(above))))
        slack = 2 * np.sqrt(0.025 * 0.975 / len(above))
        astray += [] if BAND[0] - slack <= above.mean() <= BAND[1] + slack else [f"Γ₀ = {at:g}"]
    text = f"P(Γ*₉₅ > Γ₀) in {BAND[0]:g} to {BAND[1]:g}, within two standard errors"
    table = Table(header=("Γ₀", "logs", "Γ*₉₅ above Γ₀"), rows=tuple(rows))
    goal = Goal(text=text, found=missed(astray), met=not astray)
    return Part(title="How far propensities may be off", words=WORDS, tables=(table,), goals=(goal,))


WORDS = f"""Two models are equally good, with {USERS} users and {ITEMS} items. The odds of being seen are off by
exactly Γ₀ in every cell, in the direction that favours one of them. Γ*₉₅ promises that a smaller error leaves the
order unchanged. At Γ₀ neither model is truly ahead, so Γ*₉₅ should be above Γ₀ in about 2.5 % of logs."""
