"""Estimators by name: `method("clipped@20")`; names carry their parameters and parse back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from openloop.core.estimate import Estimate
from openloop.core.moments import Moments
from openloop.errors import NameFormatError, did_you_mean
from openloop.estimators.doubly_robust import doubly_robust
from openloop.estimators.stratified import Bins, Share, stratified
from openloop.estimators.weighted import clipped, clipped_name, ips, ips_eq3, naive, snips, snips_user

DEFAULT_STRATA = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An estimator and what it needs of the moments.

    `scale`: it needs the propensities' scale, which the share of a split is part of; a ratio of weighted sums
    does not.
    """

    name: str
    estimate: Callable[[Moments], Estimate]
    weighted: bool = True
    scale: Literal["cell", "always", "never"] = "never"
    clips: bool = False
    cap: float | None = None
    strata: int | None = None
    bins: Bins = "count"
    share: Share = "catalogue"
    imputes: bool = False

    @property
    def stratification(self) -> tuple[int, Bins] | None:
        """What decides the strata, None without them."""
        return None if self.strata is None else (self.strata, self.bins)


PLAIN = {
    "naive": Method(name="naive", estimate=naive, weighted=False),
    "ips": Method(name="ips", estimate=ips, scale="always"),
    "snips": Method(name="snips", estimate=snips),
    "snips_user": Method(name="snips_user", estimate=snips_user),
    "ips_eq3": Method(name="ips_eq3", estimate=ips_eq3, scale="always"),
    "clipped": Method(name="clipped", estimate=clipped, clips=True, scale="cell"),
    "dr": Method(name="dr", estimate=doubly_robust, scale="always", imputes=True),
    "stratified": Method(name="stratified", estimate=stratified, strata=DEFAULT_STRATA),
}
NAMES = (*PLAIN, "clipped@c", "stratified@n", "stratified@n:width:observed")


def method(name: str | Method) -> Method:
    """The estimator of that name, such as "snips", "clipped@20" or "stratified@3:width:observed"."""
    if isinstance(name, Method):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NameFormatError(f'estimator {name!r}: give its name, such as "snips".')
    stem, at, rest = name.strip().lower().partition("@")
    if not at and stem in PLAIN:
        return PLAIN[stem]
    if at and stem == "clipped":
        return _clipped(name, rest)
    if at and stem == "stratified":
        return _stratified(name, rest)
    raise NameFormatError(f"estimator {name!r} is not known.{did_you_mean(name, NAMES)}")


def _clipped(name: str, text: str) -> Method:
    try:
        cap = float(text)
    except ValueError:
        cap = 0.0
    if not 1 <= cap < float("inf"):
        msg = f"estimator {name!r}: the cap must be a number of at least 1, the smallest weight, got {text!r}."
        raise NameFormatError(msg)
    return Method(name=clipped_name(cap), estimate=clipped, clips=True, scale="cell", cap=cap)


def _stratified(name: str, text: str) -> Method:
    number, *options = text.split(":")
    unknown = [o for o in options if o not in (*get_args(Bins), *get_args(Share))]
    if not number.isascii() or not number.isdigit() or int(number) < 1 or unknown:
        raise NameFormatError(
            f"estimator {name!r}: write stratified@n with n at least 1, and after colons count or width, "
            "catalogue or observed."
        )
    bins: Bins = "width" if "width" in options else "count"
    share: Share = "observed" if "observed" in options else "catalogue"
    tail = "".join(f":{o}" for o, default in ((bins, "count"), (share, "catalogue")) if o != default)
    return Method(
        name=f"stratified@{int(number)}{tail}", estimate=partial(stratified, share=share),
        strata=int(number), bins=bins, share=share,
    )  # fmt: skip
