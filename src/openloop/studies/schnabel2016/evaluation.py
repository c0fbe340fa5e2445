"""Table 1, Figure 2 and Figure 4 of Schnabel et al. (2016): how accurately a biased log evaluates five models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.draws import METRICS, accuracy, known, learned
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS, Completion, complete, semi_synthetic
from openloop.support.wording import joined

ALPHAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
SIZES = (1, 3, 10, 30, 100, 300, 1_000, 10_000, 100_000)
DRAWN, BLOCK = 50, 10  # draws, as in the paper, and draws a trial where one takes long
ESTIMATORS = {"ips": "IPS", "snips": "SNIPS", "naive": "Naive"}
TITLES = {"mse": "MSE", "mae": "MAE", "dcg@50": "DCG@50"}

ROUNDED = 0.003  # what marginals of three digits and one sample of SKEWED may change in a MAE
NAIVE_MAE = 0.01
PENALTY = 2.0  # what a small penalty stays below
COMPLETED = 0.08  # what another completion of ML100K may change in a DCG@50
MARGINAL = 0.01  # what marginals of three digits may change in those of the observation model
ERRORS = 3.5  # standard errors that chance may put between two numbers


def alphas(run: Run) -> tuple[float, ...]:
    """The degrees of selection bias that are tried."""
    return run.either(ALPHAS, (ALPHA, 1.0))


def draws(run: Run) -> int:
    """How many logs are drawn of a world."""
    return run.either(DRAWN, 8)


def with_known(run: Run, world: Completion, tried: Sequence[float]) -> dict[float, Outcome]:
    """The outcome of the draws with known propensities, by α."""
    found = run.map(known, world.given, [_drawing(run, alpha) for alpha in tried], "drawing logs")
    return dict(zip(tried, found, strict=True))


def _drawing(run: Run, alpha: float) -> dict[str, Any]:
    return {"alpha": alpha, "seed": run.seed, "first": 0, "draws": draws(run)}


def with_learned(run: Run, world: Completion) -> tuple[tuple[int, ...], Outcome]:
    """The sizes of the uniform samples, and the outcome of all draws with propensities learned from them."""
    sizes, block = run.either(SIZES, (10, 1_000, 100_000)), min(BLOCK, draws(run))
    settings = [
        {"alpha": ALPHA, "seed": run.seed, "first": first, "draws": block, "sizes": sizes}
        for first in range(0, draws(run), block)
    ]
    found = run.map(learned, world.given, settings, "learning propensities")
    return sizes, {name: np.concatenate([part[name] for part in found]) for name in found[0]}


# -- Table 1 -------------------------------------------------------------------------------------------------


def table1(run: Run) -> Result:
    """Means and deviations of the estimators at α = 0.25, beside the truth."""
    world = complete(run)
    settings = [_drawing(run, ALPHA), {**_drawing(run, ALPHA), "break_ties": True}]
    found, untied = run.map(known, world.given, settings, "drawing logs")
    tables = (_estimates(found, "mae"), _estimates(found, "dcg@50"), _deviations(found, untied), _marginals(run, world))
    return Result(
        item="table1", title="Five models by three estimators at α = 0.25", data=("ml-100k",), tables=tables,
        claims=tuple(_table1_claims(found)), notes=(str(world), *_TABLE1_NOTES, _few_ones(world)),
    )  # fmt: skip


_TABLE1_NOTES = (
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


def _table1_claims(found: Outcome) -> Iterator[Claim]:
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


# -- Figure 2 ------------------------------------------------------------------------------------------------


def figure2(run: Run) -> Result:
    """RMSE of the estimators over α, with known propensities."""
    world, tried = complete(run), alphas(run)
    found = with_known(run, world, tried)
    rows: list[dict[str, Any]] = [
        {"α": alpha, **_point(found[alpha][name][:, m], found[alpha]["truth"][m], TITLES[metric], title)}
        for m, metric in enumerate(METRICS)
        for name, title in ESTIMATORS.items()
        for alpha in tried
    ]
    chart = charts.lines(
        rows, "α", "RMSE", series="estimator", facet="metric", low="low", high="high", log_y=True,
        y_title="RMSE of the estimate",
    )  # fmt: skip
    caption = (
        f"RMSE of the estimators over five models and {draws(run)} draws as selection bias falls from left to right "
        "(α = 1: none); the bands are 95 % intervals over draws"
    )
    figure = Figure(name="figure2", caption=caption, rows=tuple(rows), chart=chart.to_dict())
    claims = tuple(_figure2_claims(found, {(r["metric"], r["estimator"], r["α"]): r["RMSE"] for r in rows}))
    return Result(
        item="figure2", title="Accuracy of estimators over the degree of selection bias", data=("ml-100k",),
        figures=(figure,), tables=(_grid("figure2", "RMSE by α", rows, "α"),), claims=claims, notes=(str(world),),
    )  # fmt: skip


def _point(estimates: Floats, truth: Floats, metric: str, estimator: str) -> dict[str, Any]:
    found = accuracy(estimates, truth)
    return {"metric": metric, "estimator": estimator, "RMSE": found.rmse, "low": found.low, "high": found.high}


def _grid(name: str, caption: str, rows: Sequence[Mapping[str, Any]], x: str) -> Table:
    """RMSE of each metric and estimator, a column for each x."""
    places = list(dict.fromkeys(row[x] for row in rows))
    lines = list(dict.fromkeys((row["metric"], row["estimator"]) for row in rows))
    held = {(row["metric"], row["estimator"], row[x]): float(row["RMSE"]) for row in rows}
    cells = tuple(
        (f"{metric}, {estimator}", *(held[metric, estimator, p] for p in places)) for metric, estimator in lines
    )
    return Table(
        name=name, caption=caption, columns=("metric, estimator", *(f"{x} = {p:,}" for p in places)), rows=cells
    )


def _figure2_claims(found: Mapping[float, Outcome], rmse: Mapping[tuple[str, str, float], float]) -> Iterator[Claim]:
    tried = [alpha for alpha in found if alpha < 1]
    gain = {
        a: {k: min(rmse[t, "Naive", a] / rmse[t, k, a] for t in TITLES.values()) for k in ("IPS", "SNIPS")}
        for a in tried
    }
    yield Claim(
        text="at α = 0.25 IPS and SNIPS are at least ten times as accurate as the naive estimator",
        holds=min(gain[ALPHA].values()) >= 10,
        found=joined([f"{k} {value:.0f} times" for k, value in gain[ALPHA].items()])
        + ", by the least favourable metric",
    )
    lowest = min(tried)
    yield Claim(
        text="even for severely low α the gain outweighs the added variability",
        holds=min(gain[lowest].values()) > 1,
        found=joined([f"{k} {value:.1f} times as accurate" for k, value in gain[lowest].items()]) + f" at α = {lowest}",
    )
    apart = float(np.max(np.abs(found[1.0]["snips"] / found[1.0]["naive"] - 1)))
    yield Claim(
        text="at α = 1 SNIPS is the naive estimator", holds=apart <= 1e-12, found=f"equal to {apart:.1g} of itself"
    )
    penalty = {t: rmse[t, "IPS", 1.0] / rmse[t, "Naive", 1.0] for t in TITLES.values()}
    yield Claim(
        text=f"at α = 1 IPS pays a small penalty (less than {PENALTY:g} times the RMSE of naive)",
        holds=max(penalty.values()) > 1 and min(penalty.values()) > 0.9 and max(penalty.values()) < PENALTY,
        found=joined([f"{ratio:.2f} times the RMSE of naive for {t}" for t, ratio in penalty.items()]),
    )
    ratios = {t: [rmse[t, "SNIPS", a] / rmse[t, "IPS", a] for a in found] for t in TITLES.values()}
    yield Claim(
        text="for MSE SNIPS is more accurate than IPS at every α",
        holds=max(ratios["MSE"]) < 1,
        found=f"{min(ratios['MSE']):.2f} to {max(ratios['MSE']):.2f} times the RMSE of IPS",
    )
    tied = ratios["DCG@50"]
    yield Claim(
        text="for DCG SNIPS and IPS are tied (within a third)",
        holds=max(*tied, *(1 / r for r in tied)) <= 4 / 3,
        found=f"{min(tied):.2f} to {max(tied):.2f} times the RMSE of IPS",
    )


# -- Figure 4 ------------------------------------------------------------------------------------------------


def figure4(run: Run) -> Result:
    """RMSE with propensities by naive Bayes, over the size of the uniform sample that they are learned from."""
    world = complete(run)
    reference = with_known(run, world, [ALPHA])[ALPHA]
    sizes, found = with_learned(run, world)
    rows = list(_figure4_rows(reference, sizes, found))
    chart = charts.lines(
        rows, "sample", "RMSE", series="estimator", facet="metric", low="low", high="high", log_x=True, log_y=True,
        x_title="uniform ratings that propensities are learned from", y_title="RMSE of the estimate",
    )  # fmt: skip
    caption = (
        f"RMSE over five models and {draws(run)} draws at α = 0.25 as the uniform sample grows; IPS with true "
        "propensities and naive, which use no sample, for reference; IPS-NB lies behind SNIPS-NB; the bands are 95 % "
        "intervals over draws"
    )
    figure = Figure(name="figure4", caption=caption, rows=tuple(rows), chart=chart.to_dict())
    return Result(
        item="figure4", title="Accuracy with learned propensities", data=("ml-100k",), figures=(figure,),
        tables=(_grid("figure4", "RMSE by the size of the uniform sample", rows, "sample"), _absent(sizes, found)),
        claims=tuple(_figure4_claims({(r["metric"], r["estimator"], r["sample"]): r["RMSE"] for r in rows}, sizes)),
        notes=(str(world), *_FIGURE4_NOTES),
    )  # fmt: skip


_FIGURE4_NOTES = (
    "The sample is drawn from all cells of Y, apart from the log, and is never scored.",
    (
        "Laplace's estimator, (n_r + 1)/(n + 5), gives a star that the sample lacks a share of 1/(n + 5) all the same: "
        "too large for rare stars and small samples, but never 0. The estimates stay finite, and degrade towards "
        "giving each star the same share."
    ),
    "With propensities by naive Bayes from the scored log, IPS and SNIPS are the same: Σ1/P̂ is U·I (Eq. 18).",
)


def _figure4_rows(reference: Outcome, sizes: Sequence[int], found: Outcome) -> Iterator[dict[str, Any]]:
    for m, metric in enumerate(METRICS):
        truth = reference["truth"][m]
        for name, title in (("ips", "IPS-NB"), ("snips", "SNIPS-NB")):
            for k, size in enumerate(sizes):
                yield {"sample": size, **_point(found[name][:, k, m], truth, TITLES[metric], title)}
        for name, title in (("ips", "IPS-KNOWN"), ("naive", "Naive")):
            point = _point(reference[name][:, m], truth, TITLES[metric], title)
            yield from ({"sample": size, **point} for size in sizes)


def _absent(sizes: Sequence[int], found: Outcome) -> Table:
    lacking = found["missing"]  # (draws, sizes)
    rows = (
        ("stars that the sample lacks, on average", *(float(n) for n in lacking.mean(axis=0))),
        ("share of samples that lack some", *(f"{share:.0%}" for share in (lacking > 0).mean(axis=0))),
    )
    columns = ("", *(f"sample = {size:,}" for size in sizes))
    return Table(
        name="figure4-missing", caption="Stars that are missing from small samples", columns=columns, rows=rows
    )


def _figure4_claims(rmse: Mapping[tuple[str, str, int], float], sizes: Sequence[int]) -> Iterator[Claim]:
    for title in ("IPS-NB", "SNIPS-NB"):
        worst = {t: max((rmse[t, title, n] / rmse[t, "Naive", n], n) for n in sizes) for t in TITLES.values()}
        yield Claim(
            text=f"{title} is never worse than the naive estimator, averaged over the five models",
            holds=max(ratio for ratio, _ in worst.values()) <= 1,
            found=joined([f"{t} at most {r:.2f} times its RMSE (sample of {n:,})" for t, (r, n) in worst.items()]),
        )
    best = min((rmse["MSE", "IPS-NB", n] / rmse["MSE", "IPS-KNOWN", n], n) for n in sizes)
    yield Claim(
        text="IPS with learned propensities can be more accurate than with the known ones, for MSE",
        holds=best[0] < 1, found=f"{best[0]:.2f} times its RMSE with a sample of {best[1]:,}",
    )  # fmt: skip
