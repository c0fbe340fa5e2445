"""The open loop in four senses: which models rank it, and which of its ratings count."""

from __future__ import annotations

from tests.studies.jadidinejad2021 import many


def cells(method):
    """The relevant cells that a target looks at."""
    return set(zip(method.args[0].user.tolist(), method.args[0].item.tolist(), strict=True))


def pairs(user, item):
    return set(zip(user.tolist(), item.tolist(), strict=True))


def test_each_sense_counts_cells_of_its_own():
    _, log, drawn = many.logs()
    found = many.some_experiment(1).splits[0]
    train = found.held.split.train
    relevant = pairs(drawn.user[drawn.rating >= 4], drawn.item[drawn.rating >= 4])
    assert cells(found.targets["published"]) == cells(found.targets["printed"]) == relevant
    assert cells(found.targets["unseen"]) == relevant - pairs(log.user, log.item) != relevant
    assert cells(found.targets["candidates"]) == relevant - pairs(log.user[train], log.item[train]) != relevant
