"""What is frozen: each case is a question and the engines that it is put to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from openloop import Refit
from tests.frozen import calls
from tests.frozen.calls import ENGINES, IN_MEMORY, Numbers, Question, Shown

# Estimates are sums of numbers that are the same in every engine: only the order of the sums differs.
SUMS = 1e-9
# An optimiser stops where its step is a millionth, and a bisection where its bracket is.
SOLVED = 1e-6
# Trees split where histograms of float32 gradients say, whose sums depend on the number of threads; L-BFGS of a model
# with products of factors stops along flat directions.
LEARNED = 1e-3
# By the last word of a number's name. p-values in the tail, and the points where an interval first covers 0, magnify
# what they are made of; the probability of being best is of 2,000 draws over users, in the order of users: four
# standard errors of the difference of two such probabilities.
LOOSER = {"holm": 1e-4, "rho": 1e-4, "kappa": 1e-4, "pvalue": 1e-4, "gamma": 1e-6, "curve": 1e-6}
# Users with few rows have the same mean for two models, up to rounding: whether these tie hangs on the order of sums.
LOOSER["friedman"] = 2e-2
DRAWN = {"best": 0.065}

ERRORS = ("mae", "mse", "rmse", "accuracy")
RANKS = ("recall@10", "dcg@10", "prec@10", "precision@5", "ndcg@10", "hit@10")
WHOLE = (*RANKS, "dcg", "rbp", "rbp:0.5", "adg", "atop", "ndcg", "map", "mrr", "auc")
LISTS = ("coverage@10", "gini@10", "popularity@10", "novelty@10", "new@10", "overlap@10:near")
USUAL = ("naive", "ips", "snips", "stratified")
ALL = (*USUAL, "clipped@8", "clipped", "stratified@3:width:observed", "stratified@4:count")
BY_USER = (*USUAL, "snips_user", "ips_eq3", "clipped@8")
BY_LIST = ("sips", "snsips", "rips", "snrips", "rips_dr")
BY_PLACE = ("iips", "sniips", "pbm", "snpbm", "sips")
OF_RANKERS = (*BY_LIST, *BY_PLACE, "iips_dr", "pbm_dr", "pi")
RUNNING = {"running": "near"}
REFITTED = {"errors": Refit(replicates=20)}
PART = {"metrics": ("mae", "accuracy"), "estimators": USUAL, "form": "partial"}

EVALUATED = {
    "errors": Question(metrics=ERRORS, estimators=ALL),
    "errors-text": Question(metrics=("mae", "mse"), estimators=USUAL, text=True),
    "errors-population": Question(metrics=("mae", "mse"), estimators=ALL, population=(330, 130)),
    "errors-columns": Question(metrics=ERRORS, estimators=USUAL, form="columns"),
    "errors-part": Question(metrics=ERRORS, estimators=USUAL, part=True),
    "errors-fitted": Question(metrics=("mae", "mse"), estimators=USUAL, p="logistic"),
    "errors-popularity": Question(metrics=("mae", "mse"), estimators=USUAL, p="popularity"),
    "errors-naive-bayes": Question(metrics=("mae", "mse"), estimators=USUAL, p="naive-bayes"),
    "errors-balanced": Question(metrics=("mae", "mse"), estimators=USUAL, p="balanced"),
    "errors-none": Question(metrics=("mae", "mse"), estimators=("naive",), p="none"),
    "level-99": Question(metrics=("mae",), estimators=USUAL, options={"level": 0.99}),
    "missing-drop": Question(**PART, options={"missing": "drop"}),
    "missing-worst": Question(**PART, options={"missing": "worst"}),
    "doubly-robust": Question(metrics=("mae", "mse"), estimators=("snips", "dr")),
    "refit": Question(metrics=("mae",), estimators=("snips", "ips"), p="logistic", options=REFITTED),
    "refit-balanced": Question(metrics=("mae",), estimators=("snips",), p="balanced-uniform", options=REFITTED),
    "lists": Question(metrics=(*RANKS, *LISTS), estimators=BY_USER, form="lists"),
    "lists-excluded": Question(metrics=(*RANKS, *LISTS), estimators=USUAL, form="lists", exclude=True),
    "lists-part": Question(metrics=RANKS, estimators=USUAL, form="lists", part=True),
    "lists-text": Question(metrics=("recall@10", "coverage@10"), estimators=USUAL, form="lists", text=True),
    "full": Question(metrics=("mae", *WHOLE, *LISTS), estimators=BY_USER, form="full"),
    "full-excluded": Question(metrics=(*WHOLE, *LISTS), estimators=USUAL, form="full", exclude=True),
    "full-part": Question(metrics=("mae", *WHOLE, *LISTS), estimators=USUAL, form="full", part=True),
    "part": Question(metrics=("mae", "recall@10"), estimators=("naive", "snips"), form="full", part=True),
    "full-threshold": Question(metrics=("recall@10", "ndcg@10"), form="full", options={"threshold": 3}),
    "full-none": Question(metrics=("recall@10", "ndcg", "auc"), estimators=("naive",), form="full", p="none"),
    "full-fitted": Question(metrics=("recall@10", "dcg"), estimators=USUAL, form="full", p="logistic"),
    "counts": Question(metrics=WHOLE, estimators=USUAL, form="counts"),
    "counts-excluded": Question(metrics=WHOLE, estimators=USUAL, form="counts", exclude=True),
    "positives": Question(
        metrics=("recall@10", "adg", "popularity@10"), estimators=("naive",), form="full", p="none", positives=True
    ),
    "own": Question(metrics=("cubed", "halving", "patience@8"), estimators=("naive", "snips", "shrunk"), form="full"),
    "own-lists": Question(metrics=("patience@8",), estimators=("snips", "shrunk"), form="lists"),
    "similarity": Question(metrics=("similarity@10",), form="full", similar=True),
}  # fmt: skip

AUDITED = {
    "errors": Question(metrics=ERRORS),
    "errors-all": Question(metrics=("mae", "mse"), estimators=ALL, options={"strata": (3, "2:width", "4:count")}),
    "errors-part": Question(metrics=("mae", "mse"), part=True),
    "errors-fitted": Question(metrics=("mae", "mse"), p="logistic", options={"strata": (5, "2:width")}),
    "errors-none": Question(metrics=("mae",), p="none"),
    "errors-text": Question(metrics=("mae",), text=True),
    "groups": Question(metrics=("mae",), groups=True),
    "lists": Question(metrics=None, form="lists", options=RUNNING),
    "lists-excluded": Question(metrics=("recall@10", "dcg@10"), form="lists", exclude=True),
    "full": Question(metrics=None, form="full"),
    "full-part": Question(metrics=("recall@10", "ndcg@10", "mae"), form="full", part=True),
    "cold": Question(metrics=("recall@10", "mae"), form="full", part=True, options={"cold": "report"}),
    "full-fitted": Question(metrics=("recall@10", "mae"), form="full", p="logistic", options={"strata": (5,)}),
    "counts": Question(metrics=("recall@10", "adg", "mrr"), form="counts"),
    "positives": Question(metrics=("recall@10", "adg"), form="full", p="none", positives=True, options=RUNNING),
    "sample": Question(metrics=("mae", "recall@10"), form="full", sampled=True),
    "baseline": Question(metrics=("mae",), options={"baseline": "flat"}),
    "few-items": Question(metrics=("mae",), known={"min_item_rows": 45}),
    "missing-worst": Question(metrics=("mae",), form="partial", options={"missing": "worst"}),
    "doubly-robust": Question(metrics=("mae",), estimators=("snips", "dr", "ips")),
    "naive-bayes": Question(metrics=("mae",), p="naive-bayes", options={"strata": (5,)}),
    "balanced": Question(metrics=("mae",), p="balanced", options={"strata": (5,)}),
    "refit": Question(metrics=("mae",), p="logistic", options=REFITTED | {"strata": (5,)}),
    "rehearsal": Question(metrics=("mae",), p="logistic", form="full", options={"strata": (5,), "rehearse": 4}),
    "own": Question(metrics=("cubed",), estimators=("shrunk", "snips")),
    "similarity": Question(metrics=("recall@10",), form="full", similar=True),
}  # fmt: skip

OF_SHOWN = {
    "everything": Shown(metrics=("clicks", "ctr", "dcg"), estimators=OF_RANKERS, exam="randomised"),
    "same-log": Shown(estimators=("pbm", "snpbm", "pbm_dr", "iips_dr"), exam="randomised", same=True),
    "theta": Shown(estimators=OF_RANKERS),
    "propensity": Shown(estimators=BY_PLACE, logged=("p",)),
    "exposure": Shown(estimators=BY_PLACE, logged=("x", "prefix")),
    "reordered": Shown(metrics=("clicks", "dcg"), estimators=("pbm", "snpbm"), logged=(), reordered=True),
    "rows": Shown(estimators=("iips", "sniips", "pbm", "snpbm"), logged=("p", "x"), requests=False),
    "no-users": Shown(estimators=("sniips", "snpbm", "pi"), users=False, form="requests"),
    "scores": Shown(estimators=("sniips", "snpbm"), form="scores"),
    "functions": Shown(estimators=("sniips", "snpbm"), form="functions"),
    "affine": Shown(estimators=("affine", "pbm"), exam="randomised:affine"),
    "harvest": Shown(estimators=("pbm", "snpbm"), exam="user-item"),
}  # fmt: skip

SHOWN_AUDITED = {
    "shown": Shown(exam="randomised"),
    "shown-same-log": Shown(exam="randomised", same=True),
    "shown-reordered": Shown(metrics=("clicks", "dcg"), logged=("shuffled", "pool"), reordered=True),
}

GONE = (  # frozen, and asked no more: sums over clusters of users, since no number of users is too many for their own
    "evaluate/errors-clusters", "evaluate/full-clusters",
)  # fmt: skip
ON_SPARK = (  # which takes seconds for each
    "evaluate/lists-text", "evaluate/part", "audit/errors-text", "shown/scores", "shown/theta",
    "propensity/logistic",
)  # fmt: skip
ON_FRAMES = (
    "uniform", "popularity", "popularity-1", "popularity-as-coded", "logistic", "logistic-features", "naive-bayes",
    "balanced", "balanced-uniform",
)  # fmt: skip
EXAMINED = (
    "randomised", "randomised:weighted", "randomised:affine", "user-item", "item", "item:all_pairs", "item:em",
)  # fmt: skip
SOLVERS = ("logistic", "balanced", "low-rank", "platt", "isotonic", "popularity", "quantile", "floor")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question, and how near its numbers must be; `ask` takes an engine where it is put to several."""

    name: str
    ask: Callable[..., Numbers]
    engines: tuple[str, ...] = ("arrays",)
    rtol: float = SUMS


