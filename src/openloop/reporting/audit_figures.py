"""The figures of a comparison or an audit, as Altair charts: estimates, differences, ranks and strata.

Each can be shown by itself in a notebook. Altair is imported by the first chart. Names from the data are values and
domains of scales only: Vega-Lite makes expressions of lists to sort by, and of filters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openloop.audits.contrasts import Contrast, by_rank, contrasts, estimators_of
from openloop.audits.rankings import Friedman
from openloop.audits.results import StrataTable
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.reporting.style import (
    BLUE,
    GREY,
    HALO,
    data,
    isolated,
    rule_at,
    series,
    styled,
    titled,
)
from openloop.reporting.words import direction, number, span
from openloop.support.wording import chance, level_of

if TYPE_CHECKING:
    from openloop.reporting.style import Chart, Rows

WIDTH = 560
MODELS, PLACES, PAIRS = 30, 15, 40  # at most in one chart
OPEN_LOOP = "open loop"


def ordered(result: Comparison, metric: str, estimator: str | None = None) -> list[str]:
    """The models from best to worst by one estimator of the metric, its first if none is named."""
    return result.ranking(metric, estimator or estimators_of(result, metric)[0])


def leaderboard_chart(
    result: Comparison, metric: str, estimator: str | None = None, open_loop: Comparison | None = None
) -> Chart:
    """The estimates of every model with their intervals, one mark per estimator; best model first.

    Args:
        result: A comparison.
        metric: The metric to show.
        estimator: The estimator that ranks the models; None takes the first one.
        open_loop: A comparison on a uniform sample, whose naive values are shown too.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.evaluate(models, world.observe(rng=0), metrics=["mae"], estimators=["naive", "snips"])
        >>> chart = ol.figures.leaderboard_chart(found, "mae", "snips")
    """
    models = ordered(result, metric, estimator)[:MODELS]
    names = estimators_of(result, metric)
    rows = [_mark(model, name, result[model, metric, name], result.level) for model in models for name in names]
    if open_loop is not None:
        found = [(model, open_loop.estimates.get((model, metric, "naive"))) for model in models]
        rows += [_mark(model, OPEN_LOOP, e, result.level) for model, e in found if e is not None]
        names = [*names, OPEN_LOOP]
    title = titled(
        f"Estimates of {metric}",
        f"{direction(result, metric).capitalize()} is better. Bars are {level_of(result.level)} intervals over users.",
        *_cut(result.models, models),
    )
    return styled(_marks(rows, models, names, metric).properties(title=title))


def _mark(y: str, name: str, e: Estimate, level: float) -> dict[str, Any]:
    low, high = e.limits(level)
    around = (None, None) if math.isnan(low) else (low, high)
    return {"y": y, "series": name, "value": e.value, "low": around[0], "high": around[1],
            "interval": span(low, high), "rows": e.diagnostics.n}  # fmt: skip


def _marks(rows: Rows, order: Sequence[str], names: Sequence[str], title: str) -> Any:
    """Points with bars, one band a y, one line a series."""
    import altair as alt

    base = data(rows).encode(
        y=alt.Y("y:N", scale=alt.Scale(domain=list(order)), title=None, axis=alt.Axis(labelLimit=190, ticks=False)),
        yOffset=alt.YOffset("series:N", scale=alt.Scale(domain=list(names))),
        color=series("series", names)["color"],
    )
    bars = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
        shape=series("series", names)["shape"],
        tooltip=[
            alt.Tooltip("y:N", title="of"), alt.Tooltip("series:N", title="by"),
            alt.Tooltip("value:Q", format=".4g"), alt.Tooltip("interval:N"), alt.Tooltip("rows:Q", format=","),
        ],
    )  # fmt: skip
    height = len(order) * (13 * len(names) + 12)
    return alt.layer(bars, points).properties(width=WIDTH, height=height)


def _cut(names: Sequence[str], shown: Sequence[str]) -> list[str]:
    left = len(names) - len(shown)
    return [f"{left} lower-ranked models are left out."] if left else []


def forest_plot(result: Comparison, metric: str, estimator: str, found: Sequence[Contrast] | None = None) -> Chart:
    """Paired differences of all pairs of models, with unadjusted intervals and Holm's p-values (Holm 1979).

    Of each pair the model that ranks better is first.

    Args:
        result: A comparison.
        metric: The metric to show.
        estimator: The estimator to show.
        found: The contrasts to show; None computes those of all pairs.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.evaluate(models, world.observe(rng=0), metrics=["mae"], estimators=["naive", "snips"])
        >>> chart = ol.figures.forest_plot(found, "mae", "snips")
    """
    found = contrasts(result, metric, estimator) if found is None else found
    shown, left = facing(result, metric, estimator, found)
    better = direction(result, metric)
    side = "left" if better == "lower" else "right"
    title = titled(
        f"Paired differences in {metric}, {estimator}",
        f"First model − second; {better} is better, so {side} of 0 the first is better.",
        f"Bars are unadjusted {level_of(result.level)} intervals over users; p-values are Holm's over all pairs.",
        *([f"{left} pairs without the best ranked model are left out."] if left else []),
    )
    chart = _labelled(
        [
            {
                "label": f"{isolated(c.a)} − {isolated(c.b)}", "beside": f"Holm p {chance(c.holm)}",
                "value": c.value, "low": None if math.isnan(c.low) else c.low,
                "high": None if math.isnan(c.high) else c.high, "interval": span(c.low, c.high),
                "clear": "significant" if c.better else "not significant",
            }
            for c in shown
        ],
        f"difference in {metric}",
        ("significant", "not significant"),
        rule_at(0),
    )  # fmt: skip
    return styled(chart.properties(title=title))


def facing(result: Comparison, metric: str, estimator: str, found: Sequence[Contrast]) -> tuple[list[Contrast], int]:
    """Each contrast with the better ranked model first, in the order of ranks; with too many, the best model's only."""
    ranking = result.ranking(metric, estimator)
    turned = by_rank(found, ranking)
    shown = turned if len(turned) <= PAIRS else [c for c in turned if c.a == ranking[0]][:PAIRS]
    return shown, len(turned) - len(shown)


