"""The state of the joint model of ratings and of what is observed, its rows, and a sweep at work.

λ_{i,l} ~ N(m_l, s²), ψ_{j,l} ~ N(0, t²), m_l ~ N(logit density, 2²), s², t² ~ InvGamma(3, .5), e, f ~ N(0, 1)
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.kernels.joint_cells import GridCells, Observing, Ratings, chosen_cells, missing_logs, sampled_cells
from openloop.kernels.joint_gradients import missing_gradient
from openloop.kernels.ordinal import level_log_likelihoods, row_moments
from openloop.kernels.streams import normals, row_words, uniforms
from openloop.learners.chains import SweepKey
from openloop.learners.solvers.ordinal_gibbs import OrdinalRows, OrdinalState
from openloop.learners.solvers.roles import Role

SPREAD = (3.0, 0.5)  # shape and rate of the inverse gammas of s² and t²
VAGUE = 2.0**2  # the variance of m_l around the logit of the density
FIRST = 0.1  # standard deviation of the first e and f


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointState(OrdinalState):
    """The ordinal model's state, the logistic part's, and how far proposals go."""

    e: Floats  # (U, d′)
    f: Floats  # (I, d′)
    by_user: Floats  # λ, (U, L)
    by_item: Floats  # ψ, (I, L)
    level_mean: Floats  # m, (L,)
    spread: Floats  # s², t²
    user_reach: Floats  # (U,), how far from where it is a vector is proposed: 1 for a draw that forgets it
    item_reach: Floats  # (I,)
    level_covariance: Floats  # (2L - 1, 2L - 1), of proposals for b and m
    move_step: Floats  # of moves of the whole: of b and m, a shift, a stretch, effects

    @property
    def ratings(self) -> Ratings:
        """The rating part, as kernels take it."""
        return Ratings(self.u, self.v, self.user_scale, self.item_scale, self.b)

    @property
    def observing(self) -> Observing:
        """The missing-data part, as kernels take it."""
        return Observing(self.e, self.f, self.by_user, self.by_item)


# With a share below 1, a sweep draws the vectors and effects of that share of the users and of the items, chosen anew,
# each by all of its cells, which leaves the posterior unchanged. Moves of the whole use that share of the unobserved
# cells, each counted 1/share times. If single users and items also used sampled cells, noise would enter their effects
# and widen their prior, which admits more noise: with a share of .3, s² went from .2 to 18 on 60 × 50 cells.


@dataclass(frozen=True, slots=True, eq=False)
class ChosenCells:
    """All cells of the users or items that a sweep draws, and which they are."""

    cells: GridCells
    chosen: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointRows:
    """The rows of a log and its cells, of which a sweep looks at a `share`."""

    ordinal: OrdinalRows
    observed: GridCells
    cells: GridCells  # all with a share of 1, else the observed ones
    share: float
    prior: float  # logit of the density
    places: tuple[Array, Array, Array]  # user, item and level of each row

    @classmethod
    def of(cls, ordinal: OrdinalRows, share: float, prior: float, pool: Executor) -> JointRows:
        """Of a log's rows, with all cells listed where all are looked at."""
        users, I = ordinal.users, len(ordinal.items)
        observed = GridCells(users.ptr, users.partner, ordinal.code.astype(np.int8), I)
        cells = observed if share < 1 else chosen_cells(observed, np.ones(len(users), bool), np.ones(I, bool), pool)
        places = (observed.user, users.partner, ordinal.code)
        return cls(ordinal=ordinal, observed=observed, cells=cells, share=share, prior=prior, places=places)

    def sampled(self, key: SweepKey, pool: Executor) -> GridCells:
        """The cells by which a sweep moves the whole."""
        return self.cells if self.share == 1 else sampled_cells(self.observed, self.share, key.word(Role.CELLS), pool)

    def parts(self, key: SweepKey, pool: Executor) -> tuple[ChosenCells, ChosenCells]:
        """The users, and the items, that a sweep draws."""
        sizes = len(self.ordinal.users), len(self.ordinal.items)
        every = [np.ones(n, bool) for n in sizes]
        if self.share == 1:
            return ChosenCells(self.cells, every[0]), ChosenCells(self.cells, every[1])
        chosen = [
            uniforms(row_words(key.word(role), np.arange(n))) < self.share
            for role, n in zip((Role.CHOSEN_USERS, Role.CHOSEN_ITEMS), sizes, strict=True)
        ]
        users = chosen_cells(self.observed, chosen[0], every[1], pool)
        return ChosenCells(users, chosen[0]), ChosenCells(
            chosen_cells(self.observed, every[0], chosen[1], pool), chosen[1]
        )


@dataclass(slots=True, eq=False)
class Sweeping:
    """One sweep at work: the state so far, and log S of the cells with it."""

    rows: JointRows
    key: SweepKey
    pool: Executor
    cells: GridCells
    at: JointState
    logs: Floats
    gradient: Floats  # of their sum in (b, m), as the sweep begins

    @classmethod
    def of(cls, rows: JointRows, at: JointState, key: SweepKey, pool: Executor) -> Sweeping:
        """The beginning of a sweep."""
        cells = rows.sampled(key, pool)
        return cls(rows, key, pool, cells, at, *missing_gradient(cells, at.ratings, at.observing, pool))

    def turn_to(self, cells: GridCells) -> None:
        """Go on with other cells."""
        if cells is not self.cells:
            self.cells, self.logs = cells, missing_logs(cells, self.at.ratings, self.at.observing, self.pool)

    def missing(self, proposed: JointState) -> Floats:
        """log S of the cells with a proposed state."""
        return missing_logs(self.cells, proposed.ratings, proposed.observing, self.pool)

    def observed(self, at: JointState) -> float:
        """log of the chances of the observed ratings, and of their being observed."""
        rows = self.rows.ordinal
        user, item, code = self.rows.places
        x = np.sum(at.e[user] * at.f[item], axis=1) + at.by_user[user, code] + at.by_item[item, code]
        moments = row_moments(rows.users, at.u, at.v, at.scales, self.pool)
        ratings = level_log_likelihoods(rows.code, at.b, moments, self.pool).sum()
        return float(ratings - np.logaddexp(0, -x).sum())


def begin(ordinal: OrdinalState, rows: JointRows, factors: int, key: SweepKey) -> JointState:
    """Where the ordinal model is, all effects at the logit of the density, and small vectors e and f."""
    U, I, L = len(ordinal.u), len(ordinal.v), rows.ordinal.levels
    first = FIRST * normals(row_words(key.word(Role.JOINT_BEGIN), np.arange((U + I) * factors))).reshape(U + I, factors)
    state = {name: getattr(ordinal, name) for name in OrdinalState.__dataclass_fields__}
    return JointState(
        **state, e=first[:U], f=first[U:], by_user=np.full((U, L), rows.prior), by_item=np.zeros((I, L)),
        level_mean=np.full(L, rows.prior), spread=np.full(2, SPREAD[1] / (SPREAD[0] - 1)), user_reach=np.ones(U),
        item_reach=np.ones(I), level_covariance=np.eye(2 * L - 1) / len(rows.ordinal.code),
        move_step=np.array([1.0, 0.1, 0.05, 0.2]),
    )  # fmt: skip
