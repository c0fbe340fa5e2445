"""What the paper claims about its instances of Simpson's paradox, as far as it holds here, and notes beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openloop.studies.jadidinejad2021.instances import SettingInstances, Sides, added, mirrored
from openloop.studies.jadidinejad2021.method_rows import HOLDOUT, OPEN_LOOP, STRATA, STRATIFIED, MethodRows
from openloop.studies.jadidinejad2021.published import NOTEBOOK_MOSTPOP, PUBLISHED
from openloop.studies.kit.results import Claim
from openloop.support.wording import counted, joined, percent

FEW_ITEMS = 0.05  # of all items: a very small minority


def instance_claims(
    pair: tuple[str, str], rows: MethodRows, plain: SettingInstances, adjusted: SettingInstances
) -> Iterator[Claim]:
    """What the paper says of its instances; as coded, by its tests as they stand (`plain`), and after Holm."""
    yield _few(rows)
    yield Claim(
        text="differences that are significant in Q1 disappear or reverse over all ratings (section 7.1)",
        holds=any(plain.instances),
        found=f"{plain.words} among {plain.pairs:,} pairs by the paper's tests, {adjusted.words} after Holm",
    )
    splits = len(plain.instances)
    times = sum(any({p.pair.a, p.pair.b} == set(pair) for p in split) for split in plain.instances)
    yield Claim(
        text=f"{pair[0]} against {pair[1]} is an instance in most splits", holds=2 * times > splits,
        found=f"in {times} of {counted(splits, 'split')}, by the paper's tests",
    )  # fmt: skip
    for name, text in (
        (STRATIFIED, "the stratified evaluation has the model ahead that Q1 prefers"),
        (OPEN_LOOP, "the open loop has the model ahead that Q1 prefers"),
    ):
        if name in plain.sides:
            yield _sided_claim(text, plain, plain.sides[name])


def _few(rows: MethodRows) -> Claim:
    head, whole = rows.get(STRATA[1]), rows[HOLDOUT]
    if head is None:
        return Claim(text="a very small minority of items makes up Q2", holds=False, found="Q2 has no relevant cells")
    return Claim(
        text="a very small minority of items makes up Q2, and Q1 is most of the ratings",
        holds=head.items < FEW_ITEMS * whole.items and head.rows < 0.5 * whole.rows,
        found=f"Q2 has {head.items:,} of {whole.items:,} items and {percent(head.rows / whole.rows)} of the ratings",
    )


def _sided_claim(text: str, found: SettingInstances, whom: Sides) -> Claim:
    total = sum(len(split) for split in found.instances)
    return Claim(
        text=f"{text}, where all ratings hide or reverse it", holds=whom.majority > whom.aggregate,
        found=(
            f"in {whom.majority} of {counted(total, 'instance')} by the paper's tests ({whom.clear_majority} "
            f"significantly); the other model in {whom.aggregate} ({whom.clear_aggregate})"
        ),
    )  # fmt: skip


# -- notes ---------------------------------------------------------------------------------------------------


def instance_notes(item: str, models: Sequence[str], splits: Sequence[MethodRows]) -> Iterator[str]:
    """What a reader should know about a table, whose rows as coded are given by split."""
    yield from _popular(item, models, splits[0])
    yield from _mirror_notes(splits)
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


def _mirror_notes(splits: Sequence[MethodRows]) -> Iterator[str]:
    """Instances are chosen for what Q1 says; the open loop is asked about the opposite choice too."""
    if OPEN_LOOP not in splits[0]:
        return
    whom = added([mirrored(rows, rows[OPEN_LOOP]) for rows in splits])
    with_q1 = f"{whom.majority:,} ({whom.clear_majority:,} significantly)"
    yield (
        "An instance is chosen for a significant Q1, which alone makes the open loop likely to agree with it. As a "
        "check, the opposite choice, all ratings significant and Q1 the other way, not significantly: of "
        f"{whom.total:,} such pairs the open loop sides with Q1 in {with_q1} and with all ratings in "
        f"{whom.aggregate:,} ({whom.clear_aggregate:,})."
    )


def _model_notes(models: Sequence[str]) -> Iterator[str]:
    yield (
        "Strata, IPS and rankings are the published code's; it keeps no users' values of the stratified method, so how "
        "the paper tested that line is not known. Here its error comes of the strata's users, with shares as given."
    )
    if any(model.startswith("WMF") for model in models):
        yield (
            "WMF is solved by least squares here, where the paper's code stops after 100 epochs of Adam: not the same "
            "model, so that its numbers need not be the paper's."
        )
    if any(model.startswith(("GMF", "NeuMF", "MLP")) for model in models):
        yield "GMF, MLP and NeuMF are trained with PyTorch here, with TensorFlow in the paper."
    yield "Pairs share models, so that instances come in groups: their number is no number of independent findings."
