"""What Table 1 of Schnabel et al. (2016) and the sentences about it say, held against draws."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.kit.results import Claim
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.accuracy import LEVEL, TIED
from openloop.studies.schnabel2016.estimates import ESTIMATORS, METRICS, TITLES
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.tolerances import ERRORS
from openloop.support.wording import joined

SUBSTANTIAL = 0.1  # deviations that are at most this share of a bias are substantially smaller
RESAMPLES = 2000
SHOWN = ("mae", "dcg@50")  # the metrics of Table 1


def claims(found: Outcome) -> Iterator[Claim]:
    """The sentences of section 3.4."""
    truth = found["truth"]
    for name in ("ips", "snips"):
        values = found[name]
        errors = np.abs(values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / math.sqrt(len(values)))
        yield Claim(
            text=f"the mean of {ESTIMATORS[name]} is the truth, chance aside, for every model and metric",
            holds=errors.max() <= ERRORS,
            found=f"at most {errors.max():.1f} standard errors apart, where {ERRORS} may be chance",
        )
    yield _order(found)
    yield _smaller_than_bias(found)
    yield _deviation_of_snips(found)


def _order(found: Outcome) -> Claim:
    m = METRICS.index("mae")
    wrong = {name: float(np.mean(found[name][:, m, 0] < found[name][:, m, 1])) for name in ESTIMATORS}
    shares = joined([f"{ESTIMATORS[name]} in {share:.0%}" for name, share in wrong.items()])
    text = "by MAE the naive estimator ranks REC_ONES above REC_FOURS, IPS and SNIPS do not"
    return Claim(
        text=f"{text}, in any draw", holds=wrong["naive"] == 1 and wrong["ips"] == wrong["snips"] == 0,
        found=f"{shares} of draws prefer REC_ONES", gist=text,
    )  # fmt: skip


def _smaller_than_bias(found: Outcome) -> Claim:
    rows = [METRICS.index(metric) for metric in SHOWN]
    bias = np.abs(found["naive"].mean(axis=0) - found["truth"])[rows]
    worst = max(float((found[name].std(axis=0, ddof=1)[rows] / bias).max()) for name in ("ips", "snips"))
    return Claim(
        text="deviations of IPS and SNIPS are substantially smaller than the bias of the naive estimator (here: at "
        f"most {SUBSTANTIAL:.0%} of it)",
        holds=worst <= SUBSTANTIAL, found=f"at most {worst:.0%}; {_published_worst():.0%} by the published numbers",
    )  # fmt: skip


def _published_worst() -> float:
    printed = [model for metric in SHOWN for model in PUBLISHED["table1"][metric].values()]
    return max(row[name][1] / abs(row["naive"][0] - row["true"]) for row in printed for name in ("ips", "snips"))


def _deviation_of_snips(found: Outcome) -> Claim:
    ratios = {metric: _ratio(found, METRICS.index(metric)) for metric in SHOWN}
    (_, _, lowered), (_, low, high) = ratios.values()
    told = [f"{r:.2f} ({low:.2f} to {high:.2f}) for {TITLES[m]}" for m, (r, low, high) in ratios.items()]
    return Claim(
        text="SNIPS lowers the deviation of IPS for MAE, but not for DCG (averaged over models; "
        f"{LEVEL:.0%} intervals by resampling draws: below 1 for MAE, within 3/4 and 4/3 and not below 1 for DCG)",
        holds=lowered < 1 <= high <= TIED and low >= 1 / TIED,
        found=f"the deviation of SNIPS is {joined(told)} times that of IPS",
    )


def _ratio(found: Outcome, m: int) -> tuple[float, float, float]:
    """Mean deviation of SNIPS over models by that of IPS, with an interval by resampling draws."""
    ips, snips = found["ips"][:, m], found["snips"][:, m]  # (draws, models)
    draws = np.random.default_rng(0).integers(len(ips), size=(RESAMPLES, len(ips)))
    low, high = np.quantile(_spread(snips[draws]) / _spread(ips[draws]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(_spread(snips) / _spread(ips)), float(low), float(high)


def _spread(values: Floats) -> Floats:
    """The deviation over draws, averaged over models; draws and models are the last two dimensions."""
    return values.std(axis=-2, ddof=1).mean(axis=-1)
