"""Which curves there are: each case with its sizes, and what its figure shows in words."""

from __future__ import annotations

from bench.scaling import curves
from bench.scaling.curves import COUNTS, Curve, ScalingCase

EVALUATE_WORDS = """\
Beyond the constant cost of planning a query, time is linear in rows, and in users, because sums are kept per user.
Items add nothing. Memory other than for the rows themselves does not grow with them, because moments of chunks are
merged. The plain group-by computes six sums per user; openloop also checks values, and computes the sums for
diagnostics, intervals and caps."""

RANKS_WORDS = """\
Time is linear in users, and in items until their vectors no longer fit into the cache: beyond that the plain product
also grows faster. More factors only make the product more expensive, so the two curves converge. Each held-out row is
compared with all items, so counting is linear in held-out rows. A search among sorted scores was tried: with 10,000
items it is slower up to a thousand held-out rows per user, because comparisons are vectorised."""

MF_WORDS = """\
A sweep is linear in rows, and in users and items, because each has a vector to solve for: if users have one row each,
the vectors cost more than the rows. Time grows more slowly than the number of factors: a step of conjugate gradients
is linear in it (normal equations would be quadratic), and part of the work does not depend on it. implicit weights
all cells, which is a different problem with about the same amount of work."""

LOGISTIC_WORDS = """\
With covariates, the work depends on cells, users × items, and hardly on rows: a fit takes 7 or 8 gradients at each
number of users. The lines bend where the grid is first divided into blocks, whose cells cost less. The number of
products of covariates is the square of the number per side. scikit-learn gets one row per cell, and is measured where
the grid is small. Without covariates, users and items with equal counts form one class. n rows have at most 2n pairs
of classes, so time is linear in rows for large n; here the share of pairs that occur still rises, and time grows
faster."""

AUDIT_WORDS = """\
At these sizes, time grows less than proportionally: diagnostics, bootstrap and bounds are already expensive for few
rows. With 100,000 items, rankings are nine tenths of the work, and they are linear in users and items. Eight models
take less than three times as long as two, because rows, weights and propensities are shared. Beyond 2²⁸ cells, Σ1/π²
over all cells is not computed."""

EVALUATE = ScalingCase(
    name="evaluate", title="`evaluate` of a Polars frame", input="rows", sides=curves.evaluate,
    base={"rows": 300_000, "users": 3_000, "items": 10_000},
    curves=(
        Curve(axis="rows", values=(300_000, 900_000, 3_000_000, 9_000_000)),
        Curve(axis="users", values=(3_000, 10_000, 30_000, 100_000)),
        Curve(axis="items", values=(10_000, 30_000, 100_000, 300_000)),
        Curve(axis="threads", values=COUNTS, at={"rows": 3_000_000}),
    ),
    words=EVALUATE_WORDS,
)  # fmt: skip

RANKS = ScalingCase(
    name="ranks", title="Exact ranks of held-out items", input="factors", sides=curves.ranks,
    base={"wanted": 20, "users": 3_000, "items": 10_000, "factors": 16},
    curves=(
        Curve(axis="wanted", values=(20, 60, 200, 600), label="held-out rows per user"),
        Curve(axis="users", values=(3_000, 10_000, 30_000, 90_000)),
        Curve(axis="items", values=(10_000, 30_000, 100_000, 300_000)),
        Curve(axis="factors", values=(16, 32, 64, 128, 256)),
        Curve(axis="threads", values=COUNTS, at={"users": 10_000, "factors": 64}),
    ),
    words=RANKS_WORDS,
)  # fmt: skip

MF = ScalingCase(
    name="mf", title="`MF`, a fit of three sweeps", input="log", sides=curves.factorisation,
    base={"rows": 400_000, "users": 10_000, "items": 10_000, "factors": 16},
    curves=(
        Curve(axis="rows", values=(400_000, 1_200_000, 4_000_000)),
        Curve(axis="users", values=(10_000, 30_000, 100_000, 300_000)),
        Curve(axis="items", values=(10_000, 30_000, 100_000, 300_000)),
        Curve(axis="factors", values=(16, 32, 64, 128)),
        Curve(axis="threads", values=COUNTS, at={"rows": 1_200_000, "factors": 32}),
    ),
    words=MF_WORDS,
)  # fmt: skip

LOGISTIC = ScalingCase(
    name="logistic", title="`Logistic` propensities", input="cells", sides=curves.logistic,
    base={"rows": 9_000, "users": 300, "items": 200, "covariates": 2},
    curves=(
        Curve(axis="rows", values=(9_000, 18_000, 36_000)),
        Curve(axis="users", values=(300, 900, 3_000, 9_000)),
        Curve(axis="items", values=(200, 600, 2_000, 6_000)),
        Curve(axis="covariates", values=(2, 4, 8, 16), label="covariates on each side"),
        Curve(axis="threads", values=COUNTS, at={"users": 3_000, "covariates": 8}),
        Curve(
            axis="rows", values=(400_000, 1_200_000, 4_000_000), at={"users": 10_000, "items": 10_000},
            label="rows, without covariates", input="counts", sides=curves.offsets,
        ),
    ),
    words=LOGISTIC_WORDS,
)  # fmt: skip

AUDIT = ScalingCase(
    name="audit", title="`audit` of factorisations, by ratings and by rankings", input="log", sides=curves.audit,
    base={"rows": 400_000, "users": 10_000, "items": 10_000, "factors": 16, "models": 2},
    curves=(
        Curve(axis="rows", values=(400_000, 1_200_000, 4_000_000)),
        Curve(axis="users", values=(10_000, 30_000, 100_000)),
        Curve(axis="items", values=(10_000, 30_000, 100_000)),
        Curve(axis="factors", values=(16, 32, 64, 128)),
        Curve(axis="models", values=(2, 4, 8)),
        Curve(axis="threads", values=COUNTS),
    ),
    words=AUDIT_WORDS,
)  # fmt: skip

CASES = {case.name: case for case in (EVALUATE, RANKS, MF, LOGISTIC, AUDIT)}
