"""Figures 3 and 4: the models by closed and by open loop, and the number of strata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021 import as_coded, ways
from openloop.studies.jadidinejad2021.agreement import tau
from openloop.studies.jadidinejad2021.evidence import COLUMNS, Evidence, Round, evidence
from openloop.studies.jadidinejad2021.methods import Scored
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.ways import NUMBERS
from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import joined

# Figure 3's three panels, and two of ours beside them.
PANELS = {
    "holdout": "as coded: holdout",
    "Q1": "as coded: q1",
    "Q2": "as coded: q2",
    "ours: 5 strata, popularity": "ours: 5 strata, popularity",
    "ours, training items ranked: 5 strata, popularity": "ours, training items ranked: 5 strata, popularity",
}


def figure3(run: Run) -> Result:
    """Closed loop against open loop, a point for each model, in the first split; τ over all splits."""
    found = [evidence(run, name) for name in run.present("coat", "yahoo-r3")]
    return Result(
        item="figure3", title="104 models, by closed loop and by open loop", data=tuple(ev.name for ev in found),
        tables=tuple(_correlations(ev) for ev in found), figures=tuple(_scatter(ev) for ev in found),
        claims=tuple(claim for ev in found for claim in _claims3(ev)),
        notes=("Points are of the first split, numbers of all splits. The two panels of ours are not the paper's.",),
    )  # fmt: skip


def _open(ev: Evidence, part: Round) -> Floats:
    return ev.targets(part, None)["published"].value()


def _panel_taus(ev: Evidence) -> dict[str, Floats]:
    """τ with the open loop as published, in each split, (R,)."""
    goal = np.array([_open(ev, part) for part in ev.rounds])  # (R, M)
    return {name: tau(np.array([p.methods[m](None).value() for p in ev.rounds]), goal) for name, m in PANELS.items()}


def _scatter(ev: Evidence) -> Figure:
    first, taus = ev.rounds[0], _panel_taus(ev)
    goal = _open(ev, first)
    rows = [
        {"panel": f"{name}, τ = {taus[name][0]:.2f}", "model": model, "open loop": float(x), "closed loop": float(y)}
        for name, method in PANELS.items()
        for model, x, y in zip(ev.models, goal, first.methods[method](None).value(), strict=True)
    ]
    drawn = charts.scatter(
        rows, "open loop", "closed loop", facet="panel", label="model",
        x_title="nDCG, open loop", y_title="nDCG, closed loop",
    )  # fmt: skip
    caption = f"{ev.name}: nDCG of {len(ev.models)} models by the closed loop, as coded and ours, and by the open loop."
    return Figure(name=f"figure3_{ev.name}", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _correlations(ev: Evidence) -> Table:
    published = PUBLISHED["figure3"].get(ev.name, {})
    rows = [
        (name, _beside(taus, published.get(name.lower()), 3 if name == "Q2" else 2))
        for name, taus in _panel_taus(ev).items()
    ]
    share = np.array([_q1_share(part) for part in ev.rounds])
    rows.append(("Q1's share of the feedback", _beside(share, published.get("q1_share"), 2)))
    return Table(
        name=f"figure3_{ev.name}", columns=("panel", "τ with the open loop"), rows=tuple(rows),
        caption=f"{ev.name}: agreement over {len(ev.rounds)} splits.", error_is="standard deviation over splits",
    )  # fmt: skip


def _beside(values: Floats, published: float | None, digits: int) -> Value:
    spread = float(values.std(ddof=1))
    allowed = 2 * spread * np.sqrt(1 + 1 / len(values)) + 0.5 * 10**-digits  # the paper has one split
    return Value(value=values.mean(), error=spread, published=published, digits=digits, tolerance=allowed)


def _q1_share(part: Round) -> float:
    U, I = part.held.shape
    p = as_coded.propensities(part.held.given["item"], I, U)
    return float(np.mean(ways.coded_strata(part.held, p, 2) == 0))


def _claims3(ev: Evidence) -> Iterator[Claim]:
    t = {name: float(taus.mean()) for name, taus in _panel_taus(ev).items()}
    yield Claim(
        text=f"{ev.name}: Q1 agrees better with the open loop than holdout, and holdout than Q2",
        holds=t["Q1"] > t["holdout"] > t["Q2"],
        found=f"τ is {t['Q1']:.3f} by Q1, {t['holdout']:.3f} by holdout and {t['Q2']:.3f} by Q2",
    )
    if ev.name == "coat":
        text = "coat: Q2 has a negative correlation with the open loop"
        yield Claim(text=text, holds=t["Q2"] < 0, found=f"{t['Q2']:.3f}")


# -- figure 4 ------------------------------------------------------------------------------------------------

P = "popularity"
HALF_WIDTH = 2.306 / 3  # of a 95 % interval of the mean of nine values, in standard deviations: t(0.975, 8)/√9
NOTES = (
    (
        "The rule: what a stratum averages are the discounts of relevant held-out cells; with strata that are alike "
        "inside, the mean of a stratum foretells them. So each is foretold from the other nine tenths of cells, and "
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
    found = [evidence(run, name) for name in run.present("coat", "yahoo-r3")]
    tables: list[Table] = []
    figures: list[Figure] = []
    claims: list[Claim] = []
    for ev in found:
        scores, goal = _scores(ev), np.array([_open(ev, part) for part in ev.rounds])
        curves = _curves(scores, goal)
        tables += [_summary(ev, curves, _told(scores["as coded"], goal)), _chosen(ev, curves)]
        figures += [_lines(ev, curves), _errors(ev)]
        claims += _claims4(ev, curves)
    return Result(
        item="figure4", title="The number of strata", data=tuple(ev.name for ev in found),
        tables=tuple(tables), figures=tuple(figures), claims=tuple(claims),
        notes=NOTES,
    )  # fmt: skip


def _scores(ev: Evidence) -> dict[str, Floats]:
    """The models' scores by number of strata and split, (10, R, M)."""

    def coded(part: Round, n: int) -> Scored:
        return ways.coded(part.held, n)["stratified"](None)

    def printed(part: Round, n: int) -> Scored:
        return ways.printed(part.held, ev.eq7, n)["stratified"](None)

    def ours(among: str, part: Round, n: int) -> Scored:
        return ways.catalogued(part.held, _grid(ev, part), among, n)(None)

    columns: dict[str, Callable[[Round, int], Scored]] = {"as coded": coded, "as printed": printed}
    columns |= {column: partial(ours, among) for among, column in COLUMNS.items()}
    return {
        name: np.array([[way(part, n).value() for part in ev.rounds] for n in NUMBERS]) for name, way in columns.items()
    }