def _labelled(rows: Rows, title: str, kinds: tuple[str, str], *behind: Any) -> Any:
    """Points with bars, each under its own label, so that long names and narrow screens go together."""
    import altair as alt

    base = data([row | {"row": n} for n, row in enumerate(rows)]).encode(y=alt.Y("row:O", axis=None))
    style: dict[str, Any] = {"baseline": "bottom", "dy": -8}
    left = style | {"align": "left", "fontSize": 12, "limit": alt.ExprRef("width - 115")}
    right = style | {"align": "right", "fontSize": 11, "color": GREY}
    colour = alt.Color("clear:N", title=None, scale=alt.Scale(domain=list(kinds), range=[BLUE, GREY]))
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colour)
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
        color=colour,
        shape=alt.Shape("clear:N", title=None, scale=alt.Scale(domain=list(kinds), range=["circle", "diamond"])),
        tooltip=[
            alt.Tooltip("label:N", title="of"), alt.Tooltip("value:Q", format=".4g"), alt.Tooltip("interval:N"),
            alt.Tooltip("beside:N", title="test"), alt.Tooltip("clear:N", title="outcome"),
        ],
    )  # fmt: skip
    texts = [
        base.mark_text(**style, **around).encode(x=x, text=alt.Text(f"{field}:N"))
        for field, x, style in (("label", alt.XValue(2), left), ("beside", alt.XValue("width"), right))
        for around in (HALO, {})
    ]
    layers = (*behind, bars, points, *texts)
    return alt.layer(*layers).properties(width=WIDTH, height=44 * max(1, len(rows)) + 8)


