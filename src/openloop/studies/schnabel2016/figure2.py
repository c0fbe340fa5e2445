"""Figure 2 of Schnabel et al. (2016): how accurate the estimators are over the degree of selection bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.accuracy import point, rmse_table
from openloop.studies.schnabel2016.estimates import ESTIMATORS, METRICS, TITLES, alphas, draws, with_known
from openloop.studies.schnabel2016.worlds import ALPHA, complete
from openloop.support.wording import joined

PENALTY = 2.0  # what a small penalty stays below


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
    chart = charts.lines(
        rows, "α", "RMSE", series="estimator", facet="metric", low="low", high="high", log_y=True,
        y_title="RMSE of the estimate",
    )  # fmt: skip
    caption = (
        f"RMSE of the estimators over five models and {draws(run)} draws as selection bias falls from left to right "
        "(α = 1: none); the bands are 95 % intervals over draws"
    )
    figure = Figure(name="figure2", caption=caption, rows=tuple(rows), chart=chart.to_dict())
    claims = tuple(_claims(found, {(r["metric"], r["estimator"], r["α"]): r["RMSE"] for r in rows}))
    return Result(
        item="figure2", data=("ml-100k",),
        figures=(figure,), tables=(rmse_table("figure2", "RMSE by α", rows, "α"),), claims=claims, notes=(str(world),),
    )  # fmt: skip


def _claims(found: Mapping[float, Outcome], rmse: Mapping[tuple[str, str, float], float]) -> Iterator[Claim]:
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
