"""Every reference is complete, and its BibTeX parses to what it says."""

from __future__ import annotations

import pytest

from openloop.reporting.references import PLACES, REFERENCES, Reference
from openloop.studies import jadidinejad2021, lim2015, schnabel2016
from tests.bibtex import entries


@pytest.mark.parametrize("key", REFERENCES)
def test_an_entry_parses_to_its_fields(key):
    paper = REFERENCES[key]
    [(kind, parsed_key, fields)] = entries(paper.bibtex())
    assert (kind, parsed_key) == (paper.kind, paper.key) == (paper.kind, key)
    assert fields["author"] == paper.author
    assert fields["title"] == f"{{{paper.title}}}"
    assert fields[PLACES[paper.kind]] == paper.place
    assert fields["year"] == str(paper.year)
    numbers = {name: str(value) for name in ("volume", "number") if (value := getattr(paper, name)) is not None}
    assert {name: fields[name] for name in ("volume", "number") if name in fields} == numbers


@pytest.mark.parametrize("key", REFERENCES)
def test_authors_are_last_name_first_and_the_key_has_the_first_and_the_year(key):
    paper = REFERENCES[key]
    authors = paper.author.split(" and ")
    assert all(author.count(",") in (1, 2) and author == author.strip() for author in authors)
    assert all(author.split(", ")[1] == "Jr." for author in authors if author.count(",") == 2)
    plain = str.maketrans("áäéíö-' ", "aaeio---")
    first = authors[0].partition(",")[0].lower().translate(plain).replace("-", "")
    assert key.startswith(f"{first}{paper.year}")
    assert "{}" not in paper.place


def test_studies_and_references_have_the_same_papers():
    for study in (schnabel2016, lim2015, jadidinejad2021):
        paper, reference = study.PAPER, REFERENCES[study.__name__.rpartition(".")[2]]
        assert (paper.title, paper.year) == (reference.title, reference.year)
        last = [author.rpartition(" ")[2] for author in paper.authors.split(", ")]
        assert last == [author.partition(",")[0] for author in reference.author.split(" and ")]


def test_a_field_that_is_not_known_is_left_out():
    [(_, _, fields)] = entries(Reference("a1", "book", "A, B.", "T", "P", 2001).bibtex())
    assert sorted(fields) == ["author", "publisher", "title", "year"]