def bump_chart(result: Comparison, metric: str, open_loop: Comparison | None = None) -> Chart:
    """The rank of each model under each estimator, and in the open loop if there is one; crossing lines are reversals.

    Args:
        result: A comparison.
        metric: The metric to show.
        open_loop: A comparison on a uniform sample, whose ranking is shown too.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.evaluate(models, world.observe(rng=0), metrics=["mae"], estimators=["naive", "snips"])
        >>> chart = ol.figures.bump_chart(found, "mae")
    """
    import altair as alt

    places = ranks(result, metric, open_loop)
    columns = list(places)
    models = next(iter(places.values()))[:PLACES]
    rows: Rows = [
        {"estimator": column, "model": model, "rank": order.index(model) + 1}
        for column, order in places.items()
        for model in models
    ]
    lowest = max(row["rank"] for row in rows)
    base = data(rows).encode(
        x=alt.X(
            "estimator:N", title=None, scale=alt.Scale(domain=columns, padding=0.25), axis=alt.Axis(labelAngle=0)
        ),
        y=alt.Y(
            "rank:Q", title="place", scale=alt.Scale(reverse=True, domain=[0.4, lowest + 0.3], nice=False),
            axis=alt.Axis(values=list(range(1, lowest + 1)), format="d", grid=False),
        ),
        color=series("model", result.models)["color"].legend(None),
    )  # fmt: skip
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        shape=series("model", result.models)["shape"].legend(None),
        tooltip=[alt.Tooltip(name) for name in ("model:N", "estimator:N", "rank:Q")],
    )
    names = [
        base.transform_filter(alt.FieldEqualPredicate(field="estimator", equal=column))
        .mark_text(align=side, dy=-13, dx=shift, fontSize=12, limit=alt.ExprRef("0.4 * width"), **around)
        .encode(text=alt.Text("model:N"), color=alt.ColorValue(GREY))
        for column, side, shift in ((columns[0], "left", -6), (columns[-1], "right", 6))
        for around in (HALO, {})
    ]
    title = titled(f"Places by {metric}", "1 is best. Crossing lines are pairs that change order.",
                   *_cut(result.models, models))  # fmt: skip
    chart = alt.layer(base.mark_line(strokeWidth=2), points, *names)
    return styled(chart.properties(width=WIDTH, height=min(44, 1200 / lowest) * lowest + 20, title=title))


def ranks(result: Comparison, metric: str, open_loop: Comparison | None = None) -> dict[str, list[str]]:
    """The models from best to worst, by estimator."""
    found = {e: result.ranking(metric, e) for e in estimators_of(result, metric)}
    if open_loop is not None and metric in open_loop.metrics:
        found[OPEN_LOOP] = open_loop.ranking(metric, "naive")
    return found


def strata_chart(table: StrataTable, level: float = 0.95) -> Chart:
    """The estimate of every model in each line of a table by strata, with its interval; weighted inside the strata.

    Args:
        table: A table of an audit's `strata`.
        level: The confidence level of the intervals.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers(users=40, items=20)
        >>> log = world.observe(rng=0)
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> found = ol.audit(models, log, metrics=["mae"], rehearse=0)
        >>> chart = ol.figures.strata_chart(found.strata[0])
    """
    lines = [line for line in table.lines if line.estimates]
    models = list(dict.fromkeys(model for line in lines for model in line.estimates))[:MODELS]
    rows = [
        _mark(line.name, model, line.estimates[model], level)
        for line in lines
        for model in models
        if model in line.estimates
    ]
    title = titled(f"{table.metric} by {table.by}", f"Bars are {level_of(level)} intervals over users.")
    return styled(_marks(rows, [line.name for line in lines], models, table.metric).properties(title=title))


def critical_difference_chart(found: Friedman) -> Chart:
    """Mean ranks within users, each with half of Nemenyi's critical difference on either side (Demšar 2006).

    Args:
        found: Friedman's test, by `ol.rankings.friedman` or an audit's `friedman`.

    Returns:
        An Altair chart.

    Examples:
        >>> import openloop as ol
        >>> values = [[0.9, 0.5, 0.1], [0.8, 0.6, 0.2], [0.7, 0.9, 0.3], [0.9, 0.4, 0.2]]  # (users, models)
        >>> chart = ol.figures.critical_difference_chart(ol.rankings.friedman(values, ["a", "b", "c"]))
    """
    half = found.critical_difference / 2
    best, kinds = min(found.ranks.values()), ("not significantly below the best", "significantly below the best")
    rows: Rows = [
        {
            "label": isolated(model), "beside": f"mean rank {number(rank, 3)}", "value": rank, "low": rank - half,
            "high": rank + half, "interval": span(rank - half, rank + half),
            "clear": kinds[rank - best >= found.critical_difference],
        }
        for model, rank in sorted(found.ranks.items(), key=lambda pair: pair[1])[:MODELS]
    ]  # fmt: skip
    title = titled(
        "Mean ranks within users",
        f"1 is best. Models whose bars do not overlap differ (Nemenyi, {level_of(found.level)}).",
    )
    return styled(_labelled(rows, "mean rank", kinds).properties(title=title))
