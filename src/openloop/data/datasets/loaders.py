"""`load`, `rows` and `impressions`: a data set by name, from its original files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from openloop.core.impressions import Impressions
from openloop.data.datasets import bandit, movielens, music, netflix, shopping, videos
from openloop.data.datasets.finding import Files, Folder, find, located
from openloop.data.datasets.records import Data, Dataset
from openloop.errors import InputError, RatingError, UndefinedError, listing

if TYPE_CHECKING:
    import polars as pl

LOADERS: dict[str, Callable[[str, Files], Data]] = {
    "ml-100k": movielens.tabs,
    "ml-1m": movielens.colons,
    "ml-10m": movielens.colons,
    "ml-20m": movielens.headed,
    "ml-25m": movielens.headed,
    "ml-latest-small": movielens.headed,
    "coat": shopping.coat,
    "yahoo-r3": music.yahoo,
    "netflix": netflix.netflix,
    "amazon-games": shopping.amazon_games,
    "lastfm-hetrec": music.hetrec,
    "lastfm-msd": music.million_song,
    "kuairec": videos.kuairec,
    "kuairand": videos.kuairand,
}
ROWS: dict[str, Callable[[Files], pl.LazyFrame]] = {
    "kuairec": videos.watched,
    "kuairand": videos.shown,
    "open-bandit": bandit.impressions,
}
SHOWN: dict[str, Callable[[Files, str, str], Impressions]] = {"open-bandit": bandit.shown}


def load(name: str, folder: Folder | None = None) -> Data:
    r"""Load a data set of ratings, plays or purchases from its original files.

    Args:
        name: The name of the data set, such as "ml-100k"; `ol.datasets.CATALOGUE` has all.
        folder: The data folder; by default $OPENLOOP_DATA, or `data` in the current folder.

    Returns:
        The log and what came with it: an open-loop part, propensities, covariates.

    Raises:
        InputError: A file is missing or damaged.
        UndefinedError: The data set holds impressions, which `ol.datasets.impressions` loads.

    Examples:
        >>> from pathlib import Path
        >>> Path("data/ml-100k").mkdir(parents=True)
        >>> rows = ["196\t242\t3\t881250949", "186\t302\t3\t891717742", "22\t377\t1\t878887116"]
        >>> size = Path("data/ml-100k/u.data").write_text("\n".join(rows))
        >>> ol.datasets.load("ml-100k", "data").log
        Feedback(3 of 3 users × 3 items, with time)
    """
    dataset = find(name)
    if dataset.impressions:
        raise UndefinedError(
            f"{name}: its rows have no user ids, so they are not a log of users and items; "
            f"datasets.impressions({name!r}) gives what was shown at which position, datasets.rows({name!r}) all "
            "columns as a table."
        )
    found = located(name, folder)
    try:
        return loaded(dataset, found)
    except InputError as error:
        hint = f"`openloop datasets check {name}` compares all its files with what is documented."
        raise type(error)(f"{error} {hint}") from error


def loaded(dataset: Dataset, found: Files) -> Data:
    """A data set from its files; what is wrong with one of them is an error that names it."""
    data = LOADERS[dataset.name](dataset.name, found)
    _refuse_off_scale(dataset, found, data)
    version = dataset.version(data.shape)
    edition = (f"version: {version.version}",) if version is not None and version.version else ()
    return replace(data, notes=(*edition, *data.notes))


def _refuse_off_scale(dataset: Dataset, found: Files, data: Data) -> None:
    """The ratings of the log, which the first part holds, and of the open-loop part, which the second holds."""
    if dataset.scale is None:
        return
    for log, part in zip((data.log, data.open_loop), dataset.parts, strict=False):
        off = np.flatnonzero([] if log is None else dataset.scale.outside(log.rating))
        if log is not None and len(off):
            files, at = found[part.role], off[0]
            place = files[0] if len(files) == 1 else files[0].parent
            pair = f"user {log.users.ids[log.user[at]]}, item {log.items.ids[log.item[at]]}"
            raise RatingError(
                f"{place}: ratings must be {dataset.scale}, and {len(off):,} "
                f"of {len(log):,} are not, first {log.rating[at]:g} ({pair}); fetch the file again."
            )


def rows(name: str, folder: Folder | None = None) -> pl.LazyFrame:
    """Every logged row with all its columns, for data sets of impressions. The rows stay in their files.

    Args:
        name: The name of the data set.
        folder: The data folder; by default $OPENLOOP_DATA, or `data` in the current folder.

    Returns:
        A lazy Polars frame.

    Raises:
        UndefinedError: The data set holds one rating for each pair of user and item, and no more.

    Examples:
        >>> ol.datasets.rows("coat", "data")
        Traceback (most recent call last):
            ...
        openloop.errors.UndefinedError: coat: has a rating for each pair of user and item, and no more; ...
    """
    find(name)
    if name not in ROWS:
        msg = f"{name}: has a rating for each pair of user and item, and no more; datasets.load({name!r}) has them all."
        raise UndefinedError(f"{msg} Rows are for {listing(list(ROWS))}.")
    return ROWS[name](located(name, folder))


def impressions(
    name: str, folder: Folder | None = None, *, policy: str = "random", campaign: str = "all"
) -> Impressions:
    """What a policy showed at which position in a campaign, with its propensities.

    Args:
        name: The name of a data set that logs positions, such as "open-bandit".
        folder: The data folder; by default $OPENLOOP_DATA, or `data` in the current folder.
        policy: The logging policy, "random" or "bts".
        campaign: The campaign: "all", "men" or "women".

    Returns:
        The impressions.

    Raises:
        UndefinedError: The data set has no positions.

    Examples:
        >>> ol.datasets.impressions("coat", "data")
        Traceback (most recent call last):
            ...
        openloop.errors.UndefinedError: coat: has no positions; impressions are for 'open-bandit'.
    """
    find(name)
    if name not in SHOWN:
        raise UndefinedError(f"{name}: has no positions; impressions are for {listing(list(SHOWN))}.")
    return SHOWN[name](located(name, folder), policy, campaign)
