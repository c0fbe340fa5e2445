"""`DR` and `RelMF`: factors fitted to pseudo-outcomes of all cells, low rank plus rows."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.kernels.grid_least_squares import Patchwork
from openloop.learners.base import (
    FactorLearner,
    Learner,
    Weights,
    check_number,
    check_rank,
    check_whole,
    liked,
    outside_notes,
    unseen_notes,
    weight_notes,
)
from openloop.learners.imputing import cross_imputed
from openloop.learners.mf import MF
from openloop.learners.observing import row_chances, unseen_odds
from openloop.learners.solvers.als import schedule
from openloop.learners.solvers.grid import RowTerms, grid_objective, solve_grid
from openloop.learners.solvers.objective import Objective, start
from openloop.support.arguments import generator, is_number
from openloop.support.progress import progress

WEIGHTS = ("dr-jl", "mrdr", "dr-bias", "dr-mse")
VARIANTS = ("textbook", "as_coded")
NEGLIGIBLE = 1e-9  # of the mean: the least weight of a row in the imputation, where 1 − p is 0


class GridLearner(FactorLearner):
    """A learner of Ŷ = v_uᵀw_i + a_u + b_i + c by least squares over all cells of the grid."""

    penalties_beside_row_sum = ("reg", "bias_reg")
    needs_propensities = True
    history_: Floats

    factors: int
    reg: float
    bias_reg: float | None
    iterations: int
    tol: float
    progress: bool

    def _objective(self, feedback: Feedback) -> Objective:
        reg, factors = check_number(self, "reg"), check_whole(self, "factors", 0)
        check_rank(self, factors, feedback.n_users, feedback.n_items)
        return Objective(
            factors=factors, reg=reg, bias_reg=reg if self.bias_reg is None else check_number(self, "bias_reg")
        )

    def _learn(
        self, feedback: Feedback, imputed: Patchwork, terms: RowTerms, penalties: Objective, rng: np.random.Generator
    ) -> list[str]:
        """Minimise the objective; what there is to note."""
        objective, name = grid_objective(feedback, imputed, terms, penalties), type(self).__name__
        at = start(feedback, penalties, np.float64, rng)
        at.c, at.learner = objective.c, name
        with progress(name, check_whole(self, "iterations"), show=self.progress) as advance:
            found = solve_grid(objective, at, schedule(self, 0, advance))
        self.user_factors_, self.item_factors_ = (np.ascontiguousarray(side[:, :-1]) for side in (found.P, found.Q))
        self.user_bias_, self.item_bias_ = found.P[:, -1].copy(), found.Q[:, -1].copy()
        self.intercept_, self.history_ = float(found.c), np.array(found.history)
        return found.notes(self.iterations, self.tol)


class DR(GridLearner):
    """Ŷ = v_uᵀw_i + a_u + b_i + c, fitted to doubly robust pseudo-outcomes m of all cells D (Wang et al. 2019).

        (|O|/|D|) Σ_D (Ŷ − m)² + λ(‖V‖² + ‖W‖²) + λ_b(‖a‖² + ‖b‖²),    m = r̃ + (o/p)(r − r̃),

    which is the loss Σ_D ê + Σ_O (e − ê)/p with e = (Ŷ − r)², ê = (Ŷ − r̃)², up to a constant. r̃ is predicted by
    `imputation`, fitted without the cell's fold. The weights v of its squared errors are 1/p for "dr-jl" (Wang et al.
    2019), (1 − p)/p² for "mrdr" (Guo et al. 2021), (1 − p)²/p³ for "dr-bias", and for "dr-mse" `mix` of "dr-bias" plus
    1 − `mix` of "mrdr" (Dai et al. 2022). For "dr-mse" each part is first scaled to mean 1, since otherwise the larger
    one, by an order of 1/p, would dominate the sum.

    Args:
        factors: The number K of factors.
        reg: λ.
        bias_reg: λ_b; None takes `reg`.
        imputation: The learner of r̃. None takes an MF with as many factors and λ = 5; `select` scales the λ of a given
            learner to folds, but not this one.
        weights: The weights v of the imputation: "dr-jl", "mrdr", "dr-bias" or "dr-mse".
        mix: The share of "dr-bias" in "dr-mse".
        targeted: Whether ê gains ε(1/p − 1), with ε = Σ_O (e − ê)(1/p − 1)/Σ_O (1/p − 1)² (Li et al. 2023). Needs p of
            all cells.
        folds: The number of folds of the imputation.
        clip: The largest 1/p; None leaves 1/p unchanged.
        variant: "textbook", or "as_coded": the loss of published code, Σ_O e/p − Σ_O ê + Σ_D ê, whose second term
            should be Σ_O ê/p.
        iterations: The largest number of sweeps.
        tol: The relative change of the objective at which the fit stops.
        threads: The number of threads; None takes all cores.
        progress: Whether to show progress.
        rng: A seed or generator.

    Attributes:
        user_factors_: V (U, K).
        item_factors_: W (I, K).
        user_bias_: a (U,).
        item_bias_: b (I,).
        intercept_: c.
        history_: The objective after each sweep.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> dr = ol.learners.DR(factors=2, folds=2, rng=0).fit(log)  # p is the log's own column
        >>> dr.scores([0, 1]).shape
        (2, 80)
    """

    def __init__(
        self,
        factors: int = 20,
        reg: float = 7.0,
        *,
        bias_reg: float | None = None,
        imputation: Learner | None = None,
        weights: Literal["dr-jl", "mrdr", "dr-bias", "dr-mse"] = "dr-jl",
        mix: float = 0.5,
        targeted: bool = False,
        folds: int = 4,
        clip: float | None = None,
        variant: Literal["textbook", "as_coded"] = "textbook",
        iterations: int = 200,
        tol: float = 1e-6,
        threads: int | None = None,
        progress: bool = False,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.factors = factors
        self.reg = reg
        self.bias_reg = bias_reg
        self.imputation = imputation
        self.weights = weights
        self.mix = mix
        self.targeted = targeted
        self.folds = folds
        self.clip = clip
        self.variant = variant
        self.iterations = iterations
        self.tol = tol
        self.threads = threads
        self.progress = progress
        self.rng = rng

    @property
    def needs_matrix(self) -> bool:
        """Whether p of all cells is needed."""
        return bool(self.targeted)

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Impute, then minimise the objective.

        Args:
            feedback: The training rows.
            sample_weight: The rows' `Propensities`; weights alone are refused, since the loss needs p.
            propensities: `Propensities`, a fitted propensity model, or an array with p of each row (n,) or of each cell
                (U, I): p of the whole log, of which a part with share s observes a cell with p·s. None takes the log's
                own column.

        Returns:
            The fitted learner itself.
        """
        chances = row_chances(self, feedback, sample_weight, propensities)
        penalties, rng = self._objective(feedback), generator("DR", self.rng)
        self._check_parameters()
        least = 0.0 if self.clip is None else 1 / self.clip
        p, own = np.maximum(chances.values, least), own_weight(feedback)
        odds = unseen_odds(self, feedback, chances, least) if self.targeted else None
        learner = MF(self.factors, threads=self.threads) if self.imputation is None else self.imputation
        v = own * imputation_weights(self, p)
        imputed, r_imputed, notes = cross_imputed(self, learner, feedback, v, rng)
        y = feedback.rating.astype(np.float64)
        terms = row_terms(y, r_imputed, own / p, tilt(p, own / p, odds, self.variant), self.variant)
        ended = self._learn(feedback, imputed, terms, penalties, rng)
        outside = outside_notes(self, feedback, y.min(), y.max())
        lonely = unseen_notes(feedback, "what is imputed for them")
        return self._remember(feedback, *weight_notes(own / p), *lonely, *notes, *outside, *ended)

    def _check_parameters(self) -> None:
        for name, known in (("weights", WEIGHTS), ("variant", VARIANTS)):
            value = getattr(self, name)
            if value not in known:
                raise InputError(f"DR: {name}={value!r} is unknown.{did_you_mean(str(value), known)}")
        if not (is_number(self.mix) and 0 <= self.mix <= 1):
            raise InputError(f"DR: mix must lie in [0, 1], got {self.mix!r}; it is the share of dr-bias in dr-mse.")
        if self.clip is not None and not (is_number(self.clip) and 1 <= self.clip < np.inf):
            raise InputError(f"DR: clip must be a number from 1, at which 1/p is cut, or None, got {self.clip!r}.")


