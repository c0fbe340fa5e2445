"""MovieLens in its three formats: tabs (100K), double colons (1M, 10M), commas and a header (since 20M)."""

from __future__ import annotations

from openloop.data.datasets import lines
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data

_FIELDS = {"user": int, "item": int, "rating": float, "time": int}
_HEADED = {"userId": int, "movieId": int, "rating": float, "timestamp": int}


def tabs(name: str, files: Files) -> Data:
    """u.data: "user<TAB>item<TAB>rating<TAB>time"."""
    return Data(name=name, log=lines.log(files["ratings"][0], _FIELDS, separator="\t", header=False))


def colons(name: str, files: Files) -> Data:
    """ratings.dat: "user::item::rating::time"."""
    return Data(name=name, log=lines.log(files["ratings"][0], _FIELDS, separator="::", header=False))


def headed(name: str, files: Files) -> Data:
    """ratings.csv with the header "userId,movieId,rating,timestamp"."""
    return Data(name=name, log=lines.log(files["ratings"][0], _HEADED, separator=",", header=True))
