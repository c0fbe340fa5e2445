"""What the paper claims about its instances of Simpson's paradox, as far as it holds here, and notes beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from openloop.studies.jadidinejad2021.chance_instances import ChanceCounts
from openloop.studies.jadidinejad2021.instances import SettingInstances, Sides, added, mirrored
from openloop.studies.jadidinejad2021.method_rows import HOLDOUT, OPEN_LOOP, STRATA, STRATIFIED, MethodRows
from openloop.studies.jadidinejad2021.models import family_of
from openloop.studies.jadidinejad2021.published import NOTEBOOK_MOSTPOP, PUBLISHED
from openloop.studies.kit.results import Claim
from openloop.support.wording import counted, joined, percent

FEW_ITEMS = 0.05  # of all items: a very small minority


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvidence:
    """What the claims of a table rest on, all as coded: by the paper's tests as they are (`plain`), and after Holm."""

    data: str
    pair: tuple[str, str]
    rows: tuple[MethodRows, ...]  # by split
    plain: SettingInstances
    adjusted: SettingInstances
    chance: tuple[ChanceCounts, ...]  # by split


def instance_claims(found: InstanceEvidence) -> Iterator[Claim]:
    """What the paper says of its instances."""
    yield _few(found.rows[0])
    yield more_than_chance(found)
    splits = len(found.plain.instances)
    times = sum(any({p.pair.a, p.pair.b} == set(found.pair) for p in split) for split in found.plain.instances)
    yield Claim(
        text=f"{found.pair[0]} against {found.pair[1]} is an instance in most splits", holds=2 * times > splits,
        found=f"in {times} of {counted(splits, 'split')}, by the paper's tests",
    )  # fmt: skip
    for name, text in ((STRATIFIED, "the stratified evaluation"), (OPEN_LOOP, "the open loop")):
        if name in found.plain.sides:
            opposite = added([mirrored(rows, rows[name]) for rows in found.rows])
            yield sided_claim(text, found.plain, found.plain.sides[name], opposite)


def more_than_chance(found: InstanceEvidence) -> Claim:
    """Instances after Holm must be more than with a Q2 of random items, in most splits."""
    more = [counts.more for counts in found.chance]
    drawn = np.mean([counts.drawn.mean() for counts in found.chance])
    tests = ", ".join(f"{counts.pvalue:.2f}" for counts in found.chance)
    return Claim(
        text="differences that are significant in Q1 disappear or reverse over all ratings (section 7.1), after Holm "
        "over all pairs, more often than where Q2 is made up of random items (5 %, one-sided); in most splits",
        holds=2 * sum(more) > len(more),
        found=f"{found.adjusted.words} after Holm among {found.adjusted.pairs:,} pairs; with random items "
        f"{drawn:.2f} per split on average over {len(found.chance[0].drawn)} draws; p by split {tests}. Without Holm, "
        f"by the paper's tests, {found.plain.words}",
        gist="" if found.data != "coat" else "coat: Simpson's paradox between models occurs more often than by chance",
    )  # fmt: skip


def _few(rows: MethodRows) -> Claim:
    head, whole = rows.get(STRATA[1]), rows[HOLDOUT]
    if head is None:
        return Claim(text="a very small minority of items makes up Q2", holds=False, found="Q2 has no relevant cells")
    return Claim(
        text="a very small minority of items makes up Q2, and Q1 is most of the ratings",
        holds=head.items < FEW_ITEMS * whole.items and head.rows < 0.5 * whole.rows,
        found=f"Q2 has {head.items:,} of {whole.items:,} items and {percent(head.rows / whole.rows)} of the ratings",
    )


def sided_claim(name: str, found: SettingInstances, whom: Sides, opposite: Sides) -> Claim:
    """A method must side with Q1 in most instances, and in most of the pairs that are chosen the opposite way.

    An instance is chosen for a significant Q1, which alone makes any method likely to agree with Q1. The opposite
    choice is a significant difference over all ratings where Q1 has the other sign.
    """
    total = sum(len(split) for split in found.instances)
    return Claim(
        text=f"where Q1 and all ratings order two models differently, {name} has the model ahead that Q1 prefers: in "
        "most instances (Q1 significant), and in most pairs of the opposite choice (all ratings significant, Q1 not)",
        holds=2 * whom.majority > total and opposite.majority > opposite.aggregate,
        found=(
            f"in {whom.majority:,} of {counted(total, 'instance')} by the paper's tests ({whom.clear_majority:,} "
            f"significantly), the other model in {whom.aggregate:,} ({whom.clear_aggregate:,}); of the opposite choice "
            f"in {opposite.majority:,} of {counted(opposite.total, 'pair')} ({opposite.clear_majority:,} "
            f"significantly), the other model in {opposite.aggregate:,} ({opposite.clear_aggregate:,})"
        ),
    )  # fmt: skip


# -- notes ---------------------------------------------------------------------------------------------------


def instance_notes(item: str, models: Sequence[str], rows: MethodRows) -> Iterator[str]:
    """What a reader should know about a table, whose rows as coded in the first split are given."""
    yield from _popular(item, models, rows)
    yield from _model_notes(models)


def _popular(item: str, models: Sequence[str], rows: MethodRows) -> Iterator[str]:
    """What Table 2's first model is like."""
    if item == "table2" and "MostPop" in models:
        at = models.index("MostPop")
        values = ", ".join(f"{name} {row.value[at]:.3f}" for name, row in rows.items())
        printed = {name: PUBLISHED["table2"]["lines"][name][0] for name in NOTEBOOK_MOSTPOP}
        theirs, bpr = (joined([f"{n} {x:.3f}" for n, x in values.items()]) for values in (NOTEBOOK_MOSTPOP, printed))
        yield (
            f"MostPop, for comparison: {values}. The paper's notebook has {theirs} for it, and Table 2 {bpr} for "
            "BPR10, which by these values ranks nearly by popularity."
        )


def _model_notes(models: Sequence[str]) -> Iterator[str]:
    yield (
        "Strata, IPS and rankings are the published code's. It keeps no values per user of the stratified method, so "
        "how the paper tested that line is not known. Here its error comes from the users of the strata, with their "
        "shares as given."
    )
    torch = [family for family in ("WMF", "GMF", "MLP", "NeuMF") if family in map(family_of, models)]
    if torch:
        verb = "is" if len(torch) == 1 else "are"
        yield f"{joined(torch)} {verb} trained with PyTorch here, with TensorFlow in the paper."
    yield "Pairs share models, so instances come in groups: their number is not a number of independent findings."
    yield (
        "Chance: a difference near the limit of significance may be significant in a part of the ratings and not in "
        "all of them, whatever the part is. So instances are counted again with a Q2 of items drawn at random, until "
        "they have as many relevant ratings as the real Q2; Q1 is the rest."
    )
