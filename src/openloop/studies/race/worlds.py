"""The race on data of known truth: errors on cells that nobody saw, where p is true, estimated and wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.protocols import predicted_block
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import half_width, paired
from openloop.studies.kit.trials import Given, columns
from openloop.studies.race.completed import KINDS, OBSERVED, SAMPLE, SHAPES, completed_values, known, world
from openloop.studies.race.entrants import BASELINE, doubly_robust, exposed, mf, recalibrated, stack
from openloop.studies.race.protocol import Entrant, Start, settled
from openloop.support.wording import pvalue

SEEDS, QUICK_SEEDS = 8, 2
FACTORS = 8
REGS = (2.0, 4.0, 8.0, 16.0, 32.0)
BEST = "Stack + Exposure"

RACERS: dict[str, Entrant] = {
    "MF naive": Entrant(mf, {"reg": REGS}, weighted=False),
    BASELINE: Entrant(mf, {"reg": REGS}),
    "DR-JL": Entrant(doubly_robust, {"reg": (8.0, 16.0, 32.0, 64.0)}),
    "Recalibrated": Entrant(recalibrated, {"model__reg": REGS}),
    "Stack": Entrant(stack, {}),
    BEST: Entrant(exposed, {}),
}
TOLD = {"true": "true p", "bayes": "naive Bayes", "wrong": "offsets alone"}
# What is claimed of Stack + Exposure where p is true: at least so much less error than MF-IPS; below 0: at most more.
LESS = {"rating": 0.10, "taste": 0.04, "blind": -0.01}


def raced_there(given: Given, *, kind: str, by: str, entrant: str, seed: int, quick: bool) -> dict[str, Any]:
    """A trial: an entrant selected and fitted on the log of a world, and its MSE on the cells that the log lacks."""
    made, log = world(given, kind, seed, quick=quick)
    p = known(by, made, log, seed)
    start = Start(
        log=replace(log, propensity=p), p=p, covariates={}, seed=seed, quick=quick, factors=FACTORS, regs=REGS
    )
    found = settled(RACERS[entrant], start)
    unseen = np.ones(made.ratings.shape, np.bool_)
    unseen[log.user, log.item] = False
    e = predicted_block(found.model, np.arange(log.n_users)) - made.ratings  # (U, I)
    return {"mse": float(np.mean(e[unseen].astype(np.float64) ** 2)), "rows": len(log)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Against:
    """An entrant's errors on unseen cells, one a seed, and those of MF-IPS in the same worlds."""

    errors: Floats
    baseline: Floats

    @property
    def less(self) -> float:
        """By how much the mean error is below that of MF-IPS, as a share of it."""
        return 1 - float(self.errors.mean() / self.baseline.mean())

    @property
    def wins(self) -> bool:
        """Significantly below, by the paired t-test over seeds at 5 %."""
        gap = paired(self.errors, self.baseline)
        return gap.value < 0 and gap.pvalue < 0.05

    def __str__(self) -> str:
        gap, half = paired(self.errors, self.baseline), half_width(self.errors - self.baseline)
        interval = f"[{gap.value - half:+.3f}, {gap.value + half:+.3f}]"
        return f"{-100 * self.less:+.1f} %: {gap.value:+.3f} {interval}, p {pvalue(gap.pvalue)}"


Found = Mapping[tuple[str, str, str], Against]  # by kind of world, what is known of p, and entrant


def worlds(run: Run) -> Result:
    """Every entrant in every world, with every p."""
    values = run.one(completed_values, columns(run.load("ml-100k").log), seed=run.seed)
    seeds = run.either(SEEDS, QUICK_SEEDS)
    asked: list[dict[str, Any]] = [
        {"kind": kind, "by": by, "entrant": entrant, "seed": run.seed + s, "quick": run.quick}
        for kind in KINDS
        for by in (tuple(TOLD) if kind != "blind" and not run.quick else ("true",))
        for entrant in RACERS
        for s in range(seeds)
    ]
    outcomes = run.map(raced_there, values, asked, "racing in worlds")
    errors = np.array([float(outcome["mse"]) for outcome in outcomes]).reshape(-1, seeds)
    keys = [(one["kind"], one["by"], one["entrant"]) for one in asked[::seeds]]
    by_key = dict(zip(keys, errors, strict=True))
    found = {key: Against(errors=by_key[key], baseline=by_key[*key[:2], BASELINE]) for key in keys}
    return Result(
        item="worlds",
        data=("ml-100k",),
        tables=tuple(_tables(found, seeds)),
        claims=tuple(claims(found)),
        notes=_notes(run),
    )


def _tables(found: Found, seeds: int) -> Iterator[Table]:
    for kind in KINDS:
        told = list(dict.fromkeys(by for k, by, _ in found if k == kind))
        errors: list[tuple[Cell, ...]] = [
            (who, *(_mean(found[kind, by, who].errors) for by in told)) for who in RACERS
        ]  # fmt: skip
        yield Table(
            name=f"race-worlds-{kind}", caption=f"{SEEN[kind]}: MSE on unseen cells, mean of {seeds} worlds",
            columns=("", *(TOLD[by] for by in told)), rows=tuple(errors),
        )  # fmt: skip
        gaps: list[tuple[Cell, ...]] = [
            (who, *(str(found[kind, by, who]) for by in told)) for who in RACERS if who != BASELINE
        ]
        yield Table(
            name=f"race-worlds-{kind}-differences",
            caption=f"{SEEN[kind]}: error less that of {BASELINE} with the same p, in percent of it; the difference "
            "with its 95 % interval by t, paired over worlds",
            columns=("", *(TOLD[by] for by in told)), rows=tuple(gaps),
        )  # fmt: skip


def _mean(errors: Floats) -> Value:
    return Value(value=errors.mean(), error=errors.std(ddof=1) / np.sqrt(len(errors)))


def claims(found: Found) -> Iterator[Claim]:
    """What is claimed of the best learner, where p is true."""
    for kind, share in LESS.items():
        one = found[kind, "true", BEST]
        if share > 0:
            text = f"{SEEN[kind]}: {BEST} has at least {100 * share:g} % less error than {BASELINE}, and significantly"
            yield Claim(text=text, holds=one.less >= share and one.wins, found=str(one))
        else:
            text = f"{SEEN[kind]}: {BEST} is no worse than {BASELINE}, within {-100 * share:g} %"
            yield Claim(text=text, holds=one.less >= share, found=str(one))


SEEN = {
    "rating": "p depends on the rating",
    "taste": "p depends on activity, popularity and taste",
    "blind": "selection carries no signal",
}


def _notes(run: Run) -> tuple[str, ...]:
    U, I = SHAPES[run.quick]
    return (
        (
            f"ML-100K was completed by MF; each seed draws {U} of its users and {I} of its items, adds noise to the "
            f"completed values and turns them into stars of given shares. A log shows {100 * OBSERVED:g} % of the "
            "cells. Where p depends on the rating, it is Schnabel et al.'s observation model at α = 0.25; where on "
            "activity, popularity and taste, it grows with the counts of the real log and with the completed value, "
            "not with its noise; where selection carries no signal, the counts are those of other users and items."
        ),
        (
            f"Naive Bayes has {SAMPLE} uniform ratings. “Offsets alone” is a logistic regression of what was seen on "
            "users and items: wrong where ratings or taste select, right where they do not."
        ),
        (
            f"d = {FACTORS} throughout; settings by cross-validation on the log under the p that the column names. The "
            "error is that of cells which the log lacks."
        ),
    )
