"""The page of the changes between two audits: verdicts, settings, orders, estimates and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from openloop.audits.change_lists import Changes, Differing, OrderChange, ValueChange, named
from openloop.reporting.blocks import (
    Block,
    Bullets,
    Cell,
    Fold,
    Heading,
    Section,
    TableBlock,
    Terms,
    Text,
    VerdictBlock,
)
from openloop.reporting.page_tables import name, value
from openloop.reporting.rendering import page_of
from openloop.reporting.words import decimals_of, fixed, number, rounded, signed, span
from openloop.support.wording import counted, level_of

COLUMNS = ("what", "old", "new")
TESTED = (
    "Models are tested inside each audit, over its users. A difference that is significant in only one audit "
    "need not have changed: the other log may have fewer data."
)


def change_page(found: Changes, title: str | None = None) -> str:
    """The page as text."""
    models = counted(len(found.shared), "model")
    top = VerdictBlock(state="changes", headline=f"{found.headline}.", sentences=found.sentences)
    parts = (_verdicts(found), _orders(found), _estimates(found), _support(found))
    names = (*found.shared, *found.added, *found.gone)
    return page_of(title or f"Two audits of {models}", (top,), sections=parts, names=names)


def _verdicts(found: Changes) -> Section:
    v = found.verdicts
    told = (("old", named(v.old_level, v.old_winner), v.old), ("new", named(v.new_level, v.new_winner), v.new))
    blocks: list[Block] = [Terms(items=told), Heading(text="Settings")]
    if found.settings:
        rows = tuple((Cell(text=d.name), *(name(in_full(x)) for x in (d.old, d.new))) for d in found.settings)
        blocks.append(TableBlock(caption="Settings that differ", columns=COLUMNS, rows=rows))
    else:
        blocks.append(Text(text="All settings in the two files are the same."))
    return Section(id="verdicts", title="Verdicts and settings", blocks=tuple(blocks))


def differing(caption: str, found: tuple[Differing, ...]) -> TableBlock:
    """What is named on the left, in the older and in the newer audit."""
    rows = tuple((Cell(text=d.name), _plain(d.old), _plain(d.new)) for d in found)
    return TableBlock(caption=caption, columns=COLUMNS, rows=rows)


def _plain(held: str | float | None) -> Cell:
    return name(held) if isinstance(held, str) else value(held, in_full(held))


def in_full(held: str | float | None) -> str:
    """Text, a number in full, or a dash."""
    return held if isinstance(held, str) else f"{held:,}" if isinstance(held, int) else number(held)


def _orders(found: Changes) -> Section:
    blocks: list[Block] = [Text(text=TESTED)]
    if not found.orders:
        blocks.append(Text(text="Fewer than two models are in both audits, so there is no order to compare."))
    blocks += [block for order in found.orders if order.changed for block in _order(order)]
    same = tuple(f"{o.estimator} of {o.metric}: {', '.join(o.new)}" for o in found.orders if not o.changed)
    if same:
        blocks.append(Bullets(title="The same in both, from best to worst", items=same))
    return Section(id="orders", title="Order of the models", blocks=tuple(blocks))


def _order(order: OrderChange) -> Iterator[Block]:
    yield Heading(text=f"{order.estimator} of {order.metric}")
    rows = tuple((name(m), value(before, f"{before}"), value(after, f"{after}")) for m, before, after in order.places)
    caption = f"Places by {order.estimator} of {order.metric} among the models of both audits, 1 is best"
    yield TableBlock(caption=caption, columns=("model", "old", "new"), rows=rows)
    if order.pairs:
        told = tuple(
            f"{pair}: {pair.a} − {pair.b} was {signed(pair.old)} ({span(pair.old_low, pair.old_high)}) and is "
            f"{signed(pair.new)} ({span(pair.new_low, pair.new_high)})."
            for pair in order.pairs
        )
        yield Bullets(title="Pairs with another answer", items=told)


def _estimates(found: Changes) -> Section:
    blocks: list[Block] = [Text(text=found.about_intervals)]
    by_metric = groupby(found.values, key=lambda v: v.metric)
    tables = [(metric, _values(found, tuple(values))) for metric, values in by_metric]
    blocks += [table for _, table in tables[:1]]
    blocks += [Fold(summary=metric, blocks=(table,)) for metric, table in tables[1:]]
    return Section(id="estimates", title="Estimates", blocks=tuple(blocks))


def _values(found: Changes, values: tuple[ValueChange, ...]) -> TableBlock:
    rows = tuple(
        (
            name(v.model), Cell(text=v.estimator), value(v.old, *rounded(v.old, v.old_low, v.old_high)),
            value(v.new, *rounded(v.new, v.new_low, v.new_high)), value(v.difference, *difference(v)),
        )
        for v in values
    )  # fmt: skip
    other = tuple(
        f"{v.model}, {v.estimator}: {v.old_estimand} in the old audit, {v.new_estimand} in the new one."
        for v in values
        if not v.comparable
    )
    return TableBlock(
        caption=f"{values[0].metric} in both audits; in small print, intervals over users, and of differences "
        f"{'none, as the log is the same' if found.one_log else f'{level_of(found.level)} if no user is in both logs'}",
        columns=("model", "estimator", "old", "new", "new − old"),
        rows=rows,
        notes=other,
    )


def difference(v: ValueChange) -> tuple[str, str]:
    """new − old, and its interval where there is one."""
    if not v.comparable:
        return "not the same estimand", ""
    if v.low is None or v.high is None:  # as many decimals as the two values have
        known = [d for d in (decimals_of(v.old_low, v.old_high), decimals_of(v.new_low, v.new_high)) if d is not None]
        text = fixed(v.difference, min(known)) if known else number(v.difference)
        return f"+{text}" if v.difference > 0 else text, ""
    return rounded(v.difference, v.low, v.high, sign=True)


def _support(found: Changes) -> Section:
    if not found.support:
        return Section(id="support", title="What they rest on", blocks=(Text(text="Neither audit has weights."),))
    table = differing("Weights, overlap and users", found.support)
    return Section(id="support", title="What they rest on", blocks=(table,))
