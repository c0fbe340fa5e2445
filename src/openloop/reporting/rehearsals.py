"""The section about a rehearsal: what logs drawn like this one would have said."""

from __future__ import annotations

from collections.abc import Iterator

from openloop.audits.rehearsal import ASSUMES, LEVEL, Outcomes, Rehearsal
from openloop.reporting.blocks import Bullets, Cell, Section, TableBlock, Text
from openloop.reporting.sections import Subject
from openloop.support.wording import counted, level_of, percent


def rehearsal(of: Subject) -> Iterator[Section]:
    """How often equal models are declared different, and how often the estimated difference is found."""
    found = None if of.audit is None else of.audit.rehearsal
    if found is None:
        return
    intro = Text(
        text=f"{counted(found.draws, 'log')} like this one were drawn from its propensities, with about "
        f"{found.rows:,.0f} rows that count for {found.metric}. The rules of the verdict judged each of them twice, by "
        f"{found.estimator} of {found.metric}: with {found.a} and {found.b} made equal, where every verdict is false, "
        f"and with the estimated difference of {abs(found.difference):.3g} added, where {found.a} is better."
    )
    blocks = (intro, Text(text=_judged(found)), _table(found), Bullets(title="What it assumes", items=_assumed()))
    yield Section(id="rehearsal", title="Rehearsal of this log", blocks=blocks)


def _judged(found: Rehearsal) -> str:
    low, high = (percent(x) for x in found.false_interval)
    least, most = (percent(x) for x in found.power_interval)
    return (
        f"Equal models are declared different in {percent(found.false_rate)} of the logs ({level_of(LEVEL)} {low} to "
        f"{high}). The better model is found in {percent(found.power)} ({least} to {most}) and the worse one named in "
        f"{percent(found.different.wrong / found.draws)}."
    )


def _assumed() -> tuple[str, ...]:
    return tuple(f"{text[:1].upper()}{text[1:]}." for text in ASSUMES)


def _table(found: Rehearsal) -> TableBlock:
    lines = (("made equal", found.equal), ("with the difference added", found.different))
    return TableBlock(
        caption=f"Answers of {counted(found.draws, 'drawn log')}",
        columns=("models", f"{found.a} wins", f"{found.b} wins", "conditional", "none"),
        rows=tuple((Cell(text=name), *_cells(seen, found.draws)) for name, seen in lines),
    )


def _cells(seen: Outcomes, draws: int) -> Iterator[Cell]:
    for number in (seen.right, seen.wrong, seen.conditional, seen.none):
        yield Cell(text=f"{number:,}", detail=percent(number / draws), value=number)
