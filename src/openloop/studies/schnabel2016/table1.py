"""Table 1 of Schnabel et al. (2016): the means and deviations of three estimators for five models at α = 0.25."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from openloop.studies.kit.results import Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.estimates import (
    DRAWN,
    ESTIMATORS,
    METRICS,
    TITLES,
    drawing,
    with_known_propensities,
)
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS, Completion, complete, semi_synthetic
from openloop.support.wording import joined

ROUNDED = 0.003  # what marginals of three digits and one sample of SKEWED may change in a MAE
NAIVE_MAE = 0.01
COMPLETED = 0.08  # what another completion of ML100K may change in a DCG@50
MARGINAL = 0.01  # what marginals of three digits may change in those of the observation model
ERRORS = 3.5  # standard errors that chance may put between two numbers


def table1(run: Run) -> Result:
    """Means and deviations of the estimators at α = 0.25, beside the truth."""
    world = complete(run)
    settings = [drawing(run, ALPHA), {**drawing(run, ALPHA), "break_ties": True}]
    found, untied = run.map(with_known_propensities, world.given, settings, "drawing logs")
    tables = (_estimates(found, "mae"), _estimates(found, "dcg@50"), _deviations(found, untied), _marginals(run, world))
    return Result(
        item="table1", data=("ml-100k",), tables=tables,
        claims=tuple(_claims(found)), notes=(str(world), *_NOTES, _few_ones(world)),
    )  # fmt: skip


_NOTES = (
    "The paper counts 944 users and 1,683 movies; the ratings have 943 and 1,682, which is what is used here.",
    "Eq. 8's 1/log(rank) is undefined at rank 1; DCG@50 is computed here with 1/log2(1 + rank).",
    (
        "Tied items count as their average over random order: DCG@50 is then what it is on average over orders, and "
        "its estimates deviate less than they do on average over orders. ROTATE ties all items whose rating is 1, at "
        "the top. The table of deviations has both, and holds the published ones against those with ties broken once "
        "at random, as by sorting."
    ),
    (
        "MAE of REC_ONES is 4·p₅, so that the published 0.102 means p₅ = 0.0255, where Marlin & Zemel's marginals as "
        "printed have 0.026."
    ),
)


def _few_ones(world: Completion) -> str:
    few = int(np.sum(np.sum(world.ratings == 1, axis=1) < 50))
    return (
        "The naive DCG@50 of ROTATE hangs on the users with fewer than 50 ones, whose top 50 hold higher stars, which "
        f"are seen up to 64 times as often as ones: {few} of {len(world.ratings):,} users in this completion."
    )


def _estimates(found: Outcome, metric: str) -> Table:
    rows = tuple((model, *_row(found, metric, model)) for model in MODELS)
    return Table(
        name=f"table1-{metric.partition('@')[0]}",
        caption=f"{TITLES[metric]}, true, and estimated from 5 % of cells; {_ALLOWED[metric]}",
        columns=("model", "true", *ESTIMATORS.values()), rows=rows, error_is="standard deviation over draws",
    )  # fmt: skip


_ALLOWED = {
    "mae": (
        f"besides {ERRORS} standard errors, {ROUNDED} is allowed for marginals of three digits and the sample of "
        f"SKEWED, and for Naive, in which rare stars weigh more, {NAIVE_MAE} in all"
    ),
    "dcg@50": (
        f"besides {ERRORS} standard errors, {COMPLETED:.0%} of the published truth is allowed for another completion "
        f"of ML100K, and for Naive {COMPLETED:.0%} of its published mean in all"
    ),
}


def _row(found: Outcome, metric: str, model: str) -> Iterator[Value]:
    m, j = METRICS.index(metric), MODELS.index(model)
    printed, digits = PUBLISHED["table1"][metric][model], 3 if metric == "mae" else 2
    world = ROUNDED if metric == "mae" else COMPLETED * printed["true"]
    yield Value(value=found["truth"][m, j], published=printed["true"], digits=digits, tolerance=world)
    for name in ESTIMATORS:
        values, (mean, deviation) = found[name][:, m, j], printed[name]
        sd = float(values.std(ddof=1))
        if name == "naive":
            tolerance = NAIVE_MAE if metric == "mae" else COMPLETED * mean
        else:
            tolerance = world + ERRORS * math.hypot(sd / math.sqrt(len(values)), deviation / math.sqrt(DRAWN))
        yield Value(
            value=values.mean(), error=sd, published=mean, published_error=deviation, digits=digits, tolerance=tolerance
        )


def _deviations(found: Outcome, untied: Outcome) -> Table:
    m = METRICS.index("dcg@50")
    rows = [(model, *_spreads(found, untied, m, j)) for j, model in enumerate(MODELS)]
    columns = [f"{title}, ties {how}" for title in ESTIMATORS.values() for how in ("averaged", "broken")]
    return Table(
        name="table1-deviations", columns=("model", *columns), rows=tuple(rows),
        caption="Standard deviations of DCG@50 over draws, tied items averaged over their orders or put in one of "
        f"them; {ERRORS} standard errors are allowed",
    )  # fmt: skip


def _spreads(found: Outcome, untied: Outcome, m: int, j: int) -> Iterator[Value]:
    for name in ESTIMATORS:
        printed = PUBLISHED["table1"]["dcg@50"][MODELS[j]][name][1]
        yield Value(value=found[name][:, m, j].std(ddof=1), digits=2)
        values = untied[name][:, m, j]
        # A deviation from n draws has a relative standard error of 1/√(2n − 2).
        relative = math.hypot((2 * len(values) - 2) ** -0.5, (2 * DRAWN - 2) ** -0.5)
        allowed = 0.005 + ERRORS * relative * printed
        yield Value(value=values.std(ddof=1), published=printed, digits=2, tolerance=allowed)


def _marginals(run: Run, world: Completion) -> Table:
    P, Y = semi_synthetic(world.given, ALPHA, run.seed).propensities, world.ratings
    shares = [float(P[star == Y].sum() / P.sum()) for star in range(1, 6)]
    printed = PUBLISHED["marginals"]["model"]
    cells = [Value(value=s, published=p, digits=2, tolerance=MARGINAL) for s, p in zip(shares, printed, strict=True)]
    logged = zip(world.shares, PUBLISHED["marginals"]["ml-100k"], strict=True)
    original = [Value(value=s, published=p, digits=2) for s, p in logged]
    return Table(
        name="table1-marginals", caption="Shares of the stars among observed ratings (section 6.2); "
        f"{MARGINAL} is allowed for the model, which starts from rounded marginals, and rounding alone for ML100K",
        columns=("", *(f"{star}★" for star in range(1, 6))),
        rows=(("model, α = 0.25", *cells), ("ML100K", *original)),
    )  # fmt: skip


def _claims(found: Outcome) -> Iterator[Claim]:
    truth = found["truth"]
    for name in ("ips", "snips"):
        values = found[name]
        errors = np.abs(values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / math.sqrt(len(values)))
        yield Claim(
            text=f"the mean of {ESTIMATORS[name]} is the truth, chance aside, for every model and metric",
            holds=errors.max() <= ERRORS,
            found=f"at most {errors.max():.1f} standard errors apart, where {ERRORS} may be chance",
        )
    yield _order(found)
    yield _smaller_than_bias(found)
    sd = {name: found[name].std(axis=0, ddof=1) for name in ("ips", "snips")}
    ratio = {metric: sd["snips"][m].mean() / sd["ips"][m].mean() for m, metric in enumerate(METRICS)}
    yield Claim(
        text="SNIPS lowers the deviation of IPS for MAE, but not for DCG",
        holds=ratio["mae"] < 0.9 and ratio["dcg@50"] > 0.9,
        found=f"averaged over models, {ratio['mae']:.2f} times that of IPS for MAE, {ratio['dcg@50']:.2f} for DCG@50",
    )


def _order(found: Outcome) -> Claim:
    m = METRICS.index("mae")
    wrong = {name: float(np.mean(found[name][:, m, 0] < found[name][:, m, 1])) for name in ESTIMATORS}
    shares = joined([f"{ESTIMATORS[name]} in {share:.0%}" for name, share in wrong.items()])
    return Claim(
        text="by MAE the naive estimator ranks REC_ONES above REC_FOURS, IPS and SNIPS do not",
        holds=wrong["naive"] == 1 and wrong["ips"] == wrong["snips"] == 0,
        found=f"{shares} of draws prefer REC_ONES",
    )


def _smaller_than_bias(found: Outcome) -> Claim:
    rows = [METRICS.index("mae"), METRICS.index("dcg@50")]
    bias = np.abs(found["naive"].mean(axis=0) - found["truth"])[rows]
    worst = max(float((found[name].std(axis=0, ddof=1)[rows] / bias).max()) for name in ("ips", "snips"))
    return Claim(
        text="deviations of IPS and SNIPS are substantially smaller than the bias of the naive estimator",
        holds=worst < 0.2, found=f"at most {worst:.0%} of it",
    )  # fmt: skip
