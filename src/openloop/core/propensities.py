"""`Propensities`: the probability with which each cell of one Feedback was observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Feedback, Floats, check_propensities, frozen
from openloop.errors import AlignmentError, InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Propensities:
    """Values in (0, 1], in Feedback order; `floor` bounds the weights and is remembered.

    Made by a model they carry the fingerprint of their Feedback, and another one is refused; made from a bare
    array only the length can be checked.
    """

    values: Floats
    floor: float = 0.0
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        if values.ndim != 1 or len(values) == 0:
            msg = f"Propensities: values must be one number a row, got shape {values.shape}."
            raise AlignmentError(msg)
        if not 0 <= self.floor <= 1:
            msg = f"Propensities: floor must lie in [0, 1], got {self.floor}."
            raise InputError(msg)
        # A floor makes zeros usable, and nothing else: they count as the floor does.
        check_propensities(
            "Propensities",
            np.where((values >= 0) & (values < self.floor), self.floor, values),
            "pass floor= or drop those rows." if self.floor == 0 else "repair those values.",
        )
        object.__setattr__(self, "values", frozen(values))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        low, high = float(self.values.min()), float(self.values.max())
        tail = f", floor {self.floor:g} cuts {self.clipped:.1%}" if self.floor else ""
        return f"Propensities({len(self):,} values in {low:.3g} … {high:.3g}{tail})"

    @property
    def used(self) -> Floats:
        """max(p, floor): what the weights are made of."""
        return np.maximum(self.values, self.floor)

    @property
    def weights(self) -> Floats:
        """1 / max(p, floor)."""
        return 1.0 / self.used

    @property
    def clipped(self) -> float:
        """The share of values below the floor."""
        return float(np.mean(self.values < self.floor))

    def check(self, feedback: Feedback) -> Propensities:
        """Refuse a Feedback that these do not belong to."""
        if len(self) != len(feedback):
            msg = (
                f"Propensities: {len(self):,} values for {len(feedback):,} rows; predict them for this Feedback, "
                "or bring an array in input order with feedback.align(array)."
            )
            raise AlignmentError(msg)
        if self.fingerprint is not None and self.fingerprint != feedback.fingerprint:
            msg = "Propensities: made for another Feedback; call the model's predict on the one that is scored."
            raise AlignmentError(msg)
        return self
