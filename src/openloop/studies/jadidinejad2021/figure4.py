"""Figure 4: agreement with the open loop by number of strata, and the number that a rule chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021 import as_coded, methods
from openloop.studies.jadidinejad2021.experiment import COLUMNS, EvaluatedSplit, Experiment, by_data_set, over_splits
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.scores import Scores
from openloop.studies.jadidinejad2021.strata_rule import NUMBERS, number_of_strata
from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import joined

P = "popularity"
HALF_WIDTH = 2.306 / 3  # of a 95 % interval of the mean of nine values, in standard deviations: t(0.975, 8)/√9
NOTES = (
    (
        "The rule: what a stratum averages are the discounts of relevant held-out cells; with strata that are alike "
        "inside, the mean of a stratum predicts them. So each is predicted from the other nine tenths of cells, and "
        "the smallest number of strata is taken whose error is within a standard error of the least. Apart from "
        "propensities it sees the held-out part alone, and nothing of the open loop."
    ),
    (
        "As coded, strata have equal width, so that some may hold next to nothing; a stratum without a relevant cell, "
        "on which the code would stop, leaves its share to the others."
    ),
    (
        "The paper does not say what stands behind its ± (0.021 on Coat, 0.026 on Yahoo! R3). It may be the standard "
        "deviation over the nine numbers of strata, or, as its repository has a function for that, the half-width of a "
        "95 % interval of their mean, t·sd/√9 = 0.77·sd. Both are shown, and neither is held against it."
    ),
)


def figure4(run: Run) -> Result:
    """τ over the number of strata, and which number the stratification principle chooses."""
    return by_data_set(run, _about)


def _about(found: Experiment) -> Result:
    scores, goal = _scores(found), found.goals(None)
    curves = _curves(scores, goal)
    gains = significant_gains(scores["as coded"], goal)
    return Result(
        item="figure4", title="The number of strata", data=(found.name,), notes=NOTES,
        tables=(_summary(found.name, curves, gains), _chosen(found, curves)),
        figures=(_lines(found, curves), _errors(found)), claims=tuple(_claims(found, curves)),
    )  # fmt: skip


def _scores(found: Experiment) -> dict[str, Floats]:
    """The models' scores by number of strata and split, (10, R, M)."""

    def coded(split: EvaluatedSplit, n: int) -> Scores:
        return methods.coded(split.held, n)["stratified"](None)

    def printed(split: EvaluatedSplit, n: int) -> Scores:
        return methods.printed(split.held, found.eq7, n)["stratified"](None)

    def ours(among: str, split: EvaluatedSplit, n: int) -> Scores:
        return methods.catalogued(split.held, _grid(found, split), among, n)(None)

    columns: dict[str, Callable[[EvaluatedSplit, int], Scores]] = {"as coded": coded, "as printed": printed}
    columns |= {column: partial(ours, among) for among, column in COLUMNS.items()}
    return {
        name: np.array([[method(split, n).value for split in found.splits] for n in NUMBERS])
        for name, method in columns.items()
    }


def _curves(scores: Mapping[str, Floats], goal: Floats) -> dict[str, Floats]:
    """τ with the open loop by number of strata and split, (10, R); `goal` (R, M)."""
    return {name: np.array([tau_b(each, goal) for each in values]) for name, values in scores.items()}


def _grid(found: Experiment, split: EvaluatedSplit) -> Floats:
    return methods.grid_of(split.held, found.p[P])


