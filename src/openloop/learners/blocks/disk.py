"""Blocks on disk: made once from a scan in batches, then opened as memory-mapped arrays when their turn comes.

Rows are read twice, whatever their number: users and items become codes, and each row goes to the file of its block,
which is then sorted by itself. Only the ids of users and items are in memory at once.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Vocabulary
from openloop.errors import DuplicateError, FormatError, InputError
from openloop.kernels.least_squares import Rows
from openloop.learners.blocks.building import BlockFacts, compressed, lists, taken, total_facts
from openloop.learners.blocks.costs import local_memory
from openloop.learners.blocks.memory import LocalBlocks
from openloop.learners.blocks.ratings import RatingsTable
from openloop.learners.blocks.sizes import BATCH, ROW_BYTES
from openloop.learners.blocks.user_blocks import Answer, Held, UserBlock, count_blocks
from openloop.learners.solvers.projected import Ask, Totals
from openloop.support.atomic import FilePath, write_text
from openloop.support.frames import plain_ids
from openloop.support.leftovers import clear, marked, sweep, work_folder
from openloop.support.memory import total_memory
from openloop.support.sizes import bytes_of, written

# A name that no other program gives a folder: folders with this name are used and deleted.
READY, CONTENTS = "openloop-blocks", "blocks.json"
PARTS = ("ptr", "item", "y", "w")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disk:
    """What blocks on disk are made with."""

    items: Array
    dtype: Any
    threads: int
    memory: int

    @classmethod
    def of(cls, items: Array, dtype: Any, threads: int, memory: Any) -> Disk:
        """Without a limit half of what the machine has."""
        limit = (total_memory() or 0) // 2 if memory is None else bytes_of("MF: memory", memory)
        if not limit:
            raise InputError('MF: this system does not say how much memory it has; pass memory=, such as "4 GiB".')
        return cls(items=items, dtype=np.dtype(dtype), threads=threads, memory=limit)

    @property
    def batch(self) -> int:
        """How many rows are dealt at a time: an eighth of the memory."""
        return int(np.clip(self.memory // (8 * ROW_BYTES), 10_000, BATCH))

    def check(self, who: str, users: int, factors: int) -> None:
        """Refuse a fit whose state takes more than the limit: vectors of items, ids of users, and a batch of rows."""
        vectors = len(self.items) * (factors + 1) * self.dtype.itemsize
        need = local_memory(vectors, users, self.threads, self.batch)
        if need > self.memory:
            raise InputError(
                f"{who}: {len(self.items):,} items × {factors} factors and {users:,} users need {written(need)}, and "
                f"memory= is {written(self.memory)}; give more, or use fewer factors or threads."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class DiskBlocks:
    """Blocks in a folder; those in a temporary one go with this object."""

    folder: Path  # all that was made: the blocks, or the folder around them where it was made too
    local: LocalBlocks
    users: Array  # ids, ascending
    edges: list[int]  # block k has users edges[k] : edges[k + 1]
    facts: BlockFacts

    def total(self, ask: Ask) -> Totals:
        """See `solvers.projected.Blocks`."""
        return self.local.total(ask)

    def map(self, answer: Answer, ask: Ask) -> Any:
        """A Polars frame of what `answer` says of each block."""
        return self.local.map(answer, ask)

    def beside(self, pairs: RatingsTable) -> LocalBlocks:
        """The same blocks with held-out pairs beside them, and with the items that only these have."""
        items, found = pairs.items_after(self.local.items), pairs.frame.to_native().collect()
        item = _find(items, plain_ids(found["i"]))
        ids = plain_ids(found["u"])
        code = Vocabulary(self.users).find(ids)
        order = np.argsort(code, kind="stable")
        cuts = np.searchsorted(code[order], [-1, *self.edges])
        parts, repeats = [], 0
        for k, (first, last) in enumerate(pairwise(cuts)):
            mine = order[first:last]
            if len(mine):
                users, user = np.unique(ids[mine], return_inverse=True)
                ptr, held, more = lists(user, len(users), item[mine])
                repeats += more
                block = None if k == 0 else self.local.parts[k - 1]  # the first are users without a row
                parts.append(partial(_beside, block, users, Held(ptr=ptr, item=held), self.local.parts[0]))
        if repeats:
            raise DuplicateError(
                f"{pairs.who}: {repeats:,} of {pairs.rows:,} rows repeat a (user, item) pair; keep one of each."
            )
        return replace(self.local, parts=parts, items=items)

    def release(self) -> None:
        """Delete the blocks."""
        clear(self.folder)


def _find(items: Array, ids: Array) -> Array:
    """The position of each id among items, all of which are there, in any order."""
    order = np.argsort(items, kind="stable")
    return order[np.searchsorted(items[order], ids)]


def _beside(block: Any, users: Array, held: Held, like: Any) -> UserBlock:
    own = like() if block is None else block()
    at = np.full(len(users), -1) if block is None else Vocabulary(own.users).find(users)
    return UserBlock(users=users, rows=taken(own.rows, at), held=held)


# -- making them ---------------------------------------------------------------------------------------------


def stored(table: RatingsTable, disk: Disk, folder: FilePath | None = None, factors: int = 0) -> DiskBlocks:
    """The blocks of a table in a folder: those that are there if they are of the same rows, or else made now."""
    home = _temporary() if folder is None else Path(folder).expanduser()
    new = folder is None or _created(table.who, home)
    try:
        mark, ready = _mark(table, disk), home / READY
        if not ready.exists():
            _make(table, disk, home, mark, factors)
        found = replace(_opened(table.who, ready, disk, mark), folder=home if new else ready)
        disk.check(table.who, len(found.users), factors)
        found.facts.check(table.who)
    except BaseException:
        if folder is None:
            clear(home)
        raise
    if folder is None:
        weakref.finalize(found, clear, home)
    return found


def _temporary() -> Path:
    """A folder of this process, which the next one deletes if this one is killed."""
    place = Path(tempfile.gettempdir())
    sweep(place)
    home = place / marked(READY)
    home.mkdir(mode=0o700)
    return home


def _created(who: str, home: Path) -> bool:
    """Whether the folder had to be made."""
    if not home.parent.is_dir():
        raise InputError(f"{who}: blocks={str(home)!r} is in no folder; create {str(home.parent)!r} first.")
    if home.exists() and not home.is_dir():
        raise InputError(f"{who}: blocks={str(home)!r} is a file; give the path of a folder.")
    new = not home.exists()
    home.mkdir(exist_ok=True)
    return new


def _mark(table: RatingsTable, disk: Disk) -> str:
    """A mark of all rows, whatever their order: their hashes, exclusive-or. Another version of Polars may hash anew."""
    import polars as pl

    hashes = pl.struct("u", "i", "y", "w").hash(0).bitwise_xor()
    content = table.frame.to_native().select(hashes).collect(engine="streaming").item()
    known = (content, table.rows, sorted(table.kinds.items()), disk.dtype.name)
    digest = hashlib.blake2b(repr(known).encode(), digest_size=16)
    digest.update(repr(disk.items.tolist()).encode())
    return digest.hexdigest()


def _make(table: RatingsTable, disk: Disk, home: Path, mark: str, factors: int) -> None:
    """Make the blocks aside, and then put them into their place, all at once."""
    with work_folder(home / READY) as place:
        making = place / READY
        making.mkdir()
        _fill(table, disk, making, mark, factors)
        making.rename(home / READY)


def _fill(table: RatingsTable, disk: Disk, making: Path, mark: str, factors: int) -> None:
    import polars as pl

    users = table.frame.to_native().group_by("u").len().collect(engine="streaming").sort("u")
    disk.check(table.who, len(users), factors)
    ends = np.concatenate([[0], np.cumsum(users["len"].to_numpy())])  # rows before each user
    count = count_blocks(table.rows, len(disk.items))
    cuts = np.searchsorted(ends, np.linspace(0, table.rows, count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [len(users)]])).astype(int)
    _deal(table, disk, making, users["u"], edges)
    facts = [_sort(making, k, first, last, disk.dtype) for k, (first, last) in enumerate(pairwise(edges.tolist()))]
    pl.DataFrame({"u": users["u"]}).write_parquet(making / "users.parquet")
    contents = {"mark": mark, "edges": edges.tolist(), "facts": [asdict(part) for part in facts]}
    write_text(making / CONTENTS, json.dumps(contents))


def _deal(table: RatingsTable, disk: Disk, making: Path, users: Any, edges: Array) -> None:
    """Each row, as codes, to the file of its block."""
    record = _record(disk.dtype)
    for batch in _batches(table, disk, making, users):
        rows: Any = np.empty(len(batch), record)
        for name in record.names or ():
            rows[name] = batch[name].to_numpy()
        block = np.searchsorted(edges, rows["user"], side="right") - 1
        rows = rows[np.argsort(block, kind="stable")]
        cuts = np.concatenate([[0], np.cumsum(np.bincount(block, minlength=len(edges) - 1))])
        for k in np.flatnonzero(np.diff(cuts)):
            with (making / f"{k}.rows").open("ab") as file:
                rows[cuts[k] : cuts[k + 1]].tofile(file)
    (making / "coded.parquet").unlink()


def _batches(table: RatingsTable, disk: Disk, making: Path, users: Any) -> Iterator[Any]:
    """The rows as codes, a batch at a time; Polars writes them in its own batches first."""
    import polars as pl

    known = pl.DataFrame({"u": users}).with_row_index("user").lazy()
    items = pl.DataFrame({"i": disk.items}, schema={"i": pl.String if disk.items.dtype == object else pl.Int64})
    coded = table.frame.to_native().join(known, on="u").join(items.with_row_index("item").lazy(), on="i", how="left")
    numbers = [pl.col("user").cast(pl.Int32), pl.col("item").cast(pl.Int32).fill_null(-1)]
    coded = coded.select(*numbers, "y", (pl.col("w") / table.heaviest).alias("w"))
    path = making / "coded.parquet"
    coded.sink_parquet(path, compression="lz4", row_group_size=BATCH // 16)
    for first in range(0, table.rows, disk.batch):
        yield pl.scan_parquet(path).slice(first, disk.batch).collect()


def _record(dtype: Any) -> Any:
    return np.dtype([("user", np.int32), ("item", np.int32), ("y", dtype), ("w", dtype)])


def _sort(making: Path, k: int, first: int, last: int, dtype: Any) -> BlockFacts:
    """One block's rows by user and item, as arrays that can be mapped."""
    path = making / f"{k}.rows"
    read: Any = np.fromfile(path, _record(dtype))
    rows, facts = compressed(read["user"] - first, last - first, read["item"], read["y"], read["w"])
    for name, values in zip(PARTS, (rows.ptr, rows.partner, rows.y, rows.w), strict=True):
        np.save(making / f"{k}.{name}.npy", values)
    path.unlink()
    return facts


