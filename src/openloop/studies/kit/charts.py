"""Charts of studies: lines with bands over a setting, points against each other, and intervals beside names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from openloop.errors import InputError
from openloop.reporting.style import GREY, data, log_axis, rule_at, series, styled
from openloop.studies.kit.colours import COLOUR

if TYPE_CHECKING:
    from openloop.reporting.style import Chart

Records = Sequence[Mapping[str, Any]]

WIDTH, HEIGHT = 300, 240
COLUMNS = 3  # charts beside each other
TITLE = 38  # characters in a line of a title
CHARACTER, SYMBOL = 7, 40  # widths in a legend: of a character, and of what is beside a label
MARGIN = 1.08
EDGE = 12  # pixels between a diamond and the axis
THEIRS = "as published"


def lines(
    rows: Records,
    x: str,
    y: str,
    *,
    series: str,
    facet: str | None = None,
    low: str | None = None,
    high: str | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    published: Records = (),
) -> Chart:
    """y over x, a line with points for each of `series`; from `low` to `high` a band; a chart for each of `facet`.

    `published` are records of the same kind with the paper's numbers, drawn as hollow diamonds of their series'
    colour; one with a `to` is the same from x to there, and dashed.
    """
    _check("lines", rows, [x, y, series, *(name for name in (facet, low, high) if name)])
    _check("lines", published or rows, [x, y, series, *(name for name in (facet,) if name)])

    def one(part: Records, title: str | None) -> Any:
        import altair as alt

        held = [dict(row) for row in part]
        theirs = [dict(row) for row in published if facet is None or row[facet] == part[0][facet]]
        x_axis = _axis("X", x, [row[x] for row in [*part, *theirs]], x_title or x, log=log_x)
        if published and not log_x:
            x_axis = x_axis.scale(zero=False, nice=False, padding=EDGE)
        tall = [row[name] for row in part for name in (y, low, high) if name] + [row[y] for row in theirs]
        told = _series(series, [*rows, *published], _columns(rows, facet))
        base = data(held).encode(x=x_axis, **told)
        y_axis = _axis("Y", y, tall, y_title or y, log=log_y)
        if published and not log_y:
            y_axis = y_axis.scale(zero=False, padding=EDGE)
        drawn = [base.mark_line(strokeWidth=2).encode(y=y_axis), base.mark_point(filled=True, size=45).encode(y=y_axis)]
        if low and high:
            held_low = _axis("Y", low, tall, y_title or y, log=log_y)
            # With a shape, an area would get points along its lower edge.
            band = data(held).mark_area(opacity=0.18).encode(x=x_axis, y=held_low, y2=f"{high}:Q", color=told["color"])
            drawn.insert(0, band)
        if theirs:
            drawn += _published(theirs, x_axis, y_axis, told["color"])
        return alt.layer(*drawn).properties(width=WIDTH, height=HEIGHT, **_named(title))

    return _faceted(rows, facet, one)


def _published(rows: list[dict[str, Any]], x: Any, y: Any, color: Any) -> list[Any]:
    """The paper's numbers: hollow diamonds, with a place in the legend, and dashed lines."""
    import altair as alt

    named = alt.Opacity("by:N", title=None, scale=alt.Scale(domain=[THEIRS], range=[1])).legend(
        symbolType="diamond", symbolFillColor="transparent", symbolStrokeColor=GREY, symbolSize=110
    )
    points, rules = ([{**row, "by": THEIRS} for row in rows if ("to" in row) == flat] for flat in (False, True))
    hollow = data(points).mark_point(filled=False, size=110, strokeWidth=1.8, shape="diamond")
    drawn = [hollow.encode(x=x, y=y, color=color, opacity=named)]
    dashed = data(rules).mark_rule(strokeDash=[5, 4], strokeWidth=1.8)
    return [*drawn, dashed.encode(x=x, x2="to:Q", y=y, color=color)] if rules else drawn


def scatter(
    rows: Records,
    x: str,
    y: str,
    *,
    series: str | None = None,
    facet: str | None = None,
    label: str | None = None,
    titles: tuple[str, str] | None = None,
) -> Chart:
    """Points, coloured by `series`, and the line of least squares.

    `label` names a point, `titles` the axes; a chart for each `facet`.
    """
    _check("scatter", rows, [x, y, *(name for name in (series, facet, label) if name)])

    titles = titles or (x, y)

    def one(part: Records, title: str | None) -> Any:
        import altair as alt

        base = data([dict(row) for row in part])
        at = {
            "x": _axis("X", x, [row[x] for row in part], titles[0], log=False),
            "y": _axis("Y", y, [row[y] for row in part], titles[1], log=False),
        }
        line = base.transform_regression(x, y)
        points = base.mark_point(filled=True, size=45, opacity=0.75).encode(
            **at,
            tooltip=[f"{name}:{kind}" for name, kind in ((label, "N"), (x, "Q"), (y, "Q")) if name],
            **(_series(series, rows, _columns(rows, facet)) if series else {}),
        )
        drawn = line.mark_line(color=GREY, strokeWidth=2).encode(**at)
        return alt.layer(points, drawn).properties(width=WIDTH, height=HEIGHT, **_named(title))

    return _faceted(rows, facet, one)


