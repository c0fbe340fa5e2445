"""The catalogue: names that are distinct, digests of the right form, terms for everything."""

from __future__ import annotations

import re

import pytest

from openloop.data.datasets.catalogue import CATALOGUE

HEX = {"sha256": r"[0-9a-f]{64}", "md5": r"[0-9a-f]{32}"}


def test_the_data_sets_are_these():
    assert [dataset.name for dataset in CATALOGUE] == [
        "ml-100k", "ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-latest-small", "coat", "yahoo-r3", "netflix",
        "amazon-games", "lastfm-hetrec", "lastfm-msd", "kuairec", "kuairand", "open-bandit",
    ]  # fmt: skip


def test_those_whose_keepers_ask_first_are_not_downloaded():
    assert {dataset.name for dataset in CATALOGUE if dataset.gated} == {"yahoo-r3", "netflix", "lastfm-msd"}


@pytest.mark.parametrize("dataset", CATALOGUE, ids=lambda dataset: dataset.name)
def test_every_record_says_where_from_under_which_terms_and_what_files(dataset):
    assert dataset.home.startswith("http")
    assert dataset.terms.endswith(".")
    assert len(dataset.terms.split(";")[0]) < 30  # the part that a list shows
    assert dataset.folders[0] == dataset.name
    assert any(not part.optional for part in dataset.parts)


@pytest.mark.parametrize("dataset", [d for d in CATALOGUE if d.archive], ids=lambda dataset: dataset.name)
def test_downloads_are_by_https_and_digests_have_their_form(dataset):
    assert dataset.archive.url.startswith("https://")
    for kind, form in HEX.items():
        known = getattr(dataset.archive, kind)
        assert known is None or re.fullmatch(form, known)


def test_all_folders_and_digests_are_distinct():
    folders = [folder for dataset in CATALOGUE for folder in dataset.folders]
    digests = [d.archive.sha256 for d in CATALOGUE if d.archive and d.archive.sha256]
    assert len(set(folders)) == len(folders)
    assert len(set(digests)) == len(digests) == 8


def test_every_log_has_a_scale_and_every_optional_file_says_what_it_holds():
    assert all((dataset.scale is None) == dataset.impressions for dataset in CATALOGUE)
    assert all(bool(part.holds) == part.optional for dataset in CATALOGUE for part in dataset.parts)


def test_these_state_no_terms():
    assert {dataset.name for dataset in CATALOGUE if dataset.unstated} == {"coat", "amazon-games"}
