"""MovieLens in its three formats: tabs (100K), double colons (1M, 10M), commas and a header (since 20M)."""

from __future__ import annotations

from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.data.reading import read


def tabs(name: str, files: Files) -> Data:
    """u.data: "user<TAB>item<TAB>rating<TAB>time"."""
    path = files["ratings"][0]
    return Data(name=name, log=read(path, separator="\t", header=False, user=0, item=1, rating=2, time=3))


def colons(name: str, files: Files) -> Data:
    """ratings.dat: "user::item::rating::time"."""
    path = files["ratings"][0]
    return Data(name=name, log=read(path, separator="::", header=False, user=0, item=1, rating=2, time=3))


def headed(name: str, files: Files) -> Data:
    """ratings.csv with the header "userId,movieId,rating,timestamp"."""
    path = files["ratings"][0]
    log = read(path, separator=",", header=True, user="userId", item="movieId", rating="rating", time="timestamp")
    return Data(name=name, log=log)
