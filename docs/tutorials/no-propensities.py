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
# # Nobody logged propensities: can I still decide?
#
# You have ratings that people chose to give, and three models. To correct for the
# choice, you need the probability that each rating came into the log, its *propensity*.
# Nobody logged it. Hardly anyone does.
#
# You can estimate it. But a model that sees only who rates much and what is rated often
# misses the main thing: people rate what they like. So is an answer worth anything?
# Sometimes it is. This tutorial shows how to find out when. It takes ten minutes to
# read and a few seconds to run.

# %%
import altair as alt
import numpy as np
import polars as pl

import openloop as ol

_ = alt.renderers.enable("svg")  # charts as pictures, which need no network

# %% [markdown]
# ## The data
#
# We make the log ourselves, because then we know the truth: 500 users, 300 films, and
# all 150,000 ratings. Some users rate more than others, some films are rated more
# often, and a film that a user likes is more likely to be rated. With each star less
# the chance nearly halves.

# %%
users, films = 500, 300
taste = ol.simulate.low_rank(users, films, rank=5, rng=0)
shares = [0.15, 0.25, 0.25, 0.2, 0.15]  # of one to five stars
ratings = ol.simulate.assign_marginals(taste, shares)
rng = np.random.default_rng(1)
activity, popularity = rng.normal(0, 0.4, (users, 1)), rng.normal(0, 0.4, films)
chance = np.exp(activity + popularity) * 0.55 ** (5 - ratings)
chance = np.minimum(0.08 * chance / chance.mean(), 0.95)

# %% [markdown]
# The three models are predictions of all ratings. `current` was tuned on what people
# rate, so it is good at films that its users like, and poor at the others. `challenger`
# is equally good at everything. `old` is what ran before.

# %%
noise = rng.normal(size=(3, users, films))
models = {
    "current": ratings + np.where(ratings >= 4, 0.4, 1.1) * noise[0],
    "challenger": ratings + 0.72 * noise[1],
    "old": ratings + 1.8 * noise[2],
}
world = ol.simulate.World(ratings=ratings, propensities=chance, predictions=models)

drawn = world.observe(rng=2)
rows = {"user": drawn.user, "item": drawn.item}
observed = pl.DataFrame(rows | {"rating": drawn.rating})  # without propensities
observed.write_parquet("ratings.parquet")
for name, predicted in models.items():
    pl.DataFrame(rows | {"score": predicted[drawn.user, drawn.item]}).write_parquet(
        f"{name}.parquet"
    )

# %% [markdown]
# **With your own log** start here. You need a table of user, item and rating, and for
# each model a table of user, item and score with a prediction for every rating of the
# log. The ratings should be ones that the models were not trained on.

# %%
log = ol.read("ratings.parquet", users=users, items=films)  # n means the ids 0 … n − 1
print(log)
print(f"mean rating: log {log.rating.mean():.2f}, all cells {ratings.mean():.2f}")

# %% [markdown]
# The log's mean is almost a star too high. In practice you would not know the second
# number.
#
# ## Estimate propensities, and ask
#
# `Logistic` estimates who rates much and which films are rated often. It ignores the
# ratings. Tables of predictions are passed as models, without conversion.

# %%
seen = ol.propensity.Logistic().fit(log)
predictions = {name: pl.read_parquet(f"{name}.parquet") for name in models}
found = ol.audit(predictions, log, seen, metrics=["mae"])
print(found.verdict)
assert found.verdict.level == "conditional"

# %% [markdown]
# This is a *conditional* answer, not a verdict:
#
# > current is ahead of challenger and old on mae, per cell, if each extra star makes
# > being observed at most 1.15 times likelier than the propensities say; the order
# > reverses near 1.28 times.
#
# openloop calls this number ρ (rho). With ρ = 1 the propensities are right. With ρ = 2
# each extra star makes a rating twice as likely to be in the log, beyond what they say.
# The chart shows the difference between the two models for ρ from 1 to 3:

# %%
of_both = [c for c in found.curves if {c.a, c.b} == {"current", "challenger"}]
ol.figures.sensitivity_chart([c for c in of_both if c.against == "rho"])

# %% [markdown]
# ## Which ρ is plausible?
#
# The log cannot say. What you know of your users can.
#
# - Are ratings given where people choose freely, as on a film site? Then expect ρ well
#   above 1. In the public Coat data people rated coats of their choice and coats drawn
#   at random, and liked the former clearly better ([measured](../choosing.md#on-coat)).
# - Does everyone rate everything that they used, as after a course or a ride? Then ρ is
#   near 1 among what was used.
#
# If propensities ignore the rating, a verdict needs an order that holds up to ρ = 1.5.
# This one does not.
#
# In our world we know ρ. It is beyond the point where the order reverses, and
# `challenger` is indeed better:

