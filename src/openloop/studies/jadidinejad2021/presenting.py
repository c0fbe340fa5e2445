"""Tables 2 to 5 in the making: the published pair, how many instances there are, the clearest one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.audits.paradox import Paradox
from openloop.core.feedback import Array, Floats
from openloop.studies.jadidinejad2021.instances import (
    HOLDOUT,
    IPS,
    LEVEL,
    OPEN_LOOP,
    STRATA,
    STRATIFIED,
    Line,
    Lines,
    Sides,
    clearest,
    lines_of,
    mirrored,
    search,
    sides,
    sizes,
)
from openloop.studies.jadidinejad2021.models import WHOLE, split_of
from openloop.studies.jadidinejad2021.published import NOTEBOOK_MOSTPOP, PUBLISHED
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.trials import Outcome
from openloop.support.wording import chance, counted, joined, percent

DRAWS = 30  # splits by which the chance in numbers of ratings and items is told
FEW_ITEMS = 0.05  # of all items: a very small minority
ROUNDING = 0.0005
CODED, OUTSIDE = "coded", "outside"
AMONG = {CODED: "training items in the ranking, as coded", OUTSIDE: "training items left out of the ranking"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """The models of a table, and their trials by split; with an open loop those of the whole log too."""

    given: Mapping[str, Array]
    models: tuple[str, ...]
    outcomes: Mapping[int, Sequence[Outcome]]
    splits: int
    seed: int

    def lines(self, split: int, among: str) -> dict[str, Line]:
        """Every line of a split."""
        opened = self.outcomes[WHOLE if among == CODED else split] if "open_user" in self.given else None
        return lines_of(self.given, self.outcomes[split], opened, split=split, seed=self.seed, among=among)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The instances in one setting, over all splits, and whom the open loop and the stratified method side with."""

    among: str
    holm: bool
    pairs: int
    instances: tuple[tuple[Paradox, ...], ...]  # by split
    sides: Mapping[str, Sides]

    def count(self, kind: str) -> int:
        """How many reversals or maskings."""
        return sum(paradox.kind == kind for found in self.instances for paradox in found)

    @property
    def words(self) -> str:
        """How many of each."""
        return f"{counted(self.count('reversal'), 'reversal')} and {counted(self.count('masking'), 'masking')}"


def about_instances(item: str, data: str, fits: Fits, *, comparable: bool, notes: Sequence[str]) -> Result:
    """The result of a table, from its fits."""
    lines = {among: [fits.lines(split, among) for split in range(fits.splits)] for among in AMONG}
    found = [_found(fits, lines[among], among, holm=holm) for among in AMONG for holm in (False, True)]
    published, first = PUBLISHED[item], lines[CODED][0]
    tables = [_pair_table(item, fits, first, published, comparable=comparable), _count_table(item, found, fits.splits)]
    best = next((p for f in (found[1], found[0]) if (p := clearest(f.instances[0], fits.models, first))), None)
    if best is not None:
        tables.append(_best_table(item, fits, first, best))
    return Result(
        item=item, title=f"An instance of Simpson's paradox on {TITLES[item]}", data=(data,), tables=tuple(tables),
        claims=tuple(_claims(published["pair"], fits, first, found)),
        notes=(*notes, *_popular(item, fits, first), *_mirror_notes(lines[CODED]), *_notes(fits)),
    )  # fmt: skip


TITLES = {"table2": "MovieLens", "table3": "Netflix", "table4": "Yahoo! R3", "table5": "Coat"}


def _found(fits: Fits, lines: Sequence[Lines], among: str, *, holm: bool) -> Found:
    instances = tuple(search(fits.models, split, holm=holm) for split in lines)
    told = {
        name: _added([sides(found, fits.models, at[name]) for found, at in zip(instances, lines, strict=True)])
        for name in (OPEN_LOOP, STRATIFIED)
        if name in lines[0]
    }
    pairs = math.comb(len(fits.models), 2) * len(lines)
    return Found(among=among, holm=holm, pairs=pairs, instances=instances, sides=told)


def _added(parts: Sequence[Sides]) -> Sides:
    fields = ("majority", "aggregate", "clear_majority", "clear_aggregate")
    return Sides(**{field: sum(getattr(part, field) for part in parts) for field in fields})


# -- tables --------------------------------------------------------------------------------------------------