# -- opening them --------------------------------------------------------------------------------------------


def _opened(who: str, ready: Path, disk: Disk, mark: str) -> DiskBlocks:
    import polars as pl

    try:
        contents = json.loads((ready / CONTENTS).read_text(encoding="utf-8"))
        users = plain_ids(pl.read_parquet(ready / "users.parquet")["u"])
        own, edges, facts = contents["mark"], contents["edges"], [BlockFacts(**part) for part in contents["facts"]]
    except (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
        raise FormatError(f"{who}: blocks in {str(ready)!r} cannot be read ({error}); delete the folder.") from error
    if own != mark:
        raise InputError(
            f"{who}: blocks in {str(ready)!r} are of other rows or numbers, or were made by another version of Polars; "
            "delete the folder, or give another as blocks=."
        )
    parts = [partial(_open, ready, k, users[first:last]) for k, (first, last) in enumerate(pairwise(edges))]
    local = LocalBlocks(parts=parts, threads=disk.threads, items=disk.items)
    return DiskBlocks(folder=ready, local=local, users=users, edges=edges, facts=total_facts(facts))


def _open(ready: Path, k: int, users: Array) -> UserBlock:
    """A block whose arrays are pages of files: memory that the system takes back when the block is done."""
    arrays = (np.asarray(np.load(ready / f"{k}.{name}.npy", mmap_mode="r")) for name in PARTS)
    return UserBlock(users=users, rows=Rows(*arrays))
