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
# # My log has positions
#
# You know more than who clicked on what. For each request your log has the whole list
# that was shown: which item, at which position, and whether it was clicked. A new
# ranker is ready. How many clicks would it earn?
#
# Clicks alone favour the ranker that made the lists. People look at the top of a list
# more often than further down, and the running ranker decided what was at the top. This
# tutorial separates looking from liking, and then counts the clicks that the new ranker
# would get. It takes ten minutes to read and a few seconds to run.

# %%
import altair as alt
import numpy as np
import polars as pl

import openloop as ol

_ = alt.renderers.enable("svg")  # charts as pictures, which need no network

# %% [markdown]
# ## The data
#
# We make the log ourselves, because then we know the truth. An app has 8 offers and
# shows each user 4 of them in a list. The running ranker orders them. In three of ten
# requests the list is drawn at random instead. That share costs some clicks, but makes
# this log far more informative.

# %%
app = ol.simulate.click_world(
    users=2500, items=8, depth=4, logging="shuffled", shuffle=0.3
)


def table(drawn):
    """A log as it would come out of a warehouse: one row for each offer shown."""
    return pl.DataFrame(
        {
            "request": drawn.request,
            "user": drawn.users.ids[drawn.user[drawn.request]],
            "item": drawn.item,
            "position": drawn.position,
            "click": drawn.reward,
            "time": drawn.time[drawn.request],
            # Was the list of this request drawn at random?
            "shuffled": drawn.shuffled[drawn.request],
            "propensity": drawn.propensity,  # the chance of this offer at this position
        }
    )


table(app.observe(rng=1)).write_parquet("impressions.parquet")
impressions = pl.read_parquet("impressions.parquet")
print(impressions.head(4))

# %% [markdown]
# **With your own log** start here. You need a row for every item that was shown,
# clicked or not, with request, user, item, position (from 1) and click. Add what your
# system knows of its own randomness: which lists were drawn at random, and with which
# probability an item came to its position. [Which log identifies
# what](../positions.md#which-log-identifies-what) says what each column buys.

# %%
shown = ol.read(
    "impressions.parquet",
    position="position",
    shuffled="shuffled",
    propensity="propensity",
    time="time",
)
print(shown)
assert shown.whole  # no list has a gap

# %% [markdown]
# ## The rankers
#
# A ranker is a table of user, item and rank (or score). `current` is the one that made
# the lists. `new` knows the users' tastes better.


# %%
def ranks(world, name, users):
    """How a ranker orders all offers for each user."""
    rank = np.argsort(np.argsort(-world.scores(name, users), axis=1), axis=1) + 1
    user, item = np.indices(rank.shape)
    return pl.DataFrame(
        {"user": users[user.ravel()], "item": item.ravel(), "rank": rank.ravel()}
    )


rankers = {
    "current": ranks(app, "logger", shown.users.ids),
    "new": ranks(app, "a", shown.users.ids),
}

# %% [markdown]
# ## What plain counting says
#
# The usual check takes the clicked offers and asks how high each ranker puts them. Let
# us use the mean of 1/rank:

# %%
clicked = impressions.filter((pl.col("click") > 0) & ~pl.col("shuffled"))
for name, rows in rankers.items():
    found_at = clicked.join(rows, on=["user", "item"])["rank"]
    print(f"{name:8} mean of 1/rank of clicked offers {(1 / found_at).mean():.2f}")

# %% [markdown]
# `current` looks far better. It would look better than nearly any rival: people see and
# click what it puts at the top, and then the clicked offers are the ones that it put at
# the top.
#
# ## How often is each position looked at?
#
# Now the requests in random order help. In them every offer is about as often at
# position 4 as at position 1. If position 4 still gets fewer clicks, people look at it
# less. *Examination* θ is how often a position is looked at, compared with position 1.

# %%
exam = ol.propensity.Examination(by="randomised").fit(shown)
low, high = exam.interval(0.95).T
for k in range(4):
    interval = f"{low[k]:.2f} to {high[k]:.2f}"
    print(f"{k + 1}: θ {exam.theta_[k]:.2f}, 95 % {interval}, truth {app.theta[k]:.2f}")
assert np.all((low <= app.theta) & (app.theta <= high))

# %% [markdown]
# Each interval contains the truth. The click rates of the ordered lists fall faster,
# because the running ranker puts worse offers further down:

# %%
ordered = (
    impressions.filter(~pl.col("shuffled"))
    .group_by("position")
    .agg(rate=pl.col("click").mean())
    .sort("position")
)
ordered_rate = ordered["rate"].to_numpy() / ordered["rate"][0]
rates = pl.DataFrame(
    {
        "position": [1, 2, 3, 4] * 2,
        "compared with position 1": [*ordered_rate, *exam.theta_],
        "from": ["clicks in ordered lists"] * 4 + ["examination θ"] * 4,
    }
)
assert np.all(ordered_rate[1:] < exam.theta_[1:])
alt.Chart(rates, width=420, height=240).mark_line(point=True).encode(
    x=alt.X("position:O", axis=alt.Axis(labelAngle=0)),
    y="compared with position 1:Q",
    color=alt.Color("from:N", title=None, legend=alt.Legend(orient="bottom")),
)

