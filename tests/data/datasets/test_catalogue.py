"""The catalogue: terms for everything, and digests of the right form."""

from __future__ import annotations

import re

import pytest

from openloop.data.datasets.catalogue import CATALOGUE

HEX = {"sha256": r"[0-9a-f]{64}", "md5": r"[0-9a-f]{32}"}


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
