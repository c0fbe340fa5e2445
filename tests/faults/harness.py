"""Commands that are killed: what they are, how they are started, and what may be left of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from openloop.support.leftovers import OURS
from tests.audit_cases import NAMES, small_audit
from tests.audit_files import audit_files
from tests.data.datasets.originals import FILES
from tests.data.datasets.serving import served, zipped

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 100.0  # seconds after which a command hangs
RENAMES = ["replace", "rename"]
STEPS = [*RENAMES, "fsync"]

Tree = dict[str, bytes]  # the files below a folder

CASES: dict[str, list[str]] = {  # {seed} is 1 or 2, for old or new outputs
    "train": "train {inputs}/log.csv --model mf --factors 8 --user uid --item mid --rating stars --seed {seed} "
    "--out m.safetensors --json m.json",
    "propensity": "propensity {inputs}/log.csv --model low-rank --user uid --item mid --rating stars --seed {seed} "
    "--out p.parquet --json p.json",
    "audit": "audit {inputs}/log.csv a={inputs}/a.csv b={inputs}/b.csv --user uid --item mid --rating stars "
    "--propensity p --seed {seed} --level 0.{seed} --report r.html --json r.json",
    "report": "report {inputs}/audit{seed}.json --report r.html --json r.json",
    "reproduce": "reproduce coins --seed {seed} --workers 2 --cache cache --report r.md --json r.json",
    "datasets get": "datasets get coat --data data{seed} --yes --url {address}/coat",
}  # fmt: skip
WHOLE = {"datasets get": "data2/coat"}  # a folder that appears with all its files or not at all
CACHES = ("cache/",)  # grow by whole files, whichever run they are of
RESUMED = (".coat.part", ".coat.part.json")  # a download that is cut goes on in the next run
SETTINGS = {"COLUMNS": "80", "no_proxy": "127.0.0.1", "SOURCE_DATE_EPOCH": "1577836800"}


@dataclass
class Count:
    """What came of the attempts at a command."""

    tried: int = 0
    torn: list[str] = field(default_factory=list)  # other bytes than old or new ones
    left: list[str] = field(default_factory=list)  # temporary files, or processes
    failed: list[str] = field(default_factory=list)  # the run after it, or an exit code that means something else

    @property
    def good(self) -> bool:
        return not (self.torn or self.left or self.failed)

    def __str__(self) -> str:
        told = f"{self.tried} tried, {len(self.torn)} torn, {len(self.left)} left behind, {len(self.failed)} failed"
        return "\n    ".join([told, *self.torn, *self.left, *self.failed])


class Nursery:
    """Starts commands; see `tests.faults.nursery`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
        words = [sys.executable, "-W", "ignore", "-m", "tests.faults.nursery"]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT
        )
        assert self.process.stdout.readline() == "ready\n"

    def start(self, folder: Path, words: list[str], **more) -> int:
        """Start a command in a folder; the number of its process."""
        asked = {
            "folder": str(folder), "words": words, "env": SETTINGS,
            "stdout": str(self.place / "stdout"), "stderr": str(self.place / "stderr"), **more,
        }  # fmt: skip
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> int:
        """Wait for the command; its exit code."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def run(self, folder: Path, words: list[str], **more) -> int:
        """Run a command to its end."""
        pid = self.start(folder, words, **more)
        alarm = threading.Timer(PATIENCE, os.kill, (pid, signal.SIGKILL))
        alarm.start()
        code = self.end()
        alarm.cancel()
        wait_for_group(pid)
        return code

    @property
    def stderr(self) -> str:
        return (self.place / "stderr").read_text(encoding="utf-8")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@dataclass
class Bench:
    """A command with its old and its new outputs, and a folder in which it is disturbed."""

    name: str
    nursery: Nursery
    folder: Path
    inputs: Path
    address: str
    old: Tree = field(default_factory=dict)
    new: Tree = field(default_factory=dict)
    code: int = 0  # of a run that is not disturbed
    lasts: float = 0.0
    steps: dict[str, int] = field(default_factory=dict)  # how many renames, and renames or syncs, there are

    def words(self, seed: int) -> list[str]:
        given = {"inputs": self.inputs, "seed": seed, "address": self.address}
        return [word.format(**given) for word in CASES[self.name].split()]

    def prepare(self) -> None:
        """Run it with an old seed, and then with a new one, counting its steps."""
        self.folder.mkdir()
        told = self.nursery.place / "steps"
        assert self.nursery.run(self.folder, self.words(1)) in (0, 3), self.nursery.stderr
        self.old = tree(self.folder)
        told.unlink(missing_ok=True)
        began = time.monotonic()
        self.code = self.nursery.run(self.folder, self.words(2), aim={"calls": STEPS, "told": str(told)})
        self.lasts = time.monotonic() - began
        assert self.code in (0, 3), self.nursery.stderr
        seen = json.loads(told.read_text(encoding="utf-8"))
        self.steps = {"steps": sum(seen.values()), "renames": sum(seen[name] for name in RENAMES)}
        self.new = tree(self.folder)
        assert leftovers(self.folder) == []
        assert any(self.new[path] != self.old.get(path) for path in self.new)

    def make_way(self) -> None:
        """Take away what a download would refuse to replace."""
        if self.name in WHOLE and self.complete:
            shutil.rmtree(self.folder / WHOLE[self.name])

    def restore(self) -> None:
        """Put the old outputs back, and nothing else."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for path, content in self.old.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(content)
        self.folder.mkdir(exist_ok=True)

    # -- attempts -----------------------------------------------------------------------------------------------

    def kill(self, number: int, moment: float) -> int:
        """Start it and send a signal at a moment, counted in its usual time; the exit code."""
        self.make_way()
        pid = self.nursery.start(self.folder, self.words(2))
        time.sleep(moment * self.lasts)
        os.kill(pid, number)  # nobody has waited for it yet, so the number is still its own
        return self.ended(pid)

    def aim(self, number: int, nth: int, when: str, calls: list[str]) -> int:
        """Let it send itself a signal at one of its steps; the exit code."""
        self.make_way()
        aim = {"calls": calls, "told": str(self.nursery.place / "steps"), "nth": nth, "when": when, "signal": number}
        return self.ended(self.nursery.start(self.folder, self.words(2), aim=aim))

    def ended(self, pid: int) -> int:
        code = self.nursery.end()
        wait_for_group(pid)
        return code

    def judge(self, number: int, code: int, what: str, count: Count) -> None:
        """Count what an attempt left; after a kill temporary files may be there."""
        count.tried += 1
        found = tree(self.folder)
        for path, content in found.items():
            known = [meaning(path, held[path]) for held in (self.old, self.new) if path in held]
            if meaning(path, content) not in known and not path.startswith(CACHES):
                count.torn.append(f"{what}: {path} has {len(content):,} bytes, neither old nor new")
        count.torn += [f"{what}: {path} is gone" for path in self.old if path in self.new and path not in found]
        whole = WHOLE.get(self.name)
        if whole and (self.folder / whole).exists() and not self.complete:
            count.torn.append(f"{what}: {whole} is not whole")
        ends = {signal.SIGKILL: (-9, self.code), signal.SIGTERM: (128 + number, -number, self.code)}[number]
        if code not in ends:
            count.failed.append(f"{what}: exit code {code}: {self.nursery.stderr}")
        if number == signal.SIGTERM:
            paths = [path for path in leftovers(self.folder) if Path(path).name not in RESUMED]
            count.left += [f"{what}: {path}" for path in paths]

    @property
    def complete(self) -> bool:
        """Whether all new outputs are there."""
        found = tree(self.folder)
        wanted = {path: meaning(path, content) for path, content in self.new.items() if not path.startswith(CACHES)}
        return all(path in found and meaning(path, found[path]) == content for path, content in wanted.items())

    def judge_next(self, what: str, count: Count) -> None:
        """Run it again, and count what is not as if nothing had happened."""
        done = self.name in WHOLE and self.complete  # then a download is refused
        code = self.nursery.run(self.folder, self.words(2))
        if code != (2 if done else self.code):
            count.failed.append(f"{what}: the next run has exit code {code}: {self.nursery.stderr}")
        if not self.complete:
            count.torn.append(f"{what}: the next run has other outputs")
        count.left += [f"{what}, and after the next run: {path}" for path in leftovers(self.folder)]


