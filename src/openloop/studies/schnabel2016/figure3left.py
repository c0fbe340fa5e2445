"""Figure 3, left, of Schnabel et al. (2016): the error of MF over the degree of selection bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openloop.studies.kit.results import Claim, Result, Table
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import paired
from openloop.studies.schnabel2016.estimates import ALPHAS
from openloop.studies.schnabel2016.factorisation import (
    METRICS,
    TRIALS,
    Errors,
    difference,
    errors,
    figure,
    notes,
    significance,
)
from openloop.studies.schnabel2016.worlds import complete


def figure3left(run: Run) -> Result:
    """Errors of MF-IPS and MF-Naive over α, propensities known."""
    completion = complete(run)
    plan = {
        "squared": (run.either(ALPHAS, (0.25, 1.0)), run.either(TRIALS, 2)),
        "absolute": (run.either(ALPHAS, (0.25,)), run.either(TRIALS, 2)),
    }
    found = {
        (METRICS[loss], alpha): tuple(
            errors(run, completion.given, name, alpha, trials, alpha=alpha, by=by, loss=loss)
            for name, by in (("MF-Naive", "naive"), ("MF-IPS", "known"))
        )
        for loss, (alphas, trials) in plan.items()
        for alpha in alphas
    }
    every = [one for pair in found.values() for one in pair]
    return Result(
        item="figure3left",
        data=("ml-100k",),
        tables=tuple(_table(found, metric) for metric in METRICS.values()),
        figures=(figure("figure3left", every, "α (1: no selection bias)", log_x=False),),
        claims=tuple(claim for metric in METRICS.values() for claim in _claims(found, metric)),
        notes=(str(completion), *notes(every, run)),
    )  # fmt: skip


ByAlpha = Mapping[tuple[str, float], tuple[Errors, ...]]  # by metric and α: MF-Naive and MF-IPS


def _table(found: ByAlpha, metric: str) -> Table:
    rows = [
        (
            f"α = {alpha:g}",
            naive.value,
            ips.value,
            difference(ips, naive),
            significance(ips, naive),
            naive.chosen,
            ips.chosen,
        )
        for (name, alpha), (naive, ips) in found.items()
        if name == metric
    ]
    M = metric.upper()
    return Table(
        name=f"figure3left-{metric}",
        caption=f"True {M} over all cells (Eq. 1), mean over trials; the difference is paired by trial.",
        columns=("", "MF-Naive", "MF-IPS", "MF-IPS − MF-Naive", "p", "λ of MF-Naive", "λ of MF-IPS"),
        rows=tuple(rows),
    )


def _claims(found: ByAlpha, metric: str) -> Iterator[Claim]:
    gaps = {alpha: paired(ips.values, naive.values) for (m, alpha), (naive, ips) in found.items() if m == metric}
    trials = ", ".join(dict.fromkeys(str(len(pair[0].values)) for (m, _), pair in found.items() if m == metric))
    biased, M = {alpha: gap for alpha, gap in gaps.items() if alpha <= 0.75}, metric.upper()
    text = "; ".join(f"α = {alpha:g}: {gap}" for alpha, gap in gaps.items())
    yield Claim(
        text=f"The {M} of MF-IPS is below that of MF-Naive for every α ≤ 0.75, averaged over {trials} trials.",
        holds=all(gap.value < 0 for gap in biased.values()),
        found=f"MF-IPS − MF-Naive, ± standard error: {text}",
    )
    over = [alpha for alpha, gap in gaps.items() if gap.above]
    yield Claim(
        text=f"The {M} of MF-IPS is nowhere significantly above that of MF-Naive, by {trials} trials at each α.",
        holds=not over,
        found="nowhere, paired over trials at 5 %" if not over else f"above at α = {', '.join(map(str, over))}",
    )
