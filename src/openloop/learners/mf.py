"""`MF`: matrix factorisation with offsets, weighted against ratings that are missing not at random."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, logit

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.errors import InputError, RatingError, did_you_mean
from openloop.kernels.least_squares import Rows
from openloop.kernels.losses import Loss
from openloop.learners.base import (
    FactorLearner,
    check_number,
    check_rank,
    check_whole,
    unseen_notes,
    weight_notes,
    weights,
)
from openloop.learners.frame_fits import OF_USERS, ON_FRAME, FittedOnFrames
from openloop.learners.projecting import Rowset, check_projected, projected_on_frame, projected_on_rows
from openloop.learners.solvers.als import CG_STEPS, alternate, check_device, schedule
from openloop.learners.solvers.objective import Objective, Solution, start
from openloop.learners.solvers.projected import start_items
from openloop.support.arguments import generator
from openloop.support.atomic import FilePath
from openloop.support.columns import Column
from openloop.support.progress import progress
from openloop.support.wording import counted

LOSSES = tuple(loss.name.lower() for loss in Loss)
SOLVERS = ("cg", "cholesky", "lbfgs", "projected")
DTYPES = ("float32", "float64")
NOTHING = 1e-4  # of the mean rating, or in logits: what factors add less than was shrunk away
SMOOTHING = 0.05  # of the ratings' standard deviation: how far from 0 the absolute loss is rounded


class MF(FittedOnFrames, FactorLearner):
    """Ŷ = v_uᵀw_i + a_u + b_i + c, fitted to weighted squared or absolute errors (Schnabel et al. 2016, Eq. 14).

    With weights 1/p this is MF-IPS. The objective is Σ w·δ(Y, Ŷ) + λ(‖V‖² + ‖W‖²), a *sum* over ratings; weights are
    rescaled to mean 1, and `reg` then means the same with and without weights. c is the weighted mean rating (with
    weights 1/p the SNIPS estimate of it; for labels its logit). Free offsets have mean 0, with their mean in c.

    With `loss="logistic"`, ratings are labels 0 and 1 and the sum is the logit of P(Y = 1): `scores` gives logits,
    `predict` and `predictions` give probabilities. The loss is the negative log-likelihood log(1 + eᶻ) - Yz.

    A fit stops when a sweep, or four iterations of "projected" together, lower the objective by no more than the share
    `tol`, or after `iterations`. The same `rng` gives the same bits for any `threads`.

    Args:
        factors: The number K of factors.
        reg: λ, the penalty on the factors.
        bias_reg: The penalty on the offsets a and b; None takes `reg`, 0 gives the paper's free offsets.
        loss: "squared", "absolute" or "logistic".
        solver: "cg" and "cholesky" alternate between users and items by weighted least squares (an absolute or logistic
            loss by reweighting). "lbfgs" is the paper's. "projected" solves all users inside a descent on the items
            alone, so it also takes rows on disk or on Spark.
        iterations: The largest number of sweeps or iterations.
        tol: The relative change of the objective at which the fit stops.
        dtype: The type of the factors, "float32" or "float64".
        threads: The number of threads; None takes all cores.
        device: "cuda" sweeps on a GPU, by "cg" in float32; its bits differ from those of the CPU.
        progress: Whether to show progress.
        checkpoint: A path from which an interrupted "projected" fit continues, with the same bits.
        rng: A seed or generator for the start.

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
        >>> mf = ol.learners.MF(factors=4, reg=1.0, rng=0).fit(log, sample_weight=1 / log.propensity)
        >>> mf.predict([0, 0], [0, 40]).round(1)
        array([4.9, 1.5], dtype=float32)
        >>> mf.scores([0, 1]).shape
        (2, 80)
    """

    penalties_beside_row_sum = ("reg", "bias_reg")
    history_: Floats

    def __init__(
        self,
        factors: int = 20,
        reg: float = 5.0,
        *,
        bias_reg: float | None = None,
        loss: Literal["squared", "absolute", "logistic"] = "squared",
        solver: Literal["cg", "cholesky", "lbfgs", "projected"] = "cg",
        iterations: int = 200,
        tol: float = 1e-5,
        dtype: Literal["float32", "float64"] = "float32",
        threads: int | None = None,
        device: str | None = None,
        progress: bool = False,
        checkpoint: FilePath | None = None,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.factors = factors
        self.reg = reg
        self.bias_reg = bias_reg
        self.loss = loss
        self.solver = solver
        self.iterations = iterations
        self.tol = tol
        self.dtype = dtype
        self.threads = threads
        self.device = device
        self.progress = progress
        self.checkpoint = checkpoint
        self.rng = rng

    def fit(
        self,
        feedback: Any,
        sample_weight: Any = None,
        propensities: Any = None,
        *,
        user: Column = None,
        item: Column = None,
        rating: Column = None,
        blocks: FilePath | None = None,
        memory: int | str | None = None,
    ) -> Self:
        """Minimise the objective.

        Args:
            feedback: The training rows. With `solver="projected"` also rows that stay where they are: a Spark frame, a
                Polars scan, any other frame, or a path to Parquet files.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p). For
                a frame: the name of a column of weights.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). For a frame: the name of a column of p.
            user: The column of user ids of a frame.
            item: The column of item ids of a frame.
            rating: The column of ratings of a frame.
            blocks: The folder for blocks of rows that are not on Spark, made once; None takes a temporary one.
            memory: How much memory blocks may use, such as "4 GiB".

        Returns:
            The fitted learner itself.
        """
        self._check_names()
        given = Rowset(
            native=feedback, columns={"user": user, "item": item, "rating": rating}, blocks=blocks, memory=memory
        )
        check_projected(self, given)
        if given.outside:
            return self._fit_frame(given.weighted(sample_weight, propensities))
        w = weights(self, feedback, sample_weight, propensities)
        objective = self._objective(SMOOTHING * _spread(feedback, w) if self.loss == "absolute" else 0.0)
        check_rank(self, objective.factors, feedback.n_users, feedback.n_items)
        at = self._begin(feedback, objective)
        at.c, notes = self._constant(feedback, w), [*weight_notes(w), *_endless(objective, feedback)]
        w = w / w.max() if self.solver == "projected" else w  # as blocks of a frame have them, rounded alike
        columns = (column.astype(at.Q.dtype, copy=False) for column in (feedback.rating, w))
        rows = Rows(feedback.user_ptr, feedback.item, *columns)
        del w, columns  # in double precision the weights are the largest array of all
        found = self._solve(feedback, rows, objective, at)
        if objective.bias_reg == 0:
            _centre(found, feedback)
        return self._keep(feedback, found, notes)

    def _fit_frame(self, given: Rowset) -> Self:
        """The fit on rows that stay where they are: items are kept here, users there."""
        with progress("MF", check_whole(self, "iterations"), show=self.progress) as advance:
            objective, rng = self._objective(), generator(type(self).__name__, self.rng)
            found, fit = projected_on_frame(self, given, objective, schedule(self, 0, advance), rng)
        self._forget((*OF_USERS, *ON_FRAME))
        self._on_frame, self.items_ = fit, Vocabulary(fit.items)
        self._keep_items(found)
        self.notes_ = (*fit.notes(), *found.notes(self.iterations, self.tol))
        return self

    @property
    def linked(self) -> bool:
        """Whether predictions are probabilities, and scores their logits."""
        return self.loss == "logistic"

    def link(self, z: Array) -> Array:
        """The prediction of each score; the probability of each logit.

        Args:
            z: Scores of any shape.

        Returns:
            Predictions of the same shape.
        """
        return expit(z) if self.linked else z

    def _output(self) -> Any:
        return "logistic" if self.linked else None

    def _check_names(self) -> None:
        for name, known in (("loss", LOSSES), ("solver", SOLVERS), ("dtype", DTYPES)):
            value = getattr(self, name)
            if value not in known:
                raise InputError(f"MF: {name}={value!r} is unknown.{did_you_mean(str(value), known)}")
        check_device(self, solver="cg", dtype="float32")

    def _objective(self, smoothing: float = 0.0) -> Objective:
        reg = check_number(self, "reg")
        return Objective(
            factors=check_whole(self, "factors", 0),
            reg=reg,
            bias_reg=reg if self.bias_reg is None else check_number(self, "bias_reg"),
            loss=Loss[self.loss.upper()],
            smoothing=smoothing,
        )

    def _constant(self, feedback: Feedback, w: Floats) -> float:
        """c: the weighted mean rating, or of labels its logit."""
        if self.loss == "logistic":
            _check_labels(feedback)
            return float(logit(np.average(feedback.rating, weights=w)))
        return float(np.average(feedback.rating, weights=w))

    def _begin(self, feedback: Feedback, objective: Objective) -> Solution:
        dtype, rng = np.dtype(self.dtype), generator(type(self).__name__, self.rng)
        if self.solver != "projected":
            return start(feedback, objective, dtype, rng)
        seen = np.bincount(feedback.item, minlength=feedback.n_items) > 0
        return Solution(np.zeros((0, objective.factors + 1), dtype), start_items(seen, objective.factors, dtype, rng))

    def _solve(self, feedback: Feedback, rows: Rows, objective: Objective, at: Solution) -> Solution:
        with progress("MF", check_whole(self, "iterations"), show=self.progress) as advance:
            plan = schedule(self, CG_STEPS if self.solver == "cg" else 0, advance)
            if self.solver == "lbfgs":
                from openloop.learners.solvers.lbfgs import descend

                return descend(feedback, rows.w.astype(np.float64), objective, at, plan.iterations, plan.tol, advance)
            if self.solver == "projected":
                return projected_on_rows(self, rows, objective, at, plan)
            return alternate(rows, objective, at, plan)

    def _keep(self, feedback: Feedback, found: Solution, notes: list[str]) -> Self:
        P = found.P.astype(np.dtype(self.dtype))
        self._forget(ON_FRAME)
        self.user_factors_, self.user_bias_ = np.ascontiguousarray(P[:, :-1]), P[:, -1].copy()
        self._keep_items(found)
        lonely = unseen_notes(feedback, "the offsets of the other side and the mean")
        return self._remember(feedback, *notes, *lonely, *self._shrunk(), *found.notes(self.iterations, self.tol))

    def _keep_items(self, found: Solution) -> None:
        Q = found.Q.astype(np.dtype(self.dtype))
        self.item_factors_, self.item_bias_ = np.ascontiguousarray(Q[:, :-1]), Q[:, -1].copy()
        self.intercept_, self.history_ = float(found.c), np.array(found.history)

    def _shrunk(self) -> list[str]:
        """A sentence where the penalty left nothing of the factors."""
        V, W = self.user_factors_, self.item_factors_
        unit = 1.0 if self.loss == "logistic" else abs(self.intercept_) or 1.0
        if V.shape[1] == 0 or np.abs(V).max() * np.abs(W).max() > NOTHING * unit:
            return []
        return [f"all factors shrank to 0: reg={self.reg:g} is too large for these ratings"]


def _centre(found: Solution, feedback: Feedback) -> None:
    """Free offsets and c are known up to a shift; with means of 0, who has no rating gets the average offset."""
    for side, codes in ((found.P, feedback.user), (found.Q, feedback.item)):
        seen = np.bincount(codes, minlength=len(side)) > 0
        mean = float(side[seen, -1].mean(dtype=np.float64))
        side[seen, -1] -= mean
        found.c += mean


def _spread(feedback: Feedback, w: Floats) -> float:
    """The weighted standard deviation of the ratings; 1 where all are equal."""
    mean = np.average(feedback.rating, weights=w)
    return float(np.sqrt(np.average((feedback.rating - mean) ** 2, weights=w))) or 1.0


# -- labels --------------------------------------------------------------------------------------------------


def _check_labels(feedback: Feedback) -> None:
    """Refuse ratings other than 0 and 1 for a logistic loss, and ratings that are all the same."""
    y = feedback.rating
    bad = np.flatnonzero((y != 0) & (y != 1))
    if len(bad):
        raise RatingError(
            f'MF: loss="logistic" needs labels 0 and 1, {len(bad):,} of {len(y):,} ratings are others, first '
            f"{y[bad[0]]:g} at index {bad[0]:,}; make labels of them, dataclasses.replace(log, rating=(log.rating "
            '>= 4) * np.float32(1)), or pass loss="squared".'
        )
    if y.min() == y.max():
        raise RatingError(
            f'MF: loss="logistic" needs both labels, and all {len(y):,} ratings are {y[0]:g}; keep disliked rows as 0 '
            "(ol.read(positive=) drops them), or learn from positives alone: WMF, ADG."
        )


def _endless(objective: Objective, feedback: Feedback) -> list[str]:
    """A sentence about free offsets of those whose labels are all the same: the larger, the better they fit."""
    if objective.loss is not Loss.LOGISTIC or objective.bias_reg != 0:
        return []
    alone = {"user": _one_label(feedback.user, feedback), "item": _one_label(feedback.item, feedback)}
    return [
        f"{counted(n, side)} with one label only: a free offset has no optimum there and ends where the sweeps did; "
        "pass bias_reg= above 0"
        for side, n in alone.items()
        if n
    ]


def _one_label(codes: Array, feedback: Feedback) -> int:
    rows, ones = np.bincount(codes), np.bincount(codes, feedback.rating)
    return int(np.sum((rows > 0) & ((ones == 0) | (ones == rows))))
