"""Coverage of nominal 95 % intervals over users: every log has new users, and the truth is that of all such users."""

from __future__ import annotations

from typing import Any

import numpy as np

import openloop as ol
from bench.trust.parts import Asked, Goal, Part, Table, missed, with_error
from bench.trust.worlds import CUTS, Draw, Floats, by_rating
from openloop.studies.kit.trials import Given

ITEMS, MANY = 60, 20_000  # items of every world; users that the truth is computed from
BATCH = 100
METRICS = ("mae", "mse", "dcg@10", "recall@10")
ESTIMATES = tuple((m, e) for m in METRICS for e in ("snips", "ips") if (m, e) != ("recall@10", "ips"))
SAMPLES = (100, 600, 10_000)
# name → the propensities that are used, and the number of ratings in the uniform sample
WAYS = {
    "known p": ("known", 0),
    **{f"NaiveBayes, {n:,} ratings": ("naive bayes", n) for n in SAMPLES},
    **{f"Balanced, {n:,} ratings": ("balanced", n) for n in SAMPLES},
}
BAND, FIRM = (0.93, 0.97), 0.90  # of coverage: with many users, and with few where the support is firm
MANY_ENOUGH = 100  # users
STEP, STEP_OF_FEW = 1.4, 2.0  # how many times likelier one more star makes a rating to be seen
# A verdict rests on so many effective rows and users at least, and on no row with more of the weight.
ROWS, USERS, HEAVY = 100, 30, 0.10


def users_like_these(draw: Draw, U: int) -> tuple[Floats, Floats, Floats]:
    """Ratings, predictions (U, I) and the items' popularity (1, I): new users, the same items."""
    fixed = np.random.default_rng(1)
    popular, tastes = fixed.standard_normal((1, ITEMS)), fixed.standard_normal((3, ITEMS))
    liking = draw.standard_normal((U, 3)) @ tastes / 2 + 0.4 * popular
    Y = 1.0 + np.searchsorted(CUTS, liking + 0.7 * draw.standard_normal((U, ITEMS)))
    own = 0.4 * draw.standard_normal((U, 1))
    return Y, 2.8 + 0.7 * liking + own + 0.5 * draw.standard_normal(Y.shape), popular


def propensity_grid(way: str, Y: Floats, popular: Floats) -> Floats:
    """p by rating, and but for NaiveBayes, which assumes the rating alone, by popularity too.

    With few users the rating matters more, so that the support rule has something to refuse.
    """
    step = STEP if len(Y) >= MANY_ENOUGH else STEP_OF_FEW
    return by_rating(Y, step, 0.13 if way == "naive bayes" else 0.13 * np.exp(0.5 * popular))


def fitted(way: str, log: ol.Feedback, sample: Any) -> Any:
    """What the log is weighted by."""
    if way == "known":
        return None
    if way == "naive bayes":
        return ol.propensity.NaiveBayes().fit(log, uniform=sample)
    return ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=sample)


def trial(_: Given, *, way: str, sample: int, users: int, first: int, count: int) -> dict[str, Any]:
    """Value, limits and firmness of every estimate in some logs: (logs, estimates) each."""
    found = [_one_log(np.random.default_rng([users, sample, seed]), way, sample, users)
             for seed in range(first, first + count)]  # fmt: skip
    return {name: [[one[name] for one in line] for line in found] for name in ("value", "low", "high", "firm")}


def _one_log(draw: Draw, way: str, sample: int, users: int) -> list[dict[str, float]]:
    Y, prediction, popular = users_like_these(draw, users)
    log = ol.simulate.World(ratings=Y, propensities=propensity_grid(way, Y, popular)).observe(rng=draw)
    drawn = draw.choice(users_like_these(draw, max(users, 300))[0].ravel(), sample, replace=False) if sample else None
    seen = fitted(way, log, drawn)
    result = ol.evaluate({"m": prediction}, log, seen, metrics=METRICS, estimators=("snips", "ips"), threshold=4)
    return [_shown(result["m", metric, estimator]) for metric, estimator in ESTIMATES]


