"""Estimators by name: `method("clipped@20")`; names carry their parameters and parse back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

from openloop.core.estimate import Estimate
from openloop.core.moments import Moments
from openloop.errors import NameFormatError, did_you_mean, quoted
from openloop.estimators.doubly_robust import doubly_robust
from openloop.estimators.edges import Bins
from openloop.estimators.stratified import Share, stratified
from openloop.estimators.weighted import clipped, clipped_name, ips, ips_eq3, naive, snips, snips_user
from openloop.support.arguments import is_count

DEFAULT_STRATA = 10  # of equal mass: `stratified` is `stratified@10:mass`


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An estimator and what it needs of the moments.

    `scale`: it needs the propensities' scale, which the share of a split is part of; a ratio of weighted sums
    does not. `by_level`: its interval allows for propensities that were fitted with a uniform sample. `totals` are
    those that a function of your own reads, `about` its line in reports; `linear`: the estimate of a difference of
    gains is the difference of estimates.
    """

    name: str
    estimate: Callable[[Moments], Estimate]
    weighted: bool = True
    scale: Literal["cell", "always", "never"] = "never"
    clips: bool = False
    cap: float | None = None
    strata: int | None = None
    bins: Bins = "mass"
    share: Share | None = None  # None: the metric's own, see `stratified.default_share`
    imputes: bool = False
    imputation: Any = field(default=None, compare=False)
    by_level: bool = False
    totals: tuple[str, ...] = ()
    linear: bool = True
    about: str = ""

    @property
    def pools(self) -> bool:
        """Whether it averages the relevant cells of adg, atop and recall@k, and needs no sums of each user."""
        return (
            self.name == "snips"
            or bool(self.totals)
            or self.clips
            or (self.strata is not None and self.share != "observed")
        )

    @property
    def stratification(self) -> tuple[int, Bins] | None:
        """What decides the strata, None without them."""
        return None if self.strata is None else (self.strata, self.bins)


PLAIN = {
    "naive": Method(name="naive", estimate=naive, weighted=False),
    "ips": Method(name="ips", estimate=ips, scale="always", by_level=True),
    "snips": Method(name="snips", estimate=snips, by_level=True),
    "snips_user": Method(name="snips_user", estimate=snips_user),
    "ips_eq3": Method(name="ips_eq3", estimate=ips_eq3, scale="always"),
    "clipped": Method(name="clipped", estimate=clipped, clips=True, scale="cell"),
    "dr": Method(name="dr", estimate=doubly_robust, scale="always", imputes=True),
    "stratified": Method(name="stratified", estimate=stratified, strata=DEFAULT_STRATA),
}
NAMES = (*PLAIN, "clipped@c", "stratified@n", "stratified@n:count", "stratified@n:width:observed")


def method(name: str | Method) -> Method:
    """The estimator of that name, such as "snips", "clipped@20" or "stratified@3:width:observed"."""
    if isinstance(name, Method):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NameFormatError(f'estimator {quoted(name)}: give its name, such as "snips".')
    stem, sign, rest = name.strip().lower().partition("@")
    if not sign and stem in PLAIN:
        return PLAIN[stem]
    if sign and stem == "clipped":
        return _clipped(name, rest)
    if sign and stem == "stratified":
        return _stratified(name, rest)
    raise NameFormatError(f"estimator {quoted(name)} is not known.{did_you_mean(name, NAMES)}")


def dr(imputation: Any, *, kind: str = "") -> Any:
    """The doubly robust estimator with imputed ratings: mean(imputed) + ips(residual).

    Args:
        imputation: A recommender or U × I array of imputed ratings, fitted without the scored cells. For impressions a
            reward for each item.
        kind: For impressions the weights that it corrects by, such as "pbm".

    Returns:
        An estimator for `estimators=`.

    Examples:
        >>> import numpy as np
        >>> world = ol.simulate.movie_lovers()
        >>> imputed = np.full((100, 80), 3.0)
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=[ol.dr(imputed)])
        >>> result.estimators
        ('dr',)
    """
    if not kind:
        return replace(PLAIN["dr"], imputation=imputation)
    from openloop.estimators.shown import shown_method

    return replace(shown_method(f"{kind}_dr"), imputation=imputation)


def _clipped(name: str, text: str) -> Method:
    try:
        cap = float(text)
    except ValueError:
        cap = 0.0
    if not 1 <= cap < float("inf"):
        rule = "the cap must be a number of at least 1, the smallest weight"
        raise NameFormatError(f"estimator {quoted(name)}: {rule}, got {quoted(text)}.")
    return Method(name=clipped_name(cap), estimate=clipped, clips=True, scale="cell", cap=cap)


def _stratified(name: str, text: str) -> Method:
    number, *options = text.split(":")
    words = [sum(o in get_args(kind) for o in options) for kind in (Bins, Share)]
    if not is_count(number) or sum(words) < len(options) or max(words) > 1:
        raise NameFormatError(
            f"estimator {quoted(name)}: write stratified@n with n at least 1, and after colons mass, count or width, "
            "and catalogue or observed, one of each."
        )
    bins, share = (next((o for o in get_args(kind) if o in options), None) for kind in (Bins, Share))
    tail = "".join(f":{o}" for o in (bins, share) if o is not None)  # what was named stays in the name
    return Method(
        name=f"stratified@{int(number)}{tail}", estimate=partial(stratified, share=share),
        strata=int(number), bins=bins or "mass", share=share,
    )  # fmt: skip
