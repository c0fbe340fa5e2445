"""`Moments`: all that an estimator ever sees of a log. Sums per user and stratum, and a few over all rows.

Left of here code touches rows; right of here, arrays as long as the number of users. Moments know nothing about
recommenders or dataframes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from openloop.core.feedback import Array, Floats, frozen
from openloop.core.levels import LevelSample
from openloop.core.metric import Metric
from openloop.core.weights import WeightSummary
from openloop.errors import AlignmentError, UndefinedError

# The sums by name: n = |O| or |S_u|, gain = Σδ, weight = Σw, wgain = Σwδ; the same with cut weights; ideal = Σ of
# the ideal order of the weights (nDCG); rows and mass = |O| and Σw over all scored rows, for the shares of strata.
SUMS = ("n", "gain", "weight", "wgain", "cut", "cutgain", "ideal", "cutideal", "rows", "mass")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """The sums of one model's gains under one metric: all that an estimator sees of a log.

    U is the number of users, S that of strata.

    Args:
        metric: The metric whose gains δ were summed.
        sums: Sums by name, (U, S) each. n = |O| or |S_u|, gain = Σδ, weight = Σw, wgain = Σwδ; cut and cutgain are the
            same with cut weights. ideal and cutideal are sums of the ideal order (nDCG); rows and mass are |O| and Σw
            over all scored rows, for the shares of strata.
        cells: |C_u|, the number of candidates of each user, (U,).
        weights: A summary of the weights.
        powers: Σ_O (1−p) w^a δ^b by stratum, (S, 3, 3), which every design-based variance over cells is made of.
        cut_powers: The same with cut weights.
        cap: The cap of the weights.
        clipped: The share of rows whose weight was cut.
        floored: The share of propensities that a floor raised.
        kept_weight: Σ1/max(p, floor) / Σ1/p.
        scaled: Whether Σw should add up to the population.
        unbalanced: Σw/|C| before the weights were balanced, None where they were not.
        whole_users: Whether a split drew users, with all their cells at once.
        caps: The sums under each candidate cap, (5,).
        parts: Σad, Σbd₊ and Σbd₋ of a difference d, where w = a + b.
        squares: Σwδ².
        imputed: Σ_{C_u} δ̂, the sum of the imputed losses of each user, (U,).
        catalogue: The number of candidate cells in each stratum, (U, S), where the grid of p is known.
        inverse_squares: Σ1/p² over the grid where p < 1.
        edges: The edges of the strata.
        sample: The uniform sample that the propensities were fitted with; its levels are the strata.
        limits: The least and the largest p of the scored rows in each stratum, (S, 2).
        ids: The ids of the users, where rows came from a frame.

    Raises:
        AlignmentError: Sums have different shapes.

    Examples:
        >>> sums = {"n": np.array([[2.0], [1.0]]), "gain": np.array([[1.0], [2.0]])}
        >>> m = ol.Moments(metric=ol.metric("mae"), sums=sums, cells=np.array([3.0, 3.0]))
        >>> m.n_users, m.population
        (2, 6.0)
    """

    metric: Metric
    sums: dict[str, Floats]
    cells: Floats
    weights: WeightSummary | None = None
    powers: Floats | None = None
    cut_powers: Floats | None = None
    cap: float | None = None
    clipped: float | None = None
    floored: float | None = None
    kept_weight: float | None = None
    scaled: bool = True
    unbalanced: float | None = None
    whole_users: bool = False
    caps: dict[float, Floats] = field(default_factory=dict[float, Floats])
    parts: tuple[float, float, float] | None = None
    squares: float | None = None
    imputed: Floats | None = None
    catalogue: Floats | None = None
    inverse_squares: float | None = None
    edges: tuple[float, ...] = ()
    sample: LevelSample | None = None
    limits: Floats | None = None
    ids: Array | None = None
    made: dict[str, Moments] = field(init=False, repr=False, default_factory=dict[str, "Moments"])

    def __post_init__(self) -> None:
        shape = self.sums["n"].shape
        for name, values in self.sums.items():
            if values.shape != shape:
                msg = f"Moments: {name} has shape {values.shape}, n has {shape}; sums are (users, strata)."
                raise AlignmentError(msg)
        if self.cells.shape != shape[:1]:
            raise AlignmentError(f"Moments: cells has shape {self.cells.shape} for {shape[0]} users.")
        object.__setattr__(self, "sums", {name: frozen(values) for name, values in self.sums.items()})

    @property
    def n_users(self) -> int:
        """The number of users (or clusters of users) in the population."""
        return len(self.cells)

    @property
    def n_strata(self) -> int:
        """The number of strata, 1 without strata."""
        return self.sums["n"].shape[1]

    @property
    def population(self) -> float:
        """|C|: U·I, or what `exclude` leaves of it."""
        return float(self.cells.sum())

    @property
    def users(self) -> int:
        """The number of users with a row that counts."""
        return int(np.count_nonzero(self.sums["n"].sum(axis=1)))

    @property
    def mass(self) -> float:
        """Σw/|C| of the rows that count, before weights were balanced."""
        before = 1.0 if self.unbalanced is None else self.unbalanced
        return float(self.stack("weight").sum()) / self.population * before

    def stack(self, *names: str) -> Floats:
        """The sums with these `names` as one array (U, names, S), each of its columns contiguous."""
        missing = [name for name in names if name not in self.sums]
        if missing:
            raise UndefinedError(
                f"{self.metric.name}: the moments have no {missing[0]!r}; propensities were not given, or the sum "
                "was not asked for."
            )
        return np.stack([self.sums[name].T for name in names]).transpose(2, 0, 1)

    def collapse(self) -> Moments:
        """The same moments without strata."""
        if self.n_strata == 1:
            return self
        if self.metric.groups:
            msg = f"{self.metric.name}: its strata do not add up to the whole; accumulate without strata."
            raise UndefinedError(msg)
        if "collapsed" not in self.made:
            self.made["collapsed"] = replace(
                self,
                sums={name: values.sum(axis=1, keepdims=True) for name, values in self.sums.items()},
                powers=None if self.powers is None else self.powers.sum(axis=0, keepdims=True),
                cut_powers=None if self.cut_powers is None else self.cut_powers.sum(axis=0, keepdims=True),
                catalogue=None,
                edges=(),
                sample=None,
                limits=None,
            )
        return self.made["collapsed"]

    def as_one_user(self) -> Moments:
        """The same moments summed over users: enough for a value and its variance over cells."""
        if "one user" not in self.made:
            self.made["one user"] = replace(
                self,
                sums={name: values.sum(axis=0, keepdims=True) for name, values in self.sums.items()},
                cells=self.cells.sum(keepdims=True),
                imputed=None if self.imputed is None else self.imputed.sum(keepdims=True),
                catalogue=None if self.catalogue is None else self.catalogue.sum(axis=0, keepdims=True),
                sample=None if self.sample is None else self.sample.of_one_user(),
                ids=None,
            )
        return self.made["one user"]