# %%
print(f"ρ in this world: {1 / 0.55:.2f}")
truth = ol.evaluate(models, world.everything(), metrics=["mae"], estimators=["naive"])
for name in models:
    plain, weighted = (found.result[name, "mae", how] for how in ("naive", "snips"))
    true = truth[name, "mae", "naive"]
    numbers = f"plain {plain.value:.2f}   weighted {weighted.value:.2f}"
    print(f"{name:11} {numbers}   truth {true.value:.2f}")
assert found.result.ranking("mae", "naive")[0] == "current"
assert truth.ranking("mae", "naive") == ["challenger", "current", "old"]

# %% [markdown]
# The weights changed little, because activity and popularity are not what is wrong with
# this log. If you had trusted the weighted estimate, you would have kept the wrong
# model. The condition protects you from that.
#
# ## What you can decide
#
# The headline is about the leader against all others. Each pair has an answer of its
# own:

# %%
for pair in found.verdict.pairs:
    print(f"{pair.a} and {pair.b}: {pair.level}, better is {pair.better}")

# %% [markdown]
# There is no doubt about `old`. Both others beat it at every ρ that the audit tries: the
# order does not reverse.

# %%
retire = ol.audit(
    {name: predictions[name] for name in ("challenger", "old")},
    log,
    seen,
    metrics=["mae"],
)
print(retire.verdict)
contrast = retire.contrast("challenger", "old")
print(f"the order reverses at ρ = {contrast.rho}")
assert retire.verdict.winner == "challenger"
assert contrast.rho == np.inf

# %% [markdown]
# > challenger beats old on mae, per cell.
#
# So the answer to the title is yes if the difference is too large to be explained by
# what people like to rate, and no otherwise. openloop says which case you have.
#
# ## What may help
#
# **Covariates.** If you know who the users are and what the films are about, a model
# with covariates explains a part of the choice: `ol.propensity.Logistic().fit(log,
# user_features=…, item_features=…)`. ρ is then about the part that they leave
# unexplained.
#
# **A few random ratings.** The last line of the answer names the cheapest remedy: 200
# ratings of pairs that were drawn at random. With them `challenger` wins. [Two hundred
# random ratings](two-hundred-ratings.py) goes on from here with the same data.
#
# **A design.** From now on, log the probability with which your system shows something.
# That is worth more than any model.
#
# ## What could go wrong
#
# **The propensity model is no good.** Then there is no verdict, however clear the
# difference looks. Here is another log of the same films in which the chance depends on
# the rating alone. A model of activity and popularity finds nothing that predicts new
# rows:

# %%
by_rating = np.minimum(
    0.08 * 0.55 ** (5 - ratings) / (0.55 ** (5 - ratings)).mean(), 0.95
)
other = ol.simulate.World(
    ratings=ratings, propensities=by_rating, predictions=models
).observe(rng=3)
other = other.take(np.ones(len(other), bool), propensity=None)
lost = ol.audit(models, other, ol.propensity.Logistic().fit(other), metrics=["mae"])
print(lost.verdict.headline)
print(lost.verdict.remedy)
assert lost.verdict.level == "none"

# %% [markdown]
# **Users and films that are not in the log.** Without `users=` and `items=` the
# population is what the log shows. A film that nobody rated is then not part of the
# question.
#
# **A guess that passes for known.** If you write estimated propensities into a column
# and audit with that column, openloop takes them as logged by your system, and does not
# ask about ρ. Say where they come from: `ol.read(…, propensity="propensity",
# propensity_model="logistic")`.
#
# ## The same from the command line
#
# If no propensities are named and the log has no column of them, the command fits
# `logistic`, and says so.
#
# ```console
# $ openloop audit ratings.parquet current=current.parquet old=old.parquet \
#     challenger=challenger.parquet --metric mae --report ratings.html
# current is ahead of challenger and old on mae, per cell, if each extra star makes
# being observed at most 1.15 times likelier than the propensities say; the order
# reverses near 1.28 times.
#
# $ openloop audit ratings.parquet challenger=challenger.parquet old=old.parquet \
#     --metric mae
# challenger beats old on mae, per cell.
# ```
#
# The first command ends with exit code 3, the second with 0. The report has the chart
# of ρ, the checks of the propensity model, and what the weights rest on.
#
# ## Read on
#
# - [Two hundred random ratings](two-hundred-ratings.py): how to draw them, and what
#   they change.
# - [Which propensity model?](../choosing.md): every model, and how well it does where
#   the truth is known.
# - [If the weights are wrong](../auditing.md#if-the-weights-are-wrong): ρ, and the
#   other two numbers, Γ and κ.
# - [Trust](../trust.md): how often verdicts are wrong, measured in simulated worlds.
