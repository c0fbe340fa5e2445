"""Ways in which an audit was once sure and wrong, each a world whose truth is known: seed → answer.

An answer is "right", "wrong", "undecided" or "conditional". A verdict for a model that is not the better one is wrong,
and so is any verdict where the models are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import openloop as ol
from bench.trust import worlds
from bench.trust.parts import ANSWERS, Answer, Asked, Goal, Part, Table, missed, share, tallied
from openloop.errors import OpenloopError
from openloop.studies.kit.trials import Given

BATCH = 20  # logs of a trial
HARM, FALSE_ALARM = 0.02, 0.07  # the largest share that may be wrong: in general, and where the models are equal
ROUNDING = 1e-3  # of a stated Γ* against the exact one


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way of being wrong; `run` makes a world and a log from a seed, audits it, and says how the answer was."""

    name: str
    what: str
    run: Callable[[int], Answer]
    limit: float = HARM  # the largest share that may be wrong
    least: float = 0.0  # the smallest share that must be right


def answer(found: Any, better: str | None) -> Answer:
    """How an audit's answer compares with the truth; `better` is None where the models are equal."""
    verdict = found.verdict
    if verdict.level != "verdict":
        return "conditional" if verdict.level == "conditional" else "undecided"
    return "right" if verdict.winner == better else "wrong"


def overlap(seed: int) -> Answer:
    """Cells that are hardly ever seen: the log has none of them, and its weights miss half of the population."""
    draw = np.random.default_rng(seed)
    Y = draw.integers(1, 6, (60, 50))
    liked = Y >= 4
    noise = 0.02 * draw.standard_normal(Y.shape)
    models = {"liked": Y + np.where(liked, 0.1, 4.0) + noise, "ok": Y + 0.5 + noise}
    world = ol.simulate.World(ratings=Y, propensities=np.where(liked, 0.5, 0.0002))
    return answer(ol.audit(models, world.observe(rng=draw), metrics=["mae"]), "ok")


def cells_after_user_split(seed: int) -> Answer:
    """An interval over cells, where whole users were held out: their cells enter together."""
    draw = np.random.default_rng(seed)
    easy = draw.normal(1.0, 0.4, (120, 1))  # each user's own error
    Y = draw.integers(1, 6, (120, 50))
    errors = np.abs(easy + 0.3 * draw.standard_normal(Y.shape))
    log = ol.simulate.World(ratings=Y, propensities=np.full(Y.shape, 0.3)).observe(rng=draw)
    _, test = ol.split(log, 0.2, by="user", rng=draw)
    found = ol.evaluate({"a": Y + errors}, test, metrics=["mae"], estimators=["snips"])["a", "mae", "snips"]
    try:
        interval = found.interval(0.95, over="cells")
    except OpenloopError:
        return "undecided"
    return "right" if errors.mean() in interval else "wrong"


def pooled_against_users(seed: int) -> Answer:
    """A is good for a few users with many relevant items, B for all others: better for users is B."""
    draw = np.random.default_rng(seed)
    many = np.arange(300)[:, None] < 60
    relevant = worlds.relevant_cells(draw, np.where(many[:, 0], 50, 5), 200)
    lift = {"A": np.where(many, 3.5, 1.2), "B": np.where(many, -1.0, 1.9)}
    models = {m: worlds.lifted(draw, relevant, by) for m, by in lift.items()}
    log = worlds.world(relevant, draw.uniform(0.2, 0.6, (1, 200)), models).observe(rng=draw)
    return answer(ol.audit(models, log, metrics=["recall@10"], strata=[5]), "B")


def heavy_users(seed: int) -> Answer:
    """Equal models, and a few of 60 users have most of the relevant items."""
    draw = np.random.default_rng(seed)
    counts = np.clip(np.exp(draw.normal(1.5, 1.8, 60)), 1, 600).astype(int)
    relevant = worlds.relevant_cells(draw, counts, 1500)
    models = {m: worlds.lifted(draw, relevant, draw.normal(0.5, 0.8, (60, 1))) for m in ("A", "B")}
    log = worlds.world(relevant, draw.uniform(0.4, 0.8, (1, 1500)), models).observe(rng=draw)
    return answer(ol.audit(models, log, metrics=["atop"], strata=[5]), None)


