"""Laws of the one path: the same log gives the same bits, wherever its rows are and however they are worked on."""

from __future__ import annotations

import os
import signal
import tempfile
from functools import partial

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source

import openloop as ol
from openloop.blocks import dealing, joining, local, store
from openloop.blocks.readers import batches
from openloop.blocks.store import BUCKETS, Budget
from openloop.data.formats import open_source
from openloop.data.scanning import scan
from openloop.errors import PredictionError
from openloop.evaluation import prepared
from openloop.moments import preparing
from openloop.moments.question import Question

USERS, ITEMS = 300, 40
METRICS = ("mae", "rmse", "accuracy", "recall@10", "ndcg@10", "map", "auc", "coverage@5")
ESTIMATORS = ("naive", "ips", "snips", "clipped", "stratified", "stratified@3:count", "snips_user")


def made():
    """A log in two parts, of users who rate from 1 to all items, and tables of models."""
    rng = np.random.default_rng(0)
    truth = np.clip(np.round(3 + rng.normal(size=(USERS, ITEMS))), 1, 5)
    p = np.clip(rng.uniform(0.02, 0.9, (USERS, 1)) * 1.3 ** (truth - 3), 0.01, 1)
    p[7] = 1.0
    user, item = np.nonzero(rng.random((USERS, ITEMS)) < p)
    part = rng.random(len(user)) < 0.6
    log = pl.DataFrame({"user": user * 7 - 50, "item": item * 3, "rating": truth[user, item], "p": p[user, item]})
    every = {"user": np.repeat(np.arange(USERS), ITEMS) * 7 - 50, "item": np.tile(np.arange(ITEMS), USERS) * 3}
    scores = [truth + rng.normal(size=truth.shape) for _ in range(3)]
    scores[2][user[~part], item[~part]] = -np.inf  # a list is of candidates
    lists = np.argsort(-scores[2], axis=1, kind="stable")[:, :12]
    ranks = {"rank": np.tile(np.arange(12) + 1, USERS), "item": lists.ravel() * 3}
    return {
        "test": log.filter(pl.Series(part)), "train": log.filter(pl.Series(~part)).drop("p"),
        "a": pl.DataFrame(every | {"score": np.round(scores[0].ravel(), 1)}),  # with ties
        "b": pl.DataFrame(every | {"score": scores[1].ravel()}),
        "top": pl.DataFrame(ranks | {"user": np.repeat(np.arange(USERS), 12) * 7 - 50}),
    }  # fmt: skip


TABLES = made()
SHUFFLED = {name: table.sample(fraction=1.0, shuffle=True, seed=5) for name, table in TABLES.items()}
TEXT = {
    name: table.with_columns(pl.format("u{}", "user").alias("user"), pl.format("i{}", "item").alias("item"))
    for name, table in TABLES.items()
}


def scanned(tables, convert=lambda table: table):
    """Models, a scanned log and what is excluded."""
    log, train = (scan(convert(tables[name]), propensity=p) for name, p in (("test", "p"), ("train", None)))
    return {name: convert(tables[name]) for name in ("a", "b", "top") if name in tables}, log, train


def answers(models, log, exclude, **more):
    """Every number that comparing models gives, by name, as bytes."""
    asked = {"metrics": METRICS, "estimators": ESTIMATORS, "exclude": exclude, "lenient": True} | more
    with prepared(models, log, None, Question(**asked)) as ready:
        found = ready.compare(tilt=True)
    numbers = {
        ("estimate", *key): (x.value, x.stderr, x.cell_variance, np.asarray(x.influence).tobytes(), x.diagnostics)
        for key, x in (found.estimates | found.lists).items()
    }
    numbers |= {("pair", *key): (x.cell_variance, x.parts) for key, x in found.pairs.items()}
    for metric, tilts in found.tilts.items():
        numbers["parts", metric] = None if tilts.parts is None else tilts.parts.tobytes()
        numbers |= {("tilt", metric, x.against): x.sums.tobytes() for x in tilts.sums}
    return {key: repr(value) for key, value in numbers.items()}


def same(found, expected):
    assert found.keys() == expected.keys()
    assert [key for key in found if found[key] != expected[key]] == []


@pytest.fixture(scope="module")
def expected():
    """The answers of Polars frames in one block."""
    found = answers(*scanned(TABLES))
    assert {key[0] for key in found} == {"estimate", "pair", "tilt", "parts"}
    return found


def blocks_of(n_blocks):
    """Bounds of as many blocks as are wanted."""
    width = BUCKETS // n_blocks
    return lambda _: [(first, first + width) for first in range(0, BUCKETS, width)]


# -- the same bits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_blocks", [16, 256])
@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_blocks_and_threads(expected, monkeypatch, n_blocks, threads):
    monkeypatch.setattr(dealing, "LocalBlocks", partial(local.LocalBlocks, bounds_of=blocks_of(n_blocks)))
    monkeypatch.setattr("openloop.blocks.passes.os.cpu_count", lambda: threads)
    same(answers(*scanned(TABLES)), expected)


@pytest.mark.parametrize("tables", [TABLES, SHUFFLED])
@pytest.mark.parametrize("size", [100, 1001])
def test_any_order_of_rows_and_size_of_batches(expected, monkeypatch, tables, size):
    monkeypatch.setattr(dealing, "batches", partial(batches, size=size))
    same(answers(*scanned(tables)), expected)


