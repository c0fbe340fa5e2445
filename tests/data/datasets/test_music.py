"""Music: plays of Last.fm and the Million Song Dataset, ratings of Yahoo! R3."""

from __future__ import annotations

import re

import pytest

from openloop.data import datasets
from openloop.errors import FormatError, UnknownIdError
from tests.data.datasets.originals import cells, write
from tests.facts import facts

PLAYS = [(2, 51, 13883), (2, 52, 11690), (3, 51, 7)]


@pytest.mark.parametrize(
    "text",
    [
        "userID\tartistID\tweight\n2\t51\t13883\n2\t52\t11690\n3\t51\t7\n",
        "2\n3\n2\t51\t13883\n2\t52\t11690\n3\t51\t7\n",
        "2\t51\t13883\r\n2\t52\t11690\r\n3\t51\t7",
    ],
)
def test_plays_are_found_below_a_header_or_counts_or_nothing(tmp_path, text):
    write("lastfm-hetrec", tmp_path, user_artists=text)
    data = datasets.load("lastfm-hetrec", tmp_path)
    assert cells(data.log) == PLAYS
    (note,) = data.notes
    assert re.search(facts("ratings", "plays"), note)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("userID,artistID,weight\n2,51,13883\n", ("artist", "plays", "tabs", "none"), id="commas"),
        pytest.param(
            "2\n3\n2\t51\t13883\n2\t52\n", ("line 4", "3 fields", "tabs", "(user, artist, plays)", 2), id="short"
        ),
        pytest.param("userID\tartistID\tweight\n2\tx\t13883\n", ("line 2", "whole number", "artist", "'x'"), id="text"),
    ],
)
def test_a_file_of_another_format_is_refused(tmp_path, text, told):
    write("lastfm-hetrec", tmp_path, user_artists=text)
    with pytest.raises(FormatError, match=facts("user_artists.dat", *told)):
        datasets.load("lastfm-hetrec", tmp_path)


def test_triplets_of_the_million_song_dataset(tmp_path):
    log = datasets.load("lastfm-msd", write("lastfm-msd", tmp_path)).log
    assert (log.n_users, log.n_items, sorted(log.rating.tolist())) == (2, 2, [1, 2, 17])
    assert log.users.ids[0] == "d7083f5e1d50c264277d624340edaaf3dc16095b"


def test_the_drawn_songs_of_yahoo_share_the_ids_of_the_log(tmp_path):
    data = datasets.load("yahoo-r3", write("yahoo-r3", tmp_path))
    assert cells(data.log) == [(1, 14, 5), (1, 35, 1), (2, 46, 1), (3, 14, 2)]
    assert cells(data.open_loop) == [(1, 46, 1), (2, 14, 3)]
    assert data.open_loop.users is data.log.users


def test_a_drawn_song_that_the_log_does_not_know_is_refused(tmp_path):
    write("yahoo-r3", tmp_path, **{"ydata-ymusic-rating-study-v1_0-test": "1\t99\t1\n"})
    with pytest.raises(UnknownIdError, match=facts("test.txt", "'item'", "1 of 1 rows", "14 … 46", 99, "fetch")):
        datasets.load("yahoo-r3", tmp_path)


def test_real_plays_are_as_documented(data_dir):
    log = datasets.load("lastfm-hetrec", data_dir("lastfm-hetrec").parent).log
    assert (log.n_users, log.n_items, len(log)) == (1_892, 17_632, 92_834)
    assert cells(log)[0] == (2, 51, 13883)
