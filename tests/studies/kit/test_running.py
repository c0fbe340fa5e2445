"""Items are run by name on the data that are present, go on after a stop, and give the same numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from openloop.core.feedback import Feedback
from openloop.data.datasets.finding import find
from openloop.data.datasets.records import Data, Shape
from openloop.errors import InputError, MissingPackageError
from openloop.studies.kit import running
from openloop.studies.kit.results import Result
from openloop.studies.kit.running import Item, cache_folder, listed, reproduce
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


def test_a_quick_run_is_another_one(study):
    full, quick = (
        json.loads(reproduce(study, ["table1"], workers=0, quick=quick).to_json()) for quick in (False, True)
    )
    assert quick["quick"] is True
    assert full["results"] != quick["results"]


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


def test_what_is_known_of_the_data_goes_with_the_results(study, data_dir):
    found = reproduce(study, ["figure1"], data=data_dir("coat").parent, workers=0)
    known = facts("290 users", "300 items", "6,960 rows", "4,640", "SHA-256")
    assert re.search(known, found.data["coat"])


def test_the_version_of_data_that_are_not_the_usual_goes_with_the_results(study, tmp_path, monkeypatch):
    def read(run):
        run.load("ml-1m")
        return Result(item="one", data=("ml-1m",))

    item = Item(name="one", title="t", function=read, data=("ml-1m",), minutes=1, of_paper=())
    monkeypatch.setattr(made_up, "ITEMS", (item,))
    version = Shape(users=1, items=1, rows=1, version="one user")
    monkeypatch.setattr(running.datasets, "present", lambda *_: True)
    monkeypatch.setattr(
        running.datasets, "load", lambda *_: Data(name="ml-1m", log=Feedback.from_arrays([0], [0], [5.0]))
    )
    monkeypatch.setattr(running.datasets, "fingerprint", lambda *_: "0")
    monkeypatch.setattr(running.datasets, "find", lambda _: replace(find("ml-1m"), shapes=(version,)))
    found = reproduce(study, data=tmp_path, workers=0)
    assert found.editions == {"ml-1m": "one user"}
    assert found.not_run() == {}


def test_one_paper_can_be_listed(study, tmp_path):
    assert [name for name, *_ in listed(tmp_path, "made_up")] == ["made_up"] * 3
    with pytest.raises(InputError, match=facts("study", "'other'")):
        list(listed(tmp_path, "other"))


def test_the_list_says_what_is_present(study, tmp_path, data_dir):
    here = {item.name: (present, why) for _, item, present, why in listed(data_dir("coat").parent)}
    assert here["table1"] == ((), None)
    assert here["figure1"] == (("coat",), None)
    assert "not_installed" in here["figure2"][1]
    there = {item.name: (present, why) for _, item, present, why in listed(tmp_path)}
    assert "openloop datasets get coat" in there["figure1"][1]


def test_progress_names_the_item_and_ends_with_all_trials(study):
    steps = []
    reproduce(study, ["table1"], workers=0, step=lambda what, done: steps.append((what, done)))
    assert steps[0] == ("table1: tosses: 0 of 4", 0.0)
    assert steps[-1] == ("table1: tosses: 4 of 4", 1.0)


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


def test_trials_are_kept_where_caches_belong(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "openloop"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "openloop"
    assert cache_folder("here").name == "here"


@pytest.mark.parametrize(
    ("name", "year"), [("schnabel2016", 2016), ("lim2015", 2015), ("jadidinejad2021", 2021), ("race", 2026)]
)
def test_every_study_has_a_paper_published_numbers_and_items(name, year):
    found = study_named(name)
    assert found.PAPER.year == year
    assert found.PUBLISHED
    assert len({item.name for item in found.ITEMS}) == len(found.ITEMS)
