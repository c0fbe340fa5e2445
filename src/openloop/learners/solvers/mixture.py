"""EM for a mixture of users whose ratings are missing not at random: priors, M step, jumps, information.

The model is that of Marlin & Zemel 2009: being observed has the logit s_v + ω_i (Logit-vd), with ω = 0 where it depends
on the rating alone (CPT-v). The penalised log-likelihood

    F = Σ_u log P(row u) + a Σ_z log θ_z + Σ_{z,i,v} b_v log β_{z,i,v} + c Σ_v log σ(s_v)(1 − σ(s_v)) − Σ_i ω_i²/(2τ²)

has Dirichlet(1 + a), Dirichlet(1 + b_v) and Beta(1 + c, 1 + c) priors and ω ~ N(0, τ²).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit, logit, softmax

from openloop.core.vocabulary import Floats
from openloop.errors import DivergenceError
from openloop.kernels.mixture_em import ExpectedCounts, Mixture, RatedCells, components, expected

ROUNDING = 1e-10  # of |F|, by which it may fall
HALVINGS = 30
STEP = 0.05  # in s, of the profile's second derivatives


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Pseudo-counts: users per component, ratings of each level per item and component, cells per level."""

    users: float  # a
    ratings: Floats  # b, (L,)
    cells: float  # c
    offset_sd: float | None  # τ; None: ω = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """θ, β, s and ω."""

    theta: Floats  # (Z,)
    beta: Floats  # (I, L, Z)
    s: Floats  # (L,)
    omega: Floats  # (I,)

    @property
    def mixture(self) -> Mixture:
        """θ, β and m = σ(s_v + ω_i)."""
        return Mixture(self.theta, self.beta, expit(self.s + self.omega[:, None]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixtureFit:
    """Where EM ended: the parameters, P(z | row u) (U, Z), F at every step, and whether it had settled."""

    at: Parameters
    given: Floats
    history: list[float]
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbPlan:
    """When EM ends, and who hears of each step."""

    iterations: int
    tol: float
    report: Callable[[int, float], None] = lambda _steps, _F: None


def log_prior(at: Parameters, priors: Priors) -> float:
    """The part of F that is not the likelihood."""
    levels = log_expit(at.s) + log_expit(-at.s)
    spread = 0.0 if priors.offset_sd is None else np.sum(at.omega**2) / (2 * priors.offset_sd**2)
    ratings = np.sum(priors.ratings * np.log(at.beta).sum(axis=(0, 2)))
    return float(priors.users * np.log(at.theta).sum() + ratings + priors.cells * levels.sum() - spread)


def ascend(cells: RatedCells, priors: Priors, at: Parameters, plan: ClimbPlan, *, free: bool = True) -> MixtureFit:
    """EM from a start until two steps and a jump gain less than `tol` per row; `free`: s is fitted, too.

    Where most cells are unobserved EM creeps. So after every two steps it jumps on along their curve (SQUAREM: Varadhan
    & Roland 2008, scheme S3), and stays where it was if F is lower there.
    """
    climb = _Climb(cells, priors, free)
    now = climb.point(at)
    history, settled = [_risen([], now.F)], False
    while not settled and len(history) <= plan.iterations:
        one = climb.step(now)
        two = climb.step(one)
        with np.errstate(divide="ignore", invalid="ignore"):  # a jump too far has F = -inf or NaN
            jump = climb.point(_beyond(now.at, one.at, two.at))
        best = jump if jump.F > two.F else two
        history += [_risen(history, one.F), _risen([*history, one.F], best.F)]
        settled, now = plan.tol * cells.rows > best.F - now.F, best
        plan.report(len(history) - 1, now.F)
    return MixtureFit(at=now.at, given=now.given, history=history, settled=settled)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    at: Parameters
    given: Floats  # P(z | row u), (U, Z)
    F: float


@dataclass(frozen=True, slots=True)
class _Climb:
    cells: RatedCells
    priors: Priors
    free: bool

    def point(self, at: Parameters) -> _Point:
        given, log_row = components(self.cells, at.mixture)
        return _Point(at, given, float(log_row.sum()) + log_prior(at, self.priors))

    def step(self, now: _Point) -> _Point:
        counts = expected(self.cells, now.at.mixture, now.given)
        return self.point(step(counts, self.priors, now.at, free=self.free))


def _beyond(first: Parameters, second: Parameters, third: Parameters) -> Parameters:
    """x₀ + 2α r + α² v with r = x₁ − x₀, v = x₂ − 2x₁ + x₀ and α = ‖r‖/‖v‖ ≥ 1, in the logs of θ and β, s and ω."""
    x, y, z = (_coordinates(at) for at in (first, second, third))
    r, v = ([b - a for a, b in zip(x, y, strict=True)], [c - 2 * b + a for a, b, c in zip(x, y, z, strict=True)])
    bent = sum(float(np.sum(part**2)) for part in v)
    length = max(1.0, np.sqrt(sum(float(np.sum(part**2)) for part in r) / bent)) if bent > 0 else 1.0
    theta, beta, s, omega = (a + 2 * length * b + length**2 * c for a, b, c in zip(x, r, v, strict=True))
    return Parameters(theta=softmax(theta), beta=softmax(beta, axis=1), s=s, omega=omega)


def _coordinates(at: Parameters) -> tuple[Floats, Floats, Floats, Floats]:
    return np.log(at.theta), np.log(at.beta), at.s, at.omega


def _risen(history: list[float], value: float) -> float:
    """F at the next step; EM cannot lower it, so a fall is an error of the program."""
    if not np.isfinite(value) or (history and value < history[-1] - ROUNDING * abs(history[-1])):
        last = history[-1] if history else np.nan
        raise DivergenceError(
            f"MixtureMNAR: the penalised log-likelihood fell from {last:.10g} to {value:.10g} in step {len(history)}, "
            "which EM excludes; raise the priors, and report it."
        )
    return value


# -- the M step ----------------------------------------------------------------------------------------------


def step(counts: ExpectedCounts, priors: Priors, at: Parameters, *, free: bool = True) -> Parameters:
    """The M step: θ and β at their optimum, s (and ω) at it or nearer to it."""
    theta, beta = counts.users + priors.users, counts.all + priors.ratings[:, None]
    new = replace(at, theta=theta / theta.sum(), beta=beta / beta.sum(axis=1, keepdims=True))
    seen, cells = counts.observed.sum(axis=2), counts.all.sum(axis=2)  # (I, L)
    if priors.offset_sd is not None:
        return _newton(seen, cells, priors, new, free=free)
    mu = (seen.sum(axis=0) + priors.cells) / (cells.sum(axis=0) + 2 * priors.cells)  # (L,)
    return replace(new, s=logit(mu)) if free else new


def _newton(seen: Floats, cells: Floats, priors: Priors, at: Parameters, *, free: bool) -> Parameters:
    """A Newton step for s and ω, halved until their part of the M step's objective rises.

    It is concave. The Hessian is diagonal in s and in ω, so L equations are left: (D_s − Hᵀ D_ω⁻¹ H) δ_s = g_s −
    Hᵀ D_ω⁻¹ g_ω with H_{iv} = n_{iv} m_{iv}(1 − m_{iv}), n the cells (I, L).
    """
    m = expit(at.s + at.omega[:, None])  # (I, L)
    H, prior = cells * m * (1 - m), priors.offset_sd**-2 if priors.offset_sd else 0.0
    g_s, g_omega = score(seen, cells, priors, at), (seen - cells * m).sum(axis=1) - prior * at.omega
    D_s, D_omega = H.sum(axis=0) + 2 * priors.cells * expit(at.s) * expit(-at.s), H.sum(axis=1) + prior
    d_s = np.zeros_like(at.s)
    if free:
        scaled = H / D_omega[:, None]
        cross = np.einsum("iv,iw->vw", H, scaled)  # no product of BLAS, which would round by its threads
        d_s = np.linalg.solve(np.diag(D_s) - cross, g_s - np.einsum("iv,i->v", scaled, g_omega))
    d_omega = (g_omega - np.einsum("iv,v->i", H, d_s)) / D_omega
    least, length = _observing(seen, cells, priors, at), 1.0
    for _ in range(HALVINGS):
        new = replace(at, s=at.s + length * d_s, omega=at.omega + length * d_omega)
        if _observing(seen, cells, priors, new) >= least:
            return new
        length /= 2
    return at


def score(seen: Floats, cells: Floats, priors: Priors, at: Parameters) -> Floats:
    """∂F/∂s (L,): by Fisher's identity the derivative of the M step's objective."""
    m = expit(at.s + at.omega[:, None])
    return (seen - cells * m).sum(axis=0) + priors.cells * (1 - 2 * expit(at.s))


def _observing(seen: Floats, cells: Floats, priors: Priors, at: Parameters) -> float:
    """The M step's objective in s and ω: expected log-likelihood of what was observed, and priors."""
    eta = at.s + at.omega[:, None]  # (I, L)
    prior = priors.cells * (log_expit(at.s) + log_expit(-at.s)).sum()
    spread = np.sum(at.omega**2) / (2 * priors.offset_sd**2) if priors.offset_sd else 0.0
    return float(np.sum(seen * log_expit(eta) + (cells - seen) * log_expit(-eta)) + prior - spread)


# -- starts, and how well s is known -------------------------------------------------------------------------


def start(cells: RatedCells, size: int, rng: np.random.Generator) -> Parameters:
    """Ratings missing at random, equal components, and β drawn around the items' shares of levels."""
    _, I, L = cells.shape
    counts = np.asarray(cells.by_level.sum(axis=1)).reshape(I, L)
    shares = (counts + L * cells.shares) / (counts.sum(axis=1, keepdims=True) + L)  # (I, L)
    drawn = np.maximum(rng.standard_gamma(L * shares[:, :, None], (I, L, size)), 1e-3)
    seen = cells.rows / (cells.shape[0] * I)
    return Parameters(
        theta=np.full(size, 1 / size), beta=drawn / drawn.sum(axis=1, keepdims=True),
        s=np.full(L, logit(np.clip(seen, 1e-3, 0.999))), omega=np.zeros(I),
    )  # fmt: skip


def information(cells: RatedCells, priors: Priors, at: Parameters, plan: ClimbPlan) -> Floats:
    """−∂²/∂s² of F maximised over all else (L, L): what the log tells about s when nothing else is known.

    ∂/∂s of the maximum is ∂F/∂s there, so each column is a difference of scores after EM with s held fixed.
    """

    def profile(s: Floats) -> Floats:
        found = ascend(cells, priors, replace(at, s=s), plan, free=False)
        counts = expected(cells, found.at.mixture, found.given)
        return score(counts.observed.sum(axis=2), counts.all.sum(axis=2), priors, found.at)

    moves = STEP * np.eye(len(at.s))
    columns = np.stack([(profile(at.s - move) - profile(at.s + move)) / (2 * STEP) for move in moves])
    return (columns + columns.T) / 2
