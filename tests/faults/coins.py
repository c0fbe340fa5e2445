"""A study of a made-up paper for `openloop reproduce`: four trials in processes, a table and a picture."""

from __future__ import annotations

import random

from openloop.studies.kit import charts
from openloop.studies.kit.results import Figure, Result, Table
from openloop.studies.kit.running import Item, Paper

PAPER = Paper(title="Coins", authors="Bernoulli", year=1713, venue="Basel", link="https://example.org")


def toss(_given, *, seed, n):
    draw = random.Random(seed)
    return {"mean": sum(draw.random() for _ in range(n)) / n}


def coins(run):
    found = run.map(toss, {}, [{"seed": run.seed + k, "n": 20_000} for k in range(4)], "tosses")
    means = [float(outcome["mean"]) for outcome in found]
    table = Table(name="coins", caption="Means", columns=("coin", "mean"), rows=tuple(enumerate(means)))
    rows = tuple({"x": k, "y": mean, "kind": "coin"} for k, mean in enumerate(means))
    chart = charts.lines(rows, "x", "y", series="kind")
    return Result(item="coins", tables=(table,), figures=(Figure(name="coins", caption="", rows=rows, chart=chart),))


ITEMS = (Item(name="coins", title="means", function=coins, minutes=0.1),)
