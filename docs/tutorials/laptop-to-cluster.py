# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a laptop to a cluster
#
# You tried an audit on a sample of the log. Now it should run on the whole log, which
# is on disk, in a database, or on Spark. Must you learn another tool?
#
# No. `ol.audit` takes frames of Polars, pandas, pyarrow, DuckDB and Spark. The rows
# stay where they are, and only sums leave. This tutorial asks one question five times,
# from arrays in memory to Spark, and checks that the numbers are the same each time. It
# takes ten minutes to read and a few seconds to run, or a minute or two with Spark.

# %%
import os
from pathlib import Path

import altair as alt
import duckdb
import numpy as np
import polars as pl

import openloop as ol

_ = alt.renderers.enable("svg")  # charts as pictures, which need no network
with_spark = os.environ.get("OPENLOOP_TUTORIAL") == "full"  # Spark takes a while to start

# %% [markdown]
# ## The data
#
# We simulate a log, so we know the truth: 1,000 users, 400 films, and about 20,000
# ratings that people chose to give. It is small, but nothing below depends on its size.
# There are two models, and `challenger` has the smaller errors.

# %%
users, films = 1000, 400
taste = ol.simulate.low_rank(users, films, rank=5, rng=0)
shares = [0.15, 0.25, 0.25, 0.2, 0.15]  # of one to five stars
ratings = ol.simulate.assign_marginals(taste, shares)
rng = np.random.default_rng(1)
chance = np.exp(rng.normal(0, 0.4, (users, 1)) + rng.normal(0, 0.4, films)) * 0.8 ** (
    5 - ratings
)
chance = np.minimum(0.05 * chance / chance.mean(), 0.95)
noise = rng.normal(size=(2, users, films))
models = {"current": ratings + 0.9 * noise[0], "challenger": ratings + 0.7 * noise[1]}
world = ol.simulate.World(ratings=ratings, propensities=chance, predictions=models)

rated = world.observe(rng=2)
rows = {"user": rated.user, "item": rated.item}
pl.DataFrame(rows | {"rating": rated.rating}).write_parquet("ratings.parquet")
for name, predicted in models.items():
    pl.DataFrame(rows | {"score": predicted[rated.user, rated.item]}).write_parquet(
        f"{name}.parquet"
    )
assert len(np.unique(rated.user)) == users
assert len(np.unique(rated.item)) == films

# %% [markdown]
# **With your own files** start here: a log with user, item and rating, and for each
# model a table with user, item and score, as Parquet.
#
# ## 1. Rows in memory
#
# This is where everybody begins. The log is read into arrays, propensities are
# estimated, and the audit runs.

# %%
log = ol.read("ratings.parquet")
print(log)
in_memory = ol.audit(
    {name: pl.read_parquet(f"{name}.parquet") for name in models},
    log,
    ol.propensity.Logistic().fit(log),
    metrics=["mae"],
)
print(in_memory.verdict)
assert in_memory.verdict.winner == "challenger"

# %% [markdown]
# > challenger beats current on mae, per cell.
#
# The truth agrees, and both intervals contain it:

# %%
for name, predicted in models.items():
    estimate, true = (
        in_memory.result[name, "mae", "snips"],
        np.abs(predicted - ratings).mean(),
    )
    around = estimate.interval(0.95)
    interval = f"{around.low:.3f} to {around.high:.3f}"
    print(f"{name:11} {estimate.value:.3f}, 95 % {interval}, truth {true:.3f}")
    assert true in around

# %% [markdown]
# ## 2. Files that stay on disk: Polars
#
# `pl.scan_parquet` makes a *lazy* frame. It knows where the rows are, and has read none
# of them. Two things change.
#
# First, propensities become a column. `Logistic` is fitted on the frame by counting
# rows in the engine, and `with_column` appends p. Write the result once, because every
# later step reads it:

# %%
frame = pl.scan_parquet("ratings.parquet")
named = {"user": "user", "item": "item", "population": (users, films)}
seen = ol.propensity.Logistic().fit(frame, **named)
seen.with_column(frame).sink_parquet("with-p.parquet")
print(pl.read_parquet("with-p.parquet", n_rows=3))

# %% [markdown]
# Second, a frame needs two facts that a log in memory stores itself. `population=` is
# the number of all users and items, rated or not. `assumes=` is the model that made the
# column of p. Without it openloop takes the column as logged by your system, and does
# not check what happens if people rate what they like.

# %%
asked = {**named, "rating": "rating", "metrics": ["mae"], "assumes": seen}
on_disk = ol.audit(
    {name: pl.scan_parquet(f"{name}.parquet") for name in models},
    pl.scan_parquet("with-p.parquet"),
    "propensity",
    **asked,
)
print(on_disk.verdict.headline)


