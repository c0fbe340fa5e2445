"""Facts about joined rows: counts, weights, ratings, ranges of p; queried once, and refused where wrong."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import LEAST
from openloop.core.metric import USUAL, reaches
from openloop.core.weights import WeightSummary
from openloop.errors import EmptyError, InputError, PropensityError, RatingError, quoted
from openloop.metrics.rating import MAX_LEVELS
from openloop.sources.frames.collecting import Fact, FrameTally, Total, foresee
from openloop.sources.frames.facts import FrameLadder, item_ends, rating_query, weight_query, weight_summary
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.list_gaps import gaps_query
from openloop.sources.question import Question
from openloop.sources.relevance import Relevance, of_levels, of_scale
from openloop.support.arguments import are_counts
from openloop.support.frames import absent, flag

WRONG: dict[str, tuple[type[InputError], str]] = {
    "u": (InputError, "no user id"),
    "i": (InputError, "no item id"),
    "y": (RatingError, "a missing or infinite rating"),
    "p": (PropensityError, "a missing or infinite propensity"),
    "outside": (PropensityError, "a propensity outside (0, 1]"),
}


class RowFacts:
    """Facts about all scored rows. Those that will be needed are asked for together, where each query costs much."""

    def __init__(self, joined: Joined, asked: Question) -> None:
        frame, excluded, ranked = joined.frame, joined.excluded, "rank" in asked.kinds
        self._joined = joined
        weight = joined.weights["prediction"].weight if joined.weights else None
        self.rows = Fact(lambda: _rows_query(frame, weighted=bool(joined.weights)))
        self.ratings = Fact(lambda: rating_query(frame, weight, MAX_LEVELS + 1))
        self._strata = asked.stratifications
        names = sorted({by.weight for by in joined.weights.values()})
        self._weights = {("cell", name): Fact(partial(weight_query, frame, name)) for name in names}
        if asked.threshold is not None and joined.weights:  # else it is known later which rows are liked
            liked = frame.filter(reaches(nw.col("y"), asked.threshold))
            kinds = {(m.kind, joined.weights[m.on].weight) for m in asked.measures if m.kind != "cell"}
            self._weights |= {key: Fact(partial(weight_query, liked, key[1])) for key in sorted(kinds)}
        self.gaps = gaps_query(joined) if ranked and not asked.checked else None
        self.excluded = None if excluded is None else Fact(lambda: excluded.counted)
        size = asked.population if are_counts(asked.population) else None
        listed = size is not None and size[0] <= asked.max_users  # users are not dealt out
        foresee([
            self.rows, *self._weights.values(), *([self.ratings] if ranked else []),
            *([self.ladder.ranges] if joined.weights and self._strata else []),
            *([self.excluded] if self.excluded is not None and ranked and listed else []),
            *([self.gaps] if self.gaps is not None else []),
        ], frame)  # fmt: skip

    @cached_property
    def ladder(self) -> FrameLadder:
        """The rows by p."""
        return FrameLadder(self._joined.frame, self._strata)

    def refuse(self) -> None:
        """Refuse what no engine may sum over, before anything is summed."""
        found = self.rows.row
        rows = int(found["n"] or 0)
        self._joined.check_rows(rows)
        if not rows:
            raise EmptyError("evaluate: the log frame has no rows; an estimate needs at least one.")
        for name, (error, what) in WRONG.items():
            if number := found.get(f"bad_{name}"):
                column = self._joined.names["p" if name == "outside" else name]
                raise error(
                    f"evaluate: {number:,.0f} of {rows:,} rows have {what} in column {quoted(column)}; drop or "
                    "repair them."
                )

    def relevance(self, threshold: float) -> Relevance:
        """What a default threshold makes of the rows; by level where they are few, by the scale where they are not."""
        table, row = self.ratings.table.sort("y"), self.rows.row
        if len(table) > MAX_LEVELS:
            return of_scale(int(row["n"]), int(row["usual"] or 0), (row["low_y"], row["high_y"]))
        levels, counts = (table[name].cast(nw.Float64()).to_numpy() for name in ("y", "n"))
        return of_levels(levels, counts.astype(np.int64), threshold)

    def spanned_items(self) -> int | None:
        """How many items lie between the least and the largest, with those excluded; None if ids are not integers."""
        excluded = self._joined.excluded
        known = [self.rows.row, *([] if excluded is None else [excluded.facts.row])]
        if "low_i" not in known[0]:
            return None
        lows, highs = ([row[end] for row in known if row[end] is not None] for end in ("low_i", "high_i"))
        return int(max(highs) - min(lows)) + 1

    def weights(self, kind: str, column: str, rows: Any) -> WeightSummary:
        """The summary of a column of weights over the `rows` that count for a kind of metric."""
        if (kind, column) not in self._weights:
            self._weights[kind, column] = Fact(partial(weight_query, rows, column))
        return weight_summary(self._weights[kind, column])


def _rows_query(frame: Any, *, weighted: bool) -> FrameTally:
    """How many rows there are, and how many of them no engine may sum over; the ends of ratings and items."""
    p, y = nw.col("p"), nw.col("y")
    wrong = {"u": nw.col("u").is_null(), "i": nw.col("i").is_null(), "y": absent(y)}
    if weighted:
        wrong |= {"p": absent(p), "outside": ~((p >= LEAST) & (p <= 1))}
    flags = {f"bad_{name}": flag(bad) for name, bad in wrong.items()} | {"n": nw.lit(1.0)}
    flags["usual"] = flag(reaches(y, USUAL))
    sums: dict[str, Total] = {name: (name, "sum") for name in flags}
    spans: dict[str, Total] = {"low_y": ("y", "min"), "high_y": ("y", "max"), **item_ends(frame)}
    return FrameTally(frame=frame.select("i", "y", **flags), totals=sums | spans)
