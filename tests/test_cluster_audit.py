"""The script of docs/cluster.md, run on a small log: the same split everywhere, weights 1/π, and a report."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "cluster_audit.py"
NAMES = ["--user", "uid", "--item", "sku", "--rating", "stars"]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def small_log(path):
    rng = np.random.default_rng(0)
    cell = np.sort(rng.choice(40 * 30, 700, replace=False))
    log = pl.DataFrame({"uid": cell // 30, "sku": [f"s{i}" for i in cell % 30], "stars": rng.integers(1, 6, 700)})
    log.write_parquet(path)
    return log


def held_out(log, share):
    """The split by Python's own MD5: no engine decides it."""
    numbers = [hashlib.md5(f"{u}|{i}".encode()).hexdigest() for u, i in log.select("uid", "sku").iter_rows()]  # noqa: S324
    return [int(number, 16) < share * 2**128 for number in numbers]


def test_the_script_goes_from_parquet_on_spark_to_a_report(script, spark, tmp_path, capsys):
    log = small_log(tmp_path / "log.parquet")
    page, sizes = (
        tmp_path / "report.html",
        ["--factors", "2", "--iterations", "2", "--metrics", "adg", "--test", "0.25"],
    )
    found = script["main"]([str(tmp_path / "log.parquet"), str(tmp_path / "work"), str(page), *NAMES, *sizes])

    rows = pl.read_parquet(tmp_path / "work" / "log" / "*.parquet")
    flags = log.with_columns(expected=pl.Series(held_out(log, 0.25))).join(rows, on=["uid", "sku"])
    assert flags["expected"].to_list() == flags["held_out"].to_list()

    test = rows.filter("held_out", pl.col("stars") >= 4)
    ranks = pl.read_parquet(tmp_path / "work" / "ranks" / "MF" / "*.parquet")
    test = test.join(ranks, on=["uid", "sku"]).filter(pl.col("tied") == 1)
    assert len(test) == (rows["held_out"] & (rows["stars"] >= 4)).sum()
    s, p = rows["held_out"].mean(), test["propensity"].to_numpy()
    w, gain = (1 - p * (1 - s)) / (p * s), 1 / np.log2(2 + test["above"].to_numpy())
    assert found.result["MF", "adg", "snips"].value == pytest.approx((w * gain).sum() / w.sum())
    assert found.contrast("MF", "MF-IPS", metric="adg", estimator="snips").rho is not None  # p has not seen ratings
    assert "pyspark" in page.read_text(encoding="utf-8")
    assert str(page) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report.html", "--test", "1"], "--test must be between 0 and 1, got 1.0"),
        (["nowhere/report.html"], "nowhere/report.html is in no folder"),
    ],
)
def test_what_would_fail_late_is_refused_at_once(script, words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        script["main"](["log", "work", *words])
    assert told in capsys.readouterr().err


def test_positives_alone_are_refused_by_the_script_on_spark(script, spark, tmp_path):
    small_log(tmp_path / "log.parquet")
    with pytest.raises(SystemExit, match="no rating below 1"):
        script["main"](
            [*(str(tmp_path / name) for name in ("log.parquet", "work", "page")), *NAMES, "--threshold", "1"]
        )
