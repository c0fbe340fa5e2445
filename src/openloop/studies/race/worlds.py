"""The race on data of known truth: errors on cells that nobody saw, where p is true, estimated and wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
# What is claimed of Stack + Exposure: by the means, at least so much less error than MF-IPS.
LESS = {"true": {"rating": 0.10, "taste": 0.04}, "bayes": {"rating": 0.0, "taste": 0.0}}
MORE = 0.01  # where selection carries no signal: at most so much more error, by the upper limit


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
    """An entrant's errors on unseen cells, one per seed, and those of MF-IPS in the same worlds."""

    errors: Floats
    baseline: Floats

    @property
    def less(self) -> float:
        """By how much the mean error is below that of MF-IPS, as a share of it."""
        return 1 - float(self.errors.mean() / self.baseline.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the error less that of MF-IPS, by t, paired over seeds."""
        gap, half = paired(self.errors, self.baseline), half_width(self.errors - self.baseline)
        return gap.value - half, gap.value + half

    @property
    def most(self) -> float:
        """By how much the error is above that of MF-IPS at most: the interval's upper limit, as a share of it."""
        return self.interval[1] / float(self.baseline.mean())

    @property
    def wins(self) -> bool:
        """Significantly below, by the paired t-test over seeds at 5 %."""
        gap = paired(self.errors, self.baseline)
        return gap.value < 0 and gap.pvalue < 0.05

    @property
    def loses(self) -> bool:
        """Significantly above."""
        return paired(self.errors, self.baseline).above

    def __str__(self) -> str:
        gap, (low, high) = paired(self.errors, self.baseline), self.interval
        return f"{-100 * self.less:+.1f} %: {gap.value:+.3f} [{low:+.3f}, {high:+.3f}], p {pvalue(gap.pvalue)}"


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
        notes=(*_notes(run), *_wrong(found)),
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
    """What is claimed of the best learner, with true p and with naive Bayes; a quick run has true p alone."""
    for by, least in LESS.items():
        for kind, share in least.items():
            if (kind, by, BEST) in found:
                one, less = found[kind, by, BEST], f"at least {100 * share:g} % less" if share else "less"
                text = f"{SEEN[kind]}, with {TOLD[by]}: {BEST} has {less} error than {BASELINE}, and significantly"
                yield Claim(text=text, holds=one.less >= share and one.wins, found=str(one))
    one = found["blind", "true", BEST]
    yield Claim(
        text=f"{SEEN['blind']}, with {TOLD['true']}: {BEST} has at most {100 * MORE:g} % more error than {BASELINE}, "
        "by the upper limit of the paired 95 % interval",
        holds=one.most <= MORE, found=f"{one}; at most {100 * one.most:+.1f} %",
    )  # fmt: skip


def _wrong(found: Found) -> Iterator[str]:
    """Who has less error than MF-IPS, and who more, where both are told a wrong p."""
    for kind in ("rating", "taste"):
        rivals = {who: found[kind, "wrong", who] for who in RACERS if (kind, "wrong", who) in found and who != BASELINE}
        if rivals:
            parts = {
                f"significantly less error than {BASELINE}": [who for who, one in rivals.items() if one.wins],
                "significantly more": [who for who, one in rivals.items() if one.loses],
                "no significant difference": [who for who, one in rivals.items() if not (one.wins or one.loses)],
            }
            told = (f"{what}: {_by_how_much(rivals, who)}" for what, who in parts.items())
            yield f"Where {SEEN[kind]} and learners get a p from offsets alone, which is wrong: {'; '.join(told)}."


def _by_how_much(rivals: Mapping[str, Against], who: Sequence[str]) -> str:
    return ", ".join(f"{name} ({-100 * rivals[name].less:+.1f} %)" for name in who) or "none"


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
            "users and items: wrong where ratings or taste select. Where selection carries no signal, it would be "
            "right, and true p alone is raced."
        ),
        (
            f"d = {FACTORS} throughout; settings by cross-validation on the log under the p that the column names; of "
            "stacks the λ of their bases, not the ridge. The error is that of cells which the log lacks."
        ),
    )