def _pair_table(item: str, fits: Fits, lines: Lines, published: Any, *, comparable: bool) -> Table:
    a, b = published["pair"]
    if comparable:
        spread, columns = _spread(fits), ("p", "better, published", "ratings", "items")
        rows = [_compared_row(fits, line, published, spread) for line in lines.values()]
    else:
        own = (f"{a}, published", f"{b}, published", "ratings, published", "items, published")
        rows, columns = [_apart_row(fits, line, published) for line in lines.values()], ("p", "ratings", "items", *own)
    return Table(
        name=item, error_is="standard error over users", columns=("method", a, b, *columns), rows=tuple(rows),
        caption=f"{a} against {b} by nDCG, as coded, on one split; * is a significant difference (paired t-test, 5 %).",
    )  # fmt: skip


def _compared_row(fits: Fits, line: Line, published: Any, spread: Mapping[str, Floats]) -> tuple[Cell, ...]:
    """Ours, each beside the published number."""
    x, y, star, rows, items = published["lines"][line.name]
    a, b = (fits.models.index(name) for name in published["pair"])
    noise = spread.get(line.name, np.zeros(2))
    return (
        line.name, _value(line, a, b, x), _value(line, b, a, y), _p(line.pvalue[a, b]),
        {"a": fits.models[a], "b": fits.models[b], "": "neither"}[star],
        Value(value=line.rows, published=rows, digits=0, tolerance=0.5 + 3 * noise[0]),
        Value(value=line.items, published=items, digits=0, tolerance=0.5 + 3 * noise[1]),
    )  # fmt: skip


def _apart_row(fits: Fits, line: Line, published: Any) -> tuple[Cell, ...]:
    """Ours, and then the published numbers, which are of other data."""
    x, y, star, rows, items = published["lines"][line.name]
    a, b = (fits.models.index(name) for name in published["pair"])
    printed = (f"{x:.3f}{'*' if star == 'a' else ''}", f"{y:.3f}{'*' if star == 'b' else ''}")
    ours = (_value(line, a, b), _value(line, b, a), _p(line.pvalue[a, b]), line.rows, line.items)
    return (line.name, *ours, *printed, rows, items)


def _p(pvalue: float) -> str:
    return chance(pvalue).removeprefix("= ")


def _value(line: Line, a: int, b: int, published: float | None = None) -> Value:
    """The first model's value; the open loop is the same for all, other lines are those of another random split."""
    chances = 0.0 if line.name == OPEN_LOOP else 2 * np.sqrt(2) * float(line.error[a])
    ahead = line.pvalue[a, b] < 1 - LEVEL and line.value[a] > line.value[b]
    return Value(
        value=line.value[a], error=line.error[a], published=published, tolerance=ROUNDING + chances,
        mark="*" if ahead else "",
    )  # fmt: skip


def _spread(fits: Fits) -> dict[str, Floats]:
    """The standard deviation over splits of each line's numbers of ratings and items."""
    drawn = [sizes(fits.given, split_of(fits.given, split, fits.seed)) for split in range(DRAWS)]
    found: dict[str, Floats] = {name: np.std([size[name] for size in drawn], axis=0, ddof=1) for name in drawn[0]}
    return {**found, IPS: found[HOLDOUT], STRATIFIED: found[HOLDOUT]}


def _count_table(item: str, found: Sequence[Found], splits: int) -> Table:
    over = "" if splits == 1 else f", over {splits} splits"
    return Table(
        name=f"{item}-instances",
        caption=(
            f"Instances among all pairs of models{over}, Q1 and Q2 being two strata of equal width; how often the open "
            "loop, and the stratified method, have the model ahead that Q1 prefers, and how often the other one (in "
            "brackets: significantly)."
        ),
        columns=(
            "setting", "pairs", "reversals", "maskings", "open loop with Q1", "open loop against",
            "stratified with Q1", "stratified against",
        ),
        rows=tuple(_count_row(one) for one in found),
    )  # fmt: skip


def _count_row(one: Found) -> tuple[Cell, ...]:
    tests = "Holm over all pairs" if one.holm else "p < 0.05 each"
    return (
        f"{AMONG[one.among]}, {tests}", one.pairs, one.count("reversal"), one.count("masking"),
        *_sided(one.sides.get(OPEN_LOOP)), *_sided(one.sides.get(STRATIFIED)),
    )  # fmt: skip


def _sided(found: Sides | None) -> tuple[str | None, str | None]:
    if found is None:
        return None, None
    return f"{found.majority} ({found.clear_majority})", f"{found.aggregate} ({found.clear_aggregate})"


def _best_table(item: str, fits: Fits, lines: Lines, best: Paradox) -> Table:
    a, b = fits.models.index(best.other), fits.models.index(best.preferred)
    rows = [
        (line.name, _value(line, a, b), _value(line, b, a), _p(line.pvalue[a, b]), line.rows, line.items)
        for line in lines.values()
    ]
    return Table(
        name=f"{item}-clearest", caption=f"The clearest instance found here, a {best.kind}, on the same split.",
        columns=("method", best.other, best.preferred, "p", "ratings", "items"), rows=tuple(rows),
        error_is="standard error over users",
    )  # fmt: skip


