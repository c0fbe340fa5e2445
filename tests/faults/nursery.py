"""A process that has imported everything and starts commands as its children: a kill then hits work, not imports.

It reads a JSON object, forks a child that runs the command, and answers with the child's number; then it reads an empty
line, waits for the child, and answers with its exit code. Polars is imported but not used before a fork, so it works in
the child. A child may aim: at the n-th time that a file of its outputs is put on the disk or renamed it sends itself a
signal, before or after.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

IMPORTED = (
    "openloop.cli", "openloop.commands.train", "openloop.commands.propensity", "openloop.commands.audit.inputs",
    "openloop.commands.report",
    "openloop.reporting.html", "openloop.studies.kit.page_files", "openloop.data.datasets.fetching",
    "openloop.learners.mf", "openloop.kernels.ranking", "openloop.kernels.bootstrap", "openloop.propensity.checks",
    "altair", "vl_convert", "rich.progress", "rich.table", "sklearn.base", "scipy.optimize", "tests.faults.coins",
)  # fmt: skip


class Aim:
    """Counts what `os` is asked to do with files below a folder, and sends a signal at one of these."""

    def __init__(self, folder: str, asked: dict[str, Any]) -> None:
        self.folder, self.asked = folder, asked
        self.seen = dict.fromkeys(asked["calls"], 0)
        for name in asked["calls"]:
            setattr(os, name, self.watched(name, getattr(os, name)))

    def watched(self, name, call):
        def act(what, *rest, **more):
            if not self.own(what):
                return call(what, *rest, **more)
            self.seen[name] += 1
            self.hit("before")
            found = call(what, *rest, **more)
            self.hit("after")
            Path(self.asked["told"]).write_text(json.dumps(self.seen), encoding="utf-8")
            return found

        return act

    def hit(self, when) -> None:
        if sum(self.seen.values()) == self.asked.get("nth") and self.asked["when"] == when:
            os.kill(os.getpid(), self.asked["signal"])

    def own(self, what) -> bool:
        path = Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else Path(what).absolute()
        return path.is_relative_to(self.folder)


def known_study() -> None:
    from openloop.studies.kit import running
    from tests.faults import coins

    running.STUDIES = (*running.STUDIES, "coins")
    sys.modules["openloop.studies.coins"] = coins


def small_coat() -> None:
    """Let the catalogue document what the small Coat holds."""
    from dataclasses import replace

    from openloop.data import datasets
    from openloop.data.datasets import finding
    from openloop.data.datasets.records import Shape

    finding.CATALOGUE = (replace(datasets.find("coat"), shapes=(Shape(users=2, items=3, rows=3, open_loop=3),)),)


def become(asked: dict[str, Any]) -> None:
    """The child: its own group, streams and folder, and then the command."""
    os.setsid()
    for name, number in (("stdout", 1), ("stderr", 2)):
        handle = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    if asked.get("limit"):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["limit"], asked["limit"]))
    if asked.get("aim"):
        Aim(asked["folder"], asked["aim"])
    sys.argv = ["openloop", *asked["words"]]
    from openloop.cli import main

    main()


def tell(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def serve() -> None:
    for name in IMPORTED:
        __import__(name)
    known_study()
    small_coat()
    tell("ready")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(json.loads(line))
            return
        tell(child)
        sys.stdin.readline()  # until then its number is its own, also when it has ended
        _, status = os.waitpid(child, 0)
        tell(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