def intervals(
    rows: Records,
    x: str,
    y: str,
    *,
    series: str,
    facet: str | None = None,
    low: str,
    high: str,
    x_title: str | None = None,
) -> Chart:
    """x with an interval for each name of y, a line for each of `series` under the other; a chart for each `facet`."""
    _check("intervals", rows, [x, y, low, high, series, *(name for name in (facet,) if name)])
    names = list(dict.fromkeys(row[y] for row in rows))
    kinds = list(dict.fromkeys(str(row[series]) for row in rows))

    def one(part: Records, title: str | None) -> Any:
        import altair as alt

        told = _series(series, rows, _columns(rows, facet))
        wide = [row[name] for row in part for name in (x, low, high)]
        x_axis = _axis("X", x, [0.0, *wide], x_title or x, log=False)
        base = data([dict(row) for row in part]).encode(
            y=alt.Y(f"{y}:N", title=None, sort=names),
            yOffset=alt.YOffset(f"{series}:N", sort=kinds),
            color=told["color"],
        )
        spans = base.mark_rule(strokeWidth=2).encode(x=alt.X(f"{low}:Q"), x2=f"{high}:Q")
        points = base.mark_point(filled=True, size=45, opacity=1).encode(x=x_axis, shape=told["shape"])
        return alt.layer(rule_at(0.0), spans, points).properties(width=WIDTH, height=HEIGHT, **_named(title))

    return _faceted(rows, facet, one)


def _faceted(rows: Records, facet: str | None, one: Any) -> Chart:
    import altair as alt

    if facet is None:
        return styled(one(rows, None))
    names = list(dict.fromkeys(row[facet] for row in rows))
    charts = [one([row for row in rows if row[facet] == name], str(name)) for name in names]
    return styled(alt.concat(*charts, columns=COLUMNS, spacing=30))


def _axis(kind: str, field: str, values: Sequence[float], title: str, *, log: bool) -> Any:
    import altair as alt

    make = {"X": alt.X, "Y": alt.Y}[kind]
    known = [value for value in values if value is not None]  # pyright: ignore[reportUnnecessaryComparison]
    if not log:
        alone: dict[str, Any] = {"domain": [known[0] - 0.5, known[0] + 0.5]} if len(set(known)) == 1 else {}
        axis = alt.Axis(labelFlush=False)  # labels at the ends that are moved inwards meet their neighbours
        return make(f"{field}:Q", title=title, scale=alt.Scale(zero=False, **alone), axis=axis)
    if min(known) <= 0:
        raise InputError(f"chart: a log axis needs positive values, {field} has {min(known)}; leave its scale linear.")
    wide = [min(known) / MARGIN, max(known) * MARGIN]  # a point at the edge is drawn whole
    return make(f"{field}:Q", title=title, scale=alt.Scale(type="log", domain=wide, nice=False), axis=log_axis(*wide))


def _series(field: str, rows: Records, charts: int) -> dict[str, Any]:
    """The same colours in every facet, and a legend below them that is no wider than the charts beside each other."""
    names = list(dict.fromkeys(str(row[field]) for row in rows))
    told = series(field, names, COLOUR)
    columns = max(1, charts * WIDTH // (CHARACTER * max(map(len, names)) + SYMBOL))
    legend = {"columns": columns, "labelLimit": 0, "columnPadding": 18}
    return {
        "color": told["color"].legend(symbolOpacity=1, **legend),  # not as pale as the bands
        "shape": told["shape"].legend(**legend),
    }


def _columns(rows: Records, facet: str | None) -> int:
    """How many charts there are beside each other."""
    return min(COLUMNS, len({row[facet] for row in rows})) if facet else 1


def _named(title: str | None) -> dict[str, Any]:
    """The title of a chart, in lines that are no wider than it."""
    return {} if title is None else {"title": wrap(title, TITLE)}


def _check(name: str, rows: Records, fields: Sequence[str]) -> None:
    if not rows:
        raise InputError(f"{name}: no rows to draw; give at least one.")
    for field in fields:
        lacking = sum(field not in row for row in rows)
        if lacking:
            raise InputError(f"{name}: {lacking:,} of {len(rows):,} rows have no {field!r}; give each row one.")
