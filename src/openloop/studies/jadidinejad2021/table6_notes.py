"""What a reader should know about the numbers of Table 6, and what they say for practice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.studies.jadidinejad2021.agreement import EVERY, Agreement, BlindLead
from openloop.studies.jadidinejad2021.experiment import Experiment
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.jadidinejad2021.table6_claims import RIVAL
from openloop.support.wording import joined


def notes(found: Experiment, marks: dict[str, dict[str, str]], agreed: Agreement) -> Iterator[str]:
    """What a reader should know about the numbers of one data set."""
    yield from _gain(found.name)
    yield _repeated(found)
    yield from same_marks(found.name, marks)
    yield _own_agreement(found.name, agreed)
    yield _by_sense(found.name, agreed)
    yield against_q1(found.name, agreed)


def _gain(data: str) -> Iterator[str]:
    """Where the abstract's gain comes from."""
    if data in PUBLISHED["table6"]["gain"]:
        holdout, _, stratified, *_ = PUBLISHED["table6"]["tau"][data]["ndcg"]
        yield (
            f"{data}: the abstract's gain of {PUBLISHED['table6']['gain'][data]} % is the relative one, τ "
            f"{stratified:.3f} of stratified over {holdout:.3f} of holdout, by nDCG."
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
        "with the same number of stars. As coded, every model was trained on them and they count, so a model may gain "
        f"by remembering them. The rankings with them (published) and without them (unseen) agree with τ {agree:.3f}."
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
        f"{data}: by the test as coded, in the first split, {same // 2} of "
        f"{len(CUTS) * len(METHODS) * others // 2} pairs of methods differ significantly, or do not, as in Table 6."
    )


def _own_agreement(data: str, agreed: Agreement) -> str:
    """How well the open loop agrees with itself."""
    found = joined([f"{value:.2f} ({target})" for target, value in zip(TARGETS, agreed.halves, strict=True)])
    return (
        f"{data}: how much of the ranking is chance. The open loop's rankings by half of the users and by the other "
        f"half agree with τ {found}. Half of the users are noisier than all of them."
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


def against_q1(data: str, agreed: Agreement) -> str:
    """What the evidence says for practice, by the mean over the senses of the open loop.

    The evidence is about what half of the users pick, compared with Q1 on the other half. Q1 is the published method
    that Table 6 has ahead, and it was not chosen here. A method is recommended only if the lower limit is above 0.
    """
    blind = agreed.chosen_blind(EVERY, rivals=[RIVAL])
    per_target = joined([f"{agreed.ahead(blind.picked, RIVAL, t).value:+.3f} ({t})" for t in TARGETS])
    return (
        f"{data}, {_verdict(data, blind)}. The best of {len(agreed.ours)} of ours, picked on half of the users and "
        "compared with Q1 as coded on the other half, on average over the four senses of the open loop, has a lead of "
        f"{blind}. Most often picked, by {blind.times} of {blind.halves} halves, is {_named(blind.picked)}. Over all "
        f"users, who have picked it themselves, it has a lead over Q1 of {agreed.ahead(blind.picked, RIVAL, EVERY)}; "
        f"by sense {per_target}."
    )


def _verdict(data: str, blind: BlindLead) -> str:
    low, high = blind.interval
    if low > 0:
        return f"picking the best of ours is better than Q1; {_named(blind.picked)}, most often picked, is recommended"
    if high < 0:
        return "Q1 is better than ours"
    return f"none is distinguishable from Q1 on {data.capitalize()}"


def _named(method: str) -> str:
    column, _, name = method.partition(": ")
    return f"{name} ({column})"
