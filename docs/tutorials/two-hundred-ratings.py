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
# # Two hundred random ratings
#
# People rate what they like. No model of a log can see that, because the ratings that
# would show it are missing. So an audit with estimated propensities often ends in a
# conditional answer, and with this line: "What may help: 200 ratings of cells drawn at
# random".
#
# A *cell* is a pair of a user and an item. This tutorial draws 200 of them, asks for
# their ratings, and shows what they change, how many it takes, and the one mistake that
# nobody can detect afterwards. It takes ten minutes to read and a few seconds to run.

# %%
import altair as alt
import numpy as np
import polars as pl

import openloop as ol

_ = alt.renderers.enable("svg")  # charts as pictures, which need no network

# %% [markdown]
# ## The data
#
# The data are those of [Nobody logged propensities](no-propensities.py): 500 users, 300
# films, and a log of what people chose to rate. Each star less makes a film only a
# little more than half as likely to be rated. `current` is good at films that its users
# like. `challenger` is equally good at everything.

# %%
users, films = 500, 300
taste = ol.simulate.low_rank(users, films, rank=5, rng=0)
shares = [0.15, 0.25, 0.25, 0.2, 0.15]  # of one to five stars
ratings = ol.simulate.assign_marginals(taste, shares)
rng = np.random.default_rng(1)
activity, popularity = rng.normal(0, 0.4, (users, 1)), rng.normal(0, 0.4, films)
chance = np.exp(activity + popularity) * 0.55 ** (5 - ratings)
chance = np.minimum(0.08 * chance / chance.mean(), 0.95)
noise = rng.normal(size=(2, users, films))
models = {
    "current": ratings + np.where(ratings >= 4, 0.4, 1.1) * noise[0],
    "challenger": ratings + 0.72 * noise[1],
}
world = ol.simulate.World(ratings=ratings, propensities=chance, predictions=models)

rated = world.observe(rng=2)
rows = {"user": rated.user, "item": rated.item}
pl.DataFrame(rows | {"rating": rated.rating}).write_parquet("ratings.parquet")
for name, predicted in models.items():
    pl.DataFrame(rows | {"score": predicted[rated.user, rated.item]}).write_parquet(
        f"{name}.parquet"
    )

log = ol.read("ratings.parquet", users=users, items=films)
print(log)

# %% [markdown]
# **With your own log**, read it like this and pass your models' predictions as tables
# of user, item and score.
#
# ## The answer without them

# %%
blind = ol.propensity.Logistic().fit(log)  # who rates much, what is rated often
before = ol.audit(models, log, blind, metrics=["mae"])
print(before.verdict.headline)
print(before.verdict.remedy)
assert before.verdict.level == "conditional"
assert before.verdict.leader == "current"

# %% [markdown]
# ## Draw, then ask
#
# 1. Draw pairs of user and item from the whole grid, each as likely as any other. Let a
#    program draw. Nobody chooses.
# 2. Ask the user of each pair to rate the item, in the app or by mail: "You have not
#    rated this film. How many stars?" If she does not know it, she must watch it first.
#    Skipping such pairs would be a choice again.
# 3. Keep the answers in a file of their own. Never mix them with the log.
#
# Here the users answer from the world's true ratings.

# %%
cells = np.random.default_rng(3).choice(users * films, 200, replace=False)
user, item = np.divmod(cells, films)
answers = {"user": user, "item": item, "rating": ratings[user, item]}
pl.DataFrame(answers).write_csv("drawn.csv")

sample = ol.read("drawn.csv", uniform=True, like=log)
print(sample)
for name, found in {"log": log.rating, "sample": sample.rating, "truth": ratings}.items():
    print(f"mean rating of {name}: {found.mean():.2f}")
assert abs(sample.rating.mean() - ratings.mean()) < 0.2

# %% [markdown]
# `uniform=True` marks the sample, and openloop will not score it by mistake. 200
# ratings are usually too few to compare models on them alone. But they say what share
# of all ratings would be one star, two stars, and so on. The log cannot say that.
#
# ## Balance the weights
#
# `Balanced` takes the weights of `Logistic` and changes them as little as possible until
# the weighted log has the sample's shares of ratings:

# %%
balanced = ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=sample)
checked = ol.propensity.check(balanced, log, folds=None)
ol.figures.balancing_plot(checked.balancing)

# %% [markdown]
# On the left, the weights of `Logistic` hardly change the shares, and balanced weights
# match those of the sample. On the right is the price: weights differ more, and fewer
# rows carry the estimate.
#
# ## Ask again

# %%
after = ol.audit(models, log, balanced, metrics=["mae"])
print(after.verdict)
assert after.verdict.winner == "challenger"

# %% [markdown]
# > challenger beats current on mae, per cell.
#
# This is a verdict, and the opposite of what the log alone suggested. It is true:

# %%
truth = ol.evaluate(models, world.everything(), metrics=["mae"], estimators=["naive"])
for name in models:
    plain, guessed = (before.result[name, "mae", how].value for how in ("naive", "snips"))
    mended, true = after.result[name, "mae", "snips"], truth[name, "mae", "naive"].value
    numbers = f"logistic {guessed:.3f}   balanced {mended.value:.3f}"
    print(f"{name:11} plain {plain:.3f}   {numbers}   truth {true:.3f}")
    assert true in mended.interval(0.95)