def _shown(estimate: Any) -> dict[str, float]:
    interval, seen = estimate.interval(0.95), estimate.diagnostics
    firm = seen.effective_size >= ROWS and seen.users >= USERS and seen.largest_share <= HEAVY
    return {"value": estimate.value, "low": interval.low, "high": interval.high, "firm": float(firm)}


def truths() -> Floats:
    """The truth of each estimate: its value on all cells of very many users, (estimates,)."""
    Y, prediction, _ = users_like_these(np.random.default_rng(0), MANY)
    everything = ol.simulate.World(ratings=Y, propensities=np.ones(Y.shape)).everything()
    result = ol.evaluate({"m": prediction}, everything, metrics=METRICS, estimators=("snips", "ips"), threshold=4)
    return np.array([result["m", metric, estimator].value for metric, estimator in ESTIMATES])


def covered(asked: Asked, way: str, users: int, truth: Floats) -> tuple[Floats, Floats]:
    """Whether each interval holds the truth, and whether its support is firm: (logs, estimates) each."""
    kind, sample = WAYS[way]
    batches = asked.batches(asked.sizes.coverage, BATCH)
    settings = [{"way": kind, "sample": sample, "users": users, **batch} for batch in batches]
    found = asked.run.map(trial, {}, settings, f"coverage, {way}, {users} users")
    low, high, firm = (np.concatenate([outcome[name] for outcome in found]) for name in ("low", "high", "firm"))
    return (low <= truth) & (truth <= high), firm > 0


def measure(asked: Asked) -> Part:
    """Coverage with 300 users, and with 40 where the support is firm."""
    truth = truths()
    tables, goals = zip(*(_with_users(asked, users, truth) for users in (300, 40)), strict=True)
    return Part(title="Coverage of 95 % intervals", words=WORDS, tables=tables, goals=goals)


def _with_users(asked: Asked, users: int, truth: Floats) -> tuple[Table, Goal]:
    """The coverage of every estimate, by propensities; of few users only where the support is firm."""
    rows: list[tuple[str, ...]] = []
    astray: list[str] = []
    for way in WAYS:
        holds, firm = covered(asked, way, users, truth)
        counts = firm.sum(axis=0) if users < MANY_ENOUGH else np.full(len(ESTIMATES), len(firm))
        kept = (holds & firm).sum(axis=0) if users < MANY_ENOUGH else holds.sum(axis=0)
        rates = kept / np.maximum(counts, 1)
        rows.append((way, *(with_error(float(rate), int(n)) for rate, n in zip(rates, counts, strict=True))))
        for (metric, estimator), rate, n in zip(ESTIMATES, rates, counts, strict=True):
            if n and not _kept(rate, n, users):
                astray.append(f"{way}, {estimator} of {metric} ({rate:.3f})")
    few = users < MANY_ENOUGH
    text = f"at least {FIRM:.0%}" if few else f"{BAND[0]:.0%} to {BAND[1]:.0%}"
    where = f"{users} users{', intervals that the support rule accepts' if few else ''}"
    table = Table(header=("propensities", *(f"{e} of {m}" for m, e in ESTIMATES)), rows=tuple(rows), caption=where)
    goal = Goal(text=f"{where}: {text}, within two standard errors", found=missed(astray), met=not astray)
    return table, goal


def _kept(rate: float, n: int, users: int) -> bool:
    """Whether a rate is in its band, give or take two standard errors of its own."""
    slack = 2 * np.sqrt(0.95 * 0.05 / n)
    return rate >= FIRM - slack if users < MANY_ENOUGH else BAND[0] - slack <= rate <= BAND[1] + slack


WORDS = f"""Every log has new users, drawn from the same distribution, and the same {ITEMS} items. The truth is the
value for {MANY:,} such users with all cells seen. A rating one star higher is {STEP} times as likely to be seen,
{STEP_OF_FEW:g} times with 40 users. Popular items are also seen more often, except for NaiveBayes, which assumes that
p depends on the rating alone. recall@10 is per relevant item. The number after ± is the standard error of the share of
logs."""
