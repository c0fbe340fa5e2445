"""`plan`: how many users an A/B test needs to see the difference that a log has shown.

Knows nothing about the log: it needs the variances that a `Contrast` has for each of its models.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from openloop.audits.contrasts import Arm, Contrast
from openloop.audits.rules import USERS
from openloop.errors import InputError, UndefinedError
from openloop.estimators.estimands import OWN, SEEN
from openloop.support.arguments import is_number
from openloop.support.wording import joined, percent

ALPHA = 0.05  # of the two-sided test
LOWER = 0.8  # the level of the interval whose lower limit is planned for, too
IMPRESSIONS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An A/B test of two models: users per arm for the estimated difference, and for its lower limit.

    Attributes:
        a: One model.
        b: The other model.
        metric: The metric.
        difference: |Δ|, the estimated difference.
        lower_limit: The lower limit of its 80 % interval.
        power: The power of the test.
        impressions: Impressions per user; None where they do not matter.
        variances: σ² of a user's mean in each arm.
        users_per_arm: The number of users that the estimated difference needs.
        users_at_lower_limit: The number that the lower limit needs. None where the interval reaches 0: no number of
            users then has that power against all that the log leaves possible.
        assumptions: What the plan takes for granted.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> found = ol.audit(world.predictions, world.observe(0), metrics=["mae"])
        >>> test = ol.plan(found.contrast("Y1", "Y2"), impressions=5, power=0.9)
        >>> test.users_per_arm, test.users_at_lower_limit
        (30, 30)
    """

    a: str
    b: str
    metric: str
    difference: float  # |Δ|
    lower_limit: float  # of its 80 % interval
    power: float
    impressions: float | None  # per user; None where they do not enter
    variances: tuple[float, float]
    users_per_arm: int
    users_at_lower_limit: int | None
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        limit = f"{percent(LOWER)} lower limit"
        at_lower = (
            f"no number is enough for its {limit}, {self.lower_limit:.3g}, since the log does not rule out equal models"
            if self.users_at_lower_limit is None
            else f"{self.users_at_lower_limit:,} for its {limit}, {self.lower_limit:.3g}"
        )
        head = (
            f"An A/B test of {self.a} against {self.b} on {self.metric} with {percent(self.power)} power needs "
            f"{self.users_per_arm:,} users per arm for the estimated difference, {self.difference:.3g}; {at_lower}."
        )
        return f"{head} It assumes that {joined(self.assumptions)}."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"


def plan(contrast: Contrast, *, impressions: float = IMPRESSIONS, power: float = 0.8) -> Plan:
    """Users per arm that a two-sided test at 5 % needs, n = (z₀.₉₇₅ + z_power)²(σ_A² + σ_B²)/Δ² (Lachin 1981).

    For metrics of cells σ² = τ² + (S² − τ²)/m, where τ² is the variance of users' own means and S² that of losses. For
    metrics of users σ² is the variance over the log's users. The formula takes means as normal, so n is at least 30.

    Args:
        contrast: The paired difference, from `found.contrast(a, b)` of an audit.
        impressions: m, the impressions that a user of the test gives.
        power: The probability to find a difference as large as the estimated one.

    Returns:
        The sizes of the test and what they assume.

    Raises:
        UndefinedError: The models do not differ, or the contrast has no variances.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> found = ol.audit(world.predictions, world.observe(0), metrics=["mae"])
        >>> print(ol.plan(found.contrast("Y1", "Y2")).users_per_arm)
        30
    """
    from scipy.special import ndtri, stdtrit

    _check(contrast, impressions, power)
    arms = _arms(contrast)
    cells = contrast.estimand == "per cell"
    variances = tuple(cell_variance_of_user(arm, impressions) if cells else user_variance(arm) for arm in arms)
    difference = abs(contrast.value)
    lower = difference - float(stdtrit(contrast.df, (1 + LOWER) / 2)) * contrast.stderr
    quantiles = float(ndtri(1 - ALPHA / 2) + ndtri(power))
    return Plan(
        a=contrast.a, b=contrast.b, metric=contrast.metric, difference=difference, lower_limit=lower, power=power,
        impressions=impressions if cells else None, variances=(variances[0], variances[1]),
        users_per_arm=_users(quantiles, sum(variances), difference),
        users_at_lower_limit=_users(quantiles, sum(variances), lower) if lower > 0 else None,
        assumptions=tuple(_assumptions(cells=cells, impressions=impressions)),
    )  # fmt: skip


