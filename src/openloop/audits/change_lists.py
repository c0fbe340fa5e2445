"""`Changes`: what two audits say differently, as plain records, and in words."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from openloop.audits.answers import Level
from openloop.support.atomic import Recorded
from openloop.support.escaping import visible
from openloop.support.tables import html_list
from openloop.support.wording import counted, joined, level_of

SCHEMA = "openloop/changes/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """Something by name, as the older audit has it and as the newer one has it; None where one has none."""

    name: str
    old: str | float | None
    new: str | float | None

    def __str__(self) -> str:
        old, new = ("–" if held is None else held for held in (self.old, self.new))
        return f"{self.name}: {old} → {new}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Both verdicts."""

    old_level: Level
    new_level: Level
    old: str
    new: str
    old_winner: str | None
    new_winner: str | None

    @property
    def same(self) -> bool:
        """Whether level and winner are the same."""
        return (self.old_level, self.old_winner) == (self.new_level, self.new_winner)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChange:
    """a − b of two models in both audits, and which one each audit finds better; None for neither."""

    a: str
    b: str
    old_better: str | None
    new_better: str | None
    old: float
    old_low: float
    old_high: float
    new: float
    new_low: float
    new_high: float

    def __str__(self) -> str:
        if self.old_better is None:
            return f"{self.new_better} is now ahead of {self._other(self.new_better)}; before, neither was ahead"
        if self.new_better is None:
            return f"{self.old_better} was ahead of {self._other(self.old_better)}; now neither is ahead"
        return f"{self.new_better} is now ahead of {self.old_better}; it was behind"

    def _other(self, model: str | None) -> str:
        return self.b if model == self.a else self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderChange:
    """The models of both audits from best to worst, and the pairs with another answer."""

    metric: str
    estimator: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    pairs: tuple[PairChange, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        """Each model with its place in the older and in the newer audit, 1 is best."""
        return tuple((model, self.old.index(model) + 1, place) for place, model in enumerate(self.new, 1))

    @property
    def changed(self) -> bool:
        """Whether models changed places, or a pair has another answer."""
        return self.old != self.new or bool(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """An estimate in both audits. `low` and `high` are of new − old, if the two logs share no user; else None.

    They are None, too, where the audits do not measure the same.
    """

    model: str
    metric: str
    estimator: str
    old: float
    old_low: float
    old_high: float
    new: float
    new_low: float
    new_high: float
    difference: float
    low: float | None
    high: float | None
    old_estimand: str
    new_estimand: str

    @property
    def comparable(self) -> bool:
        """Whether both estimate the same thing."""
        return self.old_estimand == self.new_estimand


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes(Recorded):
    """What differs between an older and a newer audit; `one_log`: both seem to be of the same rows.

    Nothing in it is a test between the two audits: which of two models is better is tested inside each.
    """

    verdicts: Verdicts
    added: tuple[str, ...]
    gone: tuple[str, ...]
    shared: tuple[str, ...]
    settings: tuple[Differing, ...]
    orders: tuple[OrderChange, ...]
    values: tuple[ValueChange, ...]
    support: tuple[Differing, ...]
    one_log: bool
    level: float

    @property
    def headline(self) -> str:
        """The verdict's change in a line."""
        v = self.verdicts
        if not v.same:
            old, new = named(v.old_level, v.old_winner), named(v.new_level, v.new_winner)
            return f"The older audit {old}, the newer one {new}"
        if v.new_level == "none":
            return "Neither audit can tell the models apart"
        return f"Both audits choose {'under an assumption only' if v.new_winner is None else v.new_winner}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What changed, and what cannot be said of it."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.added:
            yield f"New: {joined(self.added)}."
        if self.gone:
            yield f"Gone: {joined(self.gone)}."
        turned = [order for order in self.orders if order.changed]
        if self.orders:
            of = counted(len(self.orders), "order")
            yield f"{len(turned)} of {of} of the models changed." if turned else f"None of {of} of the models changed."
        differ = {d.name for d in self.settings}
        if "threshold" in differ:
            yield "The thresholds differ, so metrics of relevant items do not measure the same thing in both."
        sizes = [size for size in ("users", "items") if size in differ and (self.one_log or size == "items")]
        if sizes:
            yield f"The numbers of {joined(sizes)} differ, so the audits are not about the same population."
        yield self.about_intervals

    @property
    def about_intervals(self) -> str:
        """What the intervals of differences mean, or why there are none."""
        if not self.values:
            return "No model, metric and estimator is in both audits, so no values are compared."
        if self.one_log:
            return (
                "Both audits seem to use the same log. Their estimates are paired by user, but the files do not store "
                "each user's contribution, so the differences have no interval."
            )
        return (
            f"The scored rows differ. The {level_of(self.level)} intervals of differences treat the logs as "
            "independent, which holds if they share no user. They are not tests: there are many of them, and the logs "
            "may differ in more than the models."
        )

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        found = asdict(self)  # pyright: ignore[reportArgumentType]
        return {"schema": SCHEMA, "headline": self.headline, "sentences": list(self.sentences)} | found

    def __str__(self) -> str:
        return visible("\n".join(self._lines()), lines=True)

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[str]:
        yield f"{self.headline}."
        yield from self.sentences
        yield from map(str, self.settings)
        for order in self.orders:
            if order.changed:
                yield f"{order.estimator} of {order.metric}: {', '.join(order.old)} → {', '.join(order.new)}"
                yield from (f"- {pair}" for pair in order.pairs)

    def _repr_html_(self) -> str:
        first, *more = self._lines()
        return f"<h4>{html.escape(first)}</h4>{html_list(line.removeprefix('- ') for line in more)}"


def named(level: Level, winner: str | None) -> str:
    """What an audit does, in a few words."""
    words: dict[Level, str] = {
        "verdict": f"chooses {winner}", "conditional": "chooses under an assumption only",
        "none": "cannot tell the models apart",
    }  # fmt: skip
    return words[level]
