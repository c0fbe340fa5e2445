"""Claims of the factorial experiment: which part of MF-ADG carries its gain, stated so that each can fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from openloop.kernels.pair_design import PairCell
from openloop.studies.kit.results import Claim
from openloop.studies.lim2015.designs import ALL, EQUAL_UPDATES, OF_ADG, Arm, ArmFits, positives_told
from openloop.studies.lim2015.effects import (
    EQUAL_STEPS_GAIN,
    EQUAL_UPDATES_GAIN,
    MORE_STEPS,
    WEIGHT_WITHIN_UNTIL,
    Effect,
    contrasts_of,
    is_whole,
    over_half,
    parts_of,
)
from openloop.studies.lim2015.protocol import GAMMA, TOO_WIDE, ranges_told, weight_range
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, TOP

EXPLAINED = ("adg", "atop")  # the measures whose gain is explained, and drawn
INERT = 1.0  # a change in per cent of MF-AUC that is no reason to prefer a cell
INERT_ON = "adg"  # the measure that chooses settings
WEIGHTS_BEFORE = (0.84, 0.93)  # between which the rank weight was expected
NO_GAIN = "no gain is significant"
ABOUT_HALF = "a share is neither significantly over half nor significantly under"


class Findings(NamedTuple):
    """The effects on a data set, and the fits that they are from."""

    fits: ArmFits
    effects: Mapping[tuple[str, str, int], Effect]  # by name, measure and number of positives

    def of(self, name: str, measure: str, level: int = ALL) -> Effect:
        """An effect; with all positives, where nothing else is said."""
        return self.effects[name, measure, level]

    def short(self, *names: str, levels: Sequence[int] = (ALL,)) -> str:
        """How many of the fits that these effects compare ended before they had their steps; empty where none did."""
        contrasts = contrasts_of(self.fits.cells)
        cells = {arm for name in names for arm in contrasts[name] if isinstance(arm, PairCell)}
        short = [search.ended_short for n in levels for cell in cells for search in self.fits.found[n, cell]]
        return f"{sum(short)} of {len(short)} fits ended before they had their steps" if any(short) else ""


def findings(e: ArmFits, effects: Sequence[Effect]) -> Findings:
    """Those of a data set."""
    return Findings(e, {(x.name, x.measure, x.level): x for x in effects if x.data == e.name})


def claims_of(e: ArmFits, effects: Sequence[Effect]) -> Iterator[Claim]:
    """What is expected of both learners, on a data set; none of it is a sentence of the paper."""
    f = findings(e, effects)
    found = [*_gains(f), *(_one_part(f, measure) for measure in EXPLAINED), _fewer_steps(f)]
    yield from (replace(claim, ours=True) for claim in (*found, *([_inert(f)] if is_whole(e.cells) else [])))


def at_equal_steps(claim: Claim, short: str) -> Claim:
    """The claim, which is not decided where a fit it compares ended before it had its steps."""
    return replace(claim, undecided=short or claim.undecided)


# -- gains ---------------------------------------------------------------------------------------------------


def _gains(f: Findings) -> Iterator[Claim]:
    """Whether there are gains, and what was expected to carry them."""
    data = f.fits.name
    yield _better(f, EQUAL_UPDATES_GAIN, "equal updates")
    claim = _carries(f, MORE_STEPS, EQUAL_UPDATES_GAIN, "more gradient steps carry", "equal updates")
    gist = f"{ADG} owes most of its gain over {AUC} to more gradient steps"
    yield at_equal_steps(replace(claim, gist=gist, on=data), f.short(MORE_STEPS))
    yield at_equal_steps(_better(f, EQUAL_STEPS_GAIN, "equal gradient steps"), f.short(EQUAL_STEPS_GAIN))
    until = parts_of(f.fits.cells)[2]
    how = "its main effect" if is_whole(f.fits.cells) else f"added to {AUC} alone"
    what = f"drawing until a violator ({how}) carries"
    claim = _carries(f, until, EQUAL_STEPS_GAIN, what, "equal gradient steps")
    yield at_equal_steps(claim, f.short(until, EQUAL_STEPS_GAIN))


def _better(f: Findings, gain: str, when: str) -> Claim:
    gains = [f.of(gain, m) for m in MEASURES]
    return Claim(
        text=f"{f.fits.name}: at {when} {ADG} is significantly better than {AUC} on all measures but ATOP",
        holds=all(x.sure for x in gains if x.measure in TOP),
        found=", ".join(map(_gain_told, gains)),
    )


def _carries(f: Findings, part: str, gain: str, what: str, when: str) -> Claim:
    halves = [f.of(over_half(part, gain), m) for m in MEASURES if f.of(gain, m).sure]
    return Claim(
        text=f"{f.fits.name}: {what} over half of each significant gain at {when}",
        holds=all(x.sure for x in halves),
        found=_shares(f, part, gain),
        undecided=_open_share(halves, fails=any(x.below for x in halves)),
    )


def _open_share(halves: Sequence[Effect], *, fails: bool) -> str:
    """Why shares of significant gains are not decided, by their parts less half of the gain; empty where they are."""
    if not halves:
        return NO_GAIN
    return "" if fails or all(x.sure for x in halves) else ABOUT_HALF


def _shares(f: Findings, part: str, gain: str) -> str:
    there = [x for x in (f.of(gain, m) for m in MEASURES) if x.sure]
    shares = (f"{SHOWN[x.measure]} {f.of(part, x.measure).value / x.value:.0%} of {x.value:+.4f}" for x in there)
    return ", ".join(shares) or f"the gains are {', '.join(_gain_told(f.of(gain, m)) for m in MEASURES)}"


def _gain_told(x: Effect) -> str:
    return f"{SHOWN[x.measure]} {x.value:+.4f} ± {x.stderr:.4f}"


# -- which part carries the gain -----------------------------------------------------------------------------


def _one_part(f: Findings, measure: str) -> Claim:
    parts = _parts(f)
    # What several parts do together is no single part. Holm's adjustment is over all parts: any may be the largest.
    singles = [f.of(over_half(part, EQUAL_UPDATES_GAIN), measure) for part in parts[:-1]]
    largest = max(singles, key=lambda x: x.value)
    gained = f.of(EQUAL_UPDATES_GAIN, measure).sure
    claim = Claim(
        text=f"{f.fits.name}, {SHOWN[measure]}: more steps or one of the three parts carries over half of the gain at "
        "equal updates",
        holds=largest.sure,
        found=carrier(f, measure, EQUAL_UPDATES_GAIN, parts),
        undecided=_open_share([largest] if gained else [], fails=all(x.below for x in singles)),
    )
    return at_equal_steps(claim, f.short(*parts))


def _parts(f: Findings) -> tuple[str, ...]:
    """What adds up to the gain at equal updates."""
    return MORE_STEPS, *parts_of(f.fits.cells)


def _largest(f: Findings, measure: str, parts: Sequence[str]) -> Effect:
    return max((f.of(part, measure) for part in parts), key=lambda x: x.value)


def carrier(f: Findings, measure: str, gain: str, parts: Sequence[str]) -> str:
    """A gain, its largest part, and what share that is."""
    whole = f.of(gain, measure)
    said = f"the {gain} is {_with_limits(whole)}"
    if whole.below:
        return f"{said}, significantly below 0"
    if not whole.sure:
        return f"{said}, not significant after Holm (the interval is unadjusted)"
    top = _largest(f, measure, parts)
    share = top.value / whole.value
    return f"{said}; its largest part is “{top.name}” with {_with_limits(top, len(parts))}, {share:.0%} of it"


def _with_limits(x: Effect, tests: int = 1) -> str:
    low, high = x.interval(tests)
    return f"{x.value:+.4f} ({low:+.4f} to {high:+.4f})"


def _fewer_steps(f: Findings) -> Claim:
    """Where the gain is not significant, there is no falling behind to be explained."""
    gain, half = (f.of(name, "atop") for name in (EQUAL_UPDATES_GAIN, over_half(MORE_STEPS, EQUAL_UPDATES_GAIN)))
    claim = Claim(
        text=f"{f.fits.name}: {AUC} falls significantly behind {ADG} on ATOP at equal updates, and fewer gradient "
        "steps are over half of the reason",
        holds=_fewer_steps_are_why(f),
        found=f"{_stepped(f)}; the {EQUAL_UPDATES_GAIN} is {_with_limits(gain)}, of which more steps are "
        f"{_with_limits(f.of(MORE_STEPS, 'atop'))}",
        undecided=_open_share([half] if gain.sure else [], fails=half.below),
    )
    return at_equal_steps(claim, f.short(MORE_STEPS))


def _fewer_steps_are_why(f: Findings) -> bool:
    gain, half = (f.of(name, "atop") for name in (EQUAL_UPDATES_GAIN, over_half(MORE_STEPS, EQUAL_UPDATES_GAIN)))
    return gain.sure and half.sure and not f.short(MORE_STEPS)


def _stepped(f: Findings) -> str:
    auc, adg = (_steps_in_percent(f.fits, arm) for arm in (EQUAL_UPDATES, OF_ADG))
    return f"{AUC} takes a step in {auc:.0f} % of its updates, {ADG} in {adg:.0f} %"


def _steps_in_percent(e: ArmFits, arm: Arm) -> float:
    updates, steps = np.sum([search.best.outcome["tally"][:2] for search in e.found[ALL, arm]], axis=0)
    return 100 * steps / updates


def explained(e: ArmFits, effects: Sequence[Effect]) -> str:
    """Which part carries the gain on a data set, and why MF-AUC falls behind on ATOP, in words."""
    f = findings(e, effects)
    gains = ((EQUAL_UPDATES_GAIN, _parts(f)), (EQUAL_STEPS_GAIN, parts_of(e.cells)))
    said = [f"{SHOWN[m]}: {'; '.join(carrier(f, m, *gain) for gain in gains)}." for m in EXPLAINED]
    short = f.short(*_parts(f))
    return " ".join([f"{e.name}, all positives.", *said, _why(f), *([f"{short}."] if short else [])])


def _why(f: Findings) -> str:
    if not f.of(EQUAL_UPDATES_GAIN, "atop").sure:
        return f"{AUC} does not fall significantly behind on ATOP ({_stepped(f)})."
    if not _fewer_steps_are_why(f):
        return f"That fewer steps are the main reason why {AUC} falls behind on ATOP is not shown ({_stepped(f)})."
    return f"{AUC} falls behind on ATOP mainly because it takes fewer steps ({_stepped(f)})."


# -- the rank weight -----------------------------------------------------------------------------------------


def _inert(f: Findings) -> Claim:
    """An equivalence: intervals that hold together lie inside a narrow band."""
    levels = f.fits.levels
    found = [f.of(WEIGHT_WITHIN_UNTIL, INERT_ON, n) for n in levels]
    percents = {x.level: [100 * limit / x.base for limit in x.interval(len(found))] for x in found}
    claim = Claim(
        text=f"{f.fits.name}: where items are drawn until a violator, the rank weight is nearly inert: it changes "
        f"{SHOWN[INERT_ON]} by less than {INERT:g} % of {AUC}, by 95 % intervals that hold together for all numbers of "
        "positives",
        holds=all(low > -INERT and high < INERT for low, high in percents.values()),
        undecided=_open_band(list(percents.values())),
        gist=f"the rank weight changes {SHOWN[INERT_ON]} by less than {INERT:g} %",
        on=f.fits.name,
        found=", ".join(f"{low:+.2f} to {high:+.2f} % with {positives_told(n)}" for n, (low, high) in percents.items()),
    )
    return at_equal_steps(claim, f.short(WEIGHT_WITHIN_UNTIL, levels=levels))


def _open_band(intervals: Sequence[Sequence[float]]) -> str:
    """Why it is not decided whether all are inside ±INERT; empty where they are, or where one is wholly outside."""
    inside = all(low > -INERT and high < INERT for low, high in intervals)
    outside = any(low > INERT or high < -INERT for low, high in intervals)
    return "" if inside or outside else TOO_WIDE


def weights_claim(data: Sequence[ArmFits]) -> Claim:
    """The range of the rank weight, which is arithmetic."""
    ranges = {e.name: weight_range(int(e.given["shape"][1])) for e in data}
    least, largest = WEIGHTS_BEFORE
    return Claim(
        text=f"The rank weight lies between {least} and {largest}, whatever the model",
        holds=all(low >= least and high <= largest for low, high in ranges.values()),
        found=f"{ranges_told(ranges)}, by |I| and γ = {GAMMA:g}",
        counted=False,
        ours=True,
    )
