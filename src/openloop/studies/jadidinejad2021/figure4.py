"""Figure 4: agreement with the open loop by number of strata, and the number that a rule chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021 import methods
from openloop.studies.jadidinejad2021.agreement import REPLICATES, Agreement, ahead_as_coded, doubt
from openloop.studies.jadidinejad2021.experiment import COLUMNS, EvaluatedSplit, Experiment, by_data_set, over_splits
from openloop.studies.jadidinejad2021.fits import WMF, without
from openloop.studies.jadidinejad2021.methods import Method
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.published_tables import published_figure4
from openloop.studies.jadidinejad2021.scores import Scores
from openloop.studies.jadidinejad2021.strata_rule import NUMBERS, number_of_strata
from openloop.studies.jadidinejad2021.table6_claims import in_most
from openloop.studies.kit import charts
from openloop.studies.kit.grids import EDGES, told
from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import counted, joined

P = "popularity"
HALF_WIDTH = 2.306 / 3  # of a 95 % interval of the mean of nine values, in standard deviations: t(0.975, 8)/√9
SEVERAL = NUMBERS[1:]
MOST = len(SEVERAL) // 2 + 1  # of the numbers of strata from 2 to 10
NOTES = (
    (
        "The rule predicts each held-out discount by its stratum's mean (ten folds). It takes the fewest strata whose "
        "error is within one standard error of the least. It sees propensities and the held-out part, nothing of the "
        f"open loop. {EDGES}"
    ),
    (
        "As coded, strata have equal width, so some hold next to nothing. A stratum without a relevant cell leaves its "
        "share to the others; the code would stop there."
    ),
    (
        f"The paper does not say what its ± is ({PUBLISHED['figure4']['coat']['behind']} on Coat, "
        f"{PUBLISHED['figure4']['yahoo-r3']['behind']} on Yahoo! R3). It may be the standard deviation over the nine "
        "numbers of strata or, as its repository has a function for that, the half-width of a 95 % interval of their "
        f"mean, t·sd/√9 = {HALF_WIDTH:.2f}·sd. Both are shown; neither is compared with it."
    ),
)


def figure4(run: Run) -> Result:
    """τ over the number of strata, and which number the stratification principle chooses."""
    return by_data_set(run, partial(_about, run), published_figure4)


def _about(run: Run, found: Experiment) -> Result:
    scores, goal = _scores(found), found.goals(None)
    curves = _curves(scores, goal)
    gains = significant_gains(scores["as coded"], goal)
    agreed = found.agreement_by(partial(_compared, found), run.either(REPLICATES, 100))
    return Result(
        item="figure4", title="The number of strata", data=(found.name,), notes=NOTES,
        tables=(_summary(found, scores, curves, gains), _chosen(found, curves)),
        figures=(_lines(found, curves), _errors(found)), claims=tuple(claims(found.name, agreed, gains)),
    )  # fmt: skip


def _compared(found: Experiment, split: EvaluatedSplit) -> dict[str, Method]:
    """The methods whose τ are compared over users: as coded and ours by number of strata, and what the rule takes."""
    grid = _grid(found, split)
    mine = {f"ours {n}": methods.catalogued(split.held, grid, "outside", n) for n in SEVERAL}
    rule = methods.catalogued(split.held, grid, "outside", split.numbers["ours"][P])
    coded = {f"as coded {n}": methods.coded(split.held, n)["stratified"] for n in NUMBERS}
    return {**coded, **mine, "rule": rule}


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
        y_title="τ with the open loop", published=published_points(found.name),
    )  # fmt: skip
    caption = (
        f"{found.name}: τ of stratified nDCG with the open loop as published, by number of strata, mean and standard "
        f"deviation over {counted(len(found.splits), 'split')}; ours with {P} propensities and catalogue shares. "
        f"{_printed_words(found.name)}"
    )
    return Figure(name=f"figure4_{found.name}", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def published_points(data: str) -> list[dict[str, Any]]:
    """What the paper prints of its curve: a point, and the mean of the others."""
    printed = PUBLISHED["figure4"].get(data)
    if printed is None:
        return []
    return [
        {"strata": 1, "method": "as coded", "tau": printed["one"]},
        {"strata": SEVERAL[0], "to": SEVERAL[-1], "method": "as coded", "tau": printed["mean"]},
    ]


def _printed_words(data: str) -> str:
    """What the paper prints of its curve."""
    printed = PUBLISHED["figure4"].get(data)
    if printed is None:
        return "The paper has no numbers of these data."
    return (
        f"The hollow diamond is the paper's τ with one stratum. Of 2 to 10 strata the paper prints only the mean, "
        f"{printed['mean']:.3f}, which is the dashed line; its curve is only drawn."
    )


def _errors(found: Experiment) -> Figure:
    rows: list[dict[str, Any]] = []
    for among, column in COLUMNS.items():
        each = [number_of_strata(split.held, _grid(found, split), among, found.fits.seed)[1] for split in found.splits]
        mean = np.mean(each, axis=0)
        rows += [{"strata": n, "method": column, "error": float(e)} for n, e in zip(NUMBERS, mean, strict=True)]
    drawn = charts.lines(
        rows, "strata", "error", series="method", x_title="number of strata", y_title="error within strata, relative"
    )
    caption = (
        f"{found.name}: how unlike the feedback is within strata of {P}, by cross-validation, mean over splits. The "
        "paper has no such figure."
    )
    return Figure(name=f"figure4_{found.name}_rule", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _summary(found: Experiment, scores: Mapping[str, Floats], curves: Mapping[str, Floats], gains: Floats) -> Table:
    published, keep = PUBLISHED["figure4"].get(found.name, {}), without(WMF, found.fits.models)
    others = _curves({name: values[:, :, keep] for name, values in scores.items()}, found.goals(None)[:, keep])

    def row(name: str, beside: Mapping[str, float]) -> tuple[Any, ...]:
        curve = curves[name]
        several, spread = curve[1:].mean(axis=0), curve[1:].std(axis=0, ddof=1)  # (R,) over 2 to 10 strata
        behind = Value(value=None, published=beside["behind"]) if "behind" in beside else None
        return (
            name, _shown(curve[0], beside.get("one")), _shown(several, beside.get("mean")),
            over_splits(spread), over_splits(HALF_WIDTH * spread), behind,
            _shown(gains, beside.get("significant"), 1) if name == "as coded" else None,
            over_splits(others[name][0]), over_splits(others[name][1:].mean(axis=0)),
        )  # fmt: skip

    rows = [row(name, published if name == "as coded" else {}) for name in curves]
    few = f"{int(keep.sum())} models without {WMF}"
    return Table(
        name=f"figure4_{found.name}", rows=tuple(rows), error_is="standard deviation over splits",
        columns=(
            "column", "τ, 1 stratum", "mean τ, 2 to 10", "sd over 2 to 10", "95 % half-width over 2 to 10",
            "the paper's ±", "of 9, significantly above 1 stratum as coded", f"τ, 1 stratum, {few}",
            f"mean τ, 2 to 10, {few}",
        ),
        caption=f"{found.name}: the number of strata, in short. Published numbers are shown and not judged: that of 1 "
        "stratum is table6's, the mean of 2 to 10 varies more from split to split than it differs from that, and how "
        "many are significant is a claim below.",
    )  # fmt: skip


def _shown(values: Floats, published: float | None, digits: int = 3) -> Value:
    return over_splits(values, published, digits, judged=False)


def significant_gains(scores: Floats, goal: Floats) -> Floats:
    """In how many of 2 to 10 strata the test as coded finds a gain over one, in each split, (R,); scores (10, R, M)."""
    ahead = np.array([ahead_as_coded(several, scores[0], goal) for several in scores[1:]])  # (9, R)
    return ahead.sum(axis=0).astype(np.float64)


def _chosen(found: Experiment, curves: Mapping[str, Floats]) -> Table:
    rows = []
    for column in COLUMNS.values():
        picked = _picked(found, column)
        mine = curves[column][[NUMBERS.index(n) for n in picked], np.arange(len(picked))]
        rows.append((column, joined([told(n, NUMBERS) for n in picked]), over_splits(mine), *_extremes(curves[column])))
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


def claims(data: str, agreed: Agreement, gains: Floats) -> Iterator[Claim]:
    """What section 7.2 says of the number of strata, and what we say; `gains` (R,) are `significant_gains`."""
    yield from _published_claims(data, agreed, gains)
    leads = [agreed.ahead(f"ours {n}", f"as coded {n}", "published") for n in SEVERAL]
    least = min(leads, key=lambda lead: lead.interval[0])
    yield Claim(
        text=f"{data}: ours agrees better than as coded at every number of strata from 2 to 10, with lower 95 % limits "
        "above 0 over users",
        holds=all(lead.clear for lead in leads), undecided=doubt(leads), ours=True,
        found=f"at {sum(lead.clear for lead in leads)} of {len(SEVERAL)}; the least clear lead is {least}",
    )  # fmt: skip
    lead = agreed.ahead("rule", [f"ours {n}" for n in SEVERAL], "published")
    yield Claim(
        text=f"{data}: the number of strata that the rule takes, without seeing the open loop, agrees better than the "
        "numbers from 2 to 10 do on average, with a lower 95 % limit above 0 over users",
        holds=lead.clear, found=f"by {lead}", undecided=doubt([lead]), ours=True,
    )  # fmt: skip


def _published_claims(data: str, agreed: Agreement, gains: Floats) -> Iterator[Claim]:
    leads = [agreed.ahead(f"as coded {n}", "as coded 1", "published") for n in SEVERAL]
    better = sum(lead.value > 0 for lead in leads)
    yield Claim(
        text=f"{data}: as coded, every number of strata from 2 to 10 agrees better with the open loop than holdout "
        "(section 7.2)",
        holds=better == len(SEVERAL), found=f"{better} of {len(SEVERAL)} do, on average over splits",
    )  # fmt: skip
    most = gains >= MOST
    printed = PUBLISHED["figure4"].get(data)
    beside = "" if printed is None else f"; the paper has {printed['significant']:.0f} in its split"
    yield Claim(
        text=f"{data}: as coded, most numbers of strata from 2 to 10 are significantly better than holdout (section "
        "7.2), by the paper's own test, in most splits",
        holds=in_most(most),
        found=f"{MOST} or more of {len(SEVERAL)} are in {int(most.sum())} of {counted(len(gains), 'split')}, "
        f"{gains.mean():.1f} on average{beside}",
    )  # fmt: skip
    clear = [n for n, lead in zip(SEVERAL, leads, strict=True) if lead.clear]
    yield Claim(
        text=f"{data}: as coded, most numbers of strata from 2 to 10 are better than holdout with a lower 95 % limit "
        "above 0 over users",
        holds=len(clear) >= MOST, undecided=doubt(leads, MOST),
        found=f"{len(clear)} of {len(SEVERAL)} are ({joined([str(n) for n in clear] or ['none'])})",
    )  # fmt: skip
