"""Ranks beside the rows of a log frame: from lists, or from the scores of all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from openloop.kernels import ties
from openloop.sources import rules
from openloop.sources.frames.collecting import Fact, FrameTally
from openloop.sources.frames.facts import count, item_ends, repeats
from openloop.sources.frames.holding import held
from openloop.sources.frames.model_tables import ModelTable, number_facts, rank_pairs
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.frames.predicting import beside_pairs, without_pairs
from openloop.sources.frames.rows import discount_name, gain_name, with_scores
from openloop.sources.question import Question
from openloop.support.frames import absent, collected, flag, only_row, table_beside


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedPairs:
    """The pairs that leave the ranking, less the scored ones: the item being ranked always is a candidate."""

    given: Any  # with the scored ones, each once
    pairs: Any
    counted: FrameTally  # (u, excluded): how many items leave the ranking of each user
    facts: Fact  # scored: rows that are scored too; and the least and largest item, where ids are integers
    parts: Division = WHOLE
    listed: dict[str, Fact] = field(default_factory=dict[str, Fact])  # how many of them a model's list holds

    @classmethod
    def of(cls, pairs: Any, scored: Any, until: ExitStack, parts: Division = WHOLE) -> ExcludedPairs:
        """The excluded pairs of a log frame, which many queries read."""
        scored = scored.select(*PAIR, nw.lit(1.0).alias("scored"))
        marked = held(parts.each(lambda own, scored: beside_pairs(own.unique(), scored), pairs, scored), until)
        left = marked.filter(nw.col("scored").is_null()).select(*PAIR)
        return cls(
            given=marked.select(*PAIR),
            pairs=left,
            parts=parts,
            counted=_counted(left),
            facts=Fact(lambda: FrameTally(frame=marked, totals={"scored": ("scored", "sum"), **item_ends(marked)})),
        )

    @property
    def counts(self) -> Any:
        """The frame of `counted`."""
        return self.counted.query

    @property
    def overlap(self) -> int:
        """How many scored rows are excluded too."""
        return int(self.facts.row["scored"] or 0)

    def counted_beside(self, frame: Any) -> Any:
        """The frame with the number of items that its row's user has excluded."""
        joined = self.parts.each(
            lambda own, pairs: own.join(_counted(pairs).query, on="u", how="left"), frame, self.pairs
        )
        return joined.with_columns(nw.col("excluded").fill_null(0.0))

    def within(self, table: ModelTable) -> Fact:
        """How many of the pairs a model's table holds."""
        if table.model not in self.listed:
            self.listed[table.model] = Fact(lambda: FrameTally.sums(self._inside(table), ["n"]))
        return self.listed[table.model]

    def _inside(self, table: ModelTable) -> Any:
        own = table.frame.select(*PAIR, n=nw.lit(1.0))
        return self.parts.each(lambda own, pairs: own.join(pairs, on=list(PAIR), how="inner"), own, self.pairs)

    def refuse(self, table: ModelTable) -> None:
        """Refuse a list that holds some of the pairs."""
        if found := int(self.within(table).row["n"] or 0):
            raise rules.ranks_excluded(table.what, found)


def _counted(pairs: Any) -> FrameTally:
    """How many pairs each user has, as `excluded`."""
    return FrameTally.sums(pairs.with_columns(nw.lit(1.0).alias("excluded")), ["excluded"], by=["u"])


