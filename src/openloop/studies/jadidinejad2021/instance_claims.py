"""What the paper claims about its instances of Simpson's paradox, as far as it holds here, and notes beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from openloop.studies.jadidinejad2021.instances import SettingInstances, Sides, added, mirrored
from openloop.studies.jadidinejad2021.method_rows import HOLDOUT, OPEN_LOOP, STRATA, STRATIFIED, MethodRows
from openloop.studies.jadidinejad2021.models import family_of
from openloop.studies.kit.results import Claim
from openloop.support.wording import counted, joined, percent

BATCHED = ("WMF", "GMF", "MLP", "NeuMF")  # families whose batches the published code leaves to chance
FEW_ITEMS = 0.05  # of all items: a very small minority
FEW_PAIRS = 6  # of fewer, all on one side have a two-sided chance above 5 %: 2·½⁵ = 6 %, 2·½⁶ = 3 %
METHODS_NOTE = (
    "Strata, IPS and rankings are the published code's. It keeps no values per user of the stratified method, so how "
    "the paper tested that line is not known. Here its error comes from the users of the strata, with their shares as "
    "given."
)
GROUPS_NOTE = (
    "Pairs share models, so instances come in groups: their number is not a number of independent findings. Nor is it "
    "held against chance: a difference near the limit of significance may be significant in a part of the ratings and "
    "not in all of them, whatever the part is."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvidence:
    """What the claims of a table rest on, all as coded: by the paper's tests as they are (`plain`), and after Holm."""

    data: str
    pair: tuple[str, str]
    rows: tuple[MethodRows, ...]  # by split
    plain: SettingInstances
    adjusted: SettingInstances

    @property
    def over(self) -> str:
        """Over how many splits, where there are several."""
        return "" if len(self.rows) == 1 else f", over {len(self.rows)} splits of one log"

    @property
    def where(self) -> str:
        """In how many splits a claim must hold."""
        return "in most splits" if len(self.rows) > 1 else "on the one split"

    def gist(self, text: str) -> str:
        """For the top of the page, with how many instances of each kind there are."""
        return f"on {self.data}, {text} ({self.adjusted.words} after Holm{self.over})"


def instance_claims(found: InstanceEvidence) -> Iterator[Claim]:
    """What the paper says of its instances."""
    yield _few(found.rows[0])
    yield disagreement(found)
    yield reversals(found)
    yield _published_pair(found)
    for name, text in ((STRATIFIED, "the stratified evaluation"), (OPEN_LOOP, "the open loop")):
        if name in found.plain.sides:
            opposite = added([mirrored(rows, rows[name]) for rows in found.rows])
            yield replace(
                sided_claim(text, found.plain, found.plain.sides[name], opposite),
                gist=f"on {found.data}, where Q1 and all ratings disagree about two models, {text} sides with Q1",
            )


def disagreement(found: InstanceEvidence) -> Claim:
    """There are instances after Holm, in most splits."""
    return Claim(
        text="differences that are significant in Q1 disappear or reverse over all ratings (section 7.1), after Holm "
        f"over all pairs, {found.where}",
        holds=in_most_splits(found.adjusted, ("reversal", "masking")),
        found=f"{found.adjusted.words} after Holm among {found.adjusted.pairs:,} pairs. Without Holm, by the paper's "
        f"tests, {found.plain.words}",
        gist=found.gist("Q1 and all ratings disagree about pairs of models"),
    )  # fmt: skip


def reversals(found: InstanceEvidence) -> Claim:
    """The same of reversals alone: both differences are significant, and opposite."""
    return Claim(
        text="differences that are significant in Q1 reverse over all ratings and are significant there too, after "
        f"Holm over all pairs, {found.where}",
        holds=in_most_splits(found.adjusted, ("reversal",)),
        found=f"{counted(found.adjusted.count('reversal'), 'reversal')} after Holm among {found.adjusted.pairs:,} "
        "pairs",
        gist=found.gist("significant differences between models reverse"),
    )  # fmt: skip


def in_most_splits(found: SettingInstances, kinds: Collection[str]) -> bool:
    """Whether more than half of the splits have an instance of one of these kinds."""
    times = sum(any(paradox.kind in kinds for paradox in split) for split in found.instances)
    return 2 * times > len(found.instances)


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


def instance_notes(models: Sequence[str]) -> Iterator[str]:
    """What a reader should know about a table."""
    torch = [family for family in BATCHED if family in map(family_of, models)]
    yield METHODS_NOTE
    if torch:
        verb = "is" if len(torch) == 1 else "are"
        yield f"{joined(torch)} {verb} trained with PyTorch here, with TensorFlow in the paper."
    yield GROUPS_NOTE
