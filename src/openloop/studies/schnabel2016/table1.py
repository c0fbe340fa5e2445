"""Table 1 of Schnabel et al. (2016): the means and deviations of three estimators for five models at α = 0.25."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from openloop.core.feedback import Floats
from openloop.studies.kit.results import Cell, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.completions import (
    TOP,
    OtherCompletions,
    few_ones,
    other_completions,
    other_samples,
    rotate_without_few,
)
from openloop.studies.schnabel2016.estimates import (
    DRAWN,
    ESTIMATORS,
    METRICS,
    TITLES,
    drawing,
    draws,
    with_known_propensities,
)
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.table1_claims import claims
from openloop.studies.schnabel2016.tolerances import ERRORS, SHARE, capped, rounding, sampling, weights
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS, Completion, complete, semi_synthetic
from openloop.support.wording import counted


def table1(run: Run) -> Result:
    """Means and deviations of the estimators at α = 0.25, beside the truth."""
    world = complete(run)
    settings = [drawing(run, ALPHA), {**drawing(run, ALPHA), "break_ties": True}]
    found, untied = run.map(with_known_propensities, world.given, settings, "drawing logs")
    others, samples = other_completions(run, world), other_samples(run, world)
    without = run.one(rotate_without_few, world.given, alpha=ALPHA, seed=run.seed, draws=draws(run))
    few = int(few_ones(world.ratings).sum())
    tables = (
        _estimates(found, "mae", _mae_allowed(world)),
        _estimates(found, "dcg@50", _dcg_allowed(found, others, samples), [_without_row(without, few)]),
        _deviations(found, untied),
        _marginals(run, world),
    )
    return Result(
        item="table1", data=("ml-100k",), tables=tables, claims=tuple(claims(found)),
        notes=(world.described, *_NOTES, _rivals_note(world), _few_note(few, found, without, others)),
    )  # fmt: skip


_NOTES = (
    "The paper counts 944 users and 1,683 movies; the ratings have 943 and 1,682, which is what is used here.",
    "Eq. 8's 1/log(rank) is undefined at rank 1; DCG@50 is computed here with 1/log2(1 + rank).",
    (
        "Tied items get their average gain, which lowers the deviation of DCG@50. The paper sorts, so its deviations "
        "are compared with ties broken once at random."
    ),
    (
        "The MAE of REC_ONES is 4·p₅. The published 0.102 means p₅ = 0.0255, where Marlin & Zemel's marginals as "
        "printed have 0.026."
    ),
)


def _rivals_note(world: Completion) -> str:
    if not world.rivals:
        return "No other completion is compared with this one."
    named = ", ".join(f"d = {d} with λ = {reg:g}" for d, reg in world.rivals)
    return (
        f"Other completions are as accurate as the best within one standard error: {named}. They show how far DCG@50 "
        "depends on the completion."
    )


def _few_note(few: int, found: Outcome, without: Outcome, others: OtherCompletions) -> str:
    place = METRICS.index("dcg@50"), MODELS.index("ROTATE")
    everyone, printed = found["naive"][:, *place].mean(), PUBLISHED["table1"]["dcg@50"]["ROTATE"]["naive"][0]
    many = f"; the others have {min(others.few)} to {max(others.few)}" if len(others.few) else ""
    return (
        f"The naive DCG@50 of ROTATE depends on the few users with fewer than {TOP} ones. Their top {TOP} hold higher "
        f"stars, which are seen up to {weights(ALPHA).max() / weights(ALPHA).min():g} times as often as ones. This "
        f"completion has {counted(few, 'such user')}{many}. With them it is {everyone:.2f}, without them "
        f"{without['naive'].mean():.2f}; published is {printed}."
    )


# -- what is allowed -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allowed:
    """How far the true and the naive value of each model may be from the published ones, chance of draws aside."""

    true: Floats
    naive: Floats
    rule: str


def _mae_allowed(world: Completion) -> Allowed:
    moved, cells = rounding(), world.ratings.size
    return Allowed(
        true=0.0005 + moved.true + sampling(cells),
        naive=0.0005 + moved.naive + sampling(cells, ALPHA),
        rule="how far the rounding of the marginals can move the cell, and for SKEWED the chance of its sample",
    )


def _dcg_allowed(found: Outcome, others: OtherCompletions, samples: Mapping[str, Floats]) -> Allowed:
    m = METRICS.index("dcg@50")
    truth, naive = found["truth"][m], found["naive"][:, m].mean(axis=0)
    return Allowed(
        true=0.005 + others.moves("truth", truth) + samples["truth"],
        naive=0.005 + others.moves("naive", naive) + samples["naive"],
        rule="how far the other completions of the notes, and the rounding of the marginals, can move the cell, and "
        "for SKEWED the chance of its sample",
    )


# -- tables --------------------------------------------------------------------------------------------------


def _estimates(found: Outcome, metric: str, allowed: Allowed, more: Sequence[tuple[Cell, ...]] = ()) -> Table:
    rows = [(model, *_row(found, metric, model, allowed)) for model in MODELS]
    return Table(
        name=f"table1-{metric.partition('@')[0]}",
        caption=f"{TITLES[metric]}, true, and estimated from 5 % of cells. Allowed are the rounding of the published "
        f"number, {ERRORS} standard errors over the draws of both sides, and {allowed.rule}; but never more than "
        f"{SHARE:.0%} of the published number, nor of the published bias of naive",
        columns=("model", "true", *ESTIMATORS.values()), rows=(*rows, *more),
        error_is="standard deviation over draws",
    )  # fmt: skip


def _row(found: Outcome, metric: str, model: str, allowed: Allowed) -> Iterator[Value]:
    m, j = METRICS.index(metric), MODELS.index(model)
    printed, digits = PUBLISHED["table1"][metric][model], 3 if metric == "mae" else 2
    bias = printed["naive"][0] - printed["true"]
    true = capped(allowed.true[j], printed["true"], bias)
    yield Value(value=found["truth"][m, j], published=printed["true"], digits=digits, tolerance=true)
    for name in ESTIMATORS:
        values, (mean, deviation) = found[name][:, m, j], printed[name]
        sd = float(values.std(ddof=1))
        drawn = ERRORS * math.hypot(sd / math.sqrt(len(values)), deviation / math.sqrt(DRAWN))
        world = float((allowed.naive if name == "naive" else allowed.true)[j])
        yield Value(
            value=values.mean(), error=sd, published=mean, published_error=deviation, digits=digits,
            tolerance=capped(world + drawn, mean, bias),
        )  # fmt: skip


def _without_row(without: Outcome, few: int) -> tuple[Cell, ...]:
    """ROTATE where its naive estimate hangs on nobody; what the paper prints is of all users, and not compared."""
    mean, deviation = PUBLISHED["table1"]["dcg@50"]["ROTATE"]["naive"]
    naive = Value(
        value=without["naive"].mean(), error=without["naive"].std(ddof=1), published=mean, published_error=deviation,
        digits=2, judged=False,
    )  # fmt: skip
    return f"ROTATE, without {counted(few, 'user')}", Value(value=float(without["truth"]), digits=2), None, None, naive


def _deviations(found: Outcome, untied: Outcome) -> Table:
    m = METRICS.index("dcg@50")
    rows = [(model, *_spreads(found, untied, m, j)) for j, model in enumerate(MODELS)]
    columns = [f"{title}, ties {how}" for title in ESTIMATORS.values() for how in ("averaged", "broken")]
    return Table(
        name="table1-deviations", columns=("model", *columns), rows=tuple(rows),
        caption="Standard deviations of DCG@50 over draws, tied items averaged over their orders or put in one of "
        f"them. Shown, not judged: {ERRORS} standard errors are {ERRORS * _relative_error(len(found['ips'])):.0%} of a "
        "deviation",
    )  # fmt: skip


def _relative_error(draws: int) -> float:
    """Of the difference of two deviations, ours and the published: one from n draws has 1/√(2n − 2)."""
    return math.hypot((2 * draws - 2) ** -0.5, (2 * DRAWN - 2) ** -0.5)


def _spreads(found: Outcome, untied: Outcome, m: int, j: int) -> Iterator[Value]:
    for name in ESTIMATORS:
        printed = PUBLISHED["table1"]["dcg@50"][MODELS[j]][name][1]
        yield Value(value=found[name][:, m, j].std(ddof=1), digits=2)
        yield Value(value=untied[name][:, m, j].std(ddof=1), published=printed, digits=2, judged=False)


def _marginals(run: Run, world: Completion) -> Table:
    P, Y = semi_synthetic(world.given, ALPHA, run.seed).propensities, world.ratings
    shares = [float(P[star == Y].sum() / P.sum()) for star in range(1, 6)]
    printed, allowed = PUBLISHED["marginals"]["model"], 0.005 + rounding().shares
    cells = [
        Value(value=s, published=p, digits=2, tolerance=t) for s, p, t in zip(shares, printed, allowed, strict=True)
    ]
    logged = zip(world.shares, PUBLISHED["marginals"]["ml-100k"], strict=True)
    original = [Value(value=s, published=p, digits=2) for s, p in logged]
    return Table(
        name="table1-marginals", caption="Shares of the stars among observed ratings (section 6.2). Allowed are the "
        "rounding of the published number, and for the model how far the rounding of its marginals can move the share",
        columns=("", *(f"{star}★" for star in range(1, 6))),
        rows=(("model, α = 0.25", *cells), ("ML100K", *original)),
    )  # fmt: skip