def _curves(scores: Mapping[str, Floats], goal: Floats) -> dict[str, Floats]:
    """τ with the open loop by number of strata and split, (10, R); `goal` (R, M)."""
    return {name: np.array([tau(each, goal) for each in values]) for name, values in scores.items()}


def _grid(ev: Evidence, part: Round) -> Floats:
    return ways.grid_of(part.held, ev.p[P])


def _lines(ev: Evidence, curves: Mapping[str, Floats]) -> Figure:
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
        f"{ev.name}: τ of stratified nDCG with the open loop as published, by number of strata, mean and standard "
        f"deviation over {len(ev.rounds)} splits; ours with {P} propensities and catalogue shares."
    )
    return Figure(name=f"figure4_{ev.name}", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _errors(ev: Evidence) -> Figure:
    rows: list[dict[str, Any]] = []
    for among, column in COLUMNS.items():
        each = [ways.number_of_strata(part.held, _grid(ev, part), among, ev.seed)[1] for part in ev.rounds]
        mean = np.mean(each, axis=0)
        rows += [{"strata": n, "method": column, "error": float(e)} for n, e in zip(NUMBERS, mean, strict=True)]
    drawn = charts.lines(
        rows, "strata", "error", series="method", x_title="number of strata", y_title="error within strata, relative"
    )
    caption = f"{ev.name}: how unlike the feedback is within strata of {P}, by cross-validation, mean over splits."
    return Figure(name=f"figure4_{ev.name}_rule", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _summary(ev: Evidence, curves: Mapping[str, Floats], told: Floats) -> Table:
    published = PUBLISHED["figure4"].get(ev.name, {})

    def row(name: str, beside: Mapping[str, float]) -> tuple[Any, ...]:
        curve = curves[name]
        several, spread = curve[1:].mean(axis=0), curve[1:].std(axis=0, ddof=1)  # (R,) over 2 to 10 strata
        behind = Value(value=None, published=beside["behind"]) if "behind" in beside else None
        return (
            name, _beside(curve[0], beside.get("one"), 3), _beside(several, beside.get("mean"), 3),
            _beside(spread, None, 3), _beside(HALF_WIDTH * spread, None, 3), behind,
            _beside(told, beside.get("significant"), 0) if name == "as coded" else None,
        )  # fmt: skip

    rows = [row(name, published if name == "as coded" else {}) for name in curves]
    return Table(
        name=f"figure4_{ev.name}", rows=tuple(rows), error_is="standard deviation over splits",
        columns=(
            "column", "τ, 1 stratum", "mean τ, 2 to 10", "sd over 2 to 10", "95 % half-width over 2 to 10",
            "behind ± in the paper", "of 9, told from 1 as coded",
        ),
        caption=f"{ev.name}: the number of strata, in short.",
    )  # fmt: skip


def _told(scores: Floats, goal: Floats) -> Floats:
    """In how many of 2 to 10 strata the test as coded finds a gain over one, in each split, (R,)."""
    one = scores[0]
    with_goal, with_one = (np.array([tau(each, other) for each in scores]) for other in (goal, one))  # (10, R)
    better = [
        [t > alone and as_coded.differs(t, alone, same, goal.shape[1]) for t, alone, same in zip(*row, strict=True)]
        for row in zip(with_goal[1:], np.broadcast_to(with_goal[0], with_goal[1:].shape), with_one[1:], strict=True)
    ]
    return np.sum(better, axis=0).astype(np.float64)


def _chosen(ev: Evidence, curves: Mapping[str, Floats]) -> Table:
    rows = []
    for column in COLUMNS.values():
        picked = _picked(ev, column)
        mine = curves[column][[NUMBERS.index(n) for n in picked], np.arange(len(picked))]
        rows.append((column, joined([str(n) for n in picked]), _beside(mine, None, 3), *_extremes(curves[column])))
    return Table(
        name=f"figure4_{ev.name}_rule", rows=tuple(rows), error_is="standard deviation over splits",
        columns=("column", "strata chosen, by split", "τ there", "τ, best number for the open loop", "τ, worst number"),
        caption=f"{ev.name}: the number of strata by the rule, with {P} propensities, and what it costs not to know "
        "the open loop. Best and worst are of the numbers 2 to 10, by their mean over splits.",
    )  # fmt: skip


def _picked(ev: Evidence, column: str) -> Sequence[int]:
    return [part.numbers[column][P] for part in ev.rounds]


def _extremes(curve: Floats) -> tuple[Value, Value]:
    means = curve[1:].mean(axis=1)
    return _beside(curve[1 + int(np.argmax(means))], None, 3), _beside(curve[1 + int(np.argmin(means))], None, 3)


def _claims4(ev: Evidence, curves: Mapping[str, Floats]) -> Iterator[Claim]:
    coded = curves["as coded"].mean(axis=1)
    better = int(np.sum(coded[1:] > coded[0]))
    yield Claim(
        text=f"{ev.name}: as coded, every number of strata from 2 to 10 agrees better with the open loop than holdout",
        holds=better == 9, found=f"{better} of 9 do, on average over splits",
    )  # fmt: skip
    ours = curves["ours"].mean(axis=1)
    yield Claim(
        text=f"{ev.name}: ours is above as coded at every number of strata from 2 to 10",
        holds=bool(np.all(ours[1:] > coded[1:])),
        found=f"τ {ours[1:].min():.3f} to {ours[1:].max():.3f} against {coded[1:].min():.3f} to {coded[1:].max():.3f}",
    )
    at = [NUMBERS.index(n) for n in _picked(ev, "ours")]
    mine = float(curves["ours"][at, np.arange(len(at))].mean())
    yield Claim(
        text=f"{ev.name}: the rule, which does not see the open loop, is within 0.05 of the best number",
        holds=mine > ours[1:].max() - 0.05, found=f"τ {mine:.3f}, the best number {ours[1:].max():.3f}",
    )  # fmt: skip