def alive(group: int) -> bool:
    """Whether a process of the group of a command still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_group(group: int) -> None:
    """Wait until the processes of a command have seen that it has gone."""
    deadline = time.monotonic() + PATIENCE
    while alive(group):
        assert time.monotonic() < deadline, "processes are left behind"
        time.sleep(0.01)


def tree(folder: Path) -> Tree:
    """Every file but temporary ones."""
    files = (path for path in folder.rglob("*") if path.is_file())
    named = {str(path.relative_to(folder)): path for path in files}
    return {name: path.read_bytes() for name, path in named.items() if not temporary(name)}


def meaning(path: str, content: bytes) -> bytes:
    """What is compared: a page without its last section, which has times, and a manifest without what is to come."""
    if path.endswith(".md"):
        return content.rpartition(b"\n## ")[0]
    if path.endswith(".openloop.json"):
        return json.dumps(json.loads(content)["pictures"]).encode()
    return content


def temporary(name: str) -> bool:
    """Whether a path is, or is below, what only a running command may have."""
    return any(OURS.fullmatch(part) or re.fullmatch(r"\.coat\..*", part) for part in Path(name).parts)


def leftovers(folder: Path) -> list[str]:
    """What only a running command may have."""
    return sorted(
        name for name in (str(path.relative_to(folder)) for path in folder.rglob("*")) if temporary(Path(name).name)
    )


@contextmanager
def benches(place: Path, names: list[str]) -> Iterator[Iterator[Bench]]:
    """The commands of these names, each prepared when its turn comes."""
    inputs = place / "inputs"
    inputs.mkdir()
    audit_files(inputs)
    for seed in (1, 2):
        small_audit(NAMES, ("mae",), winner=seed == 1).to_json(inputs / f"audit{seed}.json")
    coat = zipped({f"coat/{path}": text for path, text in FILES["coat"].items()})
    nursery = Nursery(place)
    try:
        with served(coat=coat) as address:
            yield (prepared(name, nursery, place, address) for name in names)
    finally:
        nursery.close()


def prepared(name: str, nursery: Nursery, place: Path, address: str) -> Bench:
    bench = Bench(name, nursery, place / name.replace(" ", "_"), place / "inputs", address)
    bench.prepare()
    return bench


# -- a disk that is full -------------------------------------------------------------------------------------


@contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    """A folder that is a file system of 4 MB, where one can be mounted; else None."""
    folder = Path(tempfile.mkdtemp(dir=place))
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "openloop-faults", str(folder)]
    made = shutil.which("mount") is not None and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield folder if made else None
    finally:
        if made:
            subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leave no room on a disk."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return
