"""Tables 2 to 5 from their fits: the published pair of models, how many instances there are, the clearest one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.fits import WMF, ModelFits, without
from openloop.studies.jadidinejad2021.instance_claims import BATCHED, InstanceEvidence, instance_claims, instance_notes
from openloop.studies.jadidinejad2021.instances import SettingInstances, Sides, instances_in
from openloop.studies.jadidinejad2021.method_rows import (
    AMONG,
    CODED,
    HOLDOUT,
    IPS,
    LEVEL,
    OPEN_LOOP,
    STRATIFIED,
    MethodRow,
    MethodRows,
    method_rows,
    sizes,
)
from openloop.studies.jadidinejad2021.methods import HeldOutRows
from openloop.studies.jadidinejad2021.models import family_of, split_of
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.kit.results import Cell, Result, Table, Value
from openloop.support.wording import joined, pvalue

SPREAD_SPLITS = 30  # splits that show how much the numbers of ratings and items vary by chance
ROUNDING = 0.0005
TITLES = {"table2": "MovieLens", "table3": "Netflix", "table4": "Yahoo! R3", "table5": "Coat"}


def about_instances(item: str, data: str, fits: ModelFits, *, comparable: bool, notes: Sequence[str]) -> Result:
    """The result of a table, from its fits."""
    rows = {among: [method_rows(fits, split, among) for split in range(fits.splits)] for among in AMONG}
    found = [instances_in(fits.models, rows[among], among, holm=holm) for among in AMONG for holm in (False, True)]
    tables = [
        _pair_table(item, fits, rows[CODED], comparable=comparable),
        _count_table(item, found, [*_without_wmf(fits.models, rows[CODED])], fits.splits),
    ]
    return Result(
        item=item, title=f"An instance of Simpson's paradox on {TITLES[item]}", data=(data,), tables=tuple(tables),
        claims=tuple(instance_claims(_evidence(item, data, rows[CODED], found))),
        notes=(*notes, *instance_notes(fits.models)),
    )  # fmt: skip


def _evidence(item: str, data: str, rows: Sequence[MethodRows], found: Sequence[SettingInstances]) -> InstanceEvidence:
    plain, adjusted, *_ = found
    return InstanceEvidence(
        data=data, pair=PUBLISHED[item]["pair"], rows=tuple(rows), plain=plain, adjusted=adjusted,
    )  # fmt: skip


def _without_wmf(models: Sequence[str], rows: Sequence[MethodRows]) -> Iterator[SettingInstances]:
    """The instances as coded among the models of other families."""
    keep = without(WMF, models)
    if keep.all():
        return
    names = [model for model, kept in zip(models, keep, strict=True) if kept]
    fewer = [{name: row.among(keep) for name, row in split.items()} for split in rows]
    for holm in (False, True):
        yield instances_in(names, fewer, CODED, holm=holm)


# -- the published pair --------------------------------------------------------------------------------------


def _pair_table(item: str, fits: ModelFits, splits: Sequence[MethodRows], *, comparable: bool) -> Table:
    a, b = PUBLISHED[item]["pair"]
    pair, rows, allowed = (fits.models.index(a), fits.models.index(b)), splits[0], ""
    if comparable:
        spread, columns = _spread(fits), ("p", "better, published", "ratings", "items")
        cells = [
            _compared_cells([split[name] for split in splits], item, pair, spread.get(name, np.zeros(2)))
            for name in rows
        ]
        allowed = f" {_allowed_words(len(splits))}"
    else:
        columns = ("p", "ratings", "items", f"{a}, published", f"{b}, published", "ratings, published",
                   "items, published")  # fmt: skip
        cells = [(*_own_cells(row, *pair), *_printed_cells(row, item)) for row in rows.values()]
    return Table(
        name=item, error_is="standard error over users", columns=("method", a, b, *columns), rows=tuple(cells),
        caption=f"{a} against {b} by nDCG, as coded, on one split; * is a significant difference (paired t-test, 5 %)."
        f"{allowed}",
    )  # fmt: skip


def _allowed_words(splits: int) -> str:
    """What a published number of another split is allowed."""
    sizes = f"Of ratings and items 3 standard deviations over {SPREAD_SPLITS} splits are allowed"
    if splits == 1:
        return f"{sizes}; nDCG is not judged, as one split does not say how far another may be."
    return (
        f"The paper has another split. Allowed are the 95 % limits (t) of the difference of two splits, by the spread "
        f"over {splits}, and rounding; where a method is the same in all splits, as the open loop is, only rounding. "
        f"{sizes}. Open-loop values of {joined(BATCHED)} are not judged: their batches are left to chance"
    )


def _compared_cells(splits: Sequence[MethodRow], item: str, pair: tuple[int, int], noise: Floats) -> tuple[Cell, ...]:
    """Ours in the first split, each beside the published number.

    The `splits` are those of one method; `noise` (2,) is the chance in the numbers of ratings and items.
    """
    row, names, (a, b) = splits[0], PUBLISHED[item]["pair"], pair
    x, y, star, rows, items = PUBLISHED[item]["lines"][row.name]
    values = [
        replace(_value(row, this, that), published=printed, **_judged_by(splits, this, family_of(name)))
        for this, that, printed, name in ((a, b, x, names[0]), (b, a, y, names[1]))
    ]
    return (
        row.name, *values, pvalue(row.pvalue[a, b]),
        {"a": names[0], "b": names[1], "": "neither"}[star],
        Value(value=row.rows, published=rows, digits=0, tolerance=0.5 + 3 * noise[0]),
        Value(value=row.items, published=items, digits=0, tolerance=0.5 + 3 * noise[1]),
    )  # fmt: skip


def _own_cells(row: MethodRow, a: int, b: int) -> tuple[Cell, ...]:
    return row.name, _value(row, a, b), _value(row, b, a), pvalue(row.pvalue[a, b]), row.rows, row.items


def _printed_cells(row: MethodRow, item: str) -> tuple[Cell, ...]:
    """The published numbers by themselves, where they are of other data."""
    x, y, star, rows, items = PUBLISHED[item]["lines"][row.name]
    return f"{x:.3f}{'*' if star == 'a' else ''}", f"{y:.3f}{'*' if star == 'b' else ''}", rows, items


def _judged_by(splits: Sequence[MethodRow], model: int, family: str) -> dict[str, Any]:
    """How far the value of a model in the paper's split may be from ours in the first one, if it is judged at all.

    x₁ − x₂ of two splits has √2 times the standard deviation s of one: t(0.975, R − 1)·s·√2.
    """
    if len(splits) == 1 or (splits[0].name == OPEN_LOOP and family in BATCHED):
        return {"judged": False}
    values = np.array([row.value[model] for row in splits])  # (R,)
    return {"tolerance": ROUNDING + float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) * np.sqrt(2))}


def _value(row: MethodRow, a: int, b: int) -> Value:
    """The first model's value, with a star where it is significantly ahead of the second's."""
    ahead = row.pvalue[a, b] < 1 - LEVEL and row.value[a] > row.value[b]
    return Value(value=row.value[a], error=row.error[a], mark="*" if ahead else "")


def _spread(fits: ModelFits) -> dict[str, Floats]:
    """The standard deviation over splits of each row's numbers of ratings and items."""
    parts = (
        HeldOutRows(given=fits.given, split=split_of(fits.given, split, fits.seed)) for split in range(SPREAD_SPLITS)
    )
    drawn = [sizes(part) for part in parts]
    found: dict[str, Floats] = {name: np.std([size[name] for size in drawn], axis=0, ddof=1) for name in drawn[0]}
    return {**found, IPS: found[HOLDOUT], STRATIFIED: found[HOLDOUT]}


