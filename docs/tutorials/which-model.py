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
# # Which of my models is better?
#
# You have a log of clicks and two recommenders. Each lists ten books for every user.
# Which one should go into the A/B test?
#
# Counting how many later clicks each list contains is the usual answer. It has a flaw.
# People click on what they are shown, and some books are shown far more than others. A
# model that recommends what is shown anyway looks good.
#
# This tutorial shows a case in which the log can still decide, a case in which it
# cannot, and what settles the second one. It takes ten minutes to read and a few
# seconds to run.

# %%
import datetime as dt

import altair as alt
import numpy as np
import polars as pl
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD

import openloop as ol

_ = alt.renderers.enable("svg")  # charts as pictures, which need no network

# %% [markdown]
# ## The data
#
# We make the log ourselves, because then we know the truth and can check every answer.
# The shop has 1,500 users and 200 books, and a user likes one book in five. How
# prominently a book is displayed has nothing to do with how good it is. The most
# prominent book is ten times as likely to be seen as the least prominent one.

# %%
users, books = 1500, 200
taste = ol.simulate.low_rank(users, books, rank=5, rng=0)
shares = [0.4, 0.25, 0.15, 0.12, 0.08]  # of one to five stars; a user likes four and five
ratings = ol.simulate.assign_marginals(taste, shares)
rng = np.random.default_rng(0)
prominence = rng.permutation(np.geomspace(1.0, 0.1, books))
seen = np.minimum(0.3 * prominence / prominence.mean(), 0.95)
shop = ol.simulate.World(ratings=ratings, propensities=np.tile(seen, (users, 1)))

shown = shop.observe(rng=1)  # what each user came across
clicked = shown.take(shown.rating >= 4)  # what they clicked, which is all that is logged
start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp()
when = start + 86_400 * rng.uniform(0, 90, len(clicked))
rows = {"user": clicked.user, "item": clicked.item, "timestamp": when.astype(np.int64)}
clicks = pl.DataFrame(rows)
later = pl.col("timestamp") + 86_400  # some click again a day later
clicks = pl.concat([clicks, clicks.sample(2000, seed=0).with_columns(later)])
clicks.sample(fraction=1, shuffle=True, seed=0).write_parquet("events.parquet")
print(pl.read_parquet("events.parquet", n_rows=3))

# %% [markdown]
# **With your own log** start here. You need a table with a user, an item and a time:
# Parquet, CSV, or any dataframe. Ids may be numbers or text, and other column names are
# passed as `user=`, `item=` and `time=`.
#
# ## Split by time
#
# Models learn from what came before 9 March, and are judged by what came after. A
# random split would let them learn from the future.

# %%
events = {"time": "timestamp", "duplicates": "first", "users": users, "items": books}
train, test = ol.split("events.parquet", test="2024-03-09", **events)
print(train)
print(test)
for note in test.notes:
    print("-", note)

# %% [markdown]
# The notes say what was decided for you. There is no column of ratings, so every row is
# a *positive*. A pair that was clicked twice counts once. A click on a book that the
# same user had clicked before 9 March is left out, because the question is about new
# books for each user.
#
# ## Two models
#
# `popular` recommends what was clicked most. `svd` is a factorisation by scikit-learn.
# `ol.wrap` takes it as it is, and needs the ids of its rows and columns. Here these are
# the ids of the log in their order.

# %%
X = csr_matrix((np.ones(len(train)), (train.user, train.item)), shape=(users, books))
fitted = TruncatedSVD(10, random_state=0).fit(X)
svd = ol.wrap((fitted, X), users=train.users.ids, items=train.items.ids)
popular = ol.learners.Popularity().fit(train)