# -- claims and notes ----------------------------------------------------------------------------------------


def _claims(pair: tuple[str, str], fits: Fits, lines: Lines, found: Sequence[Found]) -> Iterator[Claim]:
    plain, adjusted = found[0], found[1]
    yield _few(lines)
    yield Claim(
        text="differences that are significant in Q1 disappear or reverse over all ratings (section 7.1)",
        holds=any(plain.instances),
        found=f"{plain.words} among {plain.pairs:,} pairs by the paper's tests, {adjusted.words} after Holm",
    )
    times = sum(any({p.pair.a, p.pair.b} == set(pair) for p in split) for split in plain.instances)
    yield Claim(
        text=f"{pair[0]} against {pair[1]} is an instance in most splits", holds=2 * times > fits.splits,
        found=f"in {times} of {counted(fits.splits, 'split')}, by the paper's tests",
    )  # fmt: skip
    for name, text in (
        (STRATIFIED, "the stratified evaluation has the model ahead that Q1 prefers"),
        (OPEN_LOOP, "the open loop has the model ahead that Q1 prefers"),
    ):
        if name in plain.sides:
            yield _sided_claim(text, plain, plain.sides[name])


def _few(lines: Lines) -> Claim:
    head, whole = lines.get(STRATA[1]), lines[HOLDOUT]
    if head is None:
        return Claim(text="a very small minority of items makes up Q2", holds=False, found="Q2 has no relevant cells")
    return Claim(
        text="a very small minority of items makes up Q2, and Q1 is most of the ratings",
        holds=head.items < FEW_ITEMS * whole.items and head.rows < 0.5 * whole.rows,
        found=f"Q2 has {head.items:,} of {whole.items:,} items and {percent(head.rows / whole.rows)} of the ratings",
    )


def _sided_claim(text: str, found: Found, told: Sides) -> Claim:
    total = sum(len(split) for split in found.instances)
    return Claim(
        text=f"{text}, where all ratings hide or reverse it", holds=told.majority > told.aggregate,
        found=(
            f"in {told.majority} of {counted(total, 'instance')} by the paper's tests ({told.clear_majority} "
            f"significantly); the other model in {told.aggregate} ({told.clear_aggregate})"
        ),
    )  # fmt: skip


def _popular(item: str, fits: Fits, lines: Lines) -> Iterator[str]:
    """What Table 2's first model is like."""
    if item == "table2" and "MostPop" in fits.models:
        at = fits.models.index("MostPop")
        values = ", ".join(f"{name} {line.value[at]:.3f}" for name, line in lines.items())
        printed = {name: PUBLISHED["table2"]["lines"][name][0] for name in NOTEBOOK_MOSTPOP}
        theirs, bpr = (joined([f"{n} {x:.3f}" for n, x in told.items()]) for told in (NOTEBOOK_MOSTPOP, printed))
        yield (
            f"MostPop, for comparison: {values}. The paper's notebook has {theirs} for it, and Table 2 {bpr} for "
            "BPR10, which by these values ranks nearly by popularity."
        )


def _mirror_notes(lines: Sequence[Lines]) -> Iterator[str]:
    """Instances are chosen for what Q1 says; the open loop is asked about the opposite choice too."""
    if OPEN_LOOP not in lines[0]:
        return
    told = _added([mirrored(at, at[OPEN_LOOP]) for at in lines])
    with_q1 = f"{told.majority:,} ({told.clear_majority:,} significantly)"
    yield (
        "An instance is chosen for a significant Q1, which alone makes the open loop likely to agree with it. As a "
        "check, the opposite choice, all ratings significant and Q1 the other way, not significantly: of "
        f"{told.total:,} such pairs the open loop sides with Q1 in {with_q1} and with all ratings in "
        f"{told.aggregate:,} ({told.clear_aggregate:,})."
    )


def _notes(fits: Fits) -> Iterator[str]:
    yield (
        "Strata, IPS and rankings are the published code's; it keeps no users' values of the stratified method, so how "
        "the paper tested that line is not known. Here its error comes of the strata's users, with shares as given."
    )
    if any(model.startswith("WMF") for model in fits.models):
        yield (
            "WMF is solved by least squares here, where the paper's code stops after 100 epochs of Adam: not the same "
            "model, so that its numbers need not be the paper's."
        )
    if any(model.startswith(("GMF", "NeuMF", "MLP")) for model in fits.models):
        yield "GMF, MLP and NeuMF are trained with PyTorch here, with TensorFlow in the paper."
    yield "Pairs share models, so that instances come in groups: their number is no number of independent findings."
