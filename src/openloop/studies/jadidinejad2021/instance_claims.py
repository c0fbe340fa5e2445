"""What the paper claims about its instances of Simpson's paradox, as far as it holds here, and notes beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from openloop.studies.jadidinejad2021.chance_instances import PER_SPLIT, ChanceCounts, more_in_most
from openloop.studies.jadidinejad2021.instances import SettingInstances, Sides, added, mirrored
from openloop.studies.jadidinejad2021.method_rows import HOLDOUT, OPEN_LOOP, STRATA, STRATIFIED, MethodRows
from openloop.studies.jadidinejad2021.models import family_of
from openloop.studies.jadidinejad2021.published import NOTEBOOK_MOSTPOP, PUBLISHED
from openloop.studies.kit.results import Claim
from openloop.support.wording import counted, joined, percent

BATCHED = ("WMF", "GMF", "MLP", "NeuMF")  # families whose batches the published code leaves to chance
FEW_ITEMS = 0.05  # of all items: a very small minority
THAN_DEALT = "more often than where it is dealt out at random which models are ahead on an item"
FEW_PAIRS = 6  # of fewer, all on one side have a two-sided chance above 5 %: 2·½⁵ = 6 %, 2·½⁶ = 3 %
METHODS_NOTE = (
    "Strata, IPS and rankings are the published code's. It keeps no values per user of the stratified method, so how "
    "the paper tested that line is not known. Here its error comes from the users of the strata, with their shares as "
    "given."
)
CHANCE_NOTES = (
    "Pairs share models, so instances come in groups: their number is not a number of independent findings.",
    (
        "Chance: a difference near the limit of significance may be significant in a part of the ratings and not in "
        "all of them, whatever the part is. So instances are counted again with dealt gains: which models are ahead on "
        "an item, and by how many standard deviations of the models, is dealt out to the items at random. Q1 and Q2 "
        "remain, and so do how much the models gain on an item and how far they differ there. Then a model that is "
        "ahead in Q1 may as well be behind in Q2. A ranking that puts some items up puts others down: this counts as "
        "found, not as chance."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvidence:
    """What the claims of a table rest on, all as coded: by the paper's tests as they are (`plain`), and after Holm."""

    data: str
    pair: tuple[str, str]
    rows: tuple[MethodRows, ...]  # by split
    plain: SettingInstances
    adjusted: SettingInstances
    either: tuple[ChanceCounts, ...]  # by split, reversals and maskings
    reversals: tuple[ChanceCounts, ...]  # by split, reversals alone

    @property
    def over(self) -> str:
        """Over how many splits, where there are several."""
        return "" if len(self.either) == 1 else f", over {len(self.either)} splits of one log"

    @property
    def tested(self) -> str:
        """How instances are held against chance."""
        if len(self.either) == 1:
            return f"{THAN_DEALT} (one-sided test at {100 * PER_SPLIT:g} %, on the one split)"
        return (
            f"{THAN_DEALT} (one-sided tests at {100 * PER_SPLIT:g} %, in most splits; splits share a log, so by chance "
            f"at most {200 * PER_SPLIT:g} %)"
        )

    def gist(self, text: str) -> str:
        """For the top of the page, with how many instances of each kind there are."""
        return f"on {self.data}, {text} ({self.adjusted.words} after Holm{self.over})"


def instance_claims(found: InstanceEvidence) -> Iterator[Claim]:
    """What the paper says of its instances."""
    yield _few(found.rows[0])
    yield more_disagreement(found)
    yield more_reversals(found)
    yield _published_pair(found)
    for name, text in ((STRATIFIED, "the stratified evaluation"), (OPEN_LOOP, "the open loop")):
        if name in found.plain.sides:
            opposite = added([mirrored(rows, rows[name]) for rows in found.rows])
            yield replace(
                sided_claim(text, found.plain, found.plain.sides[name], opposite),
                gist=f"on {found.data}, where Q1 and all ratings disagree about two models, {text} sides with Q1",
            )


