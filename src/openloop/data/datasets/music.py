"""Data sets of music: Yahoo! R3 (ratings), Last.fm of HetRec 2011 and the Million Song Dataset (plays)."""

from __future__ import annotations

import io

import polars as pl

from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.data.reading import read
from openloop.errors import FormatError

PLAYS = "ratings are numbers of plays"


def hetrec(name: str, files: Files) -> Data:
    """user_artists.dat: "userID<TAB>artistID<TAB>weight", after a header or, in some copies, lines of counts."""
    path = files["plays"][0]
    lines = path.read_bytes().split(b"\n")
    first = next((at for at, line in enumerate(lines) if line.count(b"\t") == 2), None)
    if first is None:
        msg = f"{path}: must hold lines of user, artist and plays, divided by tabs, and has none; fetch it again."
        raise FormatError(msg)
    first += not lines[first].split(b"\t")[2].strip().isdigit()
    columns = {"user": pl.Int64, "item": pl.Int64, "plays": pl.Float64}
    try:
        rows = pl.read_csv(io.BytesIO(b"\n".join(lines[first:])), separator="\t", has_header=False, schema=columns)
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"{path}: must hold whole numbers divided by tabs ({error}); fetch it again.") from error
    return Data(name=name, log=read(rows, user="user", item="item", rating="plays"), notes=(PLAYS,))


def million_song(name: str, files: Files) -> Data:
    """Triplets "user<TAB>song<TAB>plays", ids in letters."""
    log = read(files["plays"][0], separator="\t", header=False, user=0, item=1, rating=2)
    return Data(name=name, log=log, notes=(PLAYS,))


def yahoo(name: str, files: Files) -> Data:
    """Lines "user<TAB>item<TAB>rating": what people chose to rate, and ten songs each that were drawn."""
    log = read(files["train"][0], separator="\t", header=False, user=0, item=1, rating=2)
    drawn = read(files["test"][0], separator="\t", header=False, user=0, item=1, rating=2, like=log)
    return Data(name=name, log=log, open_loop=drawn, notes=("only some of the users rated the drawn songs",))
