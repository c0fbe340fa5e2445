"""An audit read back from its JSON: the same page, words and numbers, byte for byte; all else is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.cold import ColdPart
from openloop.audits.rehearsal import Outcomes, Rehearsal
from openloop.audits.results import SCHEMA
from openloop.data.scanning import scan
from openloop.errors import FormatError
from openloop.reporting.html import page
from openloop.reporting.sections import Subject
from tests.audit_cases import HOSTILE, comparison, small_audit
from tests.examples import small_world
from tests.facts import facts

WORLD = small_world(users=60)
LOG = WORLD.observe(1)
U, I = WORLD.ratings.shape


def frame(scores):
    return pl.DataFrame({
        "user": np.repeat(np.arange(U), I), "item": np.tile(np.arange(I), U), "score": np.ravel(scores),
    })  # fmt: skip


def with_a_grid_and_a_rehearsal():
    models = dict(list(WORLD.predictions.items())[:2])
    return ol.audit(models, LOG, WORLD.propensities, metrics=["mae", "rmse", "recall@3"], rehearse=3)


def of_seven_models():
    draw = np.random.default_rng(0)
    models = {f"m{n}": WORLD.ratings + draw.normal(0, 0.2 * n + 0.1, (U, I)) for n in range(7)}
    return ol.audit(models, LOG, metrics=["mae"], baseline="m0", strata=())


def of_frames():
    rows = pl.DataFrame({"user": LOG.user, "item": LOG.item, "rating": LOG.rating, "propensity": LOG.propensity})
    models = {name: frame(scores).lazy() for name, scores in list(WORLD.predictions.items())[:2]}
    return ol.audit(models, scan(rows.lazy(), users=U, items=I), metrics=["mae"])


def of_positives():
    positives = ol.read(pl.DataFrame({"user": LOG.user, "item": LOG.item}), rating=False)
    models = {name: frame(scores) for name, scores in list(WORLD.predictions.items())[:2]}
    return ol.audit(models, positives, metrics=["recall@3"])


def of_impressions():
    world = ol.simulate.click_world(300, 6, 3, model="pbm", logging="shuffled")
    shown = world.observe(rng=1)
    return ol.audit(world.ranks(shown), shown, ol.propensity.Examination(by="randomised").fit(shown))


def with_something_everywhere():
    found = small_audit(HOSTILE, winner=False)
    cold = ColdPart(rows=10, warm=90, users=3, items=4, result=comparison())
    return replace(found, cold=cold, rehearsal=Rehearsal(
        a=HOSTILE[0], b=HOSTILE[1], metric="mae", estimator="snips", draws=9, difference=0.1, rows=300.5,
        equal=Outcomes(none=9), different=Outcomes(right=7, wrong=1, none=1),
    ))  # fmt: skip


KINDS = {
    "hostile names, a paradox, cold rows": with_something_everywhere, "grid, rehearsal": with_a_grid_and_a_rehearsal,
    "seven models, baseline": of_seven_models, "frames": of_frames, "positives": of_positives,
    "impressions": of_impressions,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_back_is_what_was_written_byte_for_byte(kind, tmp_path):
    found = KINDS[kind]()
    text = found.to_json(tmp_path / "audit.json")
    back = ol.Audit.from_json(tmp_path / "audit.json")
    assert back.to_json() == text
    assert page(Subject.of(back)) == page(Subject.of(found))
    assert str(back) == str(found)
    assert back._repr_html_() == found._repr_html_()
    assert json.loads(text)["schema"] == SCHEMA


@pytest.fixture(scope="module")
def record():
    return json.loads(small_audit(winner=False).to_json())


@pytest.fixture
def read(tmp_path):
    def read(content):
        (tmp_path / "audit.json").write_text(content if isinstance(content, str) else json.dumps(content))
        return ol.Audit.from_json(tmp_path / "audit.json")

    return read


def changed(record, *path, to=None, gone=False):
    """The record with another value at a place."""
    found = json.loads(json.dumps(record))
    *way, last = path
    node = found
    for key in way:
        node = node[key]
    if gone:
        del node[last]
    else:
        node[last] = to
    return found


@pytest.mark.parametrize(
    ("path", "to", "told"),
    [
        (("level",), "x", ("level", "number", "'x'")),
        (("verdict", "level"), "maybe", ("verdict.level", "'maybe'")),
        (("verdict", "winner"), "nobody", ("models named", "'nobody'")),
        (("comparison", "estimates", 3, "value"), "x", ("comparison.estimates[3].value", "number", "'x'")),
        (("comparison", "better"), {"mae": "up"}, ("comparison.better", "'up'")),
        (("contrasts", 0, "a"), "fours", ("contrasts[0]",)),
        (("sensitivity", 0, "low"), [1], ("sensitivity[0]", "equally long")),
        (("strata", 0, "lines", 0, "kind"), "x", ("strata[0].lines[0].kind", "'x'")),
        (("paradoxes", 0, "majority", "a"), None, ("paradoxes[0].majority", "finite")),
        (("setting",), None, ("setting", "object")),
        (("estimator",), "x" * 300, ("estimates", "x" * 200 + "'…")),
        (("open_loop", "comparison", "estimates"), [], ("open_loop.comparison", "none")),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(read, record, path, to, told):
    with pytest.raises((FormatError, ol.errors.InputError), match=facts("audit.json", *told)):
        read(changed(record, *path, to=to))


@pytest.mark.parametrize("key", ["verdict", "comparison", "contrasts", "setting", "weights", "cold", "notes"])
def test_a_key_that_is_missing_is_named(read, record, key):
    with pytest.raises(FormatError, match=facts("audit.json", "lacks", f"'{key}'")):
        read(changed(record, key, gone=True))