# %% [markdown]
# Models of implicit, LightFM, Surprise, LensKit, PyTorch and FAISS work the same way
# ([models from elsewhere](../models.md)). With implicit's ALS, for example:
#
# ```python
# import implicit
#
# als = implicit.als.AlternatingLeastSquares(factors=10, random_state=0)
# als.fit(X, show_progress=False)
# wrapped = ol.wrap(als, users=train.users.ids, items=train.items.ids)
# with_als = ol.audit({"popular": popular, "als": wrapped}, test, exclude=train)
# print(with_als.verdict.headline)
# ```
#
# ## Ask
#
# `exclude=train` removes the books that a user has already clicked from her ranking.
# For a log of clicks the audit chooses recall@10: of the books that a user clicked
# after the split, how many are among the model's first ten?

# %%
found = ol.audit({"popular": popular, "svd": svd}, test, exclude=train)
print(found.verdict)
assert found.verdict.winner == "svd"

# %% [markdown]
# The first line is the verdict:
#
# > svd beats popular on recall@10, per user.
#
# The lines below it say by how much, how many users an A/B test would need, and what
# the verdict rests on. The two estimates with their intervals:

# %%
ol.figures.leaderboard_chart(found.result, "recall@10")

# %% [markdown]
# ## What the verdict rests on
#
# The log says what was clicked, but not what was shown. So popular books may be liked
# more, or shown more. κ (kappa) is the share of popularity that is exposure. With κ = 0
# every click counts once. With κ = 1 a click on a book with ten times as many clicks
# counts a tenth.
#
# Nobody knows κ. So the audit tries all values from 0 to 1, and gives a verdict only if
# the order is the same for all of them. Here it is: the whole band is on one side of
# zero.


# %%
def against_kappa(audit):
    """The difference between two models for each share of exposure."""
    return ol.figures.sensitivity_chart(
        [c for c in audit.curves if c.against == "kappa" and c.b is not None]
    )


against_kappa(found)

# %% [markdown]
# And is it true? In this shop we can ask about all books that a user likes, whether she
# saw them or not:


# %%
def truth(models):
    """Recall@10 over everything that users like and had not clicked before the split."""
    everything = ol.evaluate(
        models,
        shop.everything(),
        metrics=["recall@10"],
        estimators=["naive"],
        exclude=train,
    )
    return {name: everything[name, "recall@10", "naive"].value for name in models}


for name, recall in truth({"popular": popular, "svd": svd}).items():
    in_log = found.result[name, "recall@10", "naive"].value
    print(f"{name:10} truth {recall:.3f}   log {in_log:.3f}")
assert truth({"svd": svd})["svd"] > 2 * truth({"popular": popular})["popular"]

# %% [markdown]
# The order is right. The level is not: the log shows nearly twice the true recall of
# `svd`, because later clicks favour prominent books as much as earlier ones did. A log
# of clicks may show the order of models, but never the level.
#
# ## A question that this log cannot answer
#
# A colleague says: "Prominent books have more clicks, and `svd` learns that. Divide its
# scores by popularity." Her model has the same vectors, with each book's vector divided
# by the book's clicks to the power of ¾.

# %%
P, Q = fitted.transform(X), fitted.components_.T
n = np.bincount(train.item, minlength=books)
discounted = ol.wrap(
    (P, Q / n[:, None] ** 0.75), users=train.users.ids, items=train.items.ids
)

second = ol.audit({"svd": svd, "discounted": discounted}, test, exclude=train)
print(second.verdict)
assert second.verdict.level == "conditional"
assert second.verdict.winner is None

# %% [markdown]
# This is no verdict. It is a *conditional* answer:
#
# > svd is ahead of discounted on recall@10, per user, if at most 35 % of popularity is
# > exposure
#
# If most of popularity is liking, `svd` is better. If it is exposure, the colleague is
# right. The curve crosses zero:

# %%
against_kappa(second)

# %% [markdown]
# In this shop *all* of popularity is exposure. So she is right, and the plain count of
# later clicks would have chosen the wrong model:

# %%
both = {"svd": svd, "discounted": discounted}
for name, recall in truth(both).items():
    in_log = second.result[name, "recall@10", "naive"].value
    print(f"{name:10} truth {recall:.3f}   log {in_log:.3f}")
assert truth(both)["discounted"] > truth(both)["svd"]
assert second.result.ranking("recall@10", "naive") == ["svd", "discounted"]

# %% [markdown]
# ## What settles it
#
# The last line of the answer says what may help: log what was shown, or show some books
# at random. The audit has computed how many:

# %%
print(*second.settling)

# %% [markdown]
# These are upper limits. The shop tries fewer: of the books that a user has not clicked
# yet, it shows her one in ten, drawn at random, and logs the clicks on them together
# with that probability.

# %%
evenly = np.full((users, books), 0.1)
experiment = ol.simulate.World(ratings=ratings, propensities=evenly).observe(rng=5)
liked = experiment.take(experiment.rating >= 4)
rows = {"user": liked.user, "item": liked.item, "propensity": liked.propensity}
new_pairs = pl.DataFrame(rows).join(clicks, on=["user", "item"], how="anti")
new_pairs.write_parquet("random.parquet")

log = ol.read("events.parquet", **events)  # both parts: all that users clicked before
drawn = ol.read("random.parquet", propensity="propensity", like=log)
settled = ol.audit(both, drawn, exclude=log)
print(settled.verdict)
assert settled.verdict.winner == "discounted"

# %% [markdown]
# > discounted beats svd on recall@10
#
# It is a verdict now, and a true one.
#
# ## What could go wrong
#
# **Propensities fitted on clicks.** You may know inverse propensity weighting, and fit
# a model of who clicks what. On a log of clicks this estimates the chance of being
# shown *and* liked. Weighting by it removes the liking, too. openloop refuses:

# %%
try:
    ol.audit(
        {"popular": popular, "svd": svd},
        test,
        ol.propensity.Logistic().fit(log),
        exclude=train,
    )
except ol.errors.OpenloopError as error:
    print(error)
else:
    raise AssertionError("propensities fitted on clicks must be refused")

# %% [markdown]
# **The model made the log.** If `svd` chose what people saw, clicks on its own lists
# favour it, whatever κ is. Name it: `ol.audit(…, running="svd")`. Then it cannot win by
# such clicks.
#
# **The model has seen the answers.** Fit on `train` only. Nothing tells openloop what a
# model of another library was fitted on.
#
# **Ids in another order.** `users=` and `items=` are the ids of the model's rows. If
# they are in the wrong order, the model becomes a random one. If one is missing, the
# error names it.
#
# ## The same from the command line
#
# Models travel as files. `popular` is saved by openloop. The vectors of `svd` go into a
# file that any program can write.

# %%
popular.save("popular.safetensors")
_ = svd.to_vectors("svd.npz")
_ = discounted.to_vectors("discounted.npz")

# %% [markdown]
# ```console
# $ openloop audit events.parquet popular=popular.safetensors svd=svd.npz \
#     --time timestamp --test 2024-03-09 --duplicates first --report which.html
# svd beats popular on recall@10, per user.
# ```
#
# The exit code is 0 for a verdict, and 3 if the answer is conditional or the log cannot
# tell. So a script can use it. `which.html` has the charts, and opens without a
# network.
#
# ```console
# $ openloop audit events.parquet svd=svd.npz discounted=discounted.npz \
#     --time timestamp --test 2024-03-09 --duplicates first
# svd is ahead of discounted on recall@10, per user, if at most 35 % of popularity
# is exposure; the order reverses near 62 %.
# ```
#
# ## Read on
#
# - [My log has clicks](../clicks.md): repeats, new users and items, and what κ does not
#   cover.
# - [Auditing](../auditing.md): the three answers, and every rule behind a verdict.
# - [My log has positions](positions.py): when you know what was shown, and where.
# - [Models from elsewhere](../models.md): how to wrap the models of other libraries.
