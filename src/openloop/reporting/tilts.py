"""The section about what wrong weights would do: curves against Γ, ρ and κ, and where the order reverses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from openloop.audits.results import Curve
from openloop.core.tilts import Against
from openloop.reporting import page_tables as tables
from openloop.reporting.blocks import Bullets, Fold, Heading, Section, Text, figures
from openloop.reporting.sections import Subject
from openloop.reporting.sensitivity_figures import TILTS, sensitivity_chart, turns
from openloop.reporting.words import number, signed, span
from openloop.support.wording import counted, critical, times

DIFFERENCES = 6  # curves of differences that are drawn, against each

HEADINGS: Mapping[Against, str] = {
    "gamma": "If propensities are wrong",
    "rho": "If ratings matter more than the propensities say",
    "kappa": "If popularity is exposure",
}
INTRODUCTIONS: Mapping[Against, str] = {
    "rho": "Propensities that ignore ratings miss that people rate what they like. Suppose that each additional star "
    "made a row ρ times likelier to be observed than its propensity says. The line is the difference in that case, and "
    "the band its interval. The order reverses at ρ*; the interval covers 0 before that.",
    "kappa": "Clicks mix what was shown and what was liked. κ is the share of popularity that is exposure: at 0 % "
    "popular items are liked more, at 100 % they were only shown more. The line is the difference with items weighted "
    "accordingly, every relevant item counted once, and the band its interval. The order reverses at κ*.",
}
ODDS = (
    "Propensities are never quite right. If the odds of being observed may be off by a factor of up to Γ either way, "
    "in each row, an estimate can lie anywhere in the band. Γ* is the smallest Γ at which a difference may be 0."
)
RATIO = (
    "Propensities are never quite right, and these have no scale. If every weight may be off by a factor of up to Γ "
    "either way, an estimate can lie anywhere in the band. Γ* is the smallest Γ at which a difference may be 0."
)


def sensitivity(of: Subject) -> Iterator[Section]:
    """What wrong weights would do: of differences one chart each, of the models one together."""
    if of.audit is None or not of.audit.curves:
        return
    blocks: list[Any] = []
    for against, heading in HEADINGS.items():
        curves = [curve for curve in of.audit.curves if curve.against == against]
        if curves:
            blocks += [Heading(text=heading), Text(text=_introduction(of, curves[0])), *_curves(of, curves)]
            blocks += _scale(of) if against == "gamma" else _settled(of) if against == "kappa" else ()
    yield Section(id="sensitivity", title="Sensitivity to wrong weights", blocks=tuple(blocks))


def _settled(of: Subject) -> Iterator[Any]:
    """How many impressions shown at random would settle the pairs whose order may turn."""
    if of.audit is not None and of.audit.settling:
        yield Bullets(title="What would settle it", items=tuple(str(found) for found in of.audit.settling))


def _scale(of: Subject) -> Iterator[Any]:
    """What a Γ is like, and how large it must be, where that is known."""
    audit = of.audit
    if audit is not None and audit.benchmarks:
        yield Bullets(title="For comparison", items=tuple(f"{words}." for words in audit.benchmarks))
    least = None if audit is None or audit.open_loop is None else audit.open_loop.gamma_min
    if least is not None:
        known = f"are off by at least {times(least)}" if least > 1 else "need not be off"
        yield Text(text=f"The ratings of the open loop show that weights {known} (Γ_min, as a factor).")


def _introduction(of: Subject, curve: Curve) -> str:
    if curve.against != "gamma":
        return INTRODUCTIONS[curve.against]
    forms = {c.gamma_form for c in of.contrasts(curve.metric, curve.estimator)}
    return RATIO if "ratio" in forms else ODDS


def _curves(of: Subject, curves: Sequence[Curve]) -> Iterator[Any]:
    place = {model: n for n, model in enumerate(of.result.ranking(curves[0].metric, curves[0].estimator))}
    pairs = sorted((_facing(c, place) for c in curves if c.b is not None), key=lambda c: place[c.a])
    singles = [curve for curve in curves if curve.b is None]
    for curve in pairs[:DIFFERENCES]:
        yield from figures(sensitivity_chart(curve), [_described(curve)], [tables.tilted([curve])])
    if len(pairs) > DIFFERENCES:
        left = counted(len(pairs) - DIFFERENCES, "more difference")
        yield Fold(summary=f"The curves of {left}, as a table", blocks=(tables.tilted(pairs[DIFFERENCES:]),))
    if singles:
        bounds = "; ".join(f"{c.a} {span(c.low[-1], c.high[-1])}" for c in singles[:10])
        alt = f"Bounds of each model's {singles[0].metric} against Γ. At Γ = {number(singles[0].at[-1], 3)}: {bounds}."
        yield from figures(sensitivity_chart(singles), [alt], [tables.tilted(singles)])


def _facing(curve: Curve, place: Mapping[str, int]) -> Curve:
    """The curve of a difference with the better ranked model first, as in the other charts."""
    if curve.b is None or place[curve.a] <= place[curve.b]:
        return curve
    low, high, value = (tuple(-x for x in given) for given in (curve.high, curve.low, curve.value))
    return replace(curve, a=curve.b, b=curve.a, low=low, high=high, value=value)


def _described(curve: Curve) -> str:
    """A difference against one tilt, in words."""
    letter, at, middle = TILTS[curve.against].letter, turns(curve), len(curve.at) // 2
    first = signed(curve.value[0] if curve.value else curve.low[0])
    what = "The difference" if curve.value else "Bounds of the difference"
    where = f"{letter} = {critical(curve.against, curve.at[middle])}"
    return (
        f"{what} {curve.a} − {curve.b} in {curve.metric} against {letter}: {first} at the start, "
        f"{span(curve.low[middle], curve.high[middle])} at {where}; {_turn(curve, at, letter)}."
    )


def _turn(curve: Curve, at: float | None, letter: str) -> str:
    if at is None:
        return "it does not reverse"
    turned = (
        f"it {'may be 0 from' if curve.against == 'gamma' else 'reverses at'} {letter}* = {critical(curve.against, at)}"
    )
    low = curve.turns_low
    if low is None or not math.isfinite(low):
        return turned
    return f"{turned}, and its interval covers 0 from {critical(curve.against, low)} on"
