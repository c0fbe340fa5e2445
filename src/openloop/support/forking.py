"""Polars after a fork: its threads stay in the parent, so most queries in the child would wait forever.

`import openloop` watches forks. What openloop asks of Polars in a child is refused if Polars had threads before.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from openloop.errors import OpenloopError

THREAD = re.compile(r"polars-[0-9]+\s*")  # as Polars names the threads of its pool


class Forks:
    """What forks did to Polars in this process."""

    def __init__(self) -> None:
        self.threads = self.lost = False

    def watch(self) -> None:
        """Look at every fork from now on, on systems that have them."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_child=self._in_child)

    def refuse(self) -> None:
        """Refuse to use Polars where its threads are lost."""
        if self.lost:
            raise OpenloopError(
                "Polars was used before this process was forked, and its threads are not in the child, where a query "
                'waits forever; start processes with multiprocessing.get_context("spawn"), or use Polars and openloop '
                "in the children alone."
            )

    def _before(self) -> None:
        self.threads = polars_has_threads()

    def _in_child(self) -> None:
        self.lost = self.lost or self.threads


def polars_has_threads() -> bool:
    """Whether the pool of Polars has started, which its first query does; where that is unknown, its import counts."""
    if "polars" not in sys.modules:
        return False
    try:
        names = [task.joinpath("comm").read_text(encoding="utf-8") for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return True
    return any(THREAD.fullmatch(name) for name in names)


forks = Forks()
