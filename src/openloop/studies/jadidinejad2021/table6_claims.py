"""What Table 6 claims, as far as it holds here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from openloop.studies.jadidinejad2021.agreement import Agreement, Lead, RelativeGain, doubt
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.jadidinejad2021.scores import Mask
from openloop.studies.jadidinejad2021.table6_scores import ScoresByCut
from openloop.studies.kit.results import Claim
from openloop.support.wording import counted, joined

RIVAL = "as coded: q1"  # the published method that Table 6 has ahead by nDCG
STRATIFIED, HOLDOUT = "as coded: stratified", "as coded: holdout"
OWN_TEST = "by the paper's own test, in most splits"


def claims(data: str, coded: ScoresByCut, agreed: Agreement, ips: Mapping[str, Lead]) -> Iterator[Claim]:
    """What the paper says of its methods, as coded.

    `ips` are the leads of IPS over holdout, by cut.
    """
    if data in PUBLISHED["table6"]["tau"]:
        yield nearer_than_means(data, coded)
    yield in_order(data, coded)
    yield from abstract_gain(data, coded, agreed)
    yield better_at_most_cuts(data, coded)
    yield ips_above(data, ips)
    yield ips_told_apart(data, coded)


def in_most(splits: Mask) -> bool:
    """Whether it is so in more than half of the splits, (R,)."""
    return 2 * int(splits.sum()) > len(splits)


def nearer_than_means(data: str, coded: ScoresByCut) -> Claim:
    """Table 6 as a whole: ours must be nearer to it than a table that knows its column means and nothing else."""
    published = np.array([PUBLISHED["table6"]["tau"][data][cut] for cut in CUTS])  # (cuts, methods)
    taus = [coded[cut].taus for cut in CUTS]
    here = np.array([[t[name].mean() for name in METHODS] for t in taus])
    ours, plain = (np.abs(table - published) for table in (here, published.mean(axis=0)))
    return Claim(
        text=f"{data}: as coded, Table 6 comes out: our τ are nearer to it, on average, than its column means are",
        holds=ours.mean() < plain.mean(),
        found=f"ours are {ours.mean():.3f} from it on average, at most {ours.max():.3f}; its column means, which are "
        f"the same at every cut-off, are {plain.mean():.3f} from it",
        ours=True,
    )  # fmt: skip


def in_order(data: str, coded: ScoresByCut) -> Claim:
    """Q1 first, Q2 last: on average, and in most splits."""
    t = coded["ndcg"].taus
    mean = {name: float(values.mean()) for name, values in t.items()}
    splits = (t["q1"] > t["stratified"]) & (t["stratified"] > t["holdout"]) & (t["holdout"] > t["q2"])
    return Claim(
        text=f"{data}: as coded, by nDCG, Q1 agrees best with the open loop, then stratified, holdout, and Q2; on "
        "average and in most splits",
        holds=mean["q1"] > mean["stratified"] > mean["holdout"] > mean["q2"] and in_most(splits),
        found=f"{joined([f'{name} {value:.3f}' for name, value in mean.items()])} on average; in this order in "
        f"{_of(splits)}",
        gist=f"{data}: Q1 ranks models most like the open loop, then stratified, holdout and Q2",
    )  # fmt: skip


def abstract_gain(data: str, coded: ScoresByCut, agreed: Agreement) -> Iterator[Claim]:
    """The abstract: "statistically significant improvements of 14% and 40%", its size and its significance apart."""
    name = f"{data}: as coded, by nDCG, stratified agrees better with the open loop than holdout"
    if data in PUBLISHED["table6"]["gain"]:
        yield _gain_size(data, name, agreed.relative_gain(STRATIFIED, HOLDOUT, "published"))
    ahead = coded["ndcg"].ahead("stratified", "holdout")
    yield Claim(
        text=f"{name}, significantly {OWN_TEST} (abstract)", holds=in_most(ahead), found=f"in {_of(ahead)}",
        gist=f"{data}: the gain of stratified over holdout is significant by the paper's own test in most splits",
    )  # fmt: skip
    yield _gain_over_users(data, name, agreed.ahead(STRATIFIED, HOLDOUT, "published"))


def _gain_size(data: str, name: str, gain: RelativeGain) -> Claim:
    percent = PUBLISHED["table6"]["gain"][data]
    least, (low, high) = (percent - 0.5) / 100, gain.interval
    return Claim(
        text=f"{name}, by at least {percent} % after rounding (the abstract says {percent} %; “at least” is ours)",
        holds=low >= least, undecided=f"the interval contains {percent} %" if low < least <= high else "",
        found=_gain_words(gain),
        gist=f"{data}: stratified evaluation agrees at least {percent} % better with the open loop than holdout",
    )  # fmt: skip


def _gain_over_users(data: str, name: str, lead: Lead) -> Claim:
    return Claim(
        text=f"{name}, with a lower 95 % limit above 0, by a bootstrap over users (abstract)", holds=lead.clear,
        found=f"by {lead}", gist=f"{data}: the gain of stratified over holdout is significant over users",
        undecided=doubt([lead]),
    )  # fmt: skip


def _gain_words(gain: RelativeGain) -> str:
    if np.isnan(gain.value):
        return "τ of holdout is not above 0, so there is no relative gain"
    low, high = (f"{100 * x:+.1f} %" if np.isfinite(x) else "no limit" for x in gain.interval)
    return (
        f"the gain is {100 * gain.value:+.1f} %, of mean τ over splits; 95 % limits over users, {low} to {high}, are "
        f"quantiles of {counted(len(gain.drawn), 'draw')}. τ of holdout is not above 0 in {gain.undefined:,} of them; "
        "these count as below the lower and above the upper limit"
    )


def _of(splits: Mask) -> str:
    return f"{int(splits.sum())} of {counted(len(splits), 'split')}"


def better_at_most_cuts(data: str, coded: ScoresByCut) -> Claim:
    """Section 7.2: "significantly better than both … for the majority of nDCG cut-offs"."""
    cuts = [cut for cut in CUTS if all(in_most(coded[cut].ahead("stratified", b)) for b in ("holdout", "ips"))]
    return Claim(
        text=f"{data}: as coded, stratified is significantly better than both holdout and IPS at most cut-offs "
        f"(section 7.2), {OWN_TEST}",
        holds=2 * len(cuts) > len(CUTS), found=f"at {len(cuts)} of {len(CUTS)} cut-offs ({joined(cuts or ['none'])})",
    )  # fmt: skip


def ips_above(data: str, leads: Mapping[str, Lead]) -> Claim:
    """Section 7.2: IPS is "slightly better" than holdout at most cut-offs."""
    most = len(leads) // 2 + 1
    gaps = [f"{lead.value:+.3f} ({low:+.3f} … {high:+.3f}) by {cut}" for cut, lead in leads.items()
            for low, high in [lead.interval]]  # fmt: skip
    return Claim(
        text=f"{data}: as coded, IPS agrees better with the open loop than holdout at most cut-offs (section 7.2), "
        "with lower 95 % limits above 0 over users",
        holds=sum(lead.clear for lead in leads.values()) >= most, found=f"its τ less that of holdout is {joined(gaps)}",
        undecided=doubt([*leads.values()], most),
    )  # fmt: skip


def ips_told_apart(data: str, coded: ScoresByCut) -> Claim:
    """Section 7.2: of the differences between IPS and holdout "none … statistically significant"."""
    told = {cut: _told_apart(coded, cut) for cut in CUTS}
    apart = [cut for cut, splits in told.items() if in_most(splits)]
    return Claim(
        text=f"{data}: as coded, IPS and holdout differ significantly at no cut-off (section 7.2), {OWN_TEST}",
        holds=not apart,
        found=f"they differ at {joined(apart or ['none'])}; "
        f"{joined([f'in {int(s.sum())} ({cut})' for cut, s in told.items()])} of "
        f"{counted(len(told['ndcg']), 'split')}",
    )  # fmt: skip


def _told_apart(coded: ScoresByCut, cut: str) -> Mask:
    return coded[cut].ahead("ips", "holdout") | coded[cut].ahead("holdout", "ips")
