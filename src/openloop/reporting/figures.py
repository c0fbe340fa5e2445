"""The figures of a propensity `Check`, as Altair charts, and files of charts; all figures are named here.

Altair is imported by the first chart. A chart of what a check could not compute says why instead.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openloop.errors import InputError, did_you_mean
from openloop.propensity.checks.balance import Difference, Margin
from openloop.propensity.checks.checking import UNBALANCED, Check
from openloop.propensity.checks.held_out import Bin
from openloop.reporting.audit_figures import (
    bump_chart,
    critical_difference_chart,
    forest_plot,
    leaderboard_chart,
    strata_chart,
)
from openloop.reporting.balancing_figures import balancing_charts, balancing_plot
from openloop.reporting.rendering import chart_page
from openloop.reporting.sensitivity_figures import sensitivity_chart
from openloop.reporting.style import BLUE, GREY, GRID, LINE, ORANGE, log_axis, styled, titled
from openloop.reporting.weight_figures import concentration_chart, ratings_chart, weights_chart
from openloop.support.atomic import replacing

if TYPE_CHECKING:
    from openloop.reporting.style import Chart, Rows

__all__ = [
    "leaderboard_chart", "forest_plot", "bump_chart", "strata_chart", "critical_difference_chart",
    "weights_chart", "concentration_chart", "sensitivity_chart", "ratings_chart",
    "calibration_curve", "love_plot", "overlap_plot", "margins_plot", "balancing_plot", "check_figures", "save",
]  # fmt: skip

FORMATS = ("html", "svg", "png", "pdf", "json")
WIDTH, HEIGHT = 320, 280
COVARIATES = 30  # in a love plot, the furthest first

MARKS = {"observed, with 95% interval": (BLUE, "circle"), "none observed": (ORANGE, "triangle-down")}


def calibration_curve(check: Check) -> Chart:
    """Observed against predicted π of held-out cells, in bins, beside the diagonal where they are equal.

    Args:
        check: What `ol.propensity.check` found.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=40, items=20).observe(rng=0)
        >>> check = ol.propensity.check(ol.propensity.Popularity(gamma=1).fit(log), log, folds=2)
        >>> chart = ol.figures.calibration_curve(check)
    """
    return styled(_calibration(check))


def love_plot(check: Check) -> Chart:
    """The standardised difference of each covariate between rows and grid, without and with weights.

    Args:
        check: What `ol.propensity.check` found.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=40, items=20).observe(rng=0)
        >>> check = ol.propensity.check(ol.propensity.Popularity(gamma=1).fit(log), log, folds=2)
        >>> chart = ol.figures.love_plot(check)
    """
    return styled(_love(check))


def overlap_plot(check: Check) -> Chart:
    """The p of rows and of all cells, as histograms over log p.

    Args:
        check: What `ol.propensity.check` found.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=40, items=20).observe(rng=0)
        >>> check = ol.propensity.check(ol.propensity.Popularity(gamma=1).fit(log), log, folds=2)
        >>> chart = ol.figures.overlap_plot(check)
    """
    return styled(_overlap(check))


def margins_plot(check: Check) -> Chart:
    """Σp against the number of rows, of each user and of each item.

    Args:
        check: What `ol.propensity.check` found.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=40, items=20).observe(rng=0)
        >>> check = ol.propensity.check(ol.propensity.Popularity(gamma=1).fit(log), log, folds=2)
        >>> chart = ol.figures.margins_plot(check)
    """
    return styled(_margins(check))


def check_figures(check: Check) -> Chart:
    """All figures of a check in one chart; for balanced weights also what balancing did.

    Args:
        check: What `ol.propensity.check` found.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=40, items=20).observe(rng=0)
        >>> check = ol.propensity.check(ol.propensity.Popularity(gamma=1).fit(log), log, folds=2)
        >>> chart = ol.figures.check_figures(check)
    """
    import altair as alt

    return styled(
        alt.vconcat(
            _beside(_calibration(check), _overlap(check)),
            _beside(_love(check), _margins(check)),
            *([] if check.balancing is None else [balancing_charts(check.balancing)]),
            spacing=40,
            title=alt.TitleParams(
                f"{check.model} on {check.rows:,} rows of {check.users:,} users × {check.items:,} items",
                fontSize=17, anchor="start", offset=18,
            ),
        )
    )  # fmt: skip


def save(chart: Chart, path: str | os.PathLike[str]) -> None:
    """Write a chart to a file; a write that fails leaves no partial file.

    Args:
        chart: A chart of `ol.figures`, or any Altair chart.
        path: The file; its extension gives the format: .html (which needs no network), .svg, .png, .pdf or .json.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import openloop as ol
        >>> chart = ol.figures.ratings_chart([(1, 30), (3, 50), (5, 120)], threshold=4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ol.figures.save(chart, Path(folder, "ratings.json"))
        ...     text = Path(folder, "ratings.json").read_text(encoding="utf-8")
        >>> text[:1]
        '{'
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        known = [f".{name}" for name in FORMATS]
        raise InputError(f"save: {str(path)!r} has no known extension.{did_you_mean(f'.{kind}', known)}")
    with replacing(path) as temporary:
        if kind == "html":
            temporary.write_text(chart_page(chart), encoding="utf-8")
        else:
            options: dict[str, Any] = {"scale_factor": 2} if kind == "png" else {}
            chart.save(str(temporary), format=kind, **options)  # pyright: ignore[reportArgumentType]


def _calibration(check: Check) -> Any:
    import altair as alt

    found = check.calibration
    if found is None:
        return _absent("Calibration", check.not_computed["calibration"])
    rows: Rows = [_bar(b) for b in found.curve]
    ends = _ends([v for row in rows for v in (row["predicted"], row["observed"], row["low"], row["high"]) if v > 0])
    # A log scale has no 0: what is 0 is drawn at the foot, with another mark.
    rows = [row | {name: max(row[name], ends[0]) for name in ("observed", "low")} for row in rows]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = log_axis(*ends)
    x = alt.X("predicted:Q", scale=scale, axis=axis, title="predicted chance to be in the held-out fold")
    base = alt.Chart(alt.Data(values=rows)).encode(x=x)
    names = [name for name in MARKS if any(row["mark"] == name for row in rows)]
    colors, shapes = zip(*(MARKS[name] for name in names), strict=True)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=alt.Y("observed:Q", scale=scale, axis=axis, title="share observed"),
        color=alt.Color("mark:N", title=None, scale=alt.Scale(domain=names, range=colors)),
        shape=alt.Shape("mark:N", title=None, scale=alt.Scale(domain=names, range=shapes)),
        tooltip=[alt.Tooltip("predicted:Q"), alt.Tooltip("share:Q", title="observed"), alt.Tooltip("cells:Q")],
    )
    bars = base.mark_rule(color=GREY, strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    title = titled(
        "Calibration on held-out cells",
        "Correct p lie on the dashed line.",
        f"Expected calibration error {found.error:.2g};",
        f"chance alone gives about {found.chance:.2g}.",
    )
    return alt.layer(_diagonal(ends), bars, points).properties(width=WIDTH, height=HEIGHT, title=title)


def _bar(b: Bin) -> dict[str, Any]:
    """A bin with its 95 % interval: ± 1.96 standard errors, or up to 3 in n where nothing was observed."""
    some = b.observed > 0
    low, high = (b.observed - 1.96 * b.stderr, b.observed + 1.96 * b.stderr) if some else (0.0, 3 / b.weight)
    return {
        "predicted": b.predicted, "observed": b.observed, "share": b.observed, "cells": b.n, "low": low,
        "high": high, "mark": next(name for name, (_, shape) in MARKS.items() if (shape == "circle") == some),
    }  # fmt: skip


def _love(check: Check) -> Any:
    import altair as alt

    shown, left = _covariates(check)
    if not shown:
        return _absent("Balance of covariates", "every covariate is the same for all.")
    labels = ["rows as they are", "rows weighted by 1/p"]
    rows: Rows = [
        {"covariate": d.name, "difference": value, "rows": label, "size": size}
        for d in shown
        for label, value, size in zip(labels, (d.before, d.after), (190, 70), strict=True)
    ]
    spans: Rows = [{"covariate": d.name, "from": d.before, "to": d.after} for d in shown]
    axis = alt.Axis(title=None, labelLimit=220, grid=True, gridColor=GRID)
    y = alt.Y("covariate:N", scale=alt.Scale(domain=[d.name for d in shown]), axis=axis)
    lines = alt.Chart(alt.Data(values=spans)).mark_rule(color=LINE, strokeWidth=2)
    points = alt.Chart(alt.Data(values=rows)).mark_point(filled=True, opacity=1)
    reach = [*(value for d in shown for value in (d.before, d.after) if value is not None), -UNBALANCED, UNBALANCED]
    pad = 0.05 * (max(reach) - min(reach))
    scale = alt.Scale(domain=[min(reach) - pad, max(reach) + pad], nice=False)
    limits = alt.Chart(alt.Data(values=[{"at": -UNBALANCED}, {"at": UNBALANCED}]))
    title = titled(
        "Balance of covariates",
        f"Weighted rows should lie between the dashed lines at ±{UNBALANCED}.",
        *([f"{left} covariates with smaller differences are left out."] if left else []),
    )
    return alt.layer(
        alt.Chart(alt.Data(values=[{"at": 0}])).mark_rule(color=GREY).encode(x="at:Q"),
        limits.mark_rule(color=GREY, strokeDash=[5, 4]).encode(x="at:Q"),
        lines.encode(y=y, x=alt.X("from:Q"), x2=alt.X2("to:Q")),
        points.encode(
            y=y,
            x=alt.X("difference:Q", scale=scale, title="rows − grid, in standard deviations of the grid"),
            color=alt.Color("rows:N", title=None, scale=alt.Scale(domain=labels, range=[ORANGE, BLUE])),
            shape=alt.Shape("rows:N", title=None, scale=alt.Scale(domain=labels, range=["diamond", "circle"])),
            size=alt.Size("size:Q", scale=None, legend=None),
            tooltip=["covariate:N", "rows:N", alt.Tooltip("difference:Q", format="+.3f")],
        ),
    ).properties(width=WIDTH, height=max(HEIGHT, 22 * len(shown)), title=title)


def _covariates(check: Check) -> tuple[list[Difference], int]:
    """Those that differ between ids, the furthest first, and how many more there are."""
    moving = [d for d in check.balance if d.before is not None and d.after is not None]
    order = sorted(moving, key=lambda d: -max(abs(d.before or 0.0), abs(d.after or 0.0)))
    return order[:COVARIATES], len(order[COVARIATES:])


def _overlap(check: Check) -> Any:
    import altair as alt

    found = check.overlap
    series = {"all cells": found.grid, "rows": found.observed}
    rows: Rows = [
        {"from": low, "to": high, "share": share, "of": name}
        for name, shares in series.items()
        if shares is not None
        for low, high, share in zip(found.edges, found.edges[1:], shares, strict=False)
    ]
    ends = found.edges[0], found.edges[-1]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = log_axis(*ends)
    words = (
        [f"Only rows have a known p; the smallest is {found.smallest:.2g}."]
        if found.coefficient is None
        else [
            f"Weighted rows represent all cells. The two overlap by {found.coefficient:.0%},",
            f"and {found.below or 0.0:.1%} of the cells have a p below {found.smallest:.2g},",
            "the smallest of a row.",
        ]
    )
    names = [name for name, shares in series.items() if shares is not None]
    share = "share of rows, and of cells" if found.grid is not None else "share of rows"
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(opacity=0.55, binSpacing=0)
        .encode(
            x=alt.X("from:Q", scale=scale, axis=axis, title="propensity p"),
            x2=alt.X2("to:Q"),
            y=alt.Y("share:Q", stack=None, axis=alt.Axis(format="~%"), title=share),
            y2=alt.Y2Datum(0),
            color=alt.Color(
                "of:N", title=None, scale=alt.Scale(domain=names, range=[ORANGE, BLUE][-len(names) :])
            ),
            tooltip=["of:N", "from:Q", "to:Q", alt.Tooltip("share:Q", format=".2%")],
        )
        .properties(width=WIDTH, height=HEIGHT, title=titled("Overlap", *words))
    )  # fmt: skip