def cases() -> dict[str, Case]:
    """Every case by its name."""
    found = [_case(f"evaluate/{name}", partial(calls.evaluate, q)) for name, q in EVALUATED.items()]
    found += [_case(f"audit/{name}", partial(calls.audit, q)) for name, q in AUDITED.items()]
    found += [_case(f"shown/{name}", partial(calls.evaluate_shown, q)) for name, q in OF_SHOWN.items()]
    found += [_case(f"audit/{name}", partial(calls.audit_shown, q)) for name, q in SHOWN_AUDITED.items()]
    for name in calls.propensity_models():
        rtol = LEARNED if name == "boosted" else SOLVED if name.startswith(SOLVERS) else SUMS
        case = _case(f"propensity/{name}", partial(calls.propensity, name), rtol=rtol)
        found.append(case if name in ON_FRAMES else _alone(case.name, case.ask, rtol))
        found.append(_alone(f"check/{name}", lambda _, name=name: calls.checked(name), max(rtol, SOLVED)))
    for by in EXAMINED:
        found.append(_alone(f"examination/{by}", lambda _, by=by: calls.examination(by), SOLVED))
    found += [_alone(name, lambda _, make=make: make(), rtol) for name, (make, rtol) in OTHERS.items()]
    return {case.name: case for case in found}


