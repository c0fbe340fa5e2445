"""What Table 6 claims, as far as it holds here, and what a reader should know about its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.agreement import EVERY, Agreement
from openloop.studies.jadidinejad2021.experiment import Experiment
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.kit.results import Claim
from openloop.support.wording import joined

NEAR = 0.1  # mean distance of τ, as coded, from the published table, that is its neighbourhood
RIVAL = "as coded: q1"  # the published method that Table 6 has ahead by nDCG

TausByCut = dict[str, dict[str, Floats]]  # τ of each method at each cut, (R,)


def claims(data: str, coded: TausByCut, agreed: Agreement) -> Iterator[Claim]:
    """Whether Table 6 comes out as coded, and whether ours agree better with the open loop."""
    published = PUBLISHED["table6"]["tau"].get(data)
    if published:
        gaps = np.array([[coded[c][m].mean() for m in METHODS] for c in CUTS]) - np.array([published[c] for c in CUTS])
        yield Claim(
            text=f"{data}: as coded, Table 6 comes out in its neighbourhood (on average within {NEAR:g})",
            holds=np.abs(gaps).mean() <= NEAR,
            found=f"on average {np.abs(gaps).mean():.3f} apart, at most {np.abs(gaps).max():.3f}",
        )
    t = {name: coded["ndcg"][name].mean() for name in METHODS}
    yield Claim(
        text=f"{data}: as coded, by nDCG, Q1 agrees best with the open loop, then stratified, holdout, and Q2",
        holds=t["q1"] > t["stratified"] > t["holdout"] > t["q2"],
        found=", ".join(f"{name} {value:.3f}" for name, value in t.items()),
    )
    for target, text in (
        ("published", "with the open loop as published"),
        ("candidates", "with an open loop that leaves training items out"),
    ):
        yield ahead_of_all(data, agreed, target, text)


def ahead_of_all(data: str, agreed: Agreement, target: str, text: str) -> Claim:
    """The claim for the one of ours that halves of the users pick most often, and for what each half picks, blind."""
    blind = agreed.chosen_blind(target)
    margins = {name: agreed.ahead(blind.picked, name, target) for name in agreed.theirs}
    clear = sum(margin.interval[0] > 0 for margin in margins.values())
    least = min(margins, key=lambda name: margins[name].interval[0])
    shown = dict.fromkeys((least, agreed.best(agreed.theirs, target), RIVAL))
    return Claim(
        text=f"{data}: {text}, one of ours, chosen after looking, agrees better than each published method (paired, "
        "95 % limits); and ours are still ahead on users who did not choose them",
        holds=clear == len(margins) and blind.value > 0,
        found=f"{blind.picked}, chosen after looking, has τ {agreed.mean(blind.picked, target)[0]:.3f} and is ahead of "
        f"{clear} of {len(margins)} published methods with a lower limit above 0; "
        f"{'; '.join(f'of {name} by {margins[name]}' for name in shown)}. Picked on half of the users and compared on "
        f"the other half, ours is ahead of theirs by {blind}",
    )  # fmt: skip


# -- notes ---------------------------------------------------------------------------------------------------


def notes(found: Experiment, coded: TausByCut, marks: dict[str, dict[str, str]], agreed: Agreement) -> Iterator[str]:
    """What a reader should know about the numbers of one data set."""
    yield from _gain(found.name, coded)
    yield _repeated(found)
    yield from same_marks(found.name, marks)
    yield _chance(found.name, agreed)
    yield _by_sense(found.name, agreed)
    yield _recommended(found.name, agreed)


def _gain(data: str, coded: TausByCut) -> Iterator[str]:
    """The abstract's gain beside ours."""
    if data in PUBLISHED["table6"]["gain"]:
        taus = PUBLISHED["table6"]["tau"][data]["ndcg"]
        ours = [coded["ndcg"][name].mean() for name in ("stratified", "holdout")]
        yield (
            f"{data}: the abstract's gain of {PUBLISHED['table6']['gain'][data]} % is τ {taus[2]:.3f} of "
            f"stratified over {taus[0]:.3f} of holdout, by nDCG; as coded, here, {ours[0]:.3f} and {ours[1]:.3f}."
        )


