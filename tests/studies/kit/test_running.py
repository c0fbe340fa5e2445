"""Items are run by name on the data that are present, go on after a stop, and give the same numbers."""

from __future__ import annotations

import json
import re

import pytest

from openloop.errors import InputError, MissingPackageError
from openloop.studies.kit.running import reproduce
from openloop.studies.kit.running import study as study_named
from tests.facts import facts
from tests.studies import made_up


def test_an_item_gives_our_numbers_beside_the_published(study):
    found = reproduce(study, ["table1"], workers=0)
    assert [result.item for result in found.results] == ["table1"]
    ((place, value), *_) = found["table1"].tables[0].values()
    assert place == "coin, mean"
    assert value.published == 0.5
    assert value.came_out


def test_a_run_gives_the_same_bytes_again_and_another_seed_other_ones(study, tmp_path):
    first = reproduce(study, ["table1"], workers=0).to_json()
    assert first == reproduce(study, ["table1"], workers=0).to_json()
    assert first == reproduce(study, ["table1"], workers=0, cache=tmp_path / "new").to_json()
    assert first != reproduce(study, ["table1"], workers=0, seed=100).to_json()


def test_without_names_items_that_lack_data_or_packages_are_left_out_with_the_reason(study, tmp_path):
    found = reproduce(study, data=tmp_path, workers=0)
    assert [result.item for result in found.results] == ["table1"]
    assert re.search(facts("coat", "yahoo-r3", "openloop datasets get coat"), found.left_out["figure1"])
    assert re.search(facts("not_installed", "openloop[more]"), found.left_out["figure2"])


def test_an_item_that_is_asked_for_by_name_must_run(study, tmp_path):
    with pytest.raises(InputError, match=facts("figure1", "openloop datasets get coat")):
        reproduce(study, ["figure1"], data=tmp_path)
    with pytest.raises(MissingPackageError, match=facts("figure2", "not_installed")):
        reproduce(study, ["figure2"], data=tmp_path)


def test_data_are_loaded_from_their_folder(study, data_dir):
    found = reproduce(study, ["figure1"], data=data_dir("coat").parent, workers=0)
    assert found["figure1"].figures[0].caption == "6960 rows"


def test_a_study_of_ones_own_is_a_module(study):
    found = reproduce(made_up, ["table1"], workers=0)
    assert found["table1"].claims[0].holds
    assert repr(found).startswith("Reproduction(tests.studies.made_up: table1")
    with pytest.raises(KeyError, match=facts("'table9'", "table1")):
        found["table9"]
    with pytest.raises(InputError, match=facts("'json'", "PAPER", "ITEMS")):
        reproduce(json)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"paper": "made"}, ("study", "'made'", "'made_up'"), id="paper"),
        pytest.param({"items": ["table9"]}, ("item", "'table9'", "table1"), id="item"),
        pytest.param({"seed": -1}, ("seed", -1), id="seed"),
        pytest.param({"workers": -1}, ("workers", -1), id="workers"),
    ],
)
def test_what_cannot_be_run_is_refused(study, options, told):
    with pytest.raises(InputError, match=facts("reproduce", *told)):
        reproduce(**({"paper": study} | options))


@pytest.mark.parametrize(
    ("name", "year"), [("schnabel2016", 2016), ("lim2015", 2015), ("jadidinejad2021", 2021), ("race", 2026)]
)
def test_every_study_has_a_paper_and_items(name, year):
    found = study_named(name)
    assert found.PAPER.year == year
    assert len({item.name for item in found.ITEMS}) == len(found.ITEMS)
