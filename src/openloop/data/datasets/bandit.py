"""Open Bandit (Saito et al. 2021): impressions of two logging policies, each with its propensity.

Its rows have no user ids, only coarse features of users, so they are not cells of a users × items grid: they stay a
table, in which `propensity_score` is the probability that the policy put this item at this position, or become
Impressions without users and requests.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from openloop.core.impressions import Impressions
from openloop.data.datasets import lines, tables
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Shape
from openloop.data.reading import read
from openloop.errors import InputError, PropensityError, RatingError, did_you_mean

_TYPES = {"item_id": pl.Int64, "position": pl.Int64, "click": pl.Int64}
_PROPENSITY = "propensity_score"
_OLD = {"action_prob": _PROPENSITY}  # as the small copy beside the Open Bandit Pipeline once called it


def impressions(files: Files) -> pl.LazyFrame:
    """The rows of all policies and campaigns, and which they belong to; item ids are a campaign's own."""
    return pl.concat([_part(path) for role in files.values() for path in role], how="diagonal_relaxed")


def shown(files: Files, policy: str, campaign: str) -> Impressions:
    """The impressions of one policy in one campaign; its items are those that either policy showed there.

    A file names neither requests nor users, so each row is a separate request. The random policy puts every item at
    every position with the same probability, so its rows are shuffled.
    """
    here = {path.parts[-3]: path for role in files.values() for path in role if path.parts[-2] == campaign}
    campaigns = sorted({path.parts[-2] for role in files.values() for path in role})
    _refuse_other("campaign", campaign, campaigns)
    _refuse_other("policy", policy, sorted(here))
    types = _types(here[policy])
    rows = tables.columns(here[policy], types)
    last = max(int(tables.columns(path, {"item_id": pl.Int64})["item_id"].to_numpy().max()) for path in here.values())
    return read(
        rows.with_columns(shuffled=pl.lit(policy == "random")), position="position", item="item_id", reward="click",
        propensity=list(types)[-1], shuffled="shuffled", request=False, user=False, items=last + 1,
    )  # fmt: skip


def _refuse_other(what: str, given: str, known: list[str]) -> None:
    if given not in known:
        raise InputError(f"open-bandit: there is no {what} {given!r} in its files.{did_you_mean(given, known)}")


def held(files: Files) -> Shape:
    """What the files hold, all of it read: numbers, clicks of 0 or 1, propensities in (0, 1]."""
    counts = {path: _counted(path) for role in files.values() for path in role}
    policies = {path.parts[-3] for path in counts}
    return Shape(version=f"{sum(counts.values()):,} impressions of {len(policies)} policies")


def _counted(path: Path) -> int:
    types = _types(path)
    rows = tables.columns(path, types)
    click, propensity = rows["click"], rows[list(types)[-1]]
    if not click.is_in([0, 1]).all():
        raise RatingError(f"{path}: clicks must be 0 or 1, got {click.min()} … {click.max()}; {lines.AGAIN}")
    if not (propensity.is_between(0, 1, closed="right")).all():
        msg = f"{path}: propensities must lie in (0, 1], got {propensity.min()} … {propensity.max()}; {lines.AGAIN}"
        raise PropensityError(msg)
    return rows.height


def _types(path: Path) -> tables.Types:
    """The columns of a file that must be there, the propensity, under the name that it has here, last."""
    found = tables.names(path)
    return _TYPES | {next((old for old in _OLD if old in found), _PROPENSITY): pl.Float64}


def _part(path: Path) -> pl.LazyFrame:
    """…/policy/campaign/campaign.csv, whose first column, without a name, numbers the rows."""
    types = _types(path)
    rows = tables.scan(path, types).drop("", strict=False).rename({old: _OLD[old] for old in types if old in _OLD})
    return rows.with_columns(policy=pl.lit(path.parts[-3]), campaign=pl.lit(path.parts[-2]))
