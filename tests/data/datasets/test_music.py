"""Music: plays of Last.fm and the Million Song Dataset, ratings of Yahoo! R3."""

from __future__ import annotations

from openloop.data import datasets
from tests.data.datasets.originals import cells, write


def test_triplets_of_the_million_song_dataset(tmp_path):
    log = datasets.load("lastfm-msd", write("lastfm-msd", tmp_path)).log
    assert (log.n_users, log.n_items, sorted(log.rating.tolist())) == (2, 2, [1, 2, 17])
    assert log.users.ids[0] == "d7083f5e1d50c264277d624340edaaf3dc16095b"


def test_real_plays_are_as_documented(data_dir):
    log = datasets.load("lastfm-hetrec", data_dir("lastfm-hetrec").parent).log
    assert (log.n_users, log.n_items, len(log)) == (1_892, 17_632, 92_834)
    assert cells(log)[0] == (2, 51, 13883)
