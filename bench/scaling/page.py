"""The figure of each case, and their section of docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.harness import ROOT
from bench.pages import placed
from bench.scaling.curves import Curve, ScalingCase, exponent
from openloop.reporting.figures import save
from openloop.reporting.style import BLUE, GREY, VERMILLION, data, log_axis, styled
from openloop.support.atomic import write_text

PAGE = ROOT / "docs" / "performance.md"
FOLDER = "performance"  # of the figures, beside the page
MARKS = ("<!-- scaling: begin -->", "<!-- scaling: end -->")
WIDTH, HEIGHT, COLUMNS = 210, 170, 3
OURS, LINEAR = "openloop", "in proportion"
ROOM = 1.25  # between a point and the edge

Kept = Mapping[str, Any]


def records(case: ScalingCase, kept: Kept) -> list[tuple[Curve, list[dict[str, Any]]]]:
    """Each curve with the points of all sides: times over openloop's at the first, by the clock where threads differ.

    Curves of which a point was left out are not among them.
    """
    found = []
    for curve in case.curves:
        points = {point[curve.axis]: kept.get(json.dumps(point)) for own, point in case.points() if own is curve}
        if None not in points.values():
            found.append((curve, _relative(points, "clock" if curve.axis == "threads" else "cpu")))
    return found


def _relative(points: Mapping[int, Any], clock: str) -> list[dict[str, Any]]:
    unit = next(iter(points.values()))[OURS][clock]
    return [
        {"x": x, "side": side, "time": found[clock] / unit, "bytes": found["bytes"]}
        for x, sides in points.items()
        for side, found in sides.items()
    ]


def told(curve: Curve, rows: Sequence[Mapping[str, Any]]) -> str:
    """The title of a curve: what it is over, and how openloop's time grows."""
    ours = [row for row in rows if row["side"] == OURS]
    name = curve.label or curve.axis
    if len(ours) < 2:
        return name
    if curve.axis == "threads":
        return f"{name}: {ours[0]['time'] / ours[-1]['time']:.2f} times as fast with {ours[-1]['x']}"
    return f"{name}: time ~ n^{exponent([r['x'] for r in ours], [r['time'] for r in ours]):.2f}"


def figure(case: ScalingCase, kept: Kept) -> Any:
    """A chart for each curve, log over log, beside what grows in proportion."""
    import altair as alt

    found = records(case, kept)
    sides = list(dict.fromkeys(row["side"] for _, rows in found for row in rows))
    charts = [_chart(curve, rows, sides) for curve, rows in found]
    columns = 2 if len(charts) == 4 else COLUMNS
    return styled(alt.concat(*charts, columns=columns, spacing=24))


def _chart(curve: Curve, rows: Sequence[Mapping[str, Any]], sides: Sequence[str]) -> Any:
    import altair as alt

    ends = rows[0]["x"], rows[-1]["x"]
    down = curve.axis == "threads"  # in proportion is half the time with twice the threads
    ideal = [{"x": x, "side": LINEAR, "time": ends[0] / x if down else x / ends[0]} for x in ends]
    times = [row["time"] for row in rows]
    # The line of what is in proportion leaves the chart where times do not.
    low, high = min([*times, *(r["time"] for r in ideal if down)]) / ROOM, max(times) * ROOM
    high = max(high, 3 * low)
    names = [*sides, LINEAR]
    colours = [GREY if n == LINEAR else BLUE if n == OURS else VERMILLION for n in names]
    x = alt.X(
        "x:Q", title=curve.label or curve.axis,
        scale=alt.Scale(type="log", domain=[ends[0] / ROOM, ends[1] * ROOM], nice=False),
        axis=alt.Axis(values=list(dict.fromkeys(row["x"] for row in rows)), format="~s", labelOverlap=False),
    )  # fmt: skip
    y = alt.Y(
        "time:Q", title="time (first = 1)", axis=log_axis(low, high),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
    )  # fmt: skip
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=2.5)
    told_by = alt.Color("side:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=legend)
    base = data([dict(row) for row in rows]).encode(x=x, y=y, color=told_by)
    line = data(ideal).mark_line(strokeDash=[5, 4], strokeWidth=1.5, clip=True).encode(x=x, y=y, color=told_by)
    return alt.layer(line, base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=45, opacity=1)).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(told(curve, rows), anchor="start", fontSize=12)
    )


def written(cases: Sequence[ScalingCase], kept: Mapping[str, Kept], path: Path = PAGE) -> None:
    """The figures beside the page, and the page with them between its marks."""
    folder = path.parent / FOLDER
    folder.mkdir(exist_ok=True)
    parts = []
    for case in cases:
        save(figure(case, kept[case.name]), folder / f"scaling-{case.name}.svg")
        parts.append(f"### {case.title}\n\n![{case.name}]({FOLDER}/scaling-{case.name}.svg)\n\n{case.words}")
    write_text(path, placed(path, path.read_text(encoding="utf-8"), "\n\n".join(parts), MARKS))
