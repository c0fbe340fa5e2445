"""`docs/trust.md`: the parts as Markdown, with the command and the sizes behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import fill

from bench.trust.parts import Part, Sizes, Table
from openloop.support.version import VERSION

WIDTH = 120
MET, MISSED = "met", "**missed**"


def page(parts: Sequence[Part], sizes: Sizes, command: str) -> str:
    """The whole page."""
    return "\n\n".join(_blocks(parts, sizes, command)) + "\n"


def _blocks(parts: Sequence[Part], sizes: Sizes, command: str) -> Iterator[str]:
    yield "# How far the answers can be trusted"
    yield fill(INTRODUCTION, WIDTH)
    behind = ", ".join(f"{name} {value:,}" for name, value in asdict(sizes).items())
    yield f"Written by `{command}` with openloop {VERSION}. Sizes: {behind}."
    goals = [(part.title, goal.text, goal.found, MET if goal.met else MISSED) for part in parts for goal in part.goals]
    if goals:
        yield "## Goals and results"
        yield table(Table(header=("part", "goal", "result", ""), rows=tuple(goals)))
    for part in parts:
        yield f"## {part.title}"
        yield fill(part.words, WIDTH)
        yield from (f"Left out: {why}." for why in part.left_out)
        for one in part.tables:
            yield from filter(None, (f"**{one.caption}**" if one.caption else "", table(one)))


def table(given: Table) -> str:
    """A table as Markdown."""
    lines = [given.header, ("---",) * len(given.header), *given.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


INTRODUCTION = (
    "An audit gives one of three answers: a verdict, a finding under a stated assumption, or that the log cannot tell. "
    "This page measures, on data with known truth, how often a verdict is wrong, how often an interval covers the "
    "truth, and how often there is no verdict. If a goal is missed, the page says so."
)
