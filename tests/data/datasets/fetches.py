"""Coat's archive as tests serve and fetch it, and what a fetch may leave."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from openloop.data import datasets
from openloop.data.datasets import finding
from openloop.data.datasets.records import Archive
from tests.data.datasets.originals import FILES
from tests.data.datasets.serving import served, zipped

COAT = zipped({f"coat/{path}": text for path, text in FILES["coat"].items()})
LENGTH = str(len(COAT))
SHA256 = hashlib.sha256(COAT).hexdigest()
MD5 = hashlib.md5(COAT, usedforsecurity=False).hexdigest()


ASIDE = ("coat.quarantined", "coat.quarantined.txt")
KEPT = (".coat.part", ".coat.part.json")
ETAG, DATE = {"ETag": '"v1"'}, {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}


def known(monkeypatch, **archive):
    """Let the catalogue say this of Coat's archive."""
    others = [dataset for dataset in datasets.CATALOGUE if dataset.name != "coat"]
    coat = replace(datasets.find("coat"), archive=Archive(url="https://example.org/coat.zip", **archive))
    monkeypatch.setattr(finding, "CATALOGUE", (*others, coat))


def fetched(folder, name="coat", path="coat", **answers):
    with served(**answers) as address:
        return datasets.fetch(name, folder, accept_terms=True, url=f"{address}/{path}")
