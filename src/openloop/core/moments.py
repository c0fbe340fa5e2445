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

    Moments of parts of the rows add up to the moments of the whole. U is the number of users, S that of strata.

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
        >>> (m + m).sums["gain"].sum()
        np.float64(6.0)
    """

    metric: Metric
    sums: dict[str, Floats]  # each (U, S)
    cells: Floats  # (U,) |C_u|
    weights: WeightSummary | None = None
    powers: Floats | None = None  # (S, 3, 3)
    cut_powers: Floats | None = None  # (S, 3, 3)
    cap: float | None = None
    clipped: float | None = None  # share of rows whose weight was cut
    floored: float | None = None  # share of propensities that a floor raised
    kept_weight: float | None = None  # Σ1/max(p, floor) over Σ1/p
    scaled: bool = True  # whether Σw should add up to the population
    unbalanced: float | None = None  # Σw/|C| before weights were balanced, which makes it 1; None: they were not
    whole_users: bool = False  # a split drew users, with all their cells at once
    caps: dict[float, Floats] = field(default_factory=dict[float, Floats])  # cap → (5,)
    parts: tuple[float, float, float] | None = None
    squares: float | None = None  # Σwδ²
    imputed: Floats | None = None  # (U,) Σ_{C_u} δ̂
    catalogue: Floats | None = None  # (U, S) candidate cells of each stratum, where the grid of p is known
    inverse_squares: float | None = None  # Σ 1/p² over the grid where p < 1
    edges: tuple[float, ...] = ()
    sample: LevelSample | None = None  # the strata are its levels, and the propensities were fitted with it
    limits: Floats | None = None  # (S, 2) the least and the largest p of the scored rows in each stratum
    ids: Array | None = None
    made: dict[str, Moments] = field(init=False, repr=False, default_factory=dict[str, "Moments"])  # of these, once

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

    def __add__(self, other: Moments) -> Moments:
        """The moments of the whole from those of two parts of its rows."""
        if (self.metric.name, self.edges, self.cap) != (other.metric.name, other.edges, other.cap):
            raise AlignmentError("Moments: only moments of one metric, one set of strata and one cap merge.")
        a, b = (self, other) if _same(self.ids, other.ids) else _aligned(self, other)
        if (self.metric.groups or "ideal" in self.sums) and bool(np.any((a.sums["n"] > 0) & (b.sums["n"] > 0))):
            msg = f"{self.metric.name}: a user's gains depend on all its rows; merge parts that hold whole users."
            raise UndefinedError(msg)
        if a.n_users != b.n_users:
            msg = f"Moments: parts of {a.n_users:,} and {b.n_users:,} users are not parts of one population."
            raise AlignmentError(msg)
        both = set(a.sums) & set(b.sums)
        return replace(
            a,
            sums={name: a.sums[name] + b.sums[name] for name in a.sums if name in both},
            weights=None if a.weights is None or b.weights is None else a.weights + b.weights,
            powers=_plus(a.powers, b.powers),
            cut_powers=_plus(a.cut_powers, b.cut_powers),
            clipped=_mean_clipped(a, b),
            squares=None if a.squares is None or b.squares is None else a.squares + b.squares,
            limits=_widest(a.limits, b.limits),
            caps={cap: a.caps[cap] + b.caps[cap] for cap in a.caps if cap in b.caps},
            parts=_both(a.parts, b.parts),
        )


def _plus(a: Floats | None, b: Floats | None) -> Floats | None:
    return None if a is None or b is None else a + b


def _widest(a: Floats | None, b: Floats | None) -> Floats | None:
    if a is None or b is None:
        return None
    return np.stack([np.minimum(a[:, 0], b[:, 0]), np.maximum(a[:, 1], b[:, 1])], axis=1)


def _both(
    a: tuple[float, float, float] | None, b: tuple[float, float, float] | None
) -> tuple[float, float, float] | None:
    return None if a is None or b is None else (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def _mean_clipped(a: Moments, b: Moments) -> float | None:
    if a.clipped is None or b.clipped is None or a.weights is None or b.weights is None:
        return None
    n = a.weights.n + b.weights.n
    return (a.clipped * a.weights.n + b.clipped * b.weights.n) / n if n else 0.0


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _aligned(a: Moments, b: Moments) -> tuple[Moments, Moments]:
    """Both on the union of their users; a user who is absent from a part has zero sums there."""
    if a.ids is None or b.ids is None:
        msg = "Moments: one side names its users and the other does not; accumulate both from frames, or neither."
        raise AlignmentError(msg)
    ids = np.union1d(a.ids, b.ids)
    places = np.searchsorted(ids, a.ids), np.searchsorted(ids, b.ids)
    cells = np.zeros(len(ids))
    for part, at in zip((a, b), places, strict=True):
        cells[at] = part.cells
    return _spread(a, places[0], ids, cells), _spread(b, places[1], ids, cells)


def _spread(part: Moments, at: Array, ids: Array, cells: Floats) -> Moments:
    sums: dict[str, Floats] = {}
    for name, values in part.sums.items():
        sums[name] = np.zeros((len(ids), part.n_strata))
        sums[name][at] = values
    return replace(part, sums=sums, cells=cells, ids=ids)
