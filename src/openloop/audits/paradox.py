"""Simpson's paradox between two models: the average over all rows against the stratum with most of them.

Jadidinejad et al. (2021), section 4. The detector sees summaries only, so that a published table can be fed to
it; it knows nothing about logs or estimators.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from openloop.audits.contrasts import holm
from openloop.errors import EmptyError, InputError, listing
from openloop.support.arguments import check_level

ROUNDING = 1.05  # published shares of rows may add up to a little more than 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The values of two models over some rows.

    Args:
        name: What the rows are called.
        a: The value of one model.
        b: The value of the other model.
        rows: The number of rows, or their share.
        pvalue: The p-value of the difference; give this or `significant`.
        significant: Whether the difference is significant, as a published table says.

    Raises:
        InputError: A value is not finite, or the significance is given twice or not at all.

    Examples:
        >>> ol.paradox.Part(name="small stones", a=0.93, b=0.87, rows=87, significant=False).rows
        87.0
    """

    name: str
    a: float
    b: float
    rows: float  # a number of rows, or a share of them
    pvalue: float | None = None
    significant: bool | None = None

    def __post_init__(self) -> None:
        for name, plain in (("a", float), ("b", float), ("rows", float), ("pvalue", float), ("significant", bool)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, plain(getattr(self, name)))  # plain values, whatever came
        if not (math.isfinite(self.a) and math.isfinite(self.b)):
            raise InputError(f"Part {self.name}: both values must be finite, got {self.a} and {self.b}; leave it out.")
        if not (math.isfinite(self.rows) and self.rows >= 0):
            raise InputError(f"Part {self.name}: rows must be a number or share of rows from 0, got {self.rows}.")
        if (self.pvalue is None) == (self.significant is None):
            given = "neither" if self.pvalue is None else "both"
            raise InputError(f"Part {self.name}: give either pvalue or significant, got {given}.")
        if self.pvalue is not None and not 0 <= self.pvalue <= 1:
            raise InputError(f"Part {self.name}: pvalue must lie between 0 and 1, got {self.pvalue}.")
        if self.significant and self.a == self.b:
            raise InputError(
                f"Part {self.name}: a significant difference has a sign, but both are {self.a}; give more digits."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models: all rows together, and the strata that the rows fall into.

    Args:
        a: One model.
        b: The other model.
        aggregate: The values over all rows.
        strata: The values in each stratum; `rows` in one unit throughout.
        metric: The metric.
        by: How the rows are grouped.
        better: Whether "higher" or "lower" values are better.

    Raises:
        InputError: Strata share a name, or have more rows than the aggregate.

    Examples:
        >>> small = ol.paradox.Part(name="small", a=0.9, b=0.8, rows=70, significant=True)
        >>> large = ol.paradox.Part(name="large", a=0.3, b=0.2, rows=30, significant=False)
        >>> whole = ol.paradox.Part(name="all", a=0.6, b=0.7, rows=100, significant=True)
        >>> pair = ol.paradox.Pair(a="A", b="B", aggregate=whole, strata=(small, large))
        >>> pair.majority.name, pair.direction(whole)
        ('small', -1)
    """

    a: str
    b: str
    aggregate: Part
    strata: tuple[Part, ...]
    metric: str = ""
    by: str = ""
    better: Literal["higher", "lower"] = "higher"

    def __post_init__(self) -> None:
        object.__setattr__(self, "strata", tuple(self.strata))
        if self.a == self.b:
            raise InputError(f"Pair: a model cannot be compared with itself, got {self.a!r} twice.")
        if self.better not in ("higher", "lower"):
            raise InputError(f'Pair {self.a}, {self.b}: better must be "higher" or "lower", got {self.better!r}.')
        names = [part.name for part in self.strata]
        if len(set(names)) < len(names):
            raise InputError(f"Pair {self.a}, {self.b}: strata need names of their own, got {listing(names)}.")
        covered, whole = sum(part.rows for part in self.strata), self.aggregate.rows
        shares = covered <= ROUNDING < whole and not all(part.rows.is_integer() for part in self.strata)
        if covered > ROUNDING * whole or shares:
            raise InputError(
                f"Pair {self.a}, {self.b}: the strata have {covered:g} rows and the aggregate {whole:g}; "
                "give all as numbers of rows, or all as shares."
            )

    @property
    def rows(self) -> float:
        """The number of all rows, with those of strata that were left out."""
        return max(self.aggregate.rows, sum(part.rows for part in self.strata))

    @property
    def majority(self) -> Part | None:
        """The stratum with over half of all rows, None where there is none."""
        return majority(self.strata, self.rows)

    def direction(self, part: Part) -> int:
        """1 where a is better in that `part`, −1 where b is, 0 where they tie."""
        sign = int(part.a > part.b) - int(part.a < part.b)
        return sign if self.better == "higher" else -sign


@dataclass(frozen=True, slots=True, kw_only=True)
class Paradox:
    """An instance of Simpson's paradox: the aggregate reverses or hides what most rows show.

    Attributes:
        kind: "reversal" or "masking".
        pair: The two models.
        majority: The stratum with over half of all rows.
        preferred: The model that the majority stratum prefers.

    Examples:
        >>> small = ol.paradox.Part(name="small", a=0.9, b=0.8, rows=70, significant=True)
        >>> whole = ol.paradox.Part(name="all", a=0.6, b=0.7, rows=100, significant=True)
        >>> (found,) = ol.paradox.find([ol.paradox.Pair(a="A", b="B", aggregate=whole, strata=(small,))])
        >>> found.kind, found.preferred, found.other, found.share
        ('reversal', 'A', 'B', 0.7)
    """

    kind: Literal["reversal", "masking"]
    pair: Pair
    majority: Part
    preferred: str  # by the majority stratum

    @property
    def other(self) -> str:
        """The model that the majority stratum does not prefer."""
        return self.pair.b if self.preferred == self.pair.a else self.pair.a

    @property
    def share(self) -> float:
        """The majority's share of all rows."""
        return self.majority.rows / self.pair.rows

    def __str__(self) -> str:
        metric = f" by {self.pair.metric}" if self.pair.metric else ""
        grouping = f", rows grouped by {self.pair.by}" if self.pair.by else ""
        says = "is ahead of" if self.kind == "reversal" else "cannot be told from"
        return (
            f"Simpson's paradox ({self.kind}){metric}{grouping}: over all rows {self.other} {says} {self.preferred} "
            f"({self._values(self.pair.aggregate, self.other)}), but in {self.majority.name}, "
            f"{100 * self.share:.3g} % of the rows, {self.preferred} is ahead of {self.other} "
            f"({self._values(self.majority, self.preferred)})"
        )

    def _values(self, part: Part, first: str) -> str:
        gap = abs(part.a - part.b)
        digits = min(max(3, -math.floor(math.log10(gap))), 9) if gap > 0 else 3  # enough to see which is larger
        values = (part.a, part.b) if first == self.pair.a else (part.b, part.a)
        return " against ".join(f"{value:.{digits}f}" for value in values)


def find(pairs: Sequence[Pair], level: float = 0.95) -> tuple[Paradox, ...]:
    """Every reversal and every masking among the pairs, in their order.

    Reversal: the aggregate and the majority stratum are both significant, with opposite signs. Masking: the majority is
    significant, the aggregate is not, and its sign is opposite or it is exactly tied. A pair without a majority has
    neither.

    p-values are adjusted by Holm (1979) over the pairs of one metric and grouping, separately for the aggregates and
    the majorities. Published stars are taken as they are.

    Where every stratum has the same true difference, a reversal is reported with probability at most 1 − level, and so
    is a masking where that difference is zero or rows are about equally noisy. A few very noisy rows can hide what most
    rows show; this is reported, too.

    Args:
        pairs: The pairs of models.
        level: The confidence level.

    Returns:
        The paradoxes that were found.

    Raises:
        InputError: A pair occurs twice, or some parts have p-values and others do not.

    Examples:
        >>> small = ol.paradox.Part(name="small", a=0.9, b=0.8, rows=70, pvalue=0.001)
        >>> whole = ol.paradox.Part(name="all", a=0.6, b=0.7, rows=100, pvalue=0.01)
        >>> len(ol.paradox.find([ol.paradox.Pair(a="A", b="B", aggregate=whole, strata=(small,))]))
        1
    """
    check_level("find", level)
    _check_kinds(pairs)
    found: dict[int, Paradox] = {}
    for family in _families(pairs):
        found |= _in_family({i: pairs[i] for i in family}, 1 - level)
    return tuple(found[i] for i in sorted(found))


def _check_kinds(pairs: Sequence[Pair]) -> None:
    parts = [part for pair in pairs for part in (pair.aggregate, *pair.strata)]
    kinds = {part.pvalue is None for part in parts}
    if len(kinds) > 1:
        starred = sum(part.pvalue is None for part in parts)
        raise InputError(
            f"find: {starred:,} of {len(parts):,} parts carry significant, the others pvalue; give one kind throughout."
        )


def _families(pairs: Sequence[Pair]) -> Iterable[list[int]]:
    """The positions of pairs that share a metric and a grouping."""
    families: dict[tuple[str, str], dict[frozenset[str], int]] = {}
    for i, pair in enumerate(pairs):
        family = families.setdefault((pair.metric, pair.by), {})
        if family.setdefault(frozenset((pair.a, pair.b)), i) != i:
            raise InputError(
                f"find: {pair.a} and {pair.b} are paired twice under {pair.metric!r}; give each pair once."
            )
    return [list(family.values()) for family in families.values()]


def _in_family(pairs: dict[int, Pair], alpha: float) -> dict[int, Paradox]:
    majorities = {i: part for i, pair in pairs.items() if (part := pair.majority) is not None}
    clear = _significant({i: pair.aggregate for i, pair in pairs.items()}, alpha)
    ruled = _significant(majorities, alpha)
    return {
        i: Paradox(kind=kind, pair=pair, majority=majorities[i], preferred=pair.a if sign > 0 else pair.b)
        for i, pair in pairs.items()
        if i in ruled
        and (sign := pair.direction(majorities[i])) != 0
        and (kind := _kind(sign * pair.direction(pair.aggregate), significant=i in clear)) is not None
    }


def _significant(parts: dict[int, Part], alpha: float) -> set[int]:
    """The keys of the parts whose difference is significant, after Holm where there are p-values."""
    tested = {i: part.pvalue for i, part in parts.items() if part.pvalue is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {i for i, part in parts.items() if (adjusted[i] < alpha if i in adjusted else part.significant)}


def _kind(agreement: int, *, significant: bool) -> Literal["reversal", "masking"] | None:
    if significant:
        return "reversal" if agreement < 0 else None
    return "masking" if agreement <= 0 else None


def majority(strata: Sequence[Part], rows: float | None = None) -> Part | None:
    """The stratum with over half of the rows.

    Args:
        strata: The strata.
        rows: The number of all rows; by default that of the strata.

    Returns:
        The stratum, None where none has over half.

    Examples:
        >>> parts = [ol.paradox.Part(name=n, a=1, b=0, rows=r, significant=True) for n, r in (("x", 3), ("y", 1))]
        >>> ol.paradox.majority(parts).name
        'x'
    """
    total = sum(part.rows for part in strata) if rows is None else rows
    return next((part for part in strata if part.rows > total / 2), None)


def marginal(strata: Sequence[Part]) -> tuple[float, float]:
    """The values of both models with every stratum at its observed share of the rows (Jadidinejad et al. 2021, Eq. 4).

    Args:
        strata: The strata.

    Returns:
        The values of a and b.

    Raises:
        EmptyError: The strata have no rows.

    Examples:
        >>> many = ol.paradox.Part(name="many", a=1, b=1, rows=3, significant=False)
        >>> few = ol.paradox.Part(name="few", a=5, b=1, rows=1, significant=False)
        >>> ol.paradox.marginal([many, few])
        (2.0, 1.0)
    """
    total = sum(part.rows for part in strata)
    if total == 0:
        raise EmptyError(f"marginal: {len(strata)} strata without rows have no average; give strata with rows.")
    # Eq. 4: E(Y) = Σ_x E(Y | X = x) P(X = x)
    return sum(part.a * part.rows for part in strata) / total, sum(part.b * part.rows for part in strata) / total