def more_disagreement(found: InstanceEvidence) -> Claim:
    """Instances after Holm must be more than with dealt gains, in most splits."""
    return Claim(
        text="differences that are significant in Q1 disappear or reverse over all ratings (section 7.1), after Holm "
        f"over all pairs, {found.tested}",
        holds=more_in_most(found.either),
        found=f"{found.adjusted.words} after Holm among {found.adjusted.pairs:,} pairs; {_dealt_words(found.either)}. "
        f"Without Holm, by the paper's tests, {found.plain.words}",
        gist=found.gist("Q1 and all ratings disagree about more pairs of models than by chance"),
    )  # fmt: skip


def more_reversals(found: InstanceEvidence) -> Claim:
    """The same of reversals alone: both differences are significant, and opposite."""
    return Claim(
        text="differences that are significant in Q1 reverse over all ratings and are significant there too, after "
        f"Holm over all pairs, {found.tested}",
        holds=more_in_most(found.reversals),
        found=f"{counted(found.adjusted.count('reversal'), 'reversal')} after Holm among {found.adjusted.pairs:,} "
        f"pairs; {_dealt_words(found.reversals)}",
        gist=found.gist("significant differences between models reverse more often than by chance"),
    )  # fmt: skip


def _dealt_words(splits: Sequence[ChanceCounts]) -> str:
    mean = np.mean([counts.drawn.mean() for counts in splits])
    tests = ", ".join(f"{counts.pvalue:.2f}" for counts in splits)
    p = f"p = {tests}" if len(splits) == 1 else f"p by split {tests}"
    return f"with dealt gains {mean:.2f} per split on average over {len(splits[0].drawn)} deals; {p}"


def _published_pair(found: InstanceEvidence) -> Claim:
    splits = len(found.plain.instances)
    times = sum(any({p.pair.a, p.pair.b} == set(found.pair) for p in split) for split in found.plain.instances)
    where = "in most splits" if splits > 1 else "(there is one split)"
    pair = f"{found.pair[0]} against {found.pair[1]}"
    return Claim(
        text=f"{pair} is an instance {where}", holds=2 * times > splits,
        found=f"in {times} of {counted(splits, 'split')}, by the paper's tests",
        gist=f"on {found.data}, the paper's pair, {pair}, is an instance by the paper's tests (in {times} of "
        f"{counted(splits, 'split')})",
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
    choice is a significant difference over all ratings where Q1 has the other sign. Fewer than FEW_PAIRS decide
    nothing.
    """
    total = sum(len(split) for split in found.instances)
    chosen = [(whom.majority, total), (opposite.majority, opposite.total)]
    against = any(of >= FEW_PAIRS and 2 * ahead <= of for ahead, of in chosen)
    few = [counted(of, "pair") for _, of in chosen if of < FEW_PAIRS and not against]
    return Claim(
        text=f"where Q1 and all ratings disagree about two models, {name} agrees with Q1 more often than not, whether "
        "the pairs are those significant in Q1 or those significant over all ratings",
        holds=not against,
        undecided=f"{' and '.join(few)} of a kind: fewer than {FEW_PAIRS} on one side may be chance" if few else "",
        found=(
            f"of those significant in Q1, by the paper's tests, {_side_words(whom, total)}; of those significant over "
            f"all ratings and not in Q1, {_side_words(opposite, opposite.total)}"
        ),
    )  # fmt: skip


def _side_words(whom: Sides, total: int) -> str:
    return (
        f"it has Q1's model ahead in {whom.majority:,} of {counted(total, 'pair')} ({whom.clear_majority:,} "
        f"significantly) and the other one in {whom.aggregate:,} ({whom.clear_aggregate:,})"
    )


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
    torch = [family for family in BATCHED if family in map(family_of, models)]
    yield METHODS_NOTE
    if torch:
        verb = "is" if len(torch) == 1 else "are"
        yield f"{joined(torch)} {verb} trained with PyTorch here, with TensorFlow in the paper."
    yield from CHANCE_NOTES
