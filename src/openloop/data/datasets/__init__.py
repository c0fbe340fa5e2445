"""Public data sets: a catalogue, their files on disk, and loaders from the original formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openloop.support.lazy import lazily

if TYPE_CHECKING:
    from openloop.data.datasets.catalogue import CATALOGUE
    from openloop.data.datasets.checking import Check, check
    from openloop.data.datasets.fetching import Fetched, fetch
    from openloop.data.datasets.finding import data_folder, files, find, fingerprint, present, whereabouts
    from openloop.data.datasets.loaders import impressions, load, rows
    from openloop.data.datasets.records import Data, Dataset

__all__ = [
    "CATALOGUE", "Dataset", "find",
    "data_folder", "present", "whereabouts", "files", "fingerprint",
    "fetch", "Fetched", "check", "Check",
    "Data", "load", "rows", "impressions",
]  # fmt: skip

_NAMES = {
    "catalogue": "CATALOGUE",
    "records": "Dataset Data",
    "finding": "find data_folder present whereabouts files fingerprint",
    "fetching": "fetch Fetched",
    "checking": "check Check",
    "loaders": "load rows impressions",
}

__getattr__, __dir__ = lazily(__name__, _NAMES, globals())
