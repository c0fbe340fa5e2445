"""Figure 3, right, of Schnabel et al. (2016): the error of MF as propensities are learned from fewer ratings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from openloop.studies.kit.results import Cell, Claim, Result, Table
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import paired
from openloop.studies.schnabel2016.factorisation import (
    TRIALS,
    Errors,
    difference,
    errors,
    figure,
    notes,
    significance,
)
from openloop.studies.schnabel2016.worlds import ALPHA, complete
from openloop.support.wording import chance

SIZES = (10, 100, 1_000, 10_000, 100_000)


def figure3right(run: Run) -> Result:
    """Errors of MF with propensities by Naive Bayes over the size of the uniform sample, α = 0.25."""
    completion, trials = complete(run), run.either(TRIALS, 2)
    sizes = run.either(SIZES, (10, 1_000))

    def over_trials(name: str, at: float, **setting: Any) -> Errors:
        return errors(run, completion.given, name, at, trials, alpha=ALPHA, loss="squared", **setting)

    bayes = [over_trials("MF-IPS-NB", size, by="bayes", size=size) for size in sizes]
    flat = {
        name: [over_trials(name, size, by=by) for size in sizes]
        for name, by in (("MF-Naive", "naive"), ("MF-IPS", "known"))
    }
    naive, known = flat["MF-Naive"][0], flat["MF-IPS"][0]
    drawn = [*bayes, *flat["MF-Naive"], *flat["MF-IPS"]]
    return Result(
        item="figure3right",
        data=("ml-100k",),
        tables=(_table(bayes, naive, known),),
        figures=(figure("figure3right", drawn, "ratings in the uniform sample", log_x=True),),
        claims=tuple(_claims(bayes, naive)),
        notes=(str(completion), _BAYES, *notes([*bayes, naive, known], run)),
    )  # fmt: skip


def _table(bayes: Sequence[Errors], naive: Errors, known: Errors) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            f"MF-IPS-NB, {one.at:,} ratings",
            one.value,
            difference(one, naive),
            significance(one, naive),
            difference(one, known),
            one.chosen,
        )
        for one in bayes
    ]
    rows.append(
        ("MF-IPS, known p", known.value, difference(known, naive), significance(known, naive), None, known.chosen)
    )
    rows.append(("MF-Naive", naive.value, None, None, difference(naive, known), naive.chosen))
    return Table(
        name="figure3right",
        caption=f"True MSE over all cells (Eq. 1) at α = {ALPHA:g}, mean over trials; differences are paired by trial.",
        columns=("", "MSE", "less MF-Naive", "p", "less MF-IPS, known p", "λ"),
        rows=tuple(rows),
    )


def _claims(bayes: Sequence[Errors], naive: Errors) -> Iterator[Claim]:
    gaps = {int(one.at): paired(one.values, naive.values) for one in bayes}
    text = "; ".join(f"{size:,} ratings: {gap}" for size, gap in gaps.items())
    yield Claim(
        text="Averaged over trials, MF-IPS-NB is never worse than MF-Naive, at any sample size.",
        holds=all(gap.value <= 0 for gap in gaps.values()),
        found=f"MSE less that of MF-Naive, ± standard error: {text}",
    )
    least, gap = min(gaps.items())
    yield Claim(
        text="MF-IPS-NB outperforms MF-Naive even for severely degraded propensity estimates.",
        holds=gap.value < 0 and gap.pvalue < 0.05,
        found=f"with {least:,} ratings {gap}, p {chance(gap.pvalue)}",
    )


_BAYES = (
    "Propensities by Naive Bayes (Eq. 18), with P(Y = r) by the Laplace estimator from a uniform sample of the cells, "
    "which is drawn anew in each trial. MF-Naive and MF-IPS do not depend on its size."
)
