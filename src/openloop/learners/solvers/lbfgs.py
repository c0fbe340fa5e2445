"""L-BFGS for `MF`, as in Schnabel et al. 2016: slower than alternating least squares, and its check."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Feedback, Floats
from openloop.kernels.products import factor_products
from openloop.learners.solvers.objective import Objective, Solution
from openloop.support.progress import Advance


def descend(
    feedback: Feedback, w: Floats, objective: Objective, found: Solution, iterations: int, tol: float, advance: Advance
) -> Solution:
    """Minimise over P and Q at once, in double precision."""
    P, Q = (side.astype(np.float64) for side in (found.P, found.Q))

    def unpack(x: Floats) -> tuple[Floats, Floats]:
        return x[: P.size].reshape(P.shape), x[P.size :].reshape(Q.shape)

    # SciPy's rules of stopping are relative to 1 at least, so the objective is measured by what c alone leaves of it.
    unit = gradient(feedback, w, objective, 0 * P, 0 * Q, found.c)[0] or 1.0

    def value_and_gradient(x: Floats) -> tuple[float, Floats]:
        value, dP, dQ = gradient(feedback, w, objective, *unpack(x), found.c)
        return value / unit, np.concatenate([dP.ravel(), dQ.ravel()]) / unit

    def callback(intermediate_result: object) -> None:
        found.record(unit * float(getattr(intermediate_result, "fun")), tol)  # noqa: B009 (SciPy's result has no types)
        advance(len(found.history), f"objective {found.history[-1]:.6g}")

    options = {"maxiter": iterations, "maxfun": 10 * iterations, "ftol": tol, "gtol": 1e-9}
    x = np.concatenate([P.ravel(), Q.ravel()])
    with threadpool_limits(1, "blas"):  # short vectors: more threads are slower, and would round by their number
        done = minimize(value_and_gradient, x, jac=True, method="L-BFGS-B", callback=callback, options=options)
    found.P, found.Q = unpack(done.x)
    if not found.history:  # it began at the optimum
        found.record(unit * float(done.fun), tol)
    found.settled = bool(done.success)
    return found


def gradient(
    feedback: Feedback, w: Floats, objective: Objective, P: Floats, Q: Floats, c: float
) -> tuple[float, Floats, Floats]:
    """The objective, and its derivatives in P and Q."""
    u, i = feedback.user, feedback.item
    predicted = factor_products(P[:, :-1], Q[:, :-1], u, i) + P[u, -1] + Q[i, -1] + c
    loss, slope = objective.losses(feedback.rating, predicted)
    R = csr_array((w * slope, feedback.item, feedback.user_ptr), shape=(len(P), len(Q)))  # (U, I)
    penalty = objective.penalty
    dP = R @ _with_ones(Q) + 2 * penalty * P  # (U, K + 1)
    dQ = R.T @ _with_ones(P) + 2 * penalty * Q  # (I, K + 1)
    return float(np.sum(w * loss)) + objective.penalty_of(P) + objective.penalty_of(Q), dP, dQ


def _with_ones(side: Floats) -> Floats:
    """[V 1]: what multiplies the other side's vectors and offsets."""
    return np.column_stack([side[:, :-1], np.ones(len(side))])