def _lines(found: Experiment, curves: Mapping[str, Floats]) -> Figure:
    rows = [
        {"strata": n, "method": name, "tau": float(t.mean()), "low": float(t.mean() - t.std(ddof=1)),
         "high": float(t.mean() + t.std(ddof=1))}
        for name, curve in curves.items() for n, t in zip(NUMBERS, curve, strict=True)
    ]  # fmt: skip
    drawn = charts.lines(
        rows, "strata", "tau", series="method", low="low", high="high", x_title="number of strata",
        y_title="τ with the open loop",
    )  # fmt: skip
    caption = (
        f"{found.name}: τ of stratified nDCG with the open loop as published, by number of strata, mean and standard "
        f"deviation over {len(found.splits)} splits; ours with {P} propensities and catalogue shares."
    )
    return Figure(name=f"figure4_{found.name}", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _errors(found: Experiment) -> Figure:
    rows: list[dict[str, Any]] = []
    for among, column in COLUMNS.items():
        each = [number_of_strata(split.held, _grid(found, split), among, found.fits.seed)[1] for split in found.splits]
        mean = np.mean(each, axis=0)
        rows += [{"strata": n, "method": column, "error": float(e)} for n, e in zip(NUMBERS, mean, strict=True)]
    drawn = charts.lines(
        rows, "strata", "error", series="method", x_title="number of strata", y_title="error within strata, relative"
    )
    caption = f"{found.name}: how unlike the feedback is within strata of {P}, by cross-validation, mean over splits."
    return Figure(name=f"figure4_{found.name}_rule", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _summary(data: str, curves: Mapping[str, Floats], gains: Floats) -> Table:
    published = PUBLISHED["figure4"].get(data, {})

    def row(name: str, beside: Mapping[str, float]) -> tuple[Any, ...]:
        curve = curves[name]
        several, spread = curve[1:].mean(axis=0), curve[1:].std(axis=0, ddof=1)  # (R,) over 2 to 10 strata
        behind = Value(value=None, published=beside["behind"]) if "behind" in beside else None
        return (
            name, over_splits(curve[0], beside.get("one")), over_splits(several, beside.get("mean")),
            over_splits(spread), over_splits(HALF_WIDTH * spread), behind,
            over_splits(gains, beside.get("significant"), 0) if name == "as coded" else None,
        )  # fmt: skip

    rows = [row(name, published if name == "as coded" else {}) for name in curves]
    return Table(
        name=f"figure4_{data}", rows=tuple(rows), error_is="standard deviation over splits",
        columns=(
            "column", "τ, 1 stratum", "mean τ, 2 to 10", "sd over 2 to 10", "95 % half-width over 2 to 10",
            "behind ± in the paper", "of 9, told from 1 as coded",
        ),
        caption=f"{data}: the number of strata, in short.",
    )  # fmt: skip


def significant_gains(scores: Floats, goal: Floats) -> Floats:
    """In how many of 2 to 10 strata the test as coded finds a gain over one, in each split, (R,); scores (10, R, M)."""
    with_goal, with_one = tau_b(scores, goal), tau_b(scores, scores[0])  # (10, R)

    def gain(n: int, split: int) -> bool:
        several, one = with_goal[n, split], with_goal[0, split]
        return several > one and as_coded.differs(several, one, with_one[n, split], goal.shape[1])

    return np.array([sum(gain(n, r) for n in range(1, len(scores))) for r in range(len(goal))], np.float64)


def _chosen(found: Experiment, curves: Mapping[str, Floats]) -> Table:
    rows = []
    for column in COLUMNS.values():
        picked = _picked(found, column)
        mine = curves[column][[NUMBERS.index(n) for n in picked], np.arange(len(picked))]
        rows.append((column, joined([str(n) for n in picked]), over_splits(mine), *_extremes(curves[column])))
    return Table(
        name=f"figure4_{found.name}_rule", rows=tuple(rows), error_is="standard deviation over splits",
        columns=("column", "strata chosen, by split", "τ there", "τ, best number for the open loop", "τ, worst number"),
        caption=f"{found.name}: the number of strata by the rule, with {P} propensities, and what it costs not to know "
        "the open loop. Best and worst are of the numbers 2 to 10, by their mean over splits.",
    )  # fmt: skip


def _picked(found: Experiment, column: str) -> Sequence[int]:
    return [split.numbers[column][P] for split in found.splits]


def _extremes(curve: Floats) -> tuple[Value, Value]:
    means = curve[1:].mean(axis=1)
    return over_splits(curve[1 + int(np.argmax(means))]), over_splits(curve[1 + int(np.argmin(means))])


def _claims(found: Experiment, curves: Mapping[str, Floats]) -> Iterator[Claim]:
    coded = curves["as coded"].mean(axis=1)
    better = int(np.sum(coded[1:] > coded[0]))
    yield Claim(
        text=f"{found.name}: as coded, every number of strata from 2 to 10 agrees better with the open loop than "
        "holdout",
        holds=better == 9, found=f"{better} of 9 do, on average over splits",
    )  # fmt: skip
    ours = curves["ours"].mean(axis=1)
    yield Claim(
        text=f"{found.name}: ours is above as coded at every number of strata from 2 to 10",
        holds=bool(np.all(ours[1:] > coded[1:])),
        found=f"τ {ours[1:].min():.3f} to {ours[1:].max():.3f} against {coded[1:].min():.3f} to {coded[1:].max():.3f}",
    )
    at = [NUMBERS.index(n) for n in _picked(found, "ours")]
    mine = float(curves["ours"][at, np.arange(len(at))].mean())
    yield Claim(
        text=f"{found.name}: the rule, which does not see the open loop, is within 0.05 of the best number",
        holds=mine > ours[1:].max() - 0.05, found=f"τ {mine:.3f}, the best number {ours[1:].max():.3f}",
    )  # fmt: skip