@dataclass(slots=True, kw_only=True)
class Ranked:
    """The frame in the making: h and e of each model that ranks."""

    frame: Any
    asked: Question
    excluded: ExcludedPairs | None
    suspects: Sequence[ModelTable]  # whose repeated pairs repeat ranks
    parts: Division
    ranks: set[int] = field(default_factory=set[int])  # positions of the models that rank
    depths: dict[int, int] = field(default_factory=dict[int, int])  # of lists
    scored: dict[int, int] = field(default_factory=dict[int, int])  # ranked by scores: the fewest that a user has
    counted: dict[int, int] = field(default_factory=dict[int, int])  # ranked by counts: the most candidates of a user

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
            if self.excluded is not None and not self.asked.checked:
                self.excluded.refuse(table)
            self.frame = self.parts.each(beside_pairs, self.frame, self._within_reach(listed, own))
        # An unscored row with a unique rank moves no other row; with a repeated rank, more than k are in the top k.
        if not self.asked.checked:
            self._refuse_repeats(table, self.frame if self.asked.distinct else listed, own)
        self.depths[at] = depth
        if self.asked.complete and (unranked := count(self.frame, nw.col(own).is_null())):
            raise rules.incomplete(table.what, f"{unranked:,} scored rows have no rank")
        self.frame = self.frame.with_columns((nw.col(own).fill_null(float(depth + 1)) - 1.0).alias(h))
        self.frame = self.frame.with_columns(
            nw.lit(1.0).alias(f"e{at}"), (1.0 / (nw.col(h) + 1.0)).alias(f"harmonic{at}")
        )
        self._by_rank(at, depth + 1, tied=False)

    def _within_reach(self, listed: Any, own: str) -> Any:
        """The part of a list that the metrics look at: beyond the largest k no gain is left."""
        cuts = [m.k for m in self.asked.measures if m.on == "rank"] or [0]
        return listed if None in cuts else listed.filter(~(nw.col(own) > max(k for k in cuts if k is not None)))

    def _refuse_repeats(self, table: ModelTable, listed: Any, own: str) -> None:
        """Refuse a rank that two rows of a user share."""
        counted = table.ranked_twice if _lists_apart(table, self.asked) else None
        if repeats(rank_pairs(listed, own), counted, self.parts):
            for suspect in self.suspects:
                suspect.refuse_repeats(self.parts)
            raise rules.bad_ranks(table.what)

    def add_scores(self, at: int, table: ModelTable) -> None:
        """Full scores: ranks among the candidates, ties in expectation."""
        table.check()
        if not self.asked.distinct:
            table.refuse_repeats(self.parts)
        scores = table.frame.select(*PAIR, nw.col(str(table.score)).alias(f"s{at}"))
        times = table.frame.select("u", nw.lit(1.0).alias("times")).group_by("u").agg(nw.col("times").sum())
        found = only_row(times.select(nw.col("times").min(), most=nw.col("times").max()))
        self.scored[at] = int(found["times"] or 0)
        excluded = [] if self.excluded is None else [self.excluded.pairs]
        self.frame = self.parts.each(partial(self._scored_beside, at), self.frame, scores, *excluded)
        if gone := count(self.frame, nw.col(f"h{at}").is_null()):
            raise rules.incomplete(table.what, f"{gone:,} scored rows have no score")
        self._expect(at, self.frame)
        self._by_rank(at, int(found["most"] or 0))

    def _scored_beside(self, at: int, frame: Any, scores: Any, *excluded: Any) -> Any:
        return beside_pairs(frame, with_scores(without_pairs(scores, *excluded), at).drop(f"s{at}"))

    @property
    def _cuts(self) -> list[int | None]:
        return list(dict.fromkeys(m.k for m in self.asked.measures if m.on == "rank" and m.by_rank is None))

    def _by_rank(self, at: int, last: int, *, tied: bool = True) -> None:
        """The expected gains of functions of the rank, down to rank `last`, looked up at both ends of tied blocks.

        (F[h+e] − F[h])/e with F the cumulated gain; a single item has its own gain, f(h+1).
        """
        gains = [m.by_rank for m in self.asked.measures if m.by_rank is not None]
        if not gains:
            return
        h, e = f"h{at}", f"e{at}"
        tables = {gain_name(at, gain): gain.table(last) for gain in gains}
        start = {h: np.arange(0.0, last)} | tables
        ends = {"end": np.arange(0.0, last + 1)}
        for name, f in tables.items() if tied else ():
            F = np.concatenate([[0.0], np.cumsum(f)])
            start[f"from:{name}"], ends[f"to:{name}"] = F[:-1], F
        self.frame = self.frame.join(table_beside(self.frame, start), on=h, how="left")
        if not tied:
            return
        self.frame = self.frame.with_columns((nw.col(h) + nw.col(e)).alias("end"))
        self.frame = self.frame.join(table_beside(self.frame, ends), on="end", how="left")
        block = {name: (nw.col(f"to:{name}") - nw.col(f"from:{name}")) / nw.col(e) for name in tables}
        chosen = {name: nw.when(nw.col(e) > 1).then(own).otherwise(nw.col(name)) for name, own in block.items()}
        left = [f"{side}:{name}" for side in ("from", "to") for name in tables]
        self.frame = self.frame.with_columns(**chosen).drop("end", *left)

    def add_counts(self, at: int, table: ModelTable) -> None:
        """Candidates above and tied, counted where all were ranked: only scored rows need them."""
        h, e = f"h{at}", f"e{at}"
        if table.frame is None:
            own = [
                nw.col(f"log:{column}").cast(nw.Float64()).alias(key)
                for column, key in zip(table.counts, (h, e), strict=True)
            ]
            self.frame = self.frame.with_columns(*own)
            counts = self.frame.select(h, e)
        else:
            table.check()
            counts = table.frame.select(*PAIR, **{h: nw.col(str(table.above)), e: nw.col(str(table.tied))})
            self.frame = self.parts.each(beside_pairs, self.frame, counts)
        odd, tied = _odd_and_tied(counts, h, e)
        if odd:
            raise rules.bad_counts(table.what, table.counts, odd)
        self.counted[at] = self._most_candidates(table, h, e)
        self._expect(at, counts if tied else None)
        self._by_rank(at, self.counted[at], tied=tied > 0)

    def _most_candidates(self, table: ModelTable, above: str, tied: str) -> int:
        """The largest number of items that counts of scored rows imply, including the items excluded for the user."""
        h, e = nw.col(above), nw.col(tied)
        others = nw.lit(0.0) if self.excluded is None else nw.col("excluded")
        rows = self.frame.select(gone=flag(h.is_null() | e.is_null()), most=h + e + others)
        found = only_row(rows.select(nw.col("gone").sum(), nw.col("most").max()))
        if gone := int(found["gone"] or 0):
            raise rules.incomplete(table.what, f"{gone:,} scored rows have no counts")
        return int(found["most"] or 0)

    def _expect(self, at: int, counts: Any | None) -> None:
        """Expectations over tied blocks, by a table of the blocks that are there; a single item has its own rank."""
        h, e, inverse = f"h{at}", f"e{at}", f"harmonic{at}"
        plain = {inverse: 1.0 / (nw.col(h) + 1.0)}
        for k in self._cuts:
            gain = 1.0 / (nw.col(h) + 2.0).log(2)
            name = discount_name(at, k)
            plain[name] = gain if k is None else nw.when(nw.col(h) < k).then(gain).otherwise(nw.lit(0.0))
        table = None if counts is None else collected(counts.filter(nw.col(e) > 1).select(h, e).unique())
        if table is None or not len(table):
            self.frame = self.frame.with_columns(**plain)
            return
        above, tied = (table[name].to_numpy().astype(np.int64) for name in (h, e))
        known = {f"block:{discount_name(at, k)}": ties.expected_discount(above, tied, k) for k in self._cuts}
        known |= {
            h: above.astype(np.float64),
            e: tied.astype(np.float64),
            f"block:{inverse}": ties.harmonic(above, tied),
        }
        joined = self.frame.join(table_beside(self.frame, known), on=[h, e], how="left")
        chosen = {
            name: nw.when(nw.col(e) > 1).then(nw.col(f"block:{name}")).otherwise(single)
            for name, single in plain.items()
        }
        self.frame = joined.with_columns(**chosen).drop(*(f"block:{name}" for name in plain))