@pytest.mark.parametrize(("size", "n_blocks"), [(0, 1), (0, 16), (200_000, 16)])
def test_held_or_spilled(expected, monkeypatch, size, n_blocks):
    monkeypatch.setattr(dealing, "LocalBlocks", partial(local.LocalBlocks, bounds_of=blocks_of(n_blocks)))
    monkeypatch.setattr(dealing, "batches", partial(batches, size=1000))
    monkeypatch.setattr(dealing, "Budget", lambda: Budget(size))
    same(answers(*scanned(TABLES)), expected)


@pytest.mark.parametrize("kind", ["lazy", "arrow", "duckdb", "parquet", "csv"])
def test_any_engine(expected, tmp_path, kind):
    def parquet(table):
        path = tmp_path / f"{table.width}-{table.height}-{table.hash_rows().sum()}.parquet"
        table.write_parquet(path, row_group_size=500)
        return path

    def csv(table):
        path = parquet(table).with_suffix(".csv")
        table.write_csv(path)
        return path

    engines = {
        "lazy": lambda table: table.lazy(), "arrow": lambda table: table.to_arrow(), "parquet": parquet, "csv": csv,
        "duckdb": lambda table: duckdb.connect().from_arrow(table.to_arrow()),
    }  # fmt: skip
    models, log, train = scanned(TABLES, engines[kind])
    same(answers({name: open_model(model) for name, model in models.items()}, log, train), expected)


def open_model(model):
    """A file as a table of rows."""
    return open_source(model, {}) if isinstance(model, os.PathLike) else model


def test_text_ids_change_sums_by_rounding_alone(expected, monkeypatch):
    """Their users are in other buckets."""
    one = answers(*scanned(TEXT))
    assert one.keys() == expected.keys()
    monkeypatch.setattr(dealing, "LocalBlocks", partial(local.LocalBlocks, bounds_of=blocks_of(64)))
    same(answers(*scanned({name: table.reverse() for name, table in TEXT.items()})), one)


def test_rows_in_memory_and_scanned():
    users, items = (
        np.unique(np.concatenate([TABLES[n][side] for n in ("test", "train")])) for side in ("user", "item")
    )
    whole = {"users": users, "items": items}
    log = ol.read(TABLES["test"], propensity="p", **whole)
    models = {name: TABLES[name] for name in ("a", "b")}
    held = answers(models, log, None)
    same(held, answers(models, scan(TABLES["test"], propensity="p", **whole), None))


# -- once ----------------------------------------------------------------------------------------------------------


def test_a_source_is_read_once():
    reads = []

    def counted(name, table):
        def rows(columns, predicate, n_rows, batch_size):
            reads.append(name)
            return iter([piece.select(columns or table.columns) for piece in (table[:100], table[100:])])

        return register_io_source(rows, schema=table.schema)

    tables = {name: counted(name, table) for name, table in TABLES.items()}
    assert answers(*scanned(tables))
    assert sorted(reads) == sorted(TABLES)


# -- nothing is left -----------------------------------------------------------------------------------------------


@pytest.fixture
def files(monkeypatch, tmp_path):
    """All files that spilled rows make, in a folder of their own; everything is spilled."""
    opened, make = [], tempfile.TemporaryFile

    def noting(*args, **options):
        opened.append(make(*args, dir=tmp_path, **options))
        return opened[-1]

    monkeypatch.setattr(store.tempfile, "TemporaryFile", noting)
    monkeypatch.setattr(dealing, "Budget", lambda: Budget(0))
    yield opened
    assert opened
    assert all(file.closed for file in opened)
    assert not list(tmp_path.iterdir())


def fail(*_args, **_options):
    raise ZeroDivisionError


def test_an_answer_leaves_no_file(files):
    assert answers(*scanned(TABLES))


@pytest.mark.parametrize("module", [joining.Join, local.LocalBlocks])
def test_a_join_that_fails_leaves_no_file(files, monkeypatch, module):
    monkeypatch.setattr(module, "__call__" if module is joining.Join else "_keep", fail)
    with pytest.raises(ZeroDivisionError):
        answers(*scanned(TABLES))


def test_a_pass_that_fails_leaves_no_file(files, monkeypatch):
    monkeypatch.setattr(preparing.LevelCounts, "of_parts", fail)
    with pytest.raises(ZeroDivisionError):
        answers(*scanned(TABLES))


def test_a_table_that_is_refused_leaves_no_file(files, monkeypatch):
    monkeypatch.setattr(dealing, "batches", partial(batches, size=1000))
    late = TABLES["b"].with_columns(score=pl.when(pl.col("item") == 117).then(float("nan")).otherwise("score"))
    with pytest.raises(PredictionError):
        answers(*scanned(TABLES | {"b": late}))
    with pytest.raises(PredictionError):
        answers(*scanned(TABLES | {"b": TABLES["b"].vstack(TABLES["b"][:1])}))


@pytest.mark.skipif(os.name != "posix", reason="signals of other systems")
def test_ctrl_c_while_spilling_leaves_no_file(files, monkeypatch):
    write, writes = store._File.write, []

    def interrupted(self, frame):
        writes.append(1)
        if len(writes) == 300:
            os.kill(os.getpid(), signal.SIGINT)
        return write(self, frame)

    monkeypatch.setattr(store._File, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        answers(*scanned(TABLES))
