"""Figure 2 of Schnabel et al. (2016): how accurate the estimators are over the degree of selection bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.accuracy import (
    INTERVALS,
    TIED,
    Ratio,
    point,
    published_rmse,
    ratio,
    rmse_table,
)
from openloop.studies.schnabel2016.estimates import DRAWN, ESTIMATORS, METRICS, TITLES, alphas, draws, with_known
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import ALPHA, complete
from openloop.support.wording import joined

PLOTTED = ("mse", "dcg@50")  # in the paper's figure
TENFOLD, PENALTY = 0.1, 2.0  # what the paper's words mean here: each claim says so

Ratios = Mapping[float, Ratio]  # by α


def figure2(run: Run) -> Result:
    """RMSE of the estimators over α, with known propensities."""
    world, tried = complete(run), alphas(run)
    found = with_known(run, world, tried)
    rows: list[dict[str, Any]] = [
        {"α": alpha, **point(found[alpha][name][:, m], found[alpha]["truth"][m], TITLES[metric], title)}
        for m, metric in enumerate(METRICS)
        for name, title in ESTIMATORS.items()
        for alpha in tried
    ]
    return Result(
        item="figure2", data=("ml-100k",), figures=(_figure(rows, draws(run)),),
        tables=(rmse_table("figure2", "RMSE by α", rows, "α"),), claims=tuple(_claims(found)),
        notes=(str(world), INTERVALS),
    )  # fmt: skip


def _figure(rows: list[dict[str, Any]], draws: int) -> Figure:
    theirs: list[dict[str, Any]] = [
        {"α": ALPHA, "metric": TITLES[metric], "estimator": title, "RMSE": published_rmse(printed, name, DRAWN)}
        for metric, printed in PUBLISHED["table1"].items()
        for name, title in ESTIMATORS.items()
    ]
    chart = charts.lines(
        rows, "α", "RMSE", series="estimator", facet="metric", low="low", high="high", log_y=True,
        y_title="RMSE of the estimate", published=theirs,
    )  # fmt: skip
    caption = (
        f"RMSE of the estimators over five models and {draws} draws. Selection bias falls from left to right (α = 1: "
        "none). The bands are 95 % intervals over draws. The paper prints no number of this figure. Hollow diamonds: "
        f"RMSE computed from the paper's Table 1 (α = {ALPHA:g}, no MSE). Its DCG breaks ties, so it varies more. "
        f"{_listed(theirs)}."
    )
    return Figure(name="figure2", caption=caption, rows=tuple(rows), chart=chart.to_dict())


def _listed(theirs: list[dict[str, Any]]) -> str:
    return "; ".join(f"{row['metric']}, {row['estimator']} {row['RMSE']:.3g}" for row in theirs)


# -- claims --------------------------------------------------------------------------------------------------


def _claims(found: Mapping[float, Outcome]) -> Iterator[Claim]:
    biased = [alpha for alpha in found if alpha < 1]
    gains = {
        (alpha, name, metric): _ratio(found[alpha], name, "naive", metric, 2 * len(METRICS) * len(biased))
        for alpha in biased
        for name in ("ips", "snips")
        for metric in METRICS
    }
    yield _tenfold({key: one for key, one in gains.items() if key[0] == ALPHA})
    worst = max(gains, key=lambda key: gains[key].high)
    yield Claim(
        text="even for severely low α the gain of IPS and SNIPS outweighs the added variability (RMSE below that of "
        f"naive for each metric at every α from {min(biased)} to {max(biased)}, by intervals)",
        holds=gains[worst].high < 1,
        found=f"at most {gains[worst]} times that of naive, for {_place(*worst)}",
    )
    apart = float(np.max(np.abs(found[1.0]["snips"] / found[1.0]["naive"] - 1)))
    yield Claim(
        text="at α = 1 SNIPS is the naive estimator", holds=apart <= 1e-12, found=f"equal to {apart:.1g} of itself",
        counted=False,
    )  # fmt: skip
    yield _penalty({metric: _ratio(found[1.0], "ips", "naive", metric, len(METRICS)) for metric in METRICS})
    lower = {alpha: _ratio(one, "snips", "ips", "mse", len(found)) for alpha, one in found.items()}
    yield Claim(
        text="for MSE SNIPS is more accurate than IPS at every α (by intervals)",
        holds=max(one.high for one in lower.values()) < 1, found=_by_alpha(lower),
    )  # fmt: skip
    tied = {alpha: _ratio(one, "snips", "ips", "dcg@50", len(found)) for alpha, one in found.items()}
    yield Claim(
        text="for DCG SNIPS and IPS are tied at every α (here: the interval lies within 3/4 and 4/3)",
        holds=all(one.low >= 1 / TIED and one.high <= TIED for one in tied.values()), found=_by_alpha(tied),
    )  # fmt: skip


def _ratio(found: Outcome, a: str, b: str, metric: str, among: int) -> Ratio:
    m = METRICS.index(metric)
    return ratio(found[a][:, m], found[b][:, m], found["truth"][m], among)


def _place(alpha: float, name: str, metric: str) -> str:
    return f"{TITLES[metric]} by {ESTIMATORS[name]} at α = {alpha}"


def _by_alpha(ratios: Ratios) -> str:
    told = [f"{one} at α = {alpha}" for alpha, one in ratios.items()]
    return f"RMSE of SNIPS by that of IPS: {joined(told)}"


def _tenfold(gains: Mapping[tuple[float, str, str], Ratio]) -> Claim:
    least = {
        name: max((one.high, 1 / one.value) for key, one in gains.items() if key[1] == name)
        for name in ("ips", "snips")
    }
    text = f"at α = {ALPHA:g} IPS and SNIPS are at least ten times as accurate as the naive estimator"
    return Claim(
        text=f"{text}, by each metric (by intervals)",
        holds=max(high for high, _ in least.values()) <= TENFOLD,
        found=joined([f"{ESTIMATORS[name]} {gain:.0f} times" for name, (_, gain) in least.items()])
        + ", by the least favourable metric",
        gist=text,
    )


def _penalty(ratios: Mapping[str, Ratio]) -> Claim:
    """MAE is shown and not judged: Figure 2 has none."""
    judged = [ratios[metric] for metric in PLOTTED]
    return Claim(
        text=f"at α = 1, IPS is less accurate than naive in {joined([TITLES[m] for m in PLOTTED])}, which Figure 2 "
        f"plots, by a factor below {PENALTY:g} (the point estimate above 1, the upper limit below {PENALTY:g})",
        holds=all(one.value > 1 and one.high < PENALTY for one in judged),
        found=joined([f"{one} times for {TITLES[metric]}" for metric, one in ratios.items()]),
    )
