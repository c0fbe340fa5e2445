"""Roles of random numbers: no two share a stream."""

from __future__ import annotations

from openloop.learners.chains import SweepKey
from openloop.learners.solvers.roles import Role


def test_streams_of_all_differ():
    every = Role.__members__.values()  # with aliases
    key = SweepKey(seed=1, chain=0, sweep=3, burning=False)
    assert len({int(key.word(role)) for role in every}) == len(every)
