"""Which part of MF-ADG carries its gain over MF-AUC: a factorial experiment at equal numbers of gradient steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from openloop.kernels.pair_design import PairCell
from openloop.studies.kit.charts import lines
from openloop.studies.kit.grids import EDGES, told
from openloop.studies.kit.results import Cell, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.lim2015.designs import (
    ALL,
    EQUAL_UPDATES,
    HALVED,
    MOST,
    OF_ADG,
    OF_AUC,
    POPULARITY,
    STEPS,
    SVD,
    Arm,
    ArmFits,
    SettingSearch,
    all_arms,
    positives_told,
    training_positives,
)
from openloop.studies.lim2015.effects import (
    ALL_THREE,
    ALONE,
    EQUAL_STEPS_GAIN,
    EQUAL_UPDATES_GAIN,
    LESS_HALF,
    MORE_STEPS,
    PARTS,
    TOGETHER,
    Effect,
    all_effects,
)
from openloop.studies.lim2015.factorial_claims import EXPLAINED, claims_of, explained, findings, weights_claim
from openloop.studies.lim2015.protocol import FACTORS, LEVEL, over_folds
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN

DATA = ("ml-100k", "lastfm-hetrec", "ml-1m")
SHORT = "‡"  # a fit that ended before it had its steps

NOTES = (
    (
        f"Three parts tell {ADG} from {AUC}. The other item is drawn from all items but the positive (I∖i⁺), or from "
        "those that are not positives of the user (O⁻). A violator is weighted by the rank that its draw estimates "
        "(C), or by 1. Items are drawn until one violates the margin, or once. The eight cells combine them. With one "
        "draw, C is constant. The rank weight therefore matters only when drawing continues until a violator."
    ),
    (
        f"All cells take {STEPS:,} gradient steps from the same random start with {FACTORS} factors. The rate falls in "
        "a straight line to 0 over these steps. λ shrinks the three vectors of every update, also where no violator "
        "was found. Cells that draw once need many updates per step. Each update shrinks the factors, so these cells "
        "need a smaller λ. Rate and λ are both chosen for each cell, by ADG on the validation part of each fold, on "
        "one lattice with factors of 2. The search starts from the same ten settings everywhere, and goes on until "
        f"all eight neighbours of the best were tried. A fit ends after {MOST} updates per step on average at the "
        f"latest. {SHORT} marks fits that ended before they had their steps. A claim that compares fits at equal steps "
        "is not decided if one of them ended so."
    ),
    (
        f"{EQUAL_UPDATES}: {AUC} once more, with as many updates as {ADG} needed for its steps, which is how the paper "
        f"compares the two. “{MORE_STEPS}” is the same cell at equal steps less this one. The two differ in their "
        "number of steps and in what follows from it: rate and λ are chosen anew for each, and more updates shrink "
        "the factors more often."
    ),
    (
        "Training positives are cut to 12, 25 or 50 per user at random, or all are kept. Validation, test and the "
        f"items that are ranked stay the same. A limit that no user exceeds is left out. On {', '.join(HALVED)} five "
        f"cells are fitted: {AUC}, {ADG}, and {AUC} with each single part of {ADG}. The four cells other than {AUC} "
        "are a half design. Each main effect is mixed with the interaction of the other two parts. So no main effects "
        f"are shown there: “alone” is {AUC} with one part of {ADG} less {AUC}, and “{TOGETHER}” is the rest of the "
        "gain."
    ),
    (
        "± covers users and fits. The error over users takes each user's mean over two folds. The variance of fits is "
        "added to its square: random draws and chosen settings are common to all users of a fit. It is pooled over "
        "the effects of a data set, from how they differ between the folds. These differences also hold each user's "
        "noise from other test items, which the error over users has already. It is counted twice, so ± is "
        f"conservative. * marks p < {LEVEL} by Holm over all effects tested here, the comparisons of parts with half "
        "of a gain included."
    ),
    (
        "Table 1 asks the same as the claim at equal updates, and may answer otherwise: it has four folds, the "
        "updates of the paper for both learners, an error over users alone, and fewer tests."
    ),
    EDGES,
)
EXPLANATION = (
    "The notes that name the largest part of a gain have 95 % intervals. The parts add up to the gain. The interval of "
    "the largest part holds together with those of the other parts, as it was found by looking at all of them."
)


def factorial(run: Run) -> Result:
    """Every arm on every data set that is present; in a quick run, on the smallest."""
    data = experiments(run)
    effects = all_effects(data)
    return Result(
        item="factorial", data=tuple(e.name for e in data),
        tables=(_decomposed(effects), _steps(data), _all(effects), _arms(data)),
        figures=(_figure(data, effects),),
        claims=(*(claim for e in data for claim in claims_of(e, effects)), weights_claim(data)),
        notes=(*(explained(e, effects) for e in data), *NOTES, EXPLANATION, _kept(data)),
    )  # fmt: skip


def experiments(run: Run) -> list[ArmFits]:
    """Those of every data set that is present; in a quick run, of the smallest."""
    here = run.present(*DATA)
    return [all_arms(run, name) for name in run.either(here, here[:1])]


def named(arm: Arm) -> str:
    """An arm as tables have it."""
    if not isinstance(arm, PairCell):
        return arm
    of = {OF_ADG: f"{ADG}: ", OF_AUC: f"{AUC}: "}.get(arm, "")
    items, weight = "O⁻" if arm.unliked else "I∖i⁺", "C" if arm.weighted else "1"
    return f"{of}{items}, {weight}, {'until' if arm.until else 'once'}"


# -- tables --------------------------------------------------------------------------------------------------


def _decomposed(effects: Sequence[Effect]) -> Table:
    shown = (EQUAL_UPDATES_GAIN, MORE_STEPS, EQUAL_STEPS_GAIN, *PARTS, ALL_THREE, *ALONE, TOGETHER)
    chosen = [x for x in effects if x.level == ALL and x.name in shown]
    return _effects_table(
        "factorial-gain",
        f"What the gain of {ADG} over {AUC} consists of, with all positives. The gain at equal updates is that of more "
        "steps plus that at equal steps, which is the sum of the rows below it: main effects and the interaction of "
        "all three parts; or, where half of the design was run, each part alone and what they do together",
        chosen,
    )


def _all(effects: Sequence[Effect]) -> Table:
    shown = [x for x in effects if LESS_HALF not in x.name]
    return _effects_table("factorial-effects", "All effects, by the number of positives per user", shown, appendix=True)


def _effects_table(name: str, caption: str, effects: Sequence[Effect], *, appendix: bool = False) -> Table:
    rows: dict[tuple[str, int, str], list[Cell]] = {}
    for x in effects:
        cell = Value(value=x.value, error=x.stderr, digits=4, mark="*" if x.holm < LEVEL else "")
        rows.setdefault((x.data, x.level, x.name), []).append(cell)
    ordered = sorted(rows, key=lambda key: (DATA.index(key[0]), key[1] == ALL, key[1]))  # stable: effects as they are
    level = "" if all(n == ALL for _, n, _ in rows) else ", {}"
    return Table(
        name=name, caption=caption, columns=("data, effect", *SHOWN.values()), appendix=appendix,
        rows=tuple((f"{d}{level.format(positives_told(n))}, {name}", *rows[d, n, name]) for d, n, name in ordered),
        error_is="standard error over users and fits",
    )  # fmt: skip


def _steps(data: Sequence[ArmFits]) -> Table:
    rows = [
        (f"{e.name}, {named(arm)}", *_done(e.found[ALL, arm]), *_measures(e, ALL, arm))
        for e in data
        for arm in (EQUAL_UPDATES, OF_AUC, OF_ADG, SVD, POPULARITY)
    ]
    return Table(
        name="factorial-steps", caption="The two learners and what is beside them, on test, with all positives",
        columns=("data, fit", *DONE, *SHOWN.values()), rows=tuple(rows), error_is="standard error over folds",
    )  # fmt: skip


def _arms(data: Sequence[ArmFits]) -> Table:
    rows = [
        (f"{e.name}, {positives_told(n)}, {named(arm)}", *_done(of), *_measures(e, n, arm), _settings(of))
        for e in data
        for n in e.levels
        for arm in e.arms
        for of in [e.found[n, arm]]
    ]
    return Table(
        name="factorial-fits", caption="All chosen fits, on test", rows=tuple(rows), appendix=True,
        columns=("data, positives, fit", *DONE, *SHOWN.values(), "rate and λ, or rank, of each fold"),
        error_is="standard error over folds",
    )  # fmt: skip


DONE = ("updates per step", "updates with a step, %", "mean weight")


def _done(folds: Sequence[SettingSearch]) -> tuple[Cell, ...]:
    """What the fits of an arm did, over the folds."""
    tallies = [s.best.outcome["tally"] for s in folds if "tally" in s.best.outcome]
    if not tallies:
        return None, None, None
    updates, steps, weights, _ = np.sum(tallies, axis=0)
    mark = SHORT if any(search.ended_short for search in folds) else ""
    return (
        Value(value=updates / steps, digits=2, mark=mark),
        Value(value=100 * steps / updates, digits=1),
        Value(value=weights / steps, digits=3),
    )


def _measures(e: ArmFits, level: int, arm: Arm) -> Iterator[Value]:
    for measure in MEASURES:
        mean = over_folds(e.users(level, arm, measure))
        yield Value(value=mean.value, error=mean.stderr, digits=4)


def _settings(folds: Sequence[SettingSearch]) -> str:
    return "; ".join(", ".join(_setting(s)) for s in folds)


def _setting(search: SettingSearch) -> Iterator[str]:
    for name in ("rate", "reg", "factors"):
        if name in search.best.setting:
            yield told(search.best.setting[name], [tried[name] for tried in search.tried])


def _kept(data: Sequence[ArmFits]) -> str:
    searches = [s for e in data for found in e.found.values() for s in found if "budget" in s.best.setting]
    edges = sum(any(mark in text for mark in "↓↑") for s in searches for text in [" ".join(_setting(s))])
    short = sum(search.ended_short for search in searches)
    tried = sum(len(s.tried) for s in searches)
    return (
        f"{tried:,} fits were tried for {len(searches):,} choices of rate and λ. {edges} of the choices are at the "
        f"edge of what was tried. {short} of the chosen fits ended before they had their steps."
    )


# -- the figure ----------------------------------------------------------------------------------------------


def _figure(data: Sequence[ArmFits], effects: Sequence[Effect]) -> Figure:
    known = {e.name: findings(e, effects) for e in data}
    means = {(e.name, n): mean_positives(e, n) for e in data for n in e.levels}
    rows = [
        {
            "data": f"{x.data}, {SHOWN[x.measure]}", "positives": means[x.data, x.level], "effect": x.name,
            "value": 100 * x.value / x.base, "low": 100 * low / x.base, "high": 100 * high / x.base,
            "short": bool(known[x.data].short(x.name, levels=[x.level])),
        }
        for measure in EXPLAINED for x in effects if x.measure == measure and x.name in (MORE_STEPS, *PARTS, *ALONE)
        for low, high in [x.interval()]
    ]  # fmt: skip
    chart = lines(
        rows, "positives", "value", series="effect", facet="data", low="low", high="high", log_x=True,
        hollow="short", x_values=True,
        x_title="training positives per user, mean", y_title=f"effect, % of {AUC}",
    )  # fmt: skip
    caption = (
        f"Effects on {' and '.join(SHOWN[m] for m in EXPLAINED)}, in % of {AUC} at equal steps, by the number of "
        "training positives; bands are 95 % intervals, not adjusted. A point is hollow where one of the fits that it "
        "compares ended before it had its steps. Main effects where the whole design was run; "
        f"“alone” is {AUC} with one part of {ADG} less {AUC}, where half of it was run. The paper has no such figure"
    )
    return Figure(name="factorial", caption=caption, rows=tuple(rows), chart=chart)  # pyright: ignore[reportArgumentType]


def mean_positives(e: ArmFits, level: int) -> float:
    """Training positives per user, of the users who have some."""
    n = training_positives(e.given)
    return float((np.minimum(n, level) if level else n)[n > 0].mean())
