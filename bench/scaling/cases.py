"""Which curves there are: each case with its sizes, and what its figure shows in words."""

from __future__ import annotations

from bench.scaling import curves
from bench.scaling.curves import COUNTS, Curve, ScalingCase

EVALUATE = ScalingCase(
    name="evaluate", title="`evaluate` of a Polars frame", input="rows", sides=curves.evaluate,
    base={"rows": 300_000, "users": 3_000, "items": 10_000},
    curves=(
        Curve(axis="rows", values=(300_000, 900_000, 3_000_000, 9_000_000)),
        Curve(axis="users", values=(3_000, 10_000, 30_000, 100_000)),
        Curve(axis="items", values=(10_000, 30_000, 100_000, 300_000)),
        Curve(axis="threads", values=COUNTS, at={"rows": 3_000_000}),
    ),
    words="",
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
    words="",
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
    words="",
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
    words="",
)  # fmt: skip

AUDIT = ScalingCase(
    name="audit", title="`audit` of factorisations, by ratings and by rankings", input="log", sides=curves.audit,
    base={"rows": 400_000, "users": 10_000, "items": 3_000, "factors": 16, "models": 2},
    curves=(
        Curve(axis="rows", values=(400_000, 1_200_000, 4_000_000)),
        Curve(axis="users", values=(10_000, 30_000, 100_000)),
        Curve(axis="items", values=(3_000, 10_000, 30_000)),
        Curve(axis="factors", values=(16, 32, 64, 128)),
        Curve(axis="models", values=(2, 4, 8)),
        Curve(axis="threads", values=COUNTS),
    ),
    words="",
)  # fmt: skip

CASES = {case.name: case for case in (EVALUATE, RANKS, MF, LOGISTIC, AUDIT)}
