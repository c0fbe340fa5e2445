"""Figure 4 of Schnabel et al. (2016): how accurate the estimators are with propensities learned by naive Bayes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.accuracy import INTERVALS, Ratio, point, ratio, rmse_table
from openloop.studies.schnabel2016.estimates import METRICS, TITLES, cut_fits, draws, with_known, with_learned
from openloop.studies.schnabel2016.worlds import ALPHA, complete

DRAWN_AS = {"IPS-NB": "IPS-NB and SNIPS-NB"}  # lines on top of each other have a colour that is in no legend


def figure4(run: Run) -> Result:
    """RMSE with propensities by naive Bayes, over the size of the uniform sample that they are learned from."""
    world = complete(run)
    reference = with_known(run, world, [ALPHA])[ALPHA]
    sizes, found = with_learned(run, world)
    rows, cut = list(_rows(reference, sizes, found)), cut_fits(run, world, sizes)
    drawn = [{**row, "estimator": DRAWN_AS.get(row["estimator"], row["estimator"])} for row in rows]
    drawn = [row for row in drawn if row["estimator"] != "SNIPS-NB"]
    chart = charts.lines(
        drawn, "sample", "RMSE", series="estimator", facet="metric", low="low", high="high", log_x=True, log_y=True,
        x_title="uniform ratings that propensities are learned from", y_title="RMSE of the estimate",
    )  # fmt: skip
    caption = (
        f"RMSE over five models and {draws(run)} draws at α = 0.25 as the uniform sample grows. IPS with known "
        "propensities and naive use no sample, and are those of figure2. IPS-NB and SNIPS-NB, which differ by at most "
        f"{_apart(found).max():.1g} of themselves, are drawn as one. The bands are 95 % intervals over draws. The "
        "paper prints no number of this figure."
    )
    figure = Figure(name="figure4", caption=caption, rows=tuple(drawn), chart=chart.to_dict())
    return Result(
        item="figure4", data=("ml-100k",), figures=(figure,),
        tables=(rmse_table("figure4", "RMSE by the size of the uniform sample", rows, "sample"), _absent(sizes, found)),
        claims=tuple(_claims(reference, sizes, found, cut)),
        notes=(str(world), *_NOTES),
    )  # fmt: skip


_NOTES = (
    "The sample is drawn from all cells of Y, apart from the log, and is never scored.",
    (
        "Laplace's estimator, (n_r + 1)/(n + 5), gives a star that the sample lacks a share of 1/(n + 5) all the same: "
        "too large for rare stars and small samples, but never 0. The estimates stay finite, and degrade towards "
        "giving each star the same share."
    ),
    (
        "With propensities by naive Bayes from the scored log, IPS and SNIPS are the same: Σ1/P̂ is U·I (Eq. 18), "
        "unless a P̂ was above 1 and was cut to it, as small samples may make it."
    ),
    INTERVALS,
)


def _rows(reference: Outcome, sizes: Sequence[int], found: Outcome) -> Iterator[dict[str, Any]]:
    for m, metric in enumerate(METRICS):
        truth = reference["truth"][m]
        for name, title in (("ips", "IPS-NB"), ("snips", "SNIPS-NB")):
            for k, size in enumerate(sizes):
                yield {"sample": size, **point(found[name][:, k, m], truth, TITLES[metric], title)}
        for name, title in (("ips", "IPS-KNOWN"), ("naive", "Naive")):
            same = point(reference[name][:, m], truth, TITLES[metric], title)
            yield from ({"sample": size, **same} for size in sizes)


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


def _apart(found: Outcome) -> Floats:
    """How far SNIPS-NB is from IPS-NB, as a share of it, (draws, sizes)."""
    return np.abs(found["snips"] / found["ips"] - 1).max(axis=(2, 3))


def _same(found: Outcome, cut: npt.NDArray[np.bool_]) -> Claim:
    """Where no P̂ was `cut` to 1, (draws, sizes), both are one estimator."""
    apart = _apart(found)
    whole, others = apart[~cut].max(initial=0.0), apart[cut].max(initial=0.0)
    return Claim(
        text="SNIPS-NB is IPS-NB, unless a P̂ was cut to 1", holds=whole <= 1e-6, counted=False,
        found=f"equal to {whole:.1g} of itself in {int((~cut).sum()):,} fits; in the other {int(cut.sum()):,} of "
        f"{cut.size:,}, where one was cut, to {others:.1g}",
    )  # fmt: skip


def _claims(reference: Outcome, sizes: Sequence[int], found: Outcome, cut: npt.NDArray[np.bool_]) -> Iterator[Claim]:
    against_naive = {
        (size, metric): _ratio(reference, found, "naive", k, metric, len(sizes) * len(METRICS))
        for k, size in enumerate(sizes)
        for metric in METRICS
    }
    size, metric = max(against_naive, key=lambda key: against_naive[key].high)
    yield Claim(
        text="under no condition does IPS-NB perform worse than the naive estimator (RMSE over the five models below "
        "that of naive for each metric and sample, by intervals)",
        holds=against_naive[size, metric].high < 1,
        found=f"at most {against_naive[size, metric]} times that of naive, for {TITLES[metric]} with a sample of "
        f"{size:,}",
    )
    yield _same(found, cut)
    against_known = {size: _ratio(reference, found, "ips", k, "mse", len(sizes)) for k, size in enumerate(sizes)}
    best = min(against_known, key=lambda size: against_known[size].high)
    yield Claim(
        text="IPS with learned propensities can be more accurate than with the known ones, for MSE (with some sample, "
        "by the interval)",
        holds=against_known[best].high < 1,
        found=f"{against_known[best]} times its RMSE with a sample of {best:,}",
    )


def _ratio(reference: Outcome, found: Outcome, to: str, k: int, metric: str, among: int) -> Ratio:
    """RMSE of IPS-NB with the k-th sample by that of an estimator without one, of the same draws."""
    m = METRICS.index(metric)
    return ratio(found["ips"][:, k, m], reference[to][:, m], reference["truth"][m], among)
