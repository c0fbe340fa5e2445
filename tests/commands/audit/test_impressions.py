"""An audit of impressions from files: columns named or found, examination where the log identifies it, refusals."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit.impressions import ShownRequest, run_shown
from openloop.commands.audit.request import ModelFile
from openloop.errors import InputError, UndefinedError
from tests.facts import facts


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log of a world of clicks and its rankers, as Parquet and as CSV."""
    folder = tmp_path_factory.mktemp("shown")
    world = ol.simulate.click_world(800, 6, 3, logging="shuffled")
    log = world.observe(rng=1)
    rows = pl.DataFrame({
        "request": log.request, "user": log.users.ids[log.user[log.request]], "item": log.item,
        "position": log.position, "click": log.reward, "propensity": log.propensity, "prefix": log.prefix,
        "shuffled": log.shuffled[log.request],
    })  # fmt: skip
    for name, table in {"log": rows, **world.ranks(log)}.items():
        table.write_parquet(folder / f"{name}.parquet")
        table.write_csv(folder / f"{name}.csv")
    return folder


def asked(files, kind="parquet", **options):
    models = tuple(ModelFile(name, str(files / f"{name}.{kind}")) for name in ("a", "b"))
    return ShownRequest(log=str(files / f"log.{kind}"), models=models, position="position", **options)


def test_parquet_and_csv_give_the_same_audit(files):
    one, other = (
        run_shown(asked(files, kind, shuffled="shuffled", prefix="prefix"), "") for kind in ("parquet", "csv")
    )
    assert one.verdict == other.verdict
    assert one.estimator == "snpbm"
    assert any("randomised" in note for note in one.notes)
    assert any("'propensity'" in note for note in one.notes)


def test_logged_propensities_alone_leave_examination_out(files):
    found = run_shown(asked(files, propensity="logged"), "")
    assert found.estimator == "sniips"
    assert found.positions.lines[0].theta is None


def test_examination_that_was_asked_for_is_not_left_out_in_silence(files, tmp_path):
    rows = pl.read_parquet(files / "log.parquet").drop("user", "propensity", "shuffled", "prefix")
    rows.filter(pl.col("request") < 3).write_parquet(tmp_path / "log.parquet")
    few = replace(asked(files), log=str(tmp_path / "log.parquet"))
    with pytest.raises((InputError, UndefinedError)):
        run_shown(replace(few, propensity="examination"), "")


def test_logged_propensities_must_be_there(files, tmp_path):
    pl.read_parquet(files / "log.parquet").drop("propensity").write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError, match=facts("logged", "'propensity'")):
        run_shown(replace(asked(files, propensity="logged"), log=str(tmp_path / "log.parquet")), "")