def stratified_recall(seed: int) -> Answer:
    """Most relevant cells are popular, most of the catalogue is not: shares of the catalogue favour B, wrongly."""
    draw = np.random.default_rng(seed)
    popular = np.arange(300)[None, :] < 30
    relevant = draw.random((200, 300)) < np.where(popular, 0.5, 0.03)
    models = {m: worlds.lifted(draw, relevant, by) for m, by in worlds.specialists(popular, 3.0, 1.0).items()}
    p = np.where(popular, 0.3, 0.06) * draw.uniform(0.7, 1.3, (1, 300))
    log = worlds.world(relevant, p, models).observe(rng=draw)
    return answer(ol.audit(models, log, metrics=["recall@10"], estimators=["stratified"]), "A")


def strata_against_most(seed: int) -> Answer:
    """Inside strata of propensity people still rate what they like: plain means there contradict a right verdict."""
    draw = np.random.default_rng(seed)
    Y, taste = worlds.ratings(draw, 300, 120)
    p = worlds.by_rating(Y, 2.0, 0.02 * np.exp(taste.popular))
    models = worlds.good_at(draw, Y, a=(0.6, 1.2), b=(1.0, 0.5))
    return answer(
        ol.audit(models, ol.simulate.World(ratings=Y, propensities=p).observe(rng=draw), metrics=["mae"]), "A"
    )


def ideal_of_ndcg(seed: int) -> Answer:
    """Users with many relevant items are seen thinly, so what is an ideal list there is not known: B looks better."""
    draw = np.random.default_rng(seed)
    many = np.arange(200)[:, None] < 100
    relevant = worlds.relevant_cells(draw, np.where(many[:, 0], 80, 4), 200)
    lift = {"A": np.where(many, 3.0, 1.6), "B": np.where(many, 0.6, 2.2)}
    models = {m: worlds.lifted(draw, relevant, by) for m, by in lift.items()}
    log = worlds.world(relevant, np.where(many, 0.06, 0.8) * draw.uniform(0.7, 1.2, (1, 200)), models).observe(rng=draw)
    return answer(ol.audit(models, log, metrics=["ndcg@10"]), "A")


def shares_from_a_sample(seed: int) -> Answer:
    """Equal models whose errors depend on the rating; NaiveBayes has the ratings' shares from 600 of them."""
    draw = np.random.default_rng(seed)
    Y = draw.choice([1, 2, 3, 4, 5], (300, 250), p=(0.2, 0.25, 0.1, 0.25, 0.2))
    models = worlds.good_at(draw, Y, a=(0.5, 1.1), b=(1.1, 0.5), cut=3, own=0.03)
    log = ol.simulate.World(ratings=Y, propensities=0.15 * 1.6 ** (Y - 3.0)).observe(rng=draw)
    sample = draw.choice(Y.ravel(), 600, replace=False)
    seen = ol.propensity.NaiveBayes().fit(log, uniform=sample)
    return answer(ol.audit(models, log, seen, metrics=["mae"], strata=[5], check=False), None)


def gamma_with_exclude(seed: int) -> Answer:
    """How far p may be off until the order turns, where training items leave the ranking: p is tilted, not π."""
    draw = np.random.default_rng(seed)
    Y, _ = worlds.ratings(draw, 80, 60)
    p = draw.uniform(0.3, 0.9, Y.shape)
    models = {m: Y + noise * draw.standard_normal(Y.shape) for m, noise in (("A", 0.5), ("B", 2.5))}
    train, test = ol.split(ol.simulate.World(ratings=Y, propensities=p).observe(rng=draw), 0.3, rng=draw)
    found = ol.audit(models, test, metrics=["dcg@10"], exclude=train)
    stated = found.contrast("A", "B", metric="dcg@10", estimator="snips").gamma
    if stated is None:  # the interval covers 0: there is no order that could turn
        return "undecided"
    exact = worlds.exact_gamma(models["A"], models["B"], train, test)
    return "right" if np.isclose(stated, exact, rtol=ROUNDING) else "wrong"


