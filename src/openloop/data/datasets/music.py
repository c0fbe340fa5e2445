"""Data sets of music: Yahoo! R3 (ratings), Last.fm of HetRec 2011 and the Million Song Dataset (plays)."""

from __future__ import annotations

import io

import polars as pl

from openloop.data.datasets import lines
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.data.reading import read
from openloop.errors import FormatError, InputError

PLAYS = "ratings are numbers of plays"

_PLAYED = {"user": int, "artist": int, "plays": float}
_TRIPLET = {"user": str, "song": str, "plays": float}
_RATED = {"user": int, "item": int, "rating": float}


def hetrec(name: str, files: Files) -> Data:
    """user_artists.dat: "userID<TAB>artistID<TAB>weight", after a header or, in some copies, lines of counts."""
    path = files["plays"][0]
    text = path.read_bytes().split(b"\n")
    first = next((at for at, line in enumerate(text) if line.count(b"\t") == 2), None)
    if first is None:
        msg = f"{path}: must hold lines of user, artist and plays, divided by tabs, and has none; {lines.AGAIN}"
        raise FormatError(msg)
    first += not text[first].split(b"\t")[2].strip().isdigit()
    columns = {"user": pl.Int64, "artist": pl.Int64, "plays": pl.Float64}
    try:
        rows = pl.read_csv(io.BytesIO(b"\n".join(text[first:])), separator="\t", has_header=False, schema=columns)
        log = read(rows, user="user", item="artist", rating="plays")
    except (pl.exceptions.PolarsError, InputError) as error:
        lines.refuse_first(path, _PLAYED, separator="\t", header=False, before=first, error=error)
        if isinstance(error, InputError):
            raise lines.restated(error, path) from error
        raise FormatError(f"{path}: must hold whole numbers divided by tabs; {lines.AGAIN}") from error
    return Data(name=name, log=log, notes=(PLAYS,))


def million_song(name: str, files: Files) -> Data:
    """Triplets "user<TAB>song<TAB>plays", ids in letters."""
    return Data(
        name=name, log=lines.log(files["plays"][0], _TRIPLET, separator="\t", header=False), notes=(PLAYS,)
    )  # fmt: skip


def yahoo(name: str, files: Files) -> Data:
    """Lines "user<TAB>item<TAB>rating": what people chose to rate, and ten songs each that were drawn."""
    log = lines.log(files["train"][0], _RATED, separator="\t", header=False)
    drawn = lines.log(files["test"][0], _RATED, separator="\t", header=False, like=log)
    return Data(name=name, log=log, open_loop=drawn, notes=("only some of the users rated the drawn songs",))