# %% [markdown]
# ## Ask
#
# With θ, a click at position 4 counts for more than one at position 1, and each offer
# gets the position that the ranker would give it. The audit estimates the clicks per
# request under each ranker, and their difference:

# %%
found = ol.audit(rankers, shown, exam)
print(found.verdict)
assert found.verdict.winner == "new"

# %% [markdown]
# > new beats current on clicks, expected clicks per request.
#
# The line below it has the difference with its interval. The two values:

# %%
ol.figures.leaderboard_chart(found.result, "clicks")

# %% [markdown]
# Two estimators agree. `snpbm` uses θ, and so learns from clicks at any position. For
# `new`, whose lists were never shown, its interval is narrower. `sniips` uses nothing
# but the logged probabilities. In this app we can compare with the truth:

# %%
for name, in_app in {"current": "logger", "new": "a"}.items():
    estimate, truth = found.result[name, "clicks", "snpbm"], app.truth(in_app)
    around = estimate.interval(0.95)
    interval = f"{around.low:.3f} to {around.high:.3f}"
    print(f"{name:8} {estimate.value:.3f} clicks, 95 % {interval}, truth {truth:.3f}")
    assert truth in around

widths = {how: found.result["new", "clicks", how].stderr for how in ("snpbm", "sniips")}
assert widths["snpbm"] < widths["sniips"]

# %% [markdown]
# The plain count was wrong about the order, and the audit is right about the order and
# the level.
#
# ## What the verdict rests on
#
# The lines that begin with *Check* are tests of what the estimate assumes:
#
# - what is above an item does not change whether it is clicked;
# - ranks do not react to earlier clicks of the same user (this needs `time=`);
# - better and worse items have the same θ.
#
# A check that is made in several ways takes the smallest p-value times their number:
# "p = 1 after 3 tries".
#
# None of them rejects its assumption here. If one does, the audit uses an estimator that
# does not need the assumption, or gives no verdict.
#
# ## What could go wrong
#
# **Users read from the top and stop.** Let us make such an app. Its users go down the
# list, and are likely to stop after a click. So whether an offer is looked at depends
# on the offers above it, and no θ describes that.

# %%
reading = ol.simulate.click_world(
    users=2500, items=8, depth=4, logging="shuffled", shuffle=0.3, model="cascade"
)
table(reading.observe(rng=1)).write_parquet("reading.parquet")
lists = ol.read(
    "reading.parquet",
    position="position",
    shuffled="shuffled",
    propensity="propensity",
    time="time",
)
their_rankers = {
    "current": ranks(reading, "logger", lists.users.ids),
    "new": ranks(reading, "a", lists.users.ids),
}
stopped = ol.audit(
    their_rankers, lists, ol.propensity.Examination(by="randomised").fit(lists)
)
print(stopped.verdict)
assert stopped.verdict.level == "none"

# %% [markdown]
# The audit notices, and gives no verdict:
#
# > This log cannot tell new from current on clicks, expected clicks per request:
# > rewards depend on the items above, as in a cascade
#
# **The probabilities were not logged.** Without them the audit knows where each offer
# was, but not where else it could have been. The log then covers only a part of what
# `new` would show, and the audit refuses to guess the rest:

# %%
bare = ol.read("impressions.parquet", position="position", shuffled="shuffled")
try:
    ol.audit(rankers, bare, ol.propensity.Examination(by="randomised").fit(bare))
except ol.errors.UndefinedError as error:
    print(error)
else:
    raise AssertionError("without probabilities the new ranker is out of reach")

# %% [markdown]
# The message begins with what helps most: log the probability of each offer at its
# position, from now on. Then it lists the other estimators and the columns they need.
#
# **Only clicks were logged.** Many systems store the clicked rows alone. Then lists
# have gaps, and there is no verdict:
#
# %%
gaps = ol.read(
    impressions.filter(pl.col("click") > 0),
    position="position",
    shuffled="shuffled",
    propensity="propensity",
)
partly = ol.audit(rankers, gaps, app.theta)
print(partly.verdict.headline)
assert not gaps.whole
assert partly.verdict.level == "none"

# %% [markdown]
# If whole requests without a click are missing, nothing in the log shows it: its users
# only seem to click more. So log what was not clicked, too.
#
# ## The same from the command line
#
# The log is a file already. The rankers become two more:

# %%
for name, rows in rankers.items():
    rows.write_parquet(f"{name}.parquet")

# %% [markdown]
# ```console
# $ openloop audit impressions.parquet current=current.parquet new=new.parquet \
#     --position position --shuffled shuffled --time time --report positions.html
# new beats current on clicks, expected clicks per request.
# ```
#
# The columns `request`, `user`, `item`, `click` and `propensity` are found by their
# names. The report shows θ beside the raw click rates, and what each estimate rests on.
#
# ## Read on
#
# - [Positions](../positions.md): every kind of log, every estimator, the checks, and
#   how often verdicts are right.
# - [Which of my models is better?](which-model.py): when the log has clicks and nothing
#   about what was shown.
# - [Auditing](../auditing.md): the three answers, and planning the A/B test.
