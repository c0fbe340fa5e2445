"""Claims of the factorial experiment: what an earlier look at both learners suggests, told so that it can fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openloop.kernels.violators import violator_weights
from openloop.studies.kit.results import Claim
from openloop.studies.lim2015.designs import ALL, ArmFits, positives_told
from openloop.studies.lim2015.effects import (
    EQUAL_STEPS_GAIN,
    EQUAL_UPDATES_GAIN,
    MORE_STEPS,
    STEPS_OVER_HALF,
    UNTIL,
    UNTIL_OVER_HALF,
    WEIGHT,
    Effect,
)
from openloop.studies.lim2015.protocol import GAMMA
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, TOP

INERT, INERT_ON = (
    1.0,
    "adg",
)  # a change in per cent of MF-AUC that is no reason to prefer a cell; the measure that chooses
WEIGHTS_BEFORE = (0.85, 0.92)  # between which the earlier look found the rank weight

ByName = dict[tuple[str, str], Effect]  # by effect and measure


def claims_of(e: ArmFits, effects: Sequence[Effect]) -> Iterator[Claim]:
    """What the earlier look at both learners suggests, on a data set."""
    mine = [x for x in effects if x.data == e.name]
    of = {(x.name, x.measure): x for x in mine if x.level == ALL}
    updates, steps = ([of[name, m] for m in MEASURES] for name in (EQUAL_UPDATES_GAIN, EQUAL_STEPS_GAIN))
    yield Claim(
        text=f"{e.name}: at equal updates {ADG} is significantly better than {AUC} on all measures but ATOP",
        holds=all(x.sure for x in updates if x.measure in TOP),
        found=_listed(updates),
    )
    yield Claim(
        text=f"{e.name}: more gradient steps alone carry over half of each significant gain at equal updates",
        holds=_carries(updates, of, STEPS_OVER_HALF),
        found=_shares(updates, of, MORE_STEPS),
        gist=f"on {e.name}, {ADG} owes most of its gain to more gradient steps",
    )
    yield Claim(
        text=f"{e.name}: at equal gradient steps {ADG} is significantly better than {AUC} on all measures but ATOP",
        holds=all(x.sure for x in steps if x.measure in TOP),
        found=_listed(steps),
    )
    yield Claim(
        text=f"{e.name}: drawing until a violator carries over half of each significant gain at equal gradient steps",
        holds=_carries(steps, of, UNTIL_OVER_HALF),
        found=_shares(steps, of, UNTIL),
    )
    yield _inert(e.name, [x for x in mine if (x.name, x.measure) == (WEIGHT, INERT_ON)])


def _carries(gains: Sequence[Effect], of: ByName, over_half: str) -> bool:
    there = [x.measure for x in gains if x.sure]
    return bool(there) and all(of[over_half, m].sure for m in there)


def _shares(gains: Sequence[Effect], of: ByName, part: str) -> str:
    there = [x for x in gains if x.sure]
    shares = (f"{SHOWN[x.measure]} {of[part, x.measure].value / x.value:.0%} of {x.value:+.4f}" for x in there)
    return ", ".join(shares) or "no gain is significant"


def _inert(data: str, found: Sequence[Effect]) -> Claim:
    """An equivalence: intervals that hold together lie inside a narrow band."""
    percents = {x.level: [100 * limit / x.base for limit in x.interval(len(found))] for x in found}
    return Claim(
        text=f"{data}: the rank weight is nearly inert: it changes {SHOWN[INERT_ON]} by less than {INERT:g} %, by 95 % "
        "intervals that hold together for all numbers of positives",
        holds=all(low > -INERT and high < INERT for low, high in percents.values()),
        found=", ".join(f"{low:+.2f} to {high:+.2f} % with {positives_told(n)}" for n, (low, high) in percents.items()),
    )


def _listed(effects: Sequence[Effect]) -> str:
    return ", ".join(f"{SHOWN[x.measure]} {x.value:+.4f} ± {x.stderr:.4f}" for x in effects)


def weights_claim(data: Sequence[ArmFits]) -> Claim:
    """The range of the rank weight, which the number of items and γ decide."""
    ranges = {e.name: violator_weights(int(e.given["shape"][1]), GAMMA) for e in data}
    low, high = WEIGHTS_BEFORE
    return Claim(
        text=f"The rank weight lies between {low} and {high}, whatever the model",
        holds=all(round(float(w.min()), 2) >= low and round(float(w.max()), 2) <= high for w in ranges.values()),
        found=", ".join(f"{w.min():.3f} to {w.max():.3f} on {name}" for name, w in ranges.items())
        + f", by |I| and γ = {GAMMA:g}",
        counted=False,
    )
