"""`ShownMoments`: all that an estimator sees of impressions. Sums per cluster and position, some over all rows.

Left of here code touches rows and rankers; right of here, arrays as long as the number of users. Weights w are of one
kind: sips, rips, iips, pbm, pi, affine, or that of dcg.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from openloop.core.feedback import Array, Floats, frozen
from openloop.errors import AlignmentError

BY_POSITION = ("shown", "wgain", "weight")
OVER_ROWS = ("matches", "squares", "click_squares", "clicks", "slope_wgain", "slope_wtheta")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Examined:
    """θ as estimates take it, and how uncertain it is.

    Fitted on the scored log: `influence` holds each cluster's part in the P parameters. Fitted on another log of
    `size` clusters: `effects` are independent parts, effectsᵀ·effects the parameters' covariance. Neither: θ is known.
    The parameters are log θ (P = K); in the affine model, whose a is `theta` and whose b is `offset`, log a and b
    (P = 2K).
    """

    theta: Floats  # (K,)
    influence: Floats | None = None  # (U, P)
    effects: Floats | None = None  # (J, P)
    size: int = 0
    offset: Floats | None = None  # (K,)

    @property
    def fitted(self) -> bool:
        """Whether intervals allow for θ's own error."""
        return self.influence is not None or self.effects is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownMoments:
    """Sums of one model's weighted rewards under one kind of weights.

    By cluster: `requests` n_u; at each position `shown` rows, `wgain` Σwc (of residuals for a doubly robust form) and
    `weight` Σw; `direct`, what such a form imputes for the model's lists. Over all rows: at each position `matches`
    (rows with a weight) and `squares` Σw²; `clicks` Σwc and `click_squares` Σ(wc)². `slope_wgain` and `slope_wtheta`
    are the derivatives of Σwc + direct and of Σwθ by each parameter of examination. `denominator` says what weights
    divide by: "exposure" (Σ_jθ_jπ0_j), "propensity" (π0 at the row's own position) or "shown" (θ_k alone).
    `per` is what a value is a mean over: "request", or "impression" where the log names no requests.
    """

    kind: str
    metric: str = "clicks"
    requests: Floats  # (U,)
    shown: Floats  # (U, K)
    wgain: Floats  # (U, K)
    weight: Floats  # (U, K)
    direct: Floats | None = None  # (U,)
    matches: Floats  # (K,)
    squares: Floats  # (K,)
    clicks: float
    click_squares: float
    slope_wgain: Floats  # (P,)
    slope_wtheta: Floats  # (P,)
    examined: Examined | None = None
    denominator: str = "propensity"
    per: str = "request"
    reordered: bool = False  # the model reorders what was shown
    ids: Array | None = field(default=None, repr=False)  # names of the clusters, where rows came from a frame

    def __post_init__(self) -> None:
        shape = self.shown.shape
        for name in BY_POSITION:
            values = getattr(self, name)
            if values.shape != shape:
                msg = (
                    f"ShownMoments: {name} has shape {values.shape}, shown has {shape}; sums are (clusters, positions)."
                )
                raise AlignmentError(msg)
            object.__setattr__(self, name, frozen(values))
        if self.requests.shape != shape[:1]:
            raise AlignmentError(f"ShownMoments: requests has shape {self.requests.shape} for {shape[0]} clusters.")

    @property
    def n_clusters(self) -> int:
        """U: the users, or the requests where the log names no users."""
        return len(self.requests)

    @property
    def depth(self) -> int:
        """K."""
        return self.shown.shape[1]

    @property
    def theta(self) -> Floats:
        """θ, or 1 at every position where examination is unknown."""
        return np.ones(self.depth) if self.examined is None else self.examined.theta

    @property
    def units(self) -> Floats:
        """What the value is a mean over, by cluster (U,): requests, or for ctr the positions shown."""
        return self.shown.sum(axis=1) if self.metric == "ctr" else self.requests

    def __add__(self, other: ShownMoments) -> ShownMoments:
        """The moments of the whole from those of two parts of its requests."""
        if (self.kind, self.metric, self.depth) != (other.kind, other.metric, other.depth):
            raise AlignmentError("ShownMoments: only moments of one kind of weights, one metric and one depth merge.")
        a, b = (self, other) if _same(self.ids, other.ids) else _aligned(self, other)
        if a.n_clusters != b.n_clusters:
            msg = f"ShownMoments: parts of {a.n_clusters:,} and {b.n_clusters:,} clusters are not parts of one log."
            raise AlignmentError(msg)
        summed = {name: getattr(a, name) + getattr(b, name) for name in (*BY_POSITION, *OVER_ROWS, "requests")}
        direct = None if a.direct is None or b.direct is None else a.direct + b.direct
        return replace(a, **summed, direct=direct)


def merged(parts: list[ShownMoments]) -> ShownMoments:
    """The moments of the whole from those of its parts."""
    return reduce(lambda a, b: a + b, parts)


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _aligned(a: ShownMoments, b: ShownMoments) -> tuple[ShownMoments, ShownMoments]:
    """Both on the union of their clusters; one that is absent from a part has zero sums there."""
    if a.ids is None or b.ids is None:
        raise AlignmentError("ShownMoments: one side names its clusters and the other does not; name both or neither.")
    ids = np.union1d(a.ids, b.ids)
    return _spread(a, a.ids, ids), _spread(b, b.ids, ids)


def _spread(part: ShownMoments, own: Array, ids: Array) -> ShownMoments:
    at, found = np.searchsorted(ids, own), dict[str, Floats]()
    for name in (*BY_POSITION, "requests", "direct"):
        values = getattr(part, name)
        if values is not None:
            found[name] = np.zeros((len(ids), *values.shape[1:]))
            found[name][at] = values
    return replace(part, **found, ids=ids)
