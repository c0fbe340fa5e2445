"""`ShownMoments`: all that an estimator sees of impressions. Sums per cluster and position, some over all rows.

Left of here code touches rows and rankers; right of here, arrays as long as the number of users. Weights w are of one
kind: sips, rips, iips, pbm, pi, affine, or that of dcg.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Floats, frozen
from openloop.errors import AlignmentError

BY_POSITION = ("shown", "wgain", "weight")


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
