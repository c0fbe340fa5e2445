"""The figures of what wrong weights would do: estimates and differences against Γ, ρ and κ.

Each can be shown by itself in a notebook. Altair is imported by the first chart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from openloop.audits.results import Curve
from openloop.core.tilts import Against
from openloop.reporting.style import GREY, data, rule_at, series, styled, titled
from openloop.support.wording import critical as shown

if TYPE_CHECKING:
    from openloop.reporting.style import Chart, Rows

WIDTH, HEIGHT = 560, 240
GAMMAS = (1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltAxis:
    """What a curve is drawn against."""

    letter: str
    axis: str
    title: str
    ticks: tuple[float, ...]
    format: str = "~g"
    log: bool = True


TILTS: Mapping[Against, TiltAxis] = {
    "gamma": TiltAxis(
        letter="Γ", axis="Γ: how far every propensity may be off", title="if propensities are wrong", ticks=GAMMAS
    ),
    "rho": TiltAxis(
        letter="ρ", axis="ρ: how much likelier one star more makes a row, beyond its propensity",
        title="if ratings matter more", ticks=(1, 1.25, 1.5, 2, 2.5, 3),
    ),
    "kappa": TiltAxis(
        letter="κ", axis="κ: the share of popularity that is exposure", title="if popularity is exposure",
        ticks=(0, 0.25, 0.5, 0.75, 1), format="~%", log=False,
    ),
}  # fmt: skip


def sensitivity_chart(curves: Sequence[Curve] | Curve, critical: float | None = None) -> Chart:
    """Estimates, or one difference, as the weights are perturbed: against Γ as bounds, against ρ and κ with intervals.

    Args:
        curves: One curve of an audit, or several against the same letter.
        critical: Where a difference changes its sign; None takes the value of the curve, or reads it off the curve.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> log = world.observe(rng=0)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.audit(models, log, metrics=["mae"], rehearse=0)
        >>> chart = ol.figures.sensitivity_chart([curve for curve in found.curves if curve.b is None])
    """
    import altair as alt

    found = [curves] if isinstance(curves, Curve) else list(curves)
    tilt, difference = TILTS[found[0].against], found[0].b is not None
    names = [curve.a if curve.b is None else f"{curve.a} − {curve.b}" for curve in found]
    rows = _rows(found, names)
    ends = [min(row["at"] for row in rows), max(row["at"] for row in rows)]
    axis = alt.Axis(values=[t for t in tilt.ticks if t <= ends[1]], format=tilt.format, labelOverlap=True)
    scale = alt.Scale(type="log" if tilt.log else "linear", domain=ends, nice=False)
    base = data(rows).encode(
        x=alt.X("at:Q", scale=scale, axis=axis, title=tilt.axis),
        color=series("of", names)["color"].legend(None if len(found) == 1 else alt.Undefined),
    )
    y = alt.Y("low:Q", title=f"{'difference in ' if difference else ''}{found[0].metric}", scale=alt.Scale(zero=False))
    drawn = ("value",) if found[0].value else ("low", "high")
    tooltip = [alt.Tooltip("of:N"), *(alt.Tooltip(f"{name}:Q", format=".4g") for name in rows[0] if name != "of")]
    layers = [
        base.mark_area(opacity=0.18).encode(y=y, y2=alt.Y2("high:Q"), tooltip=tooltip),
        *(base.mark_line(strokeWidth=2).encode(y=alt.Y(f"{name}:Q")) for name in drawn),
    ]
    by = "pooled over rows" if found[0].against == "kappa" else found[0].estimator
    words = f"{found[0].metric}, {by}" + ("; the band is its interval" if found[0].value else "")
    title = titled(f"{names[0]}, {tilt.title}" if difference else f"The models, {tilt.title}", words)
    return styled(alt.layer(*layers, *_zero(found[0], critical)).properties(width=WIDTH, height=HEIGHT, title=title))


def _rows(curves: Sequence[Curve], names: Sequence[str]) -> Rows:
    return [
        {"at": at, "low": curve.low[k], "high": curve.high[k], "of": name}
        | ({"value": curve.value[k]} if curve.value else {})
        for curve, name in zip(curves, names, strict=True)
        for k, at in enumerate(curve.at)
    ]


def _zero(curve: Curve, critical: float | None) -> list[Any]:
    """For a difference, the line at 0 and where the order turns."""
    import altair as alt

    if curve.b is None:
        return []
    at = turns(curve) if critical is None else critical
    if at is None or not curve.at[0] < at <= curve.at[-1]:
        return [rule_at(0, "y")]
    tilt = TILTS[curve.against]
    middle = math.sqrt(curve.at[0] * curve.at[-1]) if tilt.log else (curve.at[0] + curve.at[-1]) / 2
    late = at > middle
    text = data([{"at": at, "text": f"{tilt.letter}* = {shown(curve.against, at)}"}]).mark_text(
        align="right" if late else "left", dx=-5 if late else 5, y=10, fontSize=12, color=GREY
    )
    return [rule_at(0, "y"), rule_at(at, dashed=True), text.encode(x=alt.X("at:Q"), text=alt.Text("text:N"))]


def turns(curve: Curve) -> float | None:
    """Where the order turns, as the curve says, or where it was not given as its band does; None: nowhere."""
    if curve.turns is not None:
        return curve.turns if math.isfinite(curve.turns) else None
    return crossing(curve)


def crossing(curve: Curve) -> float | None:
    """The Γ at which the nearer bound reaches 0, interpolated; None where it stays away, or starts beyond."""
    nearer = np.asarray(curve.low if curve.low[0] > 0 else curve.high)
    side = np.sign(nearer[0])
    beyond = np.flatnonzero(nearer * side <= 0)
    if side == 0 or not len(beyond):
        return None
    k = int(beyond[0])
    logs = np.log(curve.at)
    part = nearer[k - 1] / (nearer[k - 1] - nearer[k])
    return float(np.exp(logs[k - 1] + part * (logs[k] - logs[k - 1])))