def _margins(check: Check) -> Any:
    import altair as alt

    if not check.margins:
        return _absent("Sums of p against counts", check.not_computed["margins"])
    return alt.hconcat(*(_margin(m) for m in check.margins), spacing=30)


def _margin(m: Margin) -> Any:
    import altair as alt

    rows: Rows = [{"id": str(p.id), "expected": p.expected, "count": p.count} for p in m.points]
    most = max(max(p.expected, p.count) for p in m.points) * 1.1
    # Near 0 a line and beyond 1 a logarithm: ids without rows have a place.
    scale = alt.Scale(type="symlog", constant=1, domain=[0, most], nice=False)
    steps = (1, 2, 5) if most < 20 else (1, 3) if most < 5000 else (1,)
    values = [0, *(step * 10**k for k in range(9) for step in steps if step * 10**k <= most)]
    axis = alt.Axis(values=values, labelExpr="format(datum.value, '~s')")  # each by itself: 30, 1k
    points = alt.Chart(alt.Data(values=rows)).mark_point(filled=True, size=28, opacity=0.5, color=BLUE)
    encoded = points.encode(
        x=alt.X("expected:Q", scale=scale, axis=axis, title=f"Σp of the {m.side}"),
        y=alt.Y("count:Q", scale=scale, axis=axis, title=f"rows of the {m.side}"),
        tooltip=["id:N", alt.Tooltip("expected:Q", format=".3g"), alt.Tooltip("count:Q", format=".3g")],
    )
    title = titled(
        f"Counts of {m.side}s",
        "Correct p scatter around the dashed line.",
        f"Off by {m.off:.0%}; chance alone gives about {m.chance:.0%}.",
    )
    return alt.layer(_diagonal([0, most]), encoded).properties(width=WIDTH * 0.72, height=HEIGHT, title=title)


def _beside(*charts: Any) -> Any:
    import altair as alt

    return alt.hconcat(*charts, spacing=50).resolve_scale(color="independent", shape="independent")


def _diagonal(ends: Sequence[float]) -> Any:
    import altair as alt

    line = alt.Chart(alt.Data(values=[{"at": end} for end in ends]))
    return line.mark_line(color=GREY, strokeDash=[5, 4], strokeWidth=1.5).encode(x=alt.X("at:Q"), y=alt.Y("at:Q"))


def _ends(values: Sequence[float]) -> list[float]:
    return [min(values) / 1.3, max(values) * 1.3]


def _absent(title: str, reason: str) -> Any:
    import altair as alt

    lines = [{"text": line, "row": n} for n, line in enumerate(textwrap.wrap(f"Not computed: {reason}", 52))]
    text = alt.Chart(alt.Data(values=lines)).mark_text(align="left", fontSize=12, color=GREY)
    placed = text.encode(text="text:N", x=alt.value(8), y=alt.Y("row:O", axis=None))
    return placed.properties(width=WIDTH, height=20 * len(lines), title=titled(title))