def confirmation(contrast: Contrast) -> str | None:
    """The size of an A/B test of the pair in a sentence; None where it cannot be planned."""
    try:
        needed = plan(contrast)
    except UndefinedError:  # as without an error over cells; the sentence is then left out
        return None
    shown = "" if needed.impressions is None else f" of {needed.impressions:g} impressions each"
    test = f"an A/B test of {contrast.a} against {contrast.b}"
    return f"To confirm it in {test}, about {needed.users_per_arm:,} users per arm{shown} are needed."


def cell_variance_of_user(arm: Arm, impressions: float) -> float:
    """σ² = τ² + (S² − τ²)/m with τ² = U(stderr² − cell_stderr²), of the mean of m cells of a user."""
    if arm.cell_stderr is None or arm.loss_variance is None:
        raise UndefinedError(
            "plan: the contrast has no variance over cells, which separates the variance of users from that of "
            "impressions; use snips or ips of a log that was split by row, or not at all, and whose users are not in "
            "clusters."
        )
    between = arm.users * (arm.stderr**2 - arm.cell_stderr**2)
    between = min(max(between, 0.0), arm.loss_variance)  # both are estimates
    return between + (arm.loss_variance - between) / impressions


def user_variance(arm: Arm) -> float:
    """σ² = m·stderr², the variance over the m users who count."""
    return arm.scored_users * arm.stderr**2


def _users(quantiles: float, variance: float, difference: float) -> int:
    # n = (z₀.₉₇₅ + z_power)²(σ_A² + σ_B²)/Δ²; as in a verdict, means of fewer than 30 users are not taken as normal
    return max(USERS, math.ceil(quantiles**2 * variance / difference**2))


def _assumptions(*, cells: bool, impressions: float) -> list[str]:
    drawn = "users of both arms are drawn at random from users like these"
    if cells:
        shown = f"each gives {impressions:g} impressions, of items drawn evenly from all, as the metric counts them"
    else:
        shown = "each shows as much of what they like as a scored user of this log"
    return [drawn, shown, "the models differ there as they do here"]


def _arms(contrast: Contrast) -> tuple[Arm, Arm]:
    if contrast.arms is None or not all(math.isfinite(arm.stderr) for arm in contrast.arms):
        raise UndefinedError(
            f"plan: the contrast of {contrast.a} and {contrast.b} has no standard error of each model; take one from "
            "an audit of at least two users, found.contrast(a, b, metric=, estimator=)."
        )
    return contrast.arms


def _check(contrast: Contrast, impressions: float, power: float) -> None:
    if not isinstance(contrast, Contrast):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"plan: takes a Contrast, got {type(contrast).__name__}; take one from found.contrast(a, b, metric=, "
            "estimator=)."
        )
    if not (is_number(power) and ALPHA / 2 < power < 1):
        raise InputError(
            f"plan: power must lie between {ALPHA / 2:g}, which a test of equal models has, and 1, got {power!r}; "
            "0.8 is usual."
        )
    if not (is_number(impressions) and 1 <= impressions < math.inf):
        raise InputError(f"plan: impressions must be a number from 1, got {impressions!r}; give those of a user.")
    if contrast.estimand in (SEEN, OWN):
        raise UndefinedError(
            f"plan: {contrast.estimator} of {contrast.metric} is {contrast.estimand}, which no A/B test shows; take a "
            "contrast of a debiased estimate, such as snips of recall@10."
        )
    if contrast.value == 0:
        raise UndefinedError(
            f"plan: {contrast.a} and {contrast.b} do not differ on {contrast.metric} (difference 0), so no test is "
            "large enough; plan for a difference that matters to you with dataclasses.replace(contrast, value=)."
        )
