"""Metrics made of your own function: of the rank alone, or of a rating and its prediction."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

from openloop.core.gains import PairLoss, RankGain
from openloop.core.metric import Column, Columns, Metric
from openloop.errors import InputError, NameFormatError
from openloop.metrics.ranking import mean_gain
from openloop.support.wording import first_line

On = Literal["rank", "prediction"]
Better = Literal["higher", "lower"]
Per = Literal["user", "cell"]

NAME = re.compile(r"[a-z][a-z0-9_.:+-]*(?:@(?P<k>[1-9][0-9]*))?")


def decorated(
    name: Any, on: Any, better: Any, per: Any, *, is_known: Callable[[str], bool]
) -> Callable[[Callable[..., Any]], Metric]:
    """The decorator that makes the metric; `is_known` says which names are the library's own."""
    k = _check_name(name, is_known)
    for keyword, value, choices in (("on", on, get_args(On)), ("better", better, get_args(Better))):
        if value not in choices:
            raise InputError(f"metric {name!r}: {keyword}= must be {_either(choices)}, got {value!r}; say which it is.")
    if per is not None and per not in get_args(Per):
        raise InputError(
            f"metric {name!r}: per= must be {_either(get_args(Per))}, got {per!r}; per user f(rank) is averaged over "
            "the user's relevant items, per cell it is summed over them."
        )
    if on == "rank":
        return lambda function: of_rank(RankGain(name=name, function=function, k=k), better, per or "user")
    if per == "user" or k is not None:
        raise InputError(
            f"metric {name!r}: a loss of predictions is averaged over all cells, per='cell', and has no rank to cut "
            "at; leave per= and @k out, or make it a metric on='rank'."
        )
    return lambda function: of_prediction(PairLoss(name=name, function=function), better)


def of_rank(gain: RankGain, better: Better, per: Per = "user") -> Metric:
    """The metric of a function of the rank: its mean over S_u, or its sum over the user's relevant cells.

    A mean over S_u of a fixed function of the rank is unbiased under Lim's model, as adg, atop and recall@k are: S_u is
    a simple random sample of the user's relevant items, and so its mean is that of all of them in expectation.
    """
    fields: dict[str, Any] = {
        "name": gain.name, "on": "rank", "better": better, "k": gain.k, "binary": True, "by_rank": gain,
        "about": f"{_said(gain.function)}, {_SUMMED[per]}",
    }  # fmt: skip
    if per == "user":  # (1/|S_u|) Σ_{S_u} f(rank)
        return Metric(
            kind="user", gain=lambda x: x.by_rank(gain), per_user=mean_gain, unbiased=True, pooled=True, **fields
        )

    def summed(x: Columns) -> Column:
        # δ = I · 1{Y ≥ threshold} · f(rank), whose mean over a user's I cells is the sum over its relevant items
        return x.cells * x.relevant * x.by_rank(gain)

    return Metric(kind="cell", gain=summed, **fields)


_SUMMED = {
    "user": "averaged over a user's relevant items",
    "cell": "summed over a user's relevant items and divided by nothing",
}


def of_prediction(loss: PairLoss, better: Better) -> Metric:
    """The metric of a function of rating and prediction: its mean over all cells."""
    return Metric(
        name=loss.name, on="prediction", kind="cell", gain=lambda x: loss(x.rating, x.prediction), better=better,
        pair_loss=loss, about=f"{_said(loss.function)}, averaged over all user-item cells",
    )  # fmt: skip


def _check_name(name: Any, is_known: Callable[[str], bool]) -> int | None:
    """The k of a name, None where it has none."""
    match = NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise NameFormatError(
            f"metric {name!r}: a name of your own has lower-case letters, digits and _ . : + -, and may end in @k with "
            "k from 1, such as 'halving' or 'halving@10'."
        )
    if is_known(name):
        raise NameFormatError(f"metric {name!r}: is a metric of the library; give yours another name.")
    return None if match["k"] is None else int(match["k"])


def _said(function: Callable[..., Any]) -> str:
    return first_line(function, f"{getattr(function, '__name__', 'f')} of your own")


def _either(values: tuple[str, ...]) -> str:
    return " or ".join(map(repr, values))
