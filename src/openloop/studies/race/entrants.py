"""Who runs: the learners of the race by name, each with the settings that are tried on the log."""

from __future__ import annotations

import math
from typing import Any

from openloop.learners.baselines import Bias, Popularity
from openloop.learners.covariate_ridge import Features
from openloop.learners.doubly_robust import DR, RelMF
from openloop.learners.exposing import Exposure
from openloop.learners.mf import MF
from openloop.learners.recalibrated import Recalibrated
from openloop.learners.stacking import Stack
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.race.protocol import REGS, Entrant, Start, predicted, settled, starting
from openloop.studies.race.study_learners import SideMean, StableMF

CROSSED = 4  # folds of cross-fitting within a learner
OFFSET_REGS = (0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of means and offsets
LOGISTIC_REGS = (0.1, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0)  # the logistic loss is about a quarter of the squared one
CLICK_REGS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # of RelMF
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


def _as_given(start: Start) -> Stack:
    """The stack of `openloop train --model stack`, as it is."""
    bases = [mf(start, reg=5.0), (mf(start, reg=6.0), 0.5), (mf(start, reg=7.0), 0.0)]
    return Stack([*bases, _exposure(start)], folds=CROSSED, rng=start.seed)


def exposed(start: Start) -> Stack:
    """A stack over weights with who saw what beside it."""
    return stack(start, _exposure(start))


def recalibrated(start: Start) -> Recalibrated:
    """MF-IPS, recalibrated."""
    return Recalibrated(mf(start), folds=CROSSED)


def doubly_robust(start: Start, **options: Any) -> DR:
    """DR; its imputation has the λ that MF-IPS chooses on this log."""
    ips = chosen_reg(start, weighted=True)
    return DR(start.factors, imputation=mf(start, reg=ips), folds=CROSSED, rng=start.seed, **options)


def _exposure(start: Start) -> Exposure:
    return Exposure(rank=8, rng=start.seed)


def _covariates(start: Start) -> Features:
    return Features(start.covariates["user_covariates"], start.covariates["item_covariates"], reg=100.0)


def _popularity(_: Start) -> Popularity:
    return Popularity()


def _user_mean(_: Start) -> SideMean:
    return SideMean("user")


def _item_mean(_: Start) -> SideMean:
    return SideMean("item")


def _bias(_: Start) -> Bias:
    return Bias()


def _logistic(start: Start) -> MF:
    return mf(start, loss="logistic")


def _mrdr(start: Start) -> DR:
    return doubly_robust(start, weights="mrdr")


def _dr_mse(start: Start) -> DR:
    return doubly_robust(start, weights="dr-mse")


def _tdr(start: Start) -> DR:
    return doubly_robust(start, targeted=True)


def _stable(start: Start) -> StableMF:
    return StableMF(start.factors, imputation_reg=chosen_reg(start, weighted=True), rng=start.seed)


def _relmf(start: Start) -> RelMF:
    return RelMF(start.factors, rng=start.seed)


def _with_features(start: Start) -> Stack:
    return stack(start, _exposure(start), _covariates(start))


# -- who runs ------------------------------------------------------------------------------------------------

RACERS: dict[str, Entrant] = {
    "popularity": Entrant(_popularity, {}, weighted=False, rates=False),
    "user mean": Entrant(_user_mean, {"reg": OFFSET_REGS}),
    "item mean": Entrant(_item_mean, {"reg": OFFSET_REGS}),
    "Bias naive": Entrant(_bias, {"reg": OFFSET_REGS}, weighted=False),
    "Bias-IPS": Entrant(_bias, {"reg": OFFSET_REGS}),
    "Bias naive, of labels": Entrant(_bias, {"reg": OFFSET_REGS}, weighted=False, learns="label", rates=False),
    "MF naive, selected naively": Entrant(mf, {"reg": REGS}, weighted=False, estimator="naive", printed="Naive"),
    "MF naive": Entrant(mf, {"reg": REGS}, weighted=False, printed="Naive"),
    BASELINE: Entrant(mf, {"reg": REGS}, printed="IPS"),
    "MF-SNIPS": Entrant(mf, {"reg": REGS}, estimator="snips", printed="SNIPS"),
    "logistic MF naive": Entrant(_logistic, {"reg": LOGISTIC_REGS}, weighted=False, learns="label", rates=False),
    "logistic MF-IPS": Entrant(_logistic, {"reg": LOGISTIC_REGS}, learns="label", rates=False),
    "DR-JL": Entrant(doubly_robust, {"reg": DR_REGS}, printed="DR-JL"),
    "MRDR": Entrant(_mrdr, {"reg": DR_REGS}, printed="MRDR"),
    "DR-MSE": Entrant(_dr_mse, {"reg": DR_REGS}, printed="DR-MSE"),
    "TDR": Entrant(_tdr, {"reg": DR_REGS}, printed="TDR-JL"),
    "StableDR-like": Entrant(_stable, {"reg": REGS[2:6]}, printed="StableDR"),
    "RelMF": Entrant(_relmf, {"reg": CLICK_REGS}, learns="label", rates=False),
    "Recalibrated": Entrant(recalibrated, {"model__reg": REGS}),
    "Stack": Entrant(stack, {"reg": RIDGES}),
    "Stack + Exposure": Entrant(exposed, {"reg": RIDGES}),
    "Stack + Exposure, nothing selected": Entrant(_as_given, {}),
    "Stack + Exposure + Features": Entrant(_with_features, {"reg": RIDGES}),
}


# -- the trial -----------------------------------------------------------------------------------------------


def raced(given: Given, *, entrant: str, label: int, seed: int, quick: bool) -> Outcome:
    """A trial: an entrant selected and fitted on the log, and its predictions of the test cells."""
    start = starting(given, label=label, seed=seed, quick=quick)
    return predicted(settled(RACERS[entrant], start), given)