assert truth.ranking("mae", "naive")[0] == "challenger"

# %% [markdown]
# ## What the verdict rests on
#
# - **The sample is uniform.** Every cell had the same chance to be drawn, and the
#   answers are honest. More on this below.
# - **Within a rating, the model is right.** Balanced weights correct for a five being
#   likelier to be rated than a two. They do not correct for a user who rates bad films by
#   her favourite director more readily than other bad films, unless `Logistic` has
#   covariates that show it.
#
# The intervals allow for the sample's own chance error: another 200 cells would give
# slightly different weights.
#
# ## How many are enough?
#
# Let us draw samples of several sizes, ten of each, and look at the estimated
# difference. Below zero `current` would be better.

# %%
found = []
for size in (25, 50, 100, 200, 400):
    for seed in range(10):
        rng = np.random.default_rng([size, seed])
        some = rng.choice(ratings.ravel(), size, replace=False)  # ratings alone will do
        p = ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=some)
        result = ol.evaluate(models, log, p, metrics=["mae"], estimators=["snips"])
        gap = result.difference("current", "challenger", metric="mae", estimator="snips")
        found.append(
            {"size": size, "difference": gap.value, "sure": gap.interval(0.95).low > 0}
        )
table = pl.DataFrame(found)
true = truth["current", "mae", "naive"].value - truth["challenger", "mae", "naive"].value
summary = table.group_by("size").agg(
    error=((pl.col("difference") - true) ** 2).mean().sqrt().round(3),
    sure=pl.col("sure").sum(),
)
print(f"true difference {true:.3f}; samples of 10 whose interval is above 0:")
for size, error, sure in summary.sort("size").rows():
    print(f"{size:4} ratings: typical error {error:.3f}, sure in {sure}")

# %%
points = (
    alt.Chart(table)
    .mark_circle(size=60, opacity=0.5)
    .encode(
        x=alt.X("size:O", title="ratings in the sample", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("difference:Q", title="estimated difference; dashed: the truth"),
    )
)
line = (
    alt.Chart(pl.DataFrame({"true": [true]}))
    .mark_rule(strokeDash=[4, 4])
    .encode(y=alt.Y("true:Q", title=None))
)
alt.layer(points, line).properties(width=420, height=240)

# %% [markdown]
# The typical error (the root of the mean square) falls with the size of the sample,
# until the log itself is the limit, here from about 100 ratings on. All samples of 200
# decide. A smaller difference needs more ratings. If the answer is still "cannot tell",
# draw more cells and add them to the file.

# %%
errors = dict(zip(summary["size"], summary["error"], strict=True))
certain = dict(zip(summary["size"], summary["sure"], strict=True))
assert errors[25] > 2 * errors[100]
assert errors[100] < 1.2 * errors[400]
assert certain[25] < 5
assert certain[200] == certain[400] == 10

# %% [markdown]
# ## What could go wrong
#
# **The sample is not random.** This is the mistake that nobody can detect afterwards.
# Suppose you take 200 ratings of the log itself, or ask for volunteers. They have the
# log's bias, and balancing on them changes little:

# %%
volunteers = np.random.default_rng(4).choice(log.rating, 200, replace=False)
fooled = ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=volunteers)
wrong = ol.audit(models, log, fooled, metrics=["mae"])
print(wrong.verdict.headline)
assert wrong.verdict.winner == "current"  # which is false

# %% [markdown]
# > current beats challenger on mae, per cell.
#
# That is a verdict, and it is false. openloop takes your word that the sample is
# uniform. So let a program draw the pairs, and remind the users who do not answer. If
# only satisfied users answer, you have volunteers again. Report how many of the drawn
# pairs were answered.
#
# **The sample is scored.** Its ratings set the weights, so they must not judge the
# models as well. openloop refuses:

# %%
try:
    ol.evaluate(models, sample, metrics=["mae"], estimators=["naive"])
except ol.errors.OpenloopError as error:
    print(error)
else:
    raise AssertionError("a uniform sample may not be scored")

# %% [markdown]
# **A rating is missing from the log.** If the sample has one-star ratings and the log
# has none, no weights can make up for them. If more than 5 % of the population has such
# ratings, there is no verdict.
#
# ## The same from the command line
#
# The sample is named where the propensities are:
#
# ```console
# $ openloop audit ratings.parquet current=current.parquet challenger=challenger.parquet \
#     --metric mae --propensity balanced=drawn.csv --report balanced.html
# challenger beats current on mae, per cell.
# ```
#
# The same sample helps training. A model that learns with balanced weights minimises
# the error over everything, and not over what was rated:
#
# ```console
# $ openloop propensity ratings.parquet --model balanced=drawn.csv --no-check \
#     --out weighted.parquet
# $ openloop train weighted.parquet --model mf --factors 5 --reg 5 --weight weight \
#     --out mf.safetensors
# ```
#
# ## Read on
#
# - [Which propensity model?](../choosing.md): what `Balanced` does exactly, and what
#   200 ratings are worth in other worlds.
# - [Learning](../learning.md): models that use the weights.
# - [A uniform test set](../auditing.md#a-uniform-test-set): with thousands of random
#   ratings you can score every estimator.
# - [Nobody logged propensities](no-propensities.py): what can be decided without any
#   sample.