class RelMF(GridLearner):
    """Ŷ = v_uᵀw_i + a_u + b_i + c, fitted to m = o/max(p, `floor`) of clicks and other positives (Saito et al. 2020).

        (|O|/|D|) Σ_D (Ŷ − m)² + λ(‖V‖² + ‖W‖²) + λ_b(‖a‖² + ‖b‖²)

    O are the positives: cells that were shown and liked. p is the chance of being shown, so the mean of m is P(liked).
    The objective is that of `DR` with r̃ = 0 and r = 1.

    Args:
        factors: The number K of factors.
        reg: λ.
        bias_reg: λ_b; None takes `reg`.
        floor: A smaller p counts as this.
        threshold: Rows with a rating below it are not positives. None: below 4, or below 1 where all ratings are 0 and
            1.
        iterations: The largest number of sweeps.
        tol: The relative change of the objective at which the fit stops.
        threads: The number of threads; None takes all cores.
        progress: Whether to show progress.
        rng: A seed or generator.

    Attributes:
        user_factors_: V (U, K).
        item_factors_: W (I, K).
        user_bias_: a (U,).
        item_bias_: b (I,).
        intercept_: c.
        history_: The objective after each sweep.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> rel = ol.learners.RelMF(factors=2, rng=0).fit(log)  # p is the log's own column
        >>> scores = rel.scores([0])[0]
        >>> bool(scores[:30].mean() > scores[30:60].mean())  # user 0 loves horror, items 0 to 29
        True
    """

    def __init__(
        self,
        factors: int = 20,
        reg: float = 1.0,
        *,
        bias_reg: float | None = None,
        floor: float = 0.1,
        threshold: float | None = None,
        iterations: int = 200,
        tol: float = 1e-6,
        threads: int | None = None,
        progress: bool = False,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.factors = factors
        self.reg = reg
        self.bias_reg = bias_reg
        self.floor = floor
        self.threshold = threshold
        self.iterations = iterations
        self.tol = tol
        self.threads = threads
        self.progress = progress
        self.rng = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Minimise the objective.

        Args:
            feedback: The training rows.
            sample_weight: The rows' `Propensities`; weights alone are refused, since the loss needs p.
            propensities: The chance of being shown, as in `DR`; propensities fitted on clicks are refused. None takes
                the log's own column.

        Returns:
            The fitted learner itself.
        """
        chances = row_chances(self, feedback, sample_weight, propensities)
        if not (is_number(self.floor) and 0 <= self.floor <= 1):
            raise InputError(f"RelMF: floor must lie in [0, 1], got {self.floor!r}; p below it count as that.")
        keep = liked(self, feedback, self.threshold)
        clicks, p = feedback.take(keep), np.maximum(chances.values[keep], self.floor)
        w = own_weight(clicks) / p
        nothing, one = np.zeros(len(clicks)), np.ones(len(clicks))
        terms, imputed = row_terms(one, nothing, w, nothing, "textbook"), Patchwork((clicks.n_users, clicks.n_items))
        ended = self._learn(clicks, imputed, terms, self._objective(feedback), generator("RelMF", self.rng))
        count = [f"{len(clicks):,} of {len(feedback):,} rows are positives"]
        lonely = unseen_notes(clicks, "the mean and the offsets, shrunk towards 0", "positive")
        outside = outside_notes(self, clicks, 0.0, 1.0)
        return self._remember(feedback, *count, *weight_notes(w), *lonely, *outside, *ended)


def own_weight(feedback: Feedback) -> Floats:
    """The log's own weight of each row, of mean 1: like all weights it is known up to a factor, and p is not."""
    return np.ones(len(feedback)) if feedback.weight is None else feedback.weight / feedback.weight.mean()


# -- what the rows add ---------------------------------------------------------------------------------------


def imputation_weights(model: DR, p: Floats) -> Floats:
    """v of each row's squared error in the imputation, of mean 1."""
    v = {
        "dr-jl": lambda: 1 / p,
        "mrdr": lambda: np.maximum(1 - p, 0) / p**2,  # a balanced p may exceed 1
        "dr-bias": lambda: np.maximum(1 - p, 0) ** 2 / p**3,
    }
    if model.weights == "dr-mse":
        return model.mix * _of_mean_one(v["dr-bias"]()) + (1 - model.mix) * _of_mean_one(v["mrdr"]())
    return _of_mean_one(v[model.weights]())


def _of_mean_one(v: Floats) -> Floats:
    if not v.any():
        raise UndefinedError('DR: every p is 1, so these weights of the imputation are all 0; use weights="dr-jl".')
    v = v / v.mean()
    return np.maximum(v, NEGLIGIBLE)


def tilt(p: Floats, w: Floats, odds: float | None, variant: str) -> Floats:
    """What ê += ε(1/p − 1) adds to the weight of e − ê: κ c/Σ_O c², with c = 1/p − 1; 0 where nothing is targeted.

    ε is linear in e − ê, and changes the loss by ε κ, κ = Σ_D c − Σ_O w c; as coded, κ = Σ_D c − Σ_O c.
    """
    c = 1 / p - 1
    if odds is None or not c.any():
        return np.zeros(len(p))
    return (odds - np.sum(c if variant == "as_coded" else w * c)) * c / np.sum(c * c)


def row_terms(r: Floats, imputed: Floats, w: Floats, extra: Floats, variant: str) -> RowTerms:
    """v f² − 2 s f of each row; extra is the weight of e − ê beyond w.

    Textbook: (w + extra)(e − ê), e − ê = −2f(r − r̃) + r² − r̃²; the constant makes of it Σ_D (f − m)², m = r̃ + s.
    As coded: w e − ê + extra·(e − ê).
    """
    gap = r - imputed
    if variant == "textbook":
        s = (w + extra) * gap
        return RowTerms(s=s, v=np.zeros(len(r)), constant=float(np.sum(s * (s + 2 * imputed))))  # m² − r̃²
    squares = w * r**2 - imputed**2 + extra * gap * (r + imputed)
    return RowTerms(s=w * r - imputed + extra * gap, v=w - 1, constant=float(np.sum(squares)))