def _lists_apart(table: ModelTable, asked: Question) -> bool:
    """Whether all ranks of a table are looked at, not only those beside the log."""
    return table.frame is not None and not asked.distinct


def foreseen(table: ModelTable, asked: Question, excluded: ExcludedPairs | None) -> list[Fact]:
    """The facts that `with_ranks` will ask for about a table."""
    listed = table.frame is not None and table.rank is not None and not (table.counts and asked.complete)
    if not listed or asked.checked or "rank" not in asked.kinds:
        return []
    found = [table.ranked_twice] if _lists_apart(table, asked) else []
    return found if excluded is None else [*found, excluded.within(table)]


def with_ranks(
    frame: Any,
    tables: Sequence[tuple[ModelTable, ModelTable]],
    asked: Question,
    excluded: ExcludedPairs | None,
    parts: Division = WHOLE,
) -> Ranked:
    """Join what each model says of ranks, of its tables of scores and ranks the second; some models say nothing."""
    suspects = [table for pair in tables for table in pair]
    found = Ranked(frame=frame, asked=asked, excluded=excluded, suspects=suspects, parts=parts)
    for at, (_, table) in enumerate(tables) if "rank" in asked.kinds else ():
        if table.counts and asked.complete:
            found.add_counts(at, table)
        elif table.rank is not None:
            found.add_list(at, table)
        elif table.frame is not None and table.score is not None and asked.complete:
            found.add_scores(at, table)
        else:
            continue
        found.ranks.add(at)
    return found


def _odd_and_tied(counts: Any, above: str, tied: str) -> tuple[int, int]:
    """How many rows have impossible counts, and how many have ties; rows without any counts are ignored."""
    h, e = nw.col(above), nw.col(tied)
    bad = absent(h) | absent(e) | (h < 0) | (e < 1) | (h != h.floor()) | (e != e.floor()) | (h + e > rules.LARGEST)
    flags = {"odd": flag(bad & ~(h.is_null() & e.is_null())), "tied": flag(~absent(e) & (e > 1))}
    found = only_row(counts.select(**flags).select(nw.col("odd").sum(), nw.col("tied").sum()))
    return int(found["odd"] or 0), int(found["tied"] or 0)


def _own_depth(what: str, frame: Any, column: str) -> int:
    """The deepest rank in a column of the log, which need not rank every row."""
    found = number_facts(frame, (), (), column)
    if not found["depth"] or found["odd"]:
        raise rules.bad_ranks(what)
    return int(found["depth"])
