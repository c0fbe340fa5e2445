"""The figures of weights and of the data: propensities, concentration, ratings.

Each can be shown by itself in a notebook. Altair is imported by the first chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.metric import reaches
from openloop.core.weights import BINS_PER_OCTAVE, N_BINS, WeightSummary
from openloop.reporting.style import BLUE, GREY, ORANGE, data, log_axis, styled, titled
from openloop.reporting.words import number
from openloop.support.wording import percent

if TYPE_CHECKING:
    from openloop.reporting.style import Chart, Rows

WIDTH, HEIGHT = 560, 240
BARS = 40  # of a histogram, at most


def weights_chart(summary: WeightSummary) -> Chart:
    """The propensities of the rows, by number of rows and by the weight 1/p that these rows have.

    Args:
        summary: The weights of an audit.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> log = world.observe(rng=0)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.audit(models, log, metrics=["mae"], rehearse=0)
        >>> chart = ol.figures.weights_chart(found.weights)
    """
    import altair as alt

    names = ["share of rows", "share of weight"]
    bins = propensity_bins(summary)
    rows: Rows = [row | {"of": name, "share": row[name]} for row in bins for name in names]
    ends = [bins[-1]["from"], bins[0]["to"]]
    colour = alt.Color("of:N", title=None, scale=alt.Scale(domain=names, range=[BLUE, ORANGE]))
    chart = (
        data(rows)
        .mark_bar(opacity=0.55, binSpacing=0)
        .encode(
            x=alt.X("from:Q", scale=alt.Scale(type="log", domain=ends, nice=False), axis=log_axis(*ends),
                    title="chance to be a scored row"),
            x2=alt.X2("to:Q"),
            y=alt.Y("share:Q", stack=None, axis=alt.Axis(format="~%"), title="share of rows, and of Σ 1/p"),
            y2=alt.Y2Datum(0),
            color=colour,
            tooltip=["of:N", alt.Tooltip("from:Q", format=".3g"), alt.Tooltip("to:Q", format=".3g"),
                     alt.Tooltip("share:Q", format=".2%")],
        )
    )  # fmt: skip
    title = titled(
        "Chances of the scored rows",
        f"The smallest is {number(summary.smallest_propensity, 3)}, a weight of {number(summary.largest, 3)}.",
        "Where the log is a part of a split, this is p times the part's share; with exclusions, π.",
    )
    return styled(chart.properties(width=WIDTH, height=HEIGHT, title=title))


def propensity_bins(summary: WeightSummary) -> list[dict[str, float]]:
    """The histogram in few enough bars: limits of p, share of the rows and of Σw; falling p."""
    used = np.flatnonzero(summary.histogram)
    width = max(2, 2 ** math.ceil(math.log2((used[-1] - used[0] + 1) / BARS)))  # divides N_BINS
    bars = slice(int(used[0]) // width, int(used[-1]) // width + 1)
    counts = summary.histogram.reshape(-1, width).sum(axis=1)[bars]
    carried = bin_weights(summary).reshape(-1, width).sum(axis=1)[bars]
    edges = 2.0 ** (-np.arange(bars.start, bars.stop + 1) * width / BINS_PER_OCTAVE)
    return [
        {"from": float(low), "to": float(high), "share of rows": float(n) / summary.n, "share of weight": float(w)}
        for high, low, n, w in zip(edges, edges[1:], counts, carried, strict=False)
    ]


def bin_weights(summary: WeightSummary) -> Floats:
    """Each bin's share of Σw, its rows taken at the middle of the bin."""
    middles = 2.0 ** ((np.arange(N_BINS) + 0.5) / BINS_PER_OCTAVE)
    carried = summary.histogram * middles
    return carried / carried.sum()


def concentration(summary: WeightSummary) -> tuple[Floats, Floats]:
    """The heaviest rows' share of all rows and of Σw, growing from the heaviest bin on."""
    heavy = summary.histogram[::-1]
    kept = heavy > 0
    return np.cumsum(heavy)[kept] / summary.n, np.cumsum(bin_weights(summary)[::-1])[kept]


def carried_by(summary: WeightSummary, share: float) -> float:
    """The share of Σw that the heaviest `share` of the rows carry."""
    rows, weight = concentration(summary)
    return float(np.interp(share, np.append(0.0, rows), np.append(0.0, weight)))


def concentration_chart(summary: WeightSummary) -> Chart:
    """The share of all weight that the heaviest rows have, beside that of equal weights.

    Args:
        summary: The weights of an audit.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> log = world.observe(rng=0)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.audit(models, log, metrics=["mae"], rehearse=0)
        >>> chart = ol.figures.concentration_chart(found.weights)
    """
    import altair as alt

    shares = np.geomspace(max(1e-4, 1 / summary.n), 1.0, 60)
    names = ["these weights", "equal weights"]
    rows: Rows = [
        {"rows": float(x), "weight": y, "of": name}
        for x in shares
        for name, y in zip(names, (carried_by(summary, float(x)), float(x)), strict=True)
    ]
    ends = [float(shares[0]), 1.0]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    ticks = alt.Axis(values=[10.0**k for k in range(-4, 1) if 10.0**k >= ends[0]], format="~%")
    domain = alt.Scale(domain=names, range=[BLUE, GREY])
    chart = (
        data(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("rows:Q", scale=scale, axis=ticks, title="heaviest rows, as a share of all rows"),
            y=alt.Y("weight:Q", axis=alt.Axis(format="~%"), title="share of all weight"),
            color=alt.Color("of:N", title=None, scale=domain),
            strokeDash=alt.StrokeDash("of:N", title=None, scale=alt.Scale(domain=names, range=[[1, 0], [5, 4]])),
            tooltip=["of:N", alt.Tooltip("rows:Q", format=".2%"), alt.Tooltip("weight:Q", format=".1%")],
        )
    )
    title = titled(
        "Concentration of the weights",
        f"The heaviest 1 % of the rows carry {percent(carried_by(summary, 0.01))} of the weight, "
        f"the heaviest 10 % carry {percent(carried_by(summary, 0.1))}.",
    )
    return styled(chart.properties(width=WIDTH, height=HEIGHT, title=title))


def ratings_chart(ratings: Sequence[tuple[float, int]], threshold: float | None = None) -> Chart:
    """How often each rating was given; relevant ratings have another colour.

    Args:
        ratings: Pairs (rating, rows).
        threshold: The rating from which items are relevant; None marks none.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> chart = ol.figures.ratings_chart([(1, 30), (3, 50), (5, 120)], threshold=4)
    """
    import altair as alt

    names = ["below the threshold", "relevant"]
    rows: Rows = [
        {"rating": f"{rating:g}", "rows": n, "kind": names[int(threshold is None or reaches(rating, threshold))]}
        for rating, n in ratings
    ]
    chart = (
        data(rows)
        .mark_bar()
        .encode(
            x=alt.X("rating:N", sort=None, title="rating", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("rows:Q", axis=alt.Axis(format="~s"), title="rows"),
            color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=names, range=[GREY, BLUE])),
            tooltip=["rating:N", alt.Tooltip("rows:Q", format=","), "kind:N"],
        )
    )
    words = [] if threshold is None else [f"Ratings from {threshold:g} on count as relevant."]
    return styled(chart.properties(width=WIDTH, height=180, title=titled("Ratings of the log", *words)))