def _repeated(found: Experiment) -> str:
    """How many ratings of the open loop are in the log as well, and what leaving them out does to the ranking."""
    given = found.fits.given
    width = int(given["shape"][1])
    log, drawn = (given[f"{part}user"].astype(np.int64) * width + given[f"{part}item"] for part in ("", "open_"))
    _, in_log, in_drawn = np.intersect1d(log, drawn, return_indices=True)
    same = int(np.sum(given["rating"][in_log] == given["open_rating"][in_drawn]))
    published, unseen = (found.splits[0].targets[name](None).value for name in ("published", "unseen"))
    agree = tau_b(published, unseen)
    return (
        f"{found.name}: {len(in_log):,} of the open loop's {len(drawn):,} ratings are in the log too, {same:,} of them "
        "with the same number of stars. By the code every model was trained on them, and they count, so a model may "
        f"gain by remembering them. With them (published) and without (unseen) models rank alike with τ {agree:.3f}."
    )


def same_marks(data: str, marks: dict[str, dict[str, str]]) -> Iterator[str]:
    """In how many pairs and cuts the test as coded says in the first split what Table 6 says."""
    published = PUBLISHED["table6"]["differs"].get(data)
    if published is None:
        return
    others, same = len(METHODS) - 1, 0
    for cut in CUTS:
        for name, printed in zip(METHODS, published[cut], strict=True):
            here, theirs = ({int(n) for n in text.split("/") if n} for text in (marks[cut][name], printed))
            same += others - len(here ^ theirs)
    yield (
        f"{data}: whether two methods differ, by the test as coded, comes out in the first split as Table 6 says in "
        f"{same // 2} of {len(CUTS) * len(METHODS) * others // 2} pairs."
    )


def _chance(data: str, agreed: Agreement) -> str:
    """How well the open loop agrees with itself."""
    found = joined([f"{value:.2f} ({target})" for target, value in zip(TARGETS, agreed.halves, strict=True)])
    return (
        f"{data}: how much of the ranking is chance. Between half of the users and the other half, the open loop's "
        f"rankings agree with τ {found}; half of the users are noisier than all of them."
    )


def _by_sense(data: str, agreed: Agreement) -> str:
    """Which of ours and of theirs is best in each sense of the open loop."""

    def best(methods: list[str], target: str) -> str:
        name = agreed.best(methods, target)
        return f"{name} ({agreed.mean(name, target)[0]:.3f})"

    found = [f"{t}: {best(agreed.ours, t)}, against {best(agreed.theirs, t)}" for t in TARGETS]
    return (
        f"{data}, the best of ours against the best published by sense of the open loop, picked after looking: "
        f"{'; '.join(found)}. Where trained-on ratings count in the open loop, models that remember them may "
        "gain by it; a held-out part has none, and cannot see that."
    )


def _recommended(data: str, agreed: Agreement) -> str:
    """What the evidence says for practice, chosen after looking, by the mean over the senses of the open loop."""
    best, rival = agreed.best(agreed.ours, EVERY), agreed.best(agreed.theirs, EVERY)
    blind = agreed.chosen_blind(EVERY)
    margin = agreed.ahead(best, rival, EVERY)
    lead = "recommended on this evidence" if margin.value > 0 and blind.value > 0 else "none recommended; best of ours"
    per_target = joined([f"{agreed.ahead(best, RIVAL, t).value:+.3f} ({t})" for t in TARGETS])
    return (
        f"{data}, {lead}: {best.partition(': ')[2]} ({best.partition(': ')[0]}). Chosen after looking, as the best of "
        f"{len(agreed.ours)} on average over the four senses of the open loop, where it is ahead of the best published "
        f"method, {rival}, by {margin}; ahead of Q1 as coded by {per_target}. Chosen blind, on half of the users, and "
        f"compared on the other half: {blind}."
    )
