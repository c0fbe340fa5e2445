"""The section about positions: examination beside click rates, what each ranker matches, and the checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from openloop.audits.contrasts import estimators_of
from openloop.audits.positions import Positions
from openloop.core.comparison import Comparison
from openloop.reporting.blocks import Bullets, Section, TableBlock, Text, figures
from openloop.reporting.page_tables import name, value
from openloop.reporting.sections import Subject
from openloop.reporting.style import data, series, styled, titled
from openloop.reporting.words import number, span
from openloop.support.wording import counted, level_of, percent

if TYPE_CHECKING:
    from openloop.reporting.style import Chart

WIDTH, HEIGHT = 560, 260
UNSEEN = "The rows stay in their engine, where only sums by position were computed."
EXAMINATION, RATES = "examination θ", "clicks per row, by those at position 1"


def positions(of: Subject) -> Iterator[Section]:
    """What the log says of its positions, where it is one of impressions."""
    found = of.shown
    if found is None:
        return
    curve = _curve(of, found) if found.lines else (Text(text=UNSEEN),)
    yield Section(id="positions", title="Positions", blocks=(*curve, *_matches(of), *_checks(found)))


def _curve(of: Subject, found: Positions) -> Iterator[Any]:
    over = f"{counted(found.requests, 'request')}; intervals are over {found.clusters}"
    yield Text(
        text="An item is clicked if the user looks at its position and the item attracts. θ is how often users look "
        "at a position, relative to the first; raw click rates also depend on which items were shown there. "
        f"{over.capitalize()}."
    )
    told = [
        f"position {line.position}: rate {number(line.rate, 3)}"
        + ("" if line.theta is None else f", θ {number(line.theta, 3)}")
        for line in found.lines[:10]
    ]
    chart = positions_chart(found, of.result.level)
    yield from figures(chart, [f"By position. {'; '.join(told)}."], [_table(found)])


def _table(found: Positions) -> TableBlock:
    rows = tuple(
        (
            value(line.position, f"{line.position}"), value(line.rows, f"{line.rows:,}"),
            value(line.rate, number(line.rate, 3)),
            value(line.theta, number(line.theta, 3), _limits(line.low, line.high)),
        )
        for line in found.lines
    )  # fmt: skip
    return TableBlock(caption="Positions of the log", columns=("position", "rows", "reward per row", "θ"), rows=rows)


def _limits(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else span(low, high)


def positions_chart(found: Positions, level: float = 0.95) -> Chart:
    """θ with its intervals, and reward rates by position relative to the first."""
    import altair as alt

    first = found.lines[0].rate or 1.0
    rows = [
        {"position": line.position, "series": RATES, "value": line.rate / first, "low": None, "high": None}
        for line in found.lines
    ]
    rows += [
        {"position": line.position, "series": EXAMINATION, "value": line.theta, "low": line.low, "high": line.high}
        for line in found.lines
        if line.theta is not None
    ]
    names = [EXAMINATION, RATES] if found.lines[0].theta is not None else [RATES]
    base = data(rows).encode(
        x=alt.X("position:O", title="position", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        color=series("series", names)["color"],
    )
    y = alt.Y("value:Q", title="relative to position 1", scale=alt.Scale(zero=True))
    tooltip = ["series:N", "position:O", *(alt.Tooltip(f"{x}:Q", format=".3g") for x in ("value", "low", "high"))]
    layers = [
        base.mark_line(strokeWidth=1.5).encode(y=y),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            y=y, shape=series("series", names)["shape"], tooltip=tooltip
        ),
    ]
    title = titled("Examination and click rates by position", f"Bars are {level_of(level)} intervals of θ.")
    return styled(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title))


def _matches(of: Subject) -> Iterator[Any]:
    """How much of each ranker's lists the log supports."""
    for metric in of.metrics[:1]:
        yield _support(of.result, metric)


def _support(result: Comparison, metric: str) -> TableBlock:
    rows = tuple(
        (
            name(f"{model}, {estimator}"), value(seen.reach, "–" if seen.reach is None else percent(seen.reach)),
            value(seen.effective_clicks, number(seen.effective_clicks, 3)),
            value(seen.effective_rows, number(seen.effective_rows, 3)),
            value(None, " · ".join(f"{n:,}" for n in seen.matches or ())),
        )
        for model in result.models
        for estimator in estimators_of(result, metric)
        for seen in [result[model, metric, estimator].diagnostics]
    )  # fmt: skip
    return TableBlock(
        caption="What each estimate rests on. Reach is the part of what a model shows that the log supports; effective "
        "rows are those of the position with fewest.",
        columns=("model, estimator", "reach", "effective clicks", "effective rows", "rows with weight, by position"),
        rows=rows,
    )  # fmt: skip


def _checks(found: Positions) -> Iterator[Any]:
    made = tuple(f"{check.words}." for check in found.checks.values())
    missing = tuple(f"{what}: not computed. {why}" for what, why in found.unchecked.items())
    yield Bullets(title="Checks", items=(*made, *missing) or ("None could be made.",))
