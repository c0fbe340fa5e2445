"""Real logs: which share of pairs of models is decided by significance alone, and which by all rules of a verdict."""

from __future__ import annotations

from typing import Any

import numpy as np

import openloop as ol
from bench.trust.parts import Asked, Part, Table, share
from openloop.studies.kit.trials import Given, columns, feedback

DATA = {"ml-100k": "ml-100k", "ml-1m-half": "ml-1m", "ml-latest-small": "ml-latest-small", "coat": "coat"}
LIKED = 4  # and more stars are a click
HELD_OUT = 0.2


def raters(train: ol.Feedback) -> dict[str, Any]:
    """Six models that predict ratings."""
    learners = ol.learners
    fits: dict[str, Any] = {
        "bias": learners.Bias(),
        "mf 5": learners.MF(factors=5, reg=5.0, tol=1e-3, threads=1),
        "mf 10": learners.MF(factors=10, reg=5.0, tol=1e-3, threads=1),
        "mf 10, λ 10": learners.MF(factors=10, reg=10.0, tol=1e-3, threads=1),
        "mf 20": learners.MF(factors=20, reg=5.0, tol=1e-3, threads=1),
        "mf 20, λ 10": learners.MF(factors=20, reg=10.0, tol=1e-3, threads=1),
    }
    return {name: learner.fit(train) for name, learner in fits.items()}


def rankers(train: ol.Feedback) -> dict[str, Any]:
    """Six models that rank."""
    learners = ol.learners
    fits: dict[str, Any] = {
        "popular": learners.Popularity(),
        "svd 5": learners.PureSVD(factors=5),
        "svd 10": learners.PureSVD(factors=10),
        "svd 20": learners.PureSVD(factors=20),
        "wmf 10": learners.WMF(factors=10),
        "wmf 30": learners.WMF(factors=30),
    }
    return {name: learner.fit(train) for name, learner in fits.items()}


def trial(given: Given, *, metric: str, clicks: bool) -> dict[str, Any]:
    """The pairs of one log: whether each is significant, and the level of its answer."""
    log = feedback(given, np.flatnonzero(given["rating"] >= LIKED) if clicks else None)
    if clicks:
        log = ol.Feedback.from_arrays(
            log.user, log.item, np.ones(len(log)), users=log.users, items=log.items, positives=True
        )
    train, test = ol.split(log, HELD_OUT, rng=0)
    models = raters(train) if metric == "mae" else rankers(train)
    seen = None if clicks else ol.propensity.Logistic().fit(log)
    found = ol.audit(models, test, seen, metrics=[metric], exclude=train, check=False)
    pairs = found.verdict.pairs
    return {"better": [p.better is not None for p in pairs], "level": [p.level for p in pairs]}


def measure(asked: Asked) -> Part:
    """All data sets that are present."""
    rows: list[tuple[str, ...]] = []
    left_out: list[str] = []
    for data, folder in DATA.items():
        if not asked.run.present(folder):
            left_out.append(f"{data} is not in the data folder")
            continue
        given = columns(asked.run.load(folder).log)
        for what, metric, clicks in KINDS:
            one = asked.run.one(trial, given, metric=metric, clicks=clicks)
            n, levels = len(one["level"]), [str(level) for level in one["level"]]
            decided = (int(np.sum(one["better"])), levels.count("verdict"), levels.count("conditional"))
            rows.append((data, what, f"{n}", *(share(part, n) for part in decided)))
    header = ("data", "log", "pairs", "significant", "verdict", "conditional")
    return Part(
        title="Real logs", words=WORDS, tables=(Table(header=header, rows=tuple(rows)),), left_out=tuple(left_out)
    )


KINDS = (
    ("ratings, mae, Logistic", "mae", False),
    ("ratings, recall@10, Logistic", "recall@10", False),
    ("clicks, recall@10", "recall@10", True),
)

WORDS = f"""Nobody knows the truth of these logs. The table shows the cost of caution. Six models make fifteen pairs,
and {HELD_OUT:.0%} of the rows are held out at random. "Significant" pairs differ under Holm's (1979) correction. The
next columns show how many of these pairs also meet the other rules of a verdict, fully or under an assumption. Clicks
are ratings of {LIKED} and more without their stars."""
