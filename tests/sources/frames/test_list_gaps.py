"""What lists leave out is the same whether their rows are in memory or in a frame."""

from __future__ import annotations

import polars as pl

import openloop as ol

LOG = pl.DataFrame({"user": [0, 0, 1, 2], "item": [0, 1, 1, 2], "rating": [5.0, 4.0, 5.0, 1.0]})
LISTS = {
    "gaps": pl.DataFrame({"user": [0, 0, 1], "item": [0, 1, 1], "rank": [1, 3, 1]}),
    "others": pl.DataFrame({"user": [0, 1, 2], "item": [2, 2, 0], "rank": [1, 1, 1]}),
}


def notes(log, models):
    return ol.evaluate(models, log, metrics=["recall@1"], estimators=["naive"]).notes


def test_lists_with_gaps_and_without_users_are_noted_alike():
    memory = notes(ol.read(LOG), LISTS)
    names = {"user": "user", "item": "item", "rating": "rating", "population": (3, 3)}
    frames = {name: table.lazy() for name, table in LISTS.items()}
    stream = ol.evaluate(frames, LOG.lazy(), metrics=["recall@1"], estimators=["naive"], **names).notes
    told = [note for note in memory if note.startswith("model")]
    assert told == [note for note in stream if note.startswith("model")]
    assert "model 'others' lists none of the scored rows; was it trained to leave them out?" in told
    assert any("1 users with scored rows have no list" in note and "1 users have gaps" in note for note in told)