# %%
def show(where, found):
    """Print the estimates of an audit, and stop if they are not those in memory."""
    for name in models:
        here, there = (
            in_memory.result[name, "mae", "snips"],
            found.result[name, "mae", "snips"],
        )
        print(f"{where:10} {name:11} {there.value:.9f} ± {there.stderr:.9f}")
        assert np.isclose(there.value, here.value, rtol=1e-9)
        assert np.isclose(there.stderr, here.stderr, rtol=1e-9)
    here, there = (
        in_memory.contrast("challenger", "current"),
        found.contrast("challenger", "current"),
    )
    assert np.isclose(there.value, here.value, rtol=1e-9)
    assert np.isclose(there.rho_low, here.rho_low, rtol=1e-6)
    assert found.verdict.headline == in_memory.verdict.headline


show("in memory", in_memory)
show("on disk", on_disk)

# %% [markdown]
# The numbers are the same. The engine joins the log with the predictions, and sums the
# losses and weights of each user. Only these sums come back, so memory grows with the
# number of users and not with the number of rows.
#
# ## 3. A database: DuckDB
#
# The rows may live in a database. All relations must belong to one connection.

# %%
database = duckdb.connect()
in_duckdb = ol.audit(
    {name: database.read_parquet(f"{name}.parquet") for name in models},
    database.read_parquet("with-p.parquet"),
    "propensity",
    **asked,
)
show("in DuckDB", in_duckdb)

# %% [markdown]
# ## 4. The command line
#
# The command reads tables into memory where they fit, and scans them in batches where
# they do not, or with `--stream`:
#
# ```console
# $ openloop audit with-p.parquet current=current.parquet challenger=challenger.parquet \
#     --metric mae --propensity propensity --assumes logistic --stream \
#     --report laptop.html
# challenger beats current on mae, per cell.
# ```
#
# ## 5. A cluster: Spark
#
# On Spark the calls are the same again. Here the "cluster" is this machine. On a real
# one the session comes from `spark-submit`, and the paths are those of your object
# store. `Logistic` is fitted on a frame of Spark as on a lazy frame above, and p comes
# back as a column.

# %%
if with_spark:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",  # this machine only
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",  # a cluster takes hundreds
    }
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("tutorial")
        .config(map=settings)
        .getOrCreate()
    )

    def there(name):
        """A table as a frame of Spark, by its full path."""
        return spark.read.parquet(str(Path(f"{name}.parquet").resolve()))

    on_spark = ol.audit(
        {name: there(name) for name in models}, there("with-p"), "propensity", **asked
    )
    show("on Spark", on_spark)
else:
    print("left out; set OPENLOOP_TUTORIAL=full in the environment to run this cell")

# %% [markdown]
# Training moves, too. `ol.learners.MF(solver="projected")` learns weighted factors from
# rows on Spark, or from a Parquet file that is larger than memory.
# [cluster_audit.py](../cluster_audit.py) is a script for the whole way from a log in
# Parquet to a report: it splits the log, fits propensities, trains two models, ranks
# all items, and audits. A command computes how many machines this takes:
#
# ```console
# $ openloop doctor --plan rows=1e9 users=1e8 items=1e6 factors=64 cores=160
# 1,000,000,000 rows, 100,000,000 users, 1,000,000 items, 64 factors; 160 cores,
# 10 executors
# ```
#
# ## What could go wrong
#
# **Ids of two kinds.** In one table ids are numbers, in another they are text. Some
# engines would match them and some would not. openloop refuses before it joins:

# %%
as_text = pl.scan_parquet("current.parquet").with_columns(pl.col("user").cast(pl.String))
try:
    ol.audit(
        {"current": as_text, "challenger": pl.scan_parquet("challenger.parquet")},
        pl.scan_parquet("with-p.parquet"),
        "propensity",
        **asked,
    )
except ol.errors.OpenloopError as error:
    print(error)
else:
    raise AssertionError("ids of two kinds must be refused")

# %% [markdown]
# **Predictions are missing.** A rating without a prediction is an error that counts
# them. Pass `missing="drop"` only if you know why they are missing, because they are
# seldom missing at random.
#
# **The log changes while it is read.** A lazy frame is read several times. Read a fixed
# version of the table, or write it once and scan that.
#
# **A part of a split.** A frame does not remember which share of the log it is. If you
# score a held-out part, say so: `share=` and `excluded_share=` ([parts of a
# split](../frames.md#parts-of-a-split)).
#
# ## What leaves the engine
#
# Sums by user are enough for every estimate, interval and difference, and so for the
# charts and the report:

# %%
ol.report(on_disk, "on-disk.html")
ol.figures.leaderboard_chart(on_disk.result, "mae")

# %% [markdown]
# Some things need the rows in memory: curves against Γ, rehearsals, and `LowRank` or
# `Boosted` propensities.
#
# ## Read on
#
# - [Frames](../frames.md): every argument, rankings on frames, and what each engine
#   does differently.
# - [On a cluster](../cluster.md): settings that matter, what each step costs, and what
#   happens when a machine is lost.
# - [Performance](../performance.md): training from disk, and on a GPU.
# - [Nobody logged propensities](no-propensities.py): what `assumes=` is about.
