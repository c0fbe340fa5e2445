"""Ranks beside the rows of a log frame: from lists, or from the scores of all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from openloop.sources import rules
from openloop.sources.frames.facts import count, only_row, repeats, rows
from openloop.sources.frames.model_tables import ModelTable, number_facts
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.rows import with_scores
from openloop.sources.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedPairs:
    """The pairs that leave the ranking, less the scored ones: the item being ranked always is a candidate."""

    given: Any  # with the scored ones, each once
    pairs: Any
    counts: Any  # (u, excluded): how many items leave the ranking of each user
    overlap: int  # scored rows that are excluded too

    @classmethod
    def of(cls, pairs: Any, scored: Any) -> ExcludedPairs:
        """The excluded pairs of a log frame."""
        pairs, scored = pairs.unique(), scored.select(*PAIR)
        overlap = rows(scored.join(pairs, on=list(PAIR), how="inner"))
        left = pairs.join(scored, on=list(PAIR), how="anti")
        once = left.with_columns(nw.lit(1.0).alias("excluded"))
        return cls(given=pairs, pairs=left, counts=once.group_by("u").agg(nw.col("excluded").sum()), overlap=overlap)

    def counted_beside(self, frame: Any) -> Any:
        """The frame with the number of items that its row's user has excluded."""
        joined = frame.join(self.counts, on="u", how="left")
        return joined.with_columns(nw.col("excluded").fill_null(0.0))

    def refuse(self, what: str, listed: Any) -> None:
        """Refuse a list that holds some of the pairs."""
        if found := rows(listed.select(*PAIR).join(self.pairs, on=list(PAIR), how="inner")):
            raise rules.ranks_excluded(what, found)


@dataclass(slots=True, kw_only=True)
class Ranked:
    """The frame in the making: h and e of each model that ranks."""

    frame: Any
    asked: Question
    excluded: ExcludedPairs | None
    suspects: Sequence[ModelTable]  # whose repeated pairs repeat ranks
    ranks: set[int] = field(default_factory=set[int])  # positions of the models that rank
    depths: dict[int, int] = field(default_factory=dict[int, int])  # of lists
    scored: dict[int, int] = field(default_factory=dict[int, int])  # ranked by scores: the fewest that a user has

    def depth(self, at: int, known: int | None) -> int | None:
        """The deepest rank of a model's list, None where it is declared to hold all candidates."""
        return None if self.asked.complete else self.depths.get(at, known)

    def add_list(self, at: int, table: ModelTable) -> None:
        """Ranks from a column; what a list does not hold ranks below it."""
        own, h = f"r{at}", f"h{at}"
        if table.frame is None:
            self.frame = self.frame.with_columns(nw.col(f"log:{table.rank}").cast(nw.Float64()).alias(own))
            depth, listed = _own_depth(table.what, self.frame, own), self.frame
        else:
            depth = table.check() or 0
            listed = table.frame.select(*PAIR, nw.col(str(table.rank)).alias(own))
            if self.excluded is not None:
                self.excluded.refuse(table.what, listed)
            self.frame = self.frame.join(self._within_reach(listed, own), on=list(PAIR), how="left")
        # An unscored row with a rank of its own moves no other; with another's it lets more than k into the top k.
        self._refuse_repeats(table, self.frame if self.asked.distinct else listed, own)
        self.depths[at] = depth
        if self.asked.complete and (unranked := count(self.frame, nw.col(own).is_null())):
            raise rules.incomplete(table.what, f"{unranked:,} scored rows have no rank")
        self.frame = self.frame.with_columns((nw.col(own).fill_null(float(depth + 1)) - 1.0).alias(h))
        self.frame = self.frame.with_columns(
            nw.lit(1.0).alias(f"e{at}"), (1.0 / (nw.col(h) + 1.0)).alias(f"harmonic{at}")
        )

    def _within_reach(self, listed: Any, own: str) -> Any:
        """The part of a list that the metrics look at: beyond the largest k no gain is left."""
        cuts = [m.k for m in self.asked.measures if m.on == "rank"] or [0]
        return listed if None in cuts else listed.filter(~(nw.col(own) > max(k for k in cuts if k is not None)))

    def _refuse_repeats(self, table: ModelTable, listed: Any, own: str) -> None:
        """Refuse a rank that two rows of a user share."""
        listed = listed.select("u", own).filter(~nw.col(own).is_null())
        if repeats(listed.select("u", nw.col(own).cast(nw.Int64()).alias("i"))):
            for suspect in self.suspects:
                suspect.refuse_repeats()
            raise rules.bad_ranks(table.what)

    def add_scores(self, at: int, table: ModelTable) -> None:
        """Full scores: ranks among the candidates, ties in expectation."""
        table.check()
        if not self.asked.distinct:
            table.refuse_repeats()
        scores = table.frame.select(*PAIR, nw.col(str(table.score)).alias(f"s{at}"))
        if self.excluded is not None:
            scores = scores.join(self.excluded.pairs, on=list(PAIR), how="anti")
        times = table.frame.select("u", nw.lit(1.0).alias("times")).group_by("u").agg(nw.col("times").sum())
        self.scored[at] = int(only_row(times.select(nw.col("times").min()))["times"] or 0)
        cuts = list(dict.fromkeys(m.k for m in self.asked.measures if m.on == "rank"))
        self.frame = self.frame.join(with_scores(scores, at, cuts).drop(f"s{at}"), on=list(PAIR), how="left")
        if gone := count(self.frame, nw.col(f"h{at}").is_null()):
            raise rules.incomplete(table.what, f"{gone:,} scored rows have no score")


def with_ranks(
    frame: Any, tables: Sequence[tuple[ModelTable, ModelTable]], asked: Question, excluded: ExcludedPairs | None
) -> Ranked:
    """Join what each model says of ranks, of its tables of scores and ranks the second; some models say nothing."""
    found = Ranked(frame=frame, asked=asked, excluded=excluded, suspects=[t for pair in tables for t in pair])
    for at, (_, table) in enumerate(tables) if "rank" in asked.kinds else ():
        if table.rank is not None:
            found.add_list(at, table)
        elif table.frame is not None and asked.complete:
            found.add_scores(at, table)
        else:
            continue
        found.ranks.add(at)
    return found


def _own_depth(what: str, frame: Any, column: str) -> int:
    """The deepest rank in a column of the log, which need not rank every row."""
    found = number_facts(frame, (), (), column)
    if not found["depth"] or found["odd"]:
        raise rules.bad_ranks(what)
    return int(found["depth"])
