"""`Factors`: user and item factors that were trained elsewhere, as a recommender."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from openloop.core.feedback import Array, Feedback, Vocabulary
from openloop.errors import AlignmentError, DuplicateError, InputError, UnknownIdError, listing
from openloop.learners.base import FactorLearner, Weights, weights
from openloop.learners.model_files.packing import as_array

UNKNOWN = ("error", "zero")
LOGISTIC = "logistic"
LEARNED = frozenset(
    ["user_factors_", "item_factors_", "user_bias_", "item_bias_", "intercept_", "notes_", "items_", "users_"]
)
SINGLE = ("float16", "float32")  # the precision in which these are kept


class Factors(FactorLearner):
    """Ŷ = v_uᵀw_i + a_u + b_i + c with given V (U, K), W (I, K), and, where the model has them, a, b and c.

    Arrays of NumPy, PyTorch, implicit's GPU matrices, and columns of lists are read. `ol.wrap` makes Factors from
    models of other libraries. Pass by hand what it does not know, such as Spark's ALS:

        u, i = model.userFactors.toPandas(), model.itemFactors.toPandas()
        Factors(u["features"], i["features"], users=u["id"], items=i["id"], unknown="zero")

    `fit(log)` finds the rows of the log's users and items by id; nothing is trained. Without `fit`, `ol.evaluate` finds
    them. Items are ranked by Ŷ.

    Args:
        user_factors: V (U, K).
        item_factors: W (I, K).
        user_bias: a (U,); None for none.
        item_bias: b (I,); None for none.
        intercept: c.
        users: The ids of the rows of V. None: row c is code c of the log, whose ids are sorted.
        items: The ids of the rows of W, likewise.
        unknown: What ids of the log without a row get: "error", or "zero" for zero factors and bias.
        clip: (low, high): bounds of predictions; rankings are unchanged.
        output: What is predicted: None for Ŷ, "logistic" for σ(Ŷ), or the points (2, n) of an increasing piecewise
            linear function, values of Ŷ above the predictions.

    Attributes:
        user_factors_: V in the order of the log.
        item_factors_: W in the order of the log.
        user_bias_: a in the order of the log.
        item_bias_: b in the order of the log.
        intercept_: c.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import polars as pl
        >>> import openloop as ol
        >>> model = ol.learners.Factors([[1.0], [2.0]], [[3.0], [1.0]], users=["ann", "bob"], items=["x", "y"])
        >>> log = ol.read(pl.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [3, 2]}))
        >>> model.fit(log).predict([0, 1], [0, 0])
        array([3., 6.])
    """

    def __init__(
        self,
        user_factors: Any,
        item_factors: Any,
        user_bias: Any = None,
        item_bias: Any = None,
        intercept: float = 0.0,
        users: Any = None,
        items: Any = None,
        unknown: str = "error",
        clip: tuple[float, float] | None = None,
        output: Any = None,
    ) -> None:
        self.user_factors = user_factors
        self.item_factors = item_factors
        self.user_bias = user_bias
        self.item_bias = item_bias
        self.intercept = intercept
        self.users = users
        self.items = items
        self.unknown = unknown
        self.clip = clip
        self.output = output

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Factors:
        """Put the rows into the order of the log's users and items; nothing is trained.

        Args:
            feedback: A log.
            sample_weight: Ignored: there is nothing to train.
            propensities: Ignored likewise.

        Returns:
            The same model, in the codes of the log.
        """
        weights(self, feedback, sample_weight, propensities)
        given = sample_weight is not None or propensities is not None
        notes = ["weights changed nothing: the factors were trained elsewhere"] if given else []
        return self._place(feedback.users, feedback.items, notes)

    def placed(self, users: Vocabulary, items: Vocabulary) -> Factors:
        """The same model with the rows of these ids; ids without a row get zeros or are refused, as `unknown` says.

        Args:
            users: The users.
            items: The items.

        Returns:
            A model in these codes.
        """
        found = Factors(
            self.user_factors_, self.item_factors_, self.user_bias_, self.item_bias_, self.intercept_,
            self.users_.ids, self.items_.ids, self.unknown, self.clip, self.output,
        )  # fmt: skip
        return found._place(users, items, list(self.notes_))

    def by_position(self, side: str) -> bool:
        """Whether the rows have no ids, neither given nor those of a log, but positions.

        Args:
            side: "users" or "items".

        Returns:
            True if rows are known by position only.
        """
        own = getattr(self, f"{side}_")
        return getattr(self, side) is None and own == Vocabulary.range(len(own))

    @property
    def linked(self) -> bool:
        """Whether predictions are clipped, or another function of the scores."""
        return self.clip is not None or self.output is not None

    def link(self, z: Array) -> Array:
        """The prediction of each score: limited to `clip`, or the function given by `output`.

        Args:
            z: Scores of any shape.

        Returns:
            Predictions of the same shape.
        """
        if self.clip is not None:
            return np.clip(z, *self.clip)
        if isinstance(self.output, str):
            return expit(z)
        return z if self.output is None else np.interp(z, *_line(self.output))

    def _output(self) -> Any:
        return self.output if self.clip is None else np.array([self.clip, self.clip], np.float64)

    def __getattr__(self, name: str) -> Any:
        """Learned state that no fit has set yet: the rows in the order of their own ids."""
        if name not in LEARNED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._place(None, None, [])
        return vars(self)[name]

    def _place(self, users: Vocabulary | None, items: Vocabulary | None, notes: list[str]) -> Factors:
        """Set the learned state; without vocabularies those of the given rows."""
        if self.unknown not in UNKNOWN:
            raise InputError(f"Factors: unknown must be one of {listing(UNKNOWN)}, got {self.unknown!r}.")
        _check_clip(self.clip)
        _check_output(self.output, self.clip)
        V, W = _matrix("user_factors", self.user_factors), _matrix("item_factors", self.item_factors)
        if V.shape[1] != W.shape[1]:
            turned = V.shape[1] == W.shape[0]
            remedy = "pass item_factors.T" if turned else "give one row per user or item"
            raise AlignmentError(
                f"Factors: user_factors {V.shape} and item_factors {W.shape} must have as many columns; {remedy}."
            )
        a, b = _bias("user_bias", self.user_bias, V), _bias("item_bias", self.item_bias, W)
        c = float(_numbers("intercept", self.intercept, 0))
        users, user_rows = _rows("user", self.users, len(V), users, self.unknown, notes)
        items, item_rows = _rows("item", self.items, len(W), items, self.unknown, notes)
        self.user_factors_, self.user_bias_ = _taken(V, user_rows), _taken(a, user_rows)
        self.item_factors_, self.item_bias_ = _taken(W, item_rows), _taken(b, item_rows)
        self.intercept_, self.notes_, self.items_, self.users_ = c, tuple(notes), items, users
        return self


def checked(found: Factors) -> Factors:
    """The same, with its arrays and ids checked, so that an error is raised where the model is made."""
    found.scores([])
    return found


# -- the arrays ----------------------------------------------------------------------------------------------


def _check_clip(clip: Any) -> None:
    if clip is not None and not (len(clip) == 2 and clip[0] < clip[1]):
        raise InputError(f"Factors: clip must be (low, high) with low < high, or None, got {clip!r}.")


def _matrix(name: str, given: Any) -> Array:
    V = _numbers(name, given, 2)
    if len(V) == 0:
        raise InputError(f"Factors: {name} has no rows, shape {V.shape}; give one row per user or item.")
    return V


def _bias(name: str, given: Any, factors: Array) -> Array:
    if given is None:
        return np.zeros(len(factors), factors.dtype)
    b = _numbers(name, given, 1)
    if len(b) != len(factors):
        raise AlignmentError(f"Factors: {name} has {len(b):,} values for {len(factors):,} rows of factors.")
    return b


def _numbers(name: str, given: Any, ndim: int) -> Array:
    """Finite floats of that many dimensions, in single precision where they are no better."""
    try:
        array = as_array(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"Factors: {name} cannot be read as numbers ({error}); pass a NumPy array.") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"Factors: {name} must be numbers, got {array.dtype}; pass a NumPy array of floats.")
    values = array.astype(np.float32 if array.dtype.name in SINGLE else np.float64, order="C")
    if values.ndim != ndim:
        want = ("a number", "one number per row", "a table of rows × factors")[ndim]
        raise AlignmentError(f"Factors: {name} must be {want}, got shape {values.shape}.")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f", first at index {tuple(bad[0].tolist())}" if ndim else ""
        raise InputError(
            f"Factors: {len(bad):,} of {values.size:,} values of {name} are not finite{where}; repair them."
        )
    return values


def _check_output(output: Any, clip: Any) -> None:
    if output is not None and clip is not None:
        raise InputError("Factors: clip and output were both given; leave one of them out.")
    if output is None or (isinstance(output, str) and output == LOGISTIC):
        return
    if isinstance(output, str):
        raise InputError(f"Factors: output must be None, {LOGISTIC!r} or points (2, n), got {output!r}.")
    line = _line(output)
    if len(line) != 2 or line.shape[1] == 0 or bool((np.diff(line) < 0).any()):
        raise InputError(f"Factors: output must be points (2, n), both rows ascending, got shape {line.shape}.")


def _line(output: Any) -> Array:
    return _numbers("output", output, 2)


def _taken(values: Array, rows: Array | None) -> Array:
    """The rows asked for; -1 gives zeros."""
    if rows is None:
        return values
    taken = values[rows]
    taken[rows < 0] = 0
    return taken


# -- the ids -------------------------------------------------------------------------------------------------


def _rows(
    side: str, ids: Any, n: int, wanted: Vocabulary | None, unknown: str, notes: list[str]
) -> tuple[Vocabulary, Array | None]:
    """The vocabulary, and the row of each of its ids: None for all rows in order, -1 where there is no row."""
    if ids is None:
        if wanted is not None and len(wanted) != n:
            raise AlignmentError(
                f"Factors: {side}_factors has {n:,} rows, the log has {len(wanted):,} {side}s; pass {side}s= the ids "
                "of the rows, in their order."
            )
        return wanted or Vocabulary.range(n), None
    own = _own(side, ids, n)
    row_of = {value: row for row, value in enumerate(own.tolist())}
    if len(row_of) < n:
        twice = [value for row, value in enumerate(own.tolist()) if row_of[value] != row]
        named = listing(list(dict.fromkeys(twice)))
        raise DuplicateError(
            f"Factors: {n - len(row_of):,} {side}s occur more than once: {named}; keep one row of each."
        )
    known = wanted or Vocabulary.of(own)
    rows = np.fromiter((row_of.get(value, -1) for value in known.ids.tolist()), np.int64, len(known))
    _tell(side, own, known, rows, unknown, notes)
    return known, rows


def _own(side: str, ids: Any, n: int) -> Array:
    """The given ids, integers or strings, one per row."""
    values = as_array(ids)
    if values.shape != (n,):
        raise AlignmentError(
            f"Factors: {side}s has shape {values.shape}, {side}_factors has {n:,} rows; give one id per row."
        )
    if values.dtype.kind not in "iuUO" or (values.dtype == object and not all(isinstance(v, str) for v in values)):
        shown = listing(values[:1].tolist())
        raise InputError(f"Factors: {side}s must be integers or strings, got {values.dtype} like {shown}.")
    return values


def _tell(side: str, own: Array, wanted: Vocabulary, rows: Array, unknown: str, notes: list[str]) -> None:
    """Refuse, or note, the log's ids without a row and the rows that the log has no use for."""
    missing = wanted.ids[rows < 0]
    if len(missing) == len(wanted) or (len(missing) and unknown == "error"):
        remedy = "" if len(missing) == len(wanted) else ', or pass unknown="zero"'
        raise UnknownIdError(
            f"Factors: {len(missing):,} of the log's {len(wanted):,} {side}s have no row: {listing(missing.tolist())}; "
            f"the ids given are like {listing(own[:1].tolist())}; give their rows{remedy}."
        )
    if len(missing):
        notes.append(f"{len(missing):,} of {len(wanted):,} {side}s have no row; their factors and bias are 0")
    idle = len(own) - int((rows >= 0).sum())
    if idle:
        notes.append(f"{idle:,} of {len(own):,} given {side}s are not in the log and were left out")