# -- instances -----------------------------------------------------------------------------------------------


def _count_table(item: str, found: Sequence[SettingInstances], fewer: Sequence[SettingInstances], splits: int) -> Table:
    over = "" if splits == 1 else f", over {splits} splits"
    return Table(
        name=f"{item}-instances",
        caption=(
            f"Instances among all pairs of models{over}. Q1 and Q2 are two strata of equal width. The last columns "
            "count how often the open loop and the stratified method have the model ahead that Q1 prefers, and how "
            "often the other one; in brackets, how often significantly."
        ),
        columns=(
            "setting", "pairs", "reversals", "maskings", "open loop with Q1", "open loop against",
            "stratified with Q1", "stratified against",
        ),
        rows=(*(_count_row(one) for one in found), *(_count_row(one, f"without {WMF}: ") for one in fewer)),
    )  # fmt: skip


def _count_row(one: SettingInstances, which: str = "") -> tuple[Cell, ...]:
    tests = "Holm over all pairs" if one.holm else "p < 0.05 each"
    return (
        f"{which}{AMONG[one.among]}, {tests}", one.pairs, one.count("reversal"), one.count("masking"),
        *_side_cells(one.sides.get(OPEN_LOOP)), *_side_cells(one.sides.get(STRATIFIED)),
    )  # fmt: skip


def _side_cells(found: Sides | None) -> tuple[str | None, str | None]:
    if found is None:
        return None, None
    return f"{found.majority} ({found.clear_majority})", f"{found.aggregate} ({found.clear_aggregate})"
