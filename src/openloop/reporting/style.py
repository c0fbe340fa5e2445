"""What all charts have in common: colours, shapes, titles, axes and fonts.

Altair is imported by the first call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

    Chart = alt.TopLevelMixin
    Rows = list[dict[str, Any]]

# Okabe & Ito (2008): distinct with any kind of colour vision. Their yellow is left out, as it vanishes on white.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, BLACK, WHITE = "#CC79A7", "#56B4E9", "#000000", "#FFFFFF"
GREY, LINE, GRID, FRAME = "#6B6B6B", "#BBBBBB", "#EEEEEE", "#DDDDDD"

COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")  # no divisor in common with 7

# A page that has a light and a dark look gives each colour a variable of its style sheet.
VARIABLES = {
    BLUE: "--blue", VERMILLION: "--vermillion", GREEN: "--green", ORANGE: "--orange", PURPLE: "--purple",
    SKY: "--sky", BLACK: "--black", WHITE: "--paper", GREY: "--muted", LINE: "--line", GRID: "--grid", FRAME: "--grid",
}  # fmt: skip


def data(rows: Rows) -> Any:
    """A chart of plain records."""
    import altair as alt

    return alt.Chart(alt.Data(values=tuple(rows)))  # Altair copies lists at every step


def series(field: str, names: Sequence[str], known: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Colour and shape of a nominal field: no two of 42 names have both in common.

    Names that are `known` have that colour, and the others the colours that are left.
    """
    import altair as alt

    given = known or {}
    taken = {given[name] for name in names if name in given}
    free = cycle([colour for colour in COLOURS if colour not in taken] or COLOURS)
    colours = [given[name] if name in given else next(free) for name in names]
    shapes = [SHAPES[n % len(SHAPES)] for n in range(len(names))]
    return {
        "color": alt.Color(f"{field}:N", title=None, scale=alt.Scale(domain=list(names), range=colours)),
        "shape": alt.Shape(f"{field}:N", title=None, scale=alt.Scale(domain=list(names), range=shapes)),
    }


def rule_at(value: float, axis: str = "x", *, dashed: bool = False) -> Any:
    """A line across the chart at a value of one axis."""
    import altair as alt

    dash = {"strokeDash": [5, 4]} if dashed else {}
    place = alt.X("at:Q") if axis == "x" else alt.Y("at:Q")  # a bare name takes Altair 100 times as long
    return data([{"at": value}]).mark_rule(color=GREY, **dash).encode(place)


def log_axis(low: float, high: float) -> Any:
    """Ticks at powers of ten, at 2 and 5 times them where those are few, and somewhere where there is none."""
    import altair as alt

    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(powers) > 4 else (1, 2, 5)
    every = -(-len(powers) // 8)
    ticks = [tick for k in powers[::every] for step in steps if low <= (tick := step * 10.0**k) <= high]
    if len(ticks) < 2:
        ticks = [float(f"{low * (high / low) ** part:.2g}") for part in (0.2, 0.5, 0.8)]
    return alt.Axis(values=ticks, format="~g" if low > 1e-4 else "~e")


def titled(text: str, *words: str) -> Any:
    """A title with words under it."""
    import altair as alt

    return alt.TitleParams(text, subtitle=list(words), anchor="start", offset=10)


def styled(chart: Any) -> Chart:
    """The chart, newly made, with the fonts and lines that all have."""
    chart.config = {
        "font": "Helvetica, Arial, sans-serif",
        "padding": {"left": 22, "right": 14, "top": 14, "bottom": 14},
        "view": {"stroke": FRAME},
        "axis": {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": GRID},
        "axisXQuantitative": {"labelFlush": False, "labelSeparation": 4},
        "axisYBand": {"labelPadding": 6},
        "axisYQuantitative": {"titlePadding": 10},
        "title": {"fontSize": 14, "subtitleFontSize": 12, "subtitleColor": GREY, "subtitlePadding": 4},
        "legend": {
            "labelFontSize": 11,
            "titleFontSize": 11,
            "orient": "bottom",
            "labelLimit": 260,
            "columnPadding": 30,  # who reads the file may have a wider font than who drew it
        },
    }
    return chart


# What lies behind a text leaves room for it.
HALO: dict[str, Any] = {"stroke": WHITE, "strokeWidth": 5, "strokeJoin": "round"}


def isolated(name: str) -> str:
    """A name that keeps its direction of writing to itself, for use inside a longer label."""
    return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
