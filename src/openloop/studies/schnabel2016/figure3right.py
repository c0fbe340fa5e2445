"""Figure 3, right, of Schnabel et al. (2016): the error of MF as propensities are learned from fewer ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from openloop.studies.kit.results import Cell, Claim, Result, Table
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import paired
from openloop.studies.schnabel2016.factorisation import (
    SIGNIFICANT,
    TRIALS,
    Errors,
    below,
    difference,
    errors,
    figure,
    notes,
)
from openloop.studies.schnabel2016.worlds import ALPHA, complete
from openloop.support.wording import chance, pvalue

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)


def figure3right(run: Run) -> Result:
    """Errors of MF with propensities by Naive Bayes over the size of the uniform sample, α = 0.25."""
    completion, trials = complete(run), run.either(TRIALS, 2)
    sizes = run.either(SIZES, (1, 1_000))

    def over_trials(name: str, at: float, **setting: Any) -> Errors:
        return errors(run, completion.given, name, at, trials, alpha=ALPHA, loss="squared", **setting)

    bayes = [over_trials("MF-IPS-NB", size, by="bayes", size=size) for size in sizes]
    naive, known = over_trials("MF-Naive", sizes[0], by="naive"), over_trials("MF-IPS", sizes[0], by="known")
    drawn = [*bayes, *(replace(one, at=size) for one in (naive, known) for size in sizes)]
    return Result(
        item="figure3right",
        data=("ml-100k",),
        tables=(_table(bayes, naive, known),),
        figures=(figure("figure3right", drawn, _CAPTION, x_title="ratings in the uniform sample", log_x=True),),
        claims=(_claim(bayes, naive),),
        notes=(str(completion), _BAYES, _SAME, *notes([*bayes, naive, known], run)),
    )  # fmt: skip


_CAPTION = f"Mean MSE at α = {ALPHA:g} over the size of the uniform sample that propensities are learned from."
_BAYES = (
    "Propensities by Naive Bayes (Eq. 18), with P(Y = r) by the Laplace estimator from a uniform sample of the cells, "
    "which is drawn anew in each trial. MF-Naive and MF-IPS do not depend on its size."
)
_SAME = "MF-Naive and MF-IPS with known propensities are those of figure3left at the same α."


def _named(one: Errors) -> str:
    return f"MF-IPS-NB, {one.at:,} rating{'' if one.at == 1 else 's'}"


def _table(bayes: Sequence[Errors], naive: Errors, known: Errors) -> Table:
    gaps = below([(one, naive) for one in bayes])[1]
    rows: list[tuple[Cell, ...]] = [
        (_named(one), one.value, difference(gap), pvalue(p), difference(paired(one.values, known.values)))
        for one, (gap, p) in zip(bayes, gaps, strict=True)
    ]
    weighted = paired(known.values, naive.values)
    rows.append(("MF-IPS, known p", known.value, difference(weighted), pvalue(weighted.pvalue), None))
    rows.append(("MF-Naive", naive.value, None, None, difference(paired(naive.values, known.values))))
    return Table(
        name="figure3right",
        caption=f"True MSE over all cells (Eq. 1) at α = {ALPHA:g}, mean over trials; differences are paired by trial, "
        "and the p of MF-IPS-NB is adjusted over the sizes by Holm",
        columns=("", "MSE", "less MF-Naive", "p", "less MF-IPS, known p"),
        rows=tuple(rows),
    )


def _claim(bayes: Sequence[Errors], naive: Errors) -> Claim:
    holds, gaps = below([(one, naive) for one in bayes])
    text = "; ".join(f"{int(one.at):,}: {gap}, p {chance(p)}" for one, (gap, p) in zip(bayes, gaps, strict=True))
    return Claim(
        text="MF-IPS-NB has a lower MSE than MF-Naive even for severely degraded propensity estimates: with uniform "
        f"samples of {_sizes(bayes)} (paired t-test over {len(naive.values)} trials, Holm over sizes, "
        f"p < {SIGNIFICANT:g})",
        holds=holds,
        found=f"MSE less that of MF-Naive, ± standard error, by uniform ratings: {text}",
        gist="MF-IPS-NB predicts better than MF-Naive with propensities from uniform samples of "
        f"{_sizes(bayes)} ratings",
    )


def _sizes(bayes: Sequence[Errors]) -> str:
    tried = [int(one.at) for one in bayes]
    return f"each of {len(tried)} sizes from {min(tried):,} to {max(tried):,}"
