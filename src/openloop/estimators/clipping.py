"""Where to clip weights: the cap of `clipped` with the least estimated mean squared error."""

from __future__ import annotations

import numpy as np

from openloop.core.moments import Moments

CAPS = tuple(float(2**j) for j in range(1, 41))  # candidate caps, fixed so that parts merge


def tuned_cap(all_models: list[Moments]) -> float:
    """The candidate cap with the least estimated MSE, summed over the models; the larger one where two tie.

    As the threshold of Wang, Agarwal & Dudík (2017) it minimises an estimate of the squared error. One cap
    serves all models, which are then compared under the same weights.
    """
    caps = sorted(all_models[0].caps, reverse=True)
    errors = np.array([[_estimated_mse(m, cap) for cap in caps] for m in all_models])  # (models, caps)
    return caps[int(np.argmin(errors.sum(axis=0)))]


def _estimated_mse(m: Moments, cap: float) -> float:
    """MSE(T_c) = E(T_c − T)² + 2 Cov(T_c, T) − Var(T), where T, not clipped, is unbiased; Var(T) is left out.

    The squared difference alone would mistake the noise of one large weight for bias, and keep that weight.
    """
    cut, cutgain, q0, q1, q2 = m.caps[cap]  # q: Σ(1−p) w min(w, c) δ^b
    n, gain, weight, wgain = (float(m.sums[name].sum()) for name in ("n", "gain", "weight", "wgain"))
    if m.metric.kind == "cell":
        # ips: T = Σwδ/(U·I)
        return float((cutgain - wgain) ** 2 + 2 * q2) / m.population**2
    # snips: T = Σwδ/Σw, linearised around the plain mean, which no single weight moves
    centre = gain / n
    covariance = (q2 - 2 * centre * q1 + centre**2 * q0) / (cut * weight)
    return float((cutgain / cut - wgain / weight) ** 2 + 2 * covariance)
