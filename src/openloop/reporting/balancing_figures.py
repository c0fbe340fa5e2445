"""The figures of balanced weights: means before and after, and how the weights spread.

Altair is imported by the first chart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openloop.propensity.checks.balancing import Balancing
from openloop.reporting.style import BLUE, GREY, GRID, ORANGE, data, log_axis, styled, titled
from openloop.reporting.words import number

if TYPE_CHECKING:
    from openloop.reporting.style import Chart, Rows

WIDTH, HEIGHT = 320, 280
MARKS = {
    "rows as they are": (GREY, "diamond"),
    "weighted by the model": (ORANGE, "square"),
    "balanced": (BLUE, "circle"),
}
SHOWN = 30  # means, the furthest moved first


def balancing_plot(found: Balancing) -> Chart:
    """The means that were balanced, beside those of the population, and the weights before and after.

    Args:
        found: The `balancing` of a check of a `Balanced` model.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=40, items=20).observe(rng=0)
        >>> sample = [1] * 75 + [3] * 50 + [5] * 75
        >>> seen = ol.propensity.Balanced(ol.propensity.Uniform()).fit(log, uniform=sample)
        >>> chart = ol.figures.balancing_plot(ol.propensity.check(seen, log, folds=None).balancing)
    """
    return styled(balancing_charts(found))


def balancing_charts(found: Balancing) -> Any:
    """The two charts, side by side, without a style."""
    import altair as alt

    return alt.hconcat(_means(found), _weights(found), spacing=50).resolve_scale(
        color="independent", shape="independent"
    )


def _means(found: Balancing) -> Any:
    import altair as alt

    furthest = sorted(found.moved, key=lambda m: -abs(m.before - m.target))[:SHOWN]
    moved = [m for m in found.moved if m in furthest]  # in their own order
    rows: Rows = [
        {"of": m.name, "mean": mean, "rows": label}
        for m in moved
        for label, mean in zip(MARKS, (m.rows, m.before, m.after), strict=True)
    ]
    names, colours, shapes = list(MARKS), *(list(part) for part in zip(*MARKS.values(), strict=True))
    axis = alt.Axis(title=None, labelLimit=220, grid=True, gridColor=GRID)
    y = alt.Y("of:N", scale=alt.Scale(domain=[m.name for m in moved]), axis=axis)
    points = data(rows).mark_point(filled=True, size=80, opacity=1)
    ticks = data([{"of": m.name, "target": m.target} for m in moved]).mark_tick(color=GREY, thickness=2, size=18)
    title = titled("What was balanced", "Ticks are the population's means; balanced rows lie on them.")
    return alt.layer(
        ticks.encode(y=y, x=alt.X("target:Q")),
        points.encode(
            y=y,
            x=alt.X("mean:Q", title="share, or mean"),
            color=alt.Color("rows:N", title=None, scale=alt.Scale(domain=names, range=colours)),
            shape=alt.Shape("rows:N", title=None, scale=alt.Scale(domain=names, range=shapes)),
            tooltip=["of:N", "rows:N", alt.Tooltip("mean:Q", format=".4g")],
        ),
    ).properties(width=WIDTH, height=max(HEIGHT, 22 * len(moved)), title=title)


def _weights(found: Balancing) -> Any:
    import altair as alt

    series = {"before": found.before, "after": found.after}
    rows: Rows = [
        {"from": low, "to": high, "share": share, "weights": name}
        for name, shares in series.items()
        for low, high, share in zip(found.edges, found.edges[1:], shares, strict=False)
    ]
    ends = found.edges[0], found.edges[-1]
    title = titled(
        "Weights before and after",
        f"They are worth {number(found.effective_before)} equal rows before, {number(found.effective_after)} after.",
    )
    return (
        data(rows)
        .mark_bar(opacity=0.55, binSpacing=0)
        .encode(
            x=alt.X(
                "from:Q", scale=alt.Scale(type="log", domain=ends, nice=False), axis=log_axis(*ends), title="weight"
            ),
            x2=alt.X2("to:Q"),
            y=alt.Y("share:Q", stack=None, axis=alt.Axis(format="~%"), title="share of rows"),
            y2=alt.Y2Datum(0),
            color=alt.Color("weights:N", title=None, scale=alt.Scale(domain=list(series), range=[ORANGE, BLUE])),
            tooltip=["weights:N", "from:Q", "to:Q", alt.Tooltip("share:Q", format=".2%")],
        )
        .properties(width=WIDTH, height=HEIGHT, title=title)
    )
