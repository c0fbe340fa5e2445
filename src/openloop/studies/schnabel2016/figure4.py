"""Figure 4 of Schnabel et al. (2016): how accurate the estimators are with propensities learned by naive Bayes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.accuracy import point, rmse_table
from openloop.studies.schnabel2016.estimates import METRICS, TITLES, draws, with_known, with_learned
from openloop.studies.schnabel2016.worlds import ALPHA, complete
from openloop.support.wording import joined


def figure4(run: Run) -> Result:
    """RMSE with propensities by naive Bayes, over the size of the uniform sample that they are learned from."""
    world = complete(run)
    reference = with_known(run, world, [ALPHA])[ALPHA]
    sizes, found = with_learned(run, world)
    rows = list(_rows(reference, sizes, found))
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
        item="figure4", data=("ml-100k",), figures=(figure,),
        tables=(rmse_table("figure4", "RMSE by the size of the uniform sample", rows, "sample"), _absent(sizes, found)),
        claims=tuple(_claims({(r["metric"], r["estimator"], r["sample"]): r["RMSE"] for r in rows}, sizes)),
        notes=(str(world), *_NOTES),
    )  # fmt: skip


_NOTES = (
    "The sample is drawn from all cells of Y, apart from the log, and is never scored.",
    (
        "Laplace's estimator, (n_r + 1)/(n + 5), gives a star that the sample lacks a share of 1/(n + 5) all the same: "
        "too large for rare stars and small samples, but never 0. The estimates stay finite, and degrade towards "
        "giving each star the same share."
    ),
    "With propensities by naive Bayes from the scored log, IPS and SNIPS are the same: Σ1/P̂ is U·I (Eq. 18).",
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


def _claims(rmse: Mapping[tuple[str, str, int], float], sizes: Sequence[int]) -> Iterator[Claim]:
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
