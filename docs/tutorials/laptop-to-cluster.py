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
# No. `ol.scan` opens files and frames of Polars, pandas, pyarrow, DuckDB and Spark.
# Their rows are read once, in blocks of users. This tutorial asks one question five
# times, from arrays in memory to Spark, and checks that the numbers are the same each
# time. It takes ten minutes to read and a few seconds to run, or a minute or two with
# Spark.

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
# ## 2. Files that stay on disk
#
# Where rows stay on disk, propensities become a column. `pl.scan_parquet` makes a
# *lazy* frame, which has read no row. `Logistic` is fitted on it by counting rows in
# the engine, and `with_column` appends p:

# %%
frame = pl.scan_parquet("ratings.parquet")
seen = ol.propensity.Logistic().fit(frame, population=(users, films))
seen.with_column(frame).sink_parquet("with-p.parquet")
print(pl.read_parquet("with-p.parquet", n_rows=3))

# %% [markdown]
# What a log knows of itself is said where it is opened. `users=` and `items=` count all
# users and items, rated or not. `propensity_model=` is the model that made the column of
# p. Without it openloop takes the column as logged by your system, and does not check
# what happens if people rate what they like.

# %%
known = {
    "propensity": "propensity",
    "propensity_model": seen,
    "users": users,
    "items": films,
}
on_disk = ol.audit(
    {name: pl.scan_parquet(f"{name}.parquet") for name in models},
    ol.scan("with-p.parquet", **known),
    metrics=["mae"],
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
# The numbers are the same. Log and predictions are dealt to blocks of users, and each
# block becomes the sums of its users. A small log is one block in memory. A large one is
# many, and spilled to the temporary folder where memory runs out.
#
# ## 3. A database: DuckDB
#
# The rows may live in a database, which then delivers them.

# %%
database = duckdb.connect()
in_duckdb = ol.audit(
    {name: database.read_parquet(f"{name}.parquet") for name in models},
    ol.scan(database.read_parquet("with-p.parquet"), **known),
    metrics=["mae"],
)
show("in DuckDB", in_duckdb)

# %% [markdown]
# ## 4. The command line
#
# The command reads tables into memory where they fit, and scans them where they do not:
#
# ```console
# $ openloop audit with-p.parquet current=current.parquet challenger=challenger.parquet \
#     --metric mae --propensity propensity --assumes logistic --report laptop.html
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
        {name: there(name) for name in models},
        ol.scan(there("with-p"), **known),
        metrics=["mae"],
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
# **Ids written in two ways.** In the log a user is 17, in a model's table `u17`. (`"17"`
# would be 17.) None of the table's users is the log's, so it is refused:

# %%
renamed = pl.scan_parquet("current.parquet").with_columns(
    user="u" + pl.col("user").cast(pl.String)
)
try:
    ol.audit(
        {"current": renamed, "challenger": pl.scan_parquet("challenger.parquet")},
        ol.scan("with-p.parquet", propensity="propensity"),
        metrics=["mae"],
    )
except ol.errors.OpenloopError as error:
    print(error)
else:
    raise AssertionError("ids written in two ways must be refused")

# %% [markdown]
# **Predictions are missing.** A rating without a prediction is an error that counts
# them. Pass `missing="drop"` only if you know why they are missing, because they are
# seldom missing at random.
#
# **A part of a split.** If you score a held-out part, pass the rest as `exclude=`: its
# pairs tell which share of the log each part is ([parts of a
# split](../frames.md#parts-of-a-split)).
#
# ## Charts and the report
#
# They are made of the sums:

# %%
ol.report(on_disk, "on-disk.html")
ol.figures.leaderboard_chart(on_disk.result, "mae")

# %% [markdown]
# Some things need the rows in memory: rehearsals, propensities that are fitted again
# (`ol.Refit`), and fits of `LowRank` or `Boosted`.
#
# ## Read on
#
# - [Large logs](../frames.md): every keyword, rankings, and what each engine does.
# - [On a cluster](../cluster.md): settings that matter, what each step costs, and what
#   happens when a machine is lost.
# - [Performance](../performance.md): training from disk, and on a GPU.
# - [Nobody logged propensities](no-propensities.py): what `propensity_model=` is about.