OTHERS: dict[str, tuple[Callable[[], Any], float]] = {
    "select/bias": (lambda: calls.selected("bias", "mse", None, reg=[0.1, 1.0, 10.0]), SOLVED),
    "select/mf": (lambda: calls.selected("mf", "mae", "snips", reg=[3.0, 10.0]), LEARNED),
    "select/ranking": (lambda: calls.selected("bias", "recall@10", None, reg=[1.0, 100.0]), SOLVED),
    "plan/cells": (lambda: calls.planned("mae", "snips", 20), SUMS),
    "plan/users": (lambda: calls.planned("recall@10", "snips", 20), SUMS),
    "paradox/higher": (lambda: calls.paradoxes("higher"), SUMS),
    "paradox/lower": (lambda: calls.paradoxes("lower"), SUMS),
    "bounds": (calls.bounded, SUMS),
    "rankings": (calls.ranked, SUMS),
    "split": (calls.parts_of_splits, SUMS),
    "observed": (calls.observed, SUMS),
}


def _case(name: str, ask: Callable[..., Numbers], rtol: float = SUMS) -> Case:
    engines = ENGINES if name in ON_SPARK else IN_MEMORY
    solved = max(rtol, SOLVED) if any(word in name for word in ("fitted", "balanced", "refit", "rehearsal")) else rtol
    return Case(name=name, ask=ask, engines=engines, rtol=solved)


def _alone(name: str, ask: Callable[..., Numbers], rtol: float) -> Case:
    return Case(name=name, ask=ask, rtol=rtol)
