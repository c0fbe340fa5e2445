"""`Tilts`: sums by cluster of users, for how far weights may be off before a difference changes its sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from openloop.core.feedback import Floats

CLUSTERS = 10_000  # of users, at most: enough for a jackknife over any number of users
Against = Literal["gamma", "rho", "kappa"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltedSums:
    """Sums with every weight tilted by one number, at some values of it: Σw and then Σwδ of each model.

    `against` is "rho", w·ρ^−r with r the rating's place on a scale of 0 to 4, or "kappa", w·n^−κ with n the rows of
    the item. `raked`: each item's Σw stays what it is without the tilt.
    """

    against: Against
    grid: tuple[float, ...]  # (G,) rising; at the first nothing is tilted
    sums: Floats  # (clusters, M + 1, G)
    raked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tilts:
    """The sums of one metric. `parts` are D = Σad, A = Σbd₊ and B = Σbd₋ of each pair's difference d, w = a + b."""

    models: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    parts: Floats | None = None  # (clusters, P, 3); None without propensities
    sums: tuple[TiltedSums, ...] = ()
    notes: tuple[str, ...] = ()

    def parts_of(self, a: str, b: str) -> Floats | None:
        """D, A and B of a − b by cluster, (clusters, 3)."""
        if self.parts is None:
            return None
        if (a, b) in self.pairs:
            return self.parts[:, self.pairs.index((a, b))]
        if (b, a) not in self.pairs:
            return None
        return self.parts[:, self.pairs.index((b, a))][:, [0, 2, 1]] * [-1.0, 1.0, 1.0]

    def against(self, what: Against) -> TiltedSums | None:
        """The sums under one kind of tilt, None where they were not taken."""
        return next((s for s in self.sums if s.against == what), None)

    def gains(self, what: TiltedSums, a: str, b: str) -> Floats:
        """Σw, Σwδ_a and Σwδ_b by cluster, (clusters, 3, G)."""
        return what.sums[:, [0, 1 + self.models.index(a), 1 + self.models.index(b)]]
