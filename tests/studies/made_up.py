"""A study of a made-up paper, small enough that what should come out is known."""

from __future__ import annotations

import numpy as np

from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Item, Paper

PAPER = Paper(title="Coins | and dice", authors="Bernoulli", year=1713, venue="Basel", link="https://example.org")
PUBLISHED = {"mean": 0.5, "die": 3.6}


def toss(given, *, seed, n):
    return {"mean": np.random.default_rng(seed).choice(given["sides"], n).mean()}


def table1(run):
    n = run.either(10_000, 100)
    found = run.map(toss, {"sides": np.array([0.0, 1.0])}, [{"seed": run.seed + k, "n": n} for k in range(4)], "tosses")
    means = [float(outcome["mean"]) for outcome in found]
    value = Value(value=np.mean(means), error=np.std(means) / 2, published=PUBLISHED["mean"], tolerance=0.2)
    die = Value(value=3.5, published=PUBLISHED["die"], digits=1)
    rows = (("coin", value, 4), ("die", die, None), ("other", Value(value=None, published=1.0), "–"))
    table = Table(name="table1", caption="Means", columns=("what", "mean", "trials"), rows=rows)
    claim = Claim(text="a coin is fair", holds=np.abs(np.mean(means) - 0.5) < 0.2, found=f"{np.mean(means):.3f}")
    return Result(item="table1", tables=(table,), claims=(claim,), notes=("<a note> with `code`",))


def figure1(run):
    return Result(item="figure1", data=("coat",), figures=figures(len(run.load("coat").log)))


def figures(n):
    rows = tuple({"x": x, "y": x * x + 1, "kind": kind} for x in (1, 2, 3) for kind in ("a", "b"))
    chart = charts.lines(rows, "x", "y", series="kind", log_y=True)
    return (Figure(name="figure1", caption=f"{n} rows", rows=rows, chart=chart),)


def printed():
    rows = (("line", Value(value=None, published=2.5, digits=1)),)
    return (Table(name="figure1", caption="As printed", columns=("what", "slope"), rows=rows),)


ITEMS = (
    Item(name="table1", title="means", function=table1, minutes=0.1),
    Item(name="figure1", title="a line", function=figure1, data=("coat", "yahoo-r3"), minutes=0.1, published=printed),
    Item(name="figure2", title="needs more", function=figure1, packages=("not_installed",), minutes=0.1),
)
