"""Open Bandit (Saito et al. 2021): impressions of two logging policies, each with its propensity.

Its rows have no user ids, only coarse features of users, so they are no cells of a users × items grid: they stay a
table, in which `propensity_score` is the probability that the policy put this item at this position.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from openloop.data.datasets import tables
from openloop.data.datasets.finding import Files

_TYPES = {"item_id": pl.Int64, "position": pl.Int64, "click": pl.Int64}
_OLD = {"action_prob": "propensity_score"}  # as the small copy beside the Open Bandit Pipeline once called it


def impressions(files: Files) -> pl.LazyFrame:
    """The rows of all policies and campaigns, and which they belong to; item ids are a campaign's own."""
    return pl.concat([_part(path) for role in files.values() for path in role], how="diagonal_relaxed")


def _part(path: Path) -> pl.LazyFrame:
    """…/policy/campaign/campaign.csv, whose first column, without a name, numbers the rows."""
    rows = tables.scan(path, _TYPES)
    names = rows.collect_schema().names()
    rows = rows.drop("", strict=False).rename({old: new for old, new in _OLD.items() if old in names})
    propensity = pl.col("propensity_score").cast(pl.Float64)
    return rows.with_columns(propensity, policy=pl.lit(path.parts[-3]), campaign=pl.lit(path.parts[-2]))
