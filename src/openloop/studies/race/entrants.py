"""Who runs: the learners of the race by name, each with the settings that are tried on the log."""

from __future__ import annotations

import math
from typing import Any

from openloop.learners.baselines import Bias
from openloop.learners.covariate_ridge import Features
from openloop.learners.doubly_robust import DR
from openloop.learners.exposing import Exposure
from openloop.learners.mf import MF
from openloop.learners.recalibrated import Recalibrated
from openloop.learners.stacking import Stack
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.race.protocol import REGS, Entrant, Start, predicted, settled, starting

CROSSED = 4  # folds of cross-fitting within a learner
OFFSET_REGS = (0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
DR_REGS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # pseudo-outcomes reach far beyond the stars
RIDGES = (1.0, 10.0, 100.0, 300.0)  # of a stack's coefficients

BASELINE = "MF-IPS"


# -- learners ------------------------------------------------------------------------------------------------


def mf(start: Start, **options: Any) -> MF:
    """Matrix factorisation with offsets."""
    return MF(start.factors, threads=1, rng=start.seed, **options)


def chosen_reg(start: Start, *, weighted: bool) -> float:
    """λ of MF-IPS, or of MF without weights, by cross-validation on this log."""
    return float(settled(Entrant(mf, {"reg": start.regs}, weighted=weighted), start).chosen["reg"])


def stack(start: Start, *beside: Any) -> Stack:
    """MF with weights w, √w and none, and other columns beside these.

    λ are those that MF-IPS and MF naive choose on this log, and the geometric mean between.
    """
    ips, naive = chosen_reg(start, weighted=True), chosen_reg(start, weighted=False)
    bases = [mf(start, reg=ips), (mf(start, reg=math.sqrt(ips * naive)), 0.5), (mf(start, reg=naive), 0.0)]
    return Stack([*bases, *beside], folds=CROSSED, rng=start.seed)


def exposed(start: Start) -> Stack:
    """A stack over weights with who saw what beside it."""
    return stack(start, _exposure(start))


def recalibrated(start: Start) -> Recalibrated:
    """MF-IPS, recalibrated."""
    return Recalibrated(mf(start), folds=CROSSED)


def doubly_robust(start: Start) -> DR:
    """DR; its imputation has the λ that MF-IPS chooses on this log."""
    ips = chosen_reg(start, weighted=True)
    return DR(start.factors, imputation=mf(start, reg=ips), folds=CROSSED, rng=start.seed)


def _exposure(start: Start) -> Exposure:
    return Exposure(rank=8, rng=start.seed)


def _covariates(start: Start) -> Features:
    return Features(start.covariates["user_covariates"], start.covariates["item_covariates"], reg=100.0)


def _bias(_: Start) -> Bias:
    return Bias()


def _with_features(start: Start) -> Stack:
    return stack(start, _exposure(start), _covariates(start))


# -- who runs ------------------------------------------------------------------------------------------------

RACERS: dict[str, Entrant] = {
    "Bias naive": Entrant(_bias, {"reg": OFFSET_REGS}, weighted=False),
    "Bias-IPS": Entrant(_bias, {"reg": OFFSET_REGS}),
    "MF naive": Entrant(mf, {"reg": REGS}, weighted=False),
    BASELINE: Entrant(mf, {"reg": REGS}),
    "DR-JL": Entrant(doubly_robust, {"reg": DR_REGS}),
    "Recalibrated": Entrant(recalibrated, {"model__reg": REGS}),
    "Stack": Entrant(stack, {"reg": RIDGES}),
    "Stack + Exposure": Entrant(exposed, {"reg": RIDGES}),
    "Stack + Exposure + Features": Entrant(_with_features, {"reg": RIDGES}),
}


# -- the trial -----------------------------------------------------------------------------------------------


def raced(given: Given, *, entrant: str, seed: int, quick: bool) -> Outcome:
    """A trial: an entrant selected and fitted on the log, and its predictions of the test cells."""
    start = starting(given, seed=seed, quick=quick)
    return predicted(settled(RACERS[entrant], start), given)