def positives_only(seed: int) -> Answer:
    """Clicks, everything shown equally often: what a propensity model fits is liking, and 1/p divides it out."""
    draw = np.random.default_rng(seed)
    clicks, taste = worlds.clicks(draw, 400, 150)
    models = {"A": taste.popular + 0.3 * taste.liking, "B": taste.liking}
    user, item = np.nonzero(clicks)
    U, I = clicks.shape
    log = ol.Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I, positives=True)
    train, test = ol.split(log, 0.3, rng=draw)
    asked: dict[str, Any] = {"metrics": ["recall@10"], "exclude": train, "check": False}
    try:
        found = ol.audit(models, test, ol.propensity.Logistic().fit(log), **asked)
    except OpenloopError:  # as it should be; what it advises is to pass none
        found = ol.audit(models, test, **asked)
    return answer(found, "A")


def blind_propensities(seed: int) -> Answer:
    """Seen by popularity × rating, 1.5 times as likely with every star; Logistic sees the popularity only."""
    draw = np.random.default_rng(seed)
    Y, taste = worlds.ratings(draw, 300, 120)
    p = worlds.by_rating(Y, 1.5, 0.08 * np.exp(0.7 * taste.popular))
    models = worlds.good_at(draw, Y, a=(0.95, 0.55), b=(0.8, 0.95))
    log = ol.simulate.World(ratings=Y, propensities=p).observe(rng=draw)
    seen = ol.propensity.Logistic().fit(log)
    return answer(ol.audit(models, log, seen, metrics=["mae"], check=False), "B")


CASES = (
    Case(name="overlap", what="cells that the log never shows", run=overlap),
    Case(name="user split", what="an interval over cells after a split by user", run=cells_after_user_split),
    Case(name="pooled", what="a few users hold most relevant items", run=pooled_against_users),
    Case(name="heavy users", what="equal models, heavy users", run=heavy_users, limit=FALSE_ALARM),
    Case(name="stratified", what="stratified recall by shares of the catalogue", run=stratified_recall),
    Case(name="strata", what="plain means inside strata veto a right verdict", run=strata_against_most, least=0.5),
    Case(name="ndcg", what="the ideal of nDCG is not known", run=ideal_of_ndcg),
    Case(name="naive bayes", what="equal models, shares from 600 ratings", run=shares_from_a_sample, limit=FALSE_ALARM),
    Case(name="exclude", what="Γ* under exclude", run=gamma_with_exclude),
    Case(name="positives", what="clicks with fitted propensities", run=positives_only),
    Case(name="blind", what="propensities that ignore the rating", run=blind_propensities),
)
RUNS = {case.name: case.run for case in CASES}


# -- the part of the page ------------------------------------------------------------------------------------


def trial(_: Given, *, case: str, first: int, count: int) -> dict[str, Any]:
    """The answers of a case for some seeds."""
    return {"answers": [RUNS[case](seed) for seed in range(first, first + count)]}


def answers(asked: Asked, case: Case) -> list[str]:
    """The answers of a case in all logs."""
    settings = [{"case": case.name, **batch} for batch in asked.batches(asked.sizes.cases, BATCH)]
    found = asked.run.map(trial, {}, settings, case.name)
    return [str(answer) for outcome in found for answer in outcome["answers"]]


def measure(asked: Asked) -> Part:
    """All cases, and which of them are wrong more often than they may be."""
    rows: list[tuple[str, ...]] = []
    over: list[str] = []
    short: list[str] = []
    for case in CASES:
        found = tallied(answers(asked, case))
        n = found.total()
        rows.append((case.what, f"{n}", *(share(found[a], n) for a in ANSWERS), f"{case.limit:.0%}"))
        over += [case.name] if found["wrong"] > case.limit * n else []
        short += [case.name] if found["right"] < case.least * n else []
    goals = (
        Goal(text="confident and wrong in at most the share allowed", found=missed(over), met=not over),
        Goal(text="right in at least half of the logs where a veto was wrong", found=missed(short), met=not short),
    )
    table = Table(header=("case", "logs", *ANSWERS, "wrong, at most"), rows=tuple(rows))
    return Part(title="Where audits were once confident and wrong", words=WORDS, tables=(table,), goals=goals)


WORDS = """Each line is a world whose truth is known. It was made because an earlier version confidently named the
worse model there, or stated a wrong number. If the models are equal, any verdict is wrong. "Undecided" includes
refusals with a reason. "Conditional" answers name the assumption that they need."""
