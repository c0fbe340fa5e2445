"""Archives to folders: zip, tar and gzip, nothing outside the folder, no links, no more than the disk holds."""

from __future__ import annotations

import errno
import gzip
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from openloop.data.contents import DENSEST, HARMLESS
from openloop.errors import FormatError, InputError, quoted

MOST = 2**36  # bytes that an archive may unpack to: 64 GiB
MOST_OF_ONE = 2**35  # bytes of one of its files: 32 GiB
MOST_FILES = 100_000
BY_HAND = "unpack it by hand if you trust it"
BLOCK = 2**20
ZIP, TAR, GZIP = (".zip",), (".tar", ".tar.gz", ".tgz", ".tar.bz2"), (".gz",)
BEGINNINGS = (b"PK\x03\x04", b"\x1f\x8b", b"BZh")  # of zip, gzip and bzip2
LITTER = ("__MACOSX", ".DS_Store")  # what an archive of macOS brings along

_BROKEN = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class _Member:
    """A file in an archive: its path, its size as the archive says, and how to open it."""

    name: str
    size: int | None
    source: Any


def unpack(archive: Path, name: str, folder: Path) -> None:
    """Unpack into an existing, empty folder; `name` says the format, and a folder around all of it is left out.

    A file of no archive's name is put there as it is.
    """
    try:
        with _opened(archive, name) as (members, reader):
            packed = archive.stat().st_size
            _refuse_bomb(name, members)
            _refuse_dense(name, sum(member.size or 0 for member in members), packed)
            _refuse_too_large(name, sum(member.size or 0 for member in members), _free(folder))
            for member in members:
                target = _inside(name, member.name, folder)
                with reader(member) as source:
                    _copy(name, member, source, target, packed)
    except _BROKEN as error:
        raise _unlike(archive, name, error) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a place before the file's beginning, where a damaged zip would read
            raise
        raise _unlike(archive, name, error) from error
    _lift(folder)


@contextmanager
def _opened(archive: Path, name: str) -> Generator[tuple[list[_Member], Any]]:
    """The members of an archive, and what opens one of them."""
    if name.endswith(ZIP):
        with zipfile.ZipFile(archive) as file:
            yield list(_zipped(name, file)), lambda member: file.open(member.source)
    elif name.endswith(TAR):
        with tarfile.open(archive) as file:
            yield list(_tarred(name, file)), lambda member: file.extractfile(member.source)
    elif name.endswith(GZIP):
        yield [_Member(name.removesuffix(".gz"), None, archive)], lambda _member: gzip.GzipFile(archive)
    else:
        _refuse_page(archive, name)
        yield [_Member(name, archive.stat().st_size, archive)], lambda _member: archive.open("rb")


def _zipped(name: str, file: zipfile.ZipFile) -> Iterator[_Member]:
    for entry in file.infolist():
        _refuse_link(name, entry.filename, link=stat.S_ISLNK(entry.external_attr >> 16))
        if entry.flag_bits & 1:
            raise FormatError(f"{name}: {quoted(entry.filename)} is encrypted; unpack it by hand.")
        if not entry.is_dir() and not _litter(entry.filename):
            yield _Member(entry.filename, entry.file_size, entry)


def _tarred(name: str, file: tarfile.TarFile) -> Iterator[_Member]:
    for entry in file.getmembers():
        _refuse_link(name, entry.name, link=not (entry.isfile() or entry.isdir()))
        if entry.isfile() and not _litter(entry.name):
            yield _Member(entry.name, entry.size, entry)


def _litter(path: str) -> bool:
    return any(part in LITTER or part.startswith("._") for part in PurePosixPath(path).parts)


def _refuse_link(name: str, path: str, *, link: bool) -> None:
    if link:
        raise FormatError(
            f"{name}: must hold files and folders only, and {quoted(path)} is a link or device; do not use it."
        )


def _inside(name: str, path: str, folder: Path) -> Path:
    """Where a member goes, which must lie below the folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or set("\\:\0") & set(path):
        raise FormatError(f"{name}: paths must stay inside its folder, got {quoted(path)}; do not use this archive.")
    return folder.joinpath(*parts)


def _copy(name: str, member: _Member, source: IO[bytes], target: Path, packed: int) -> None:
    """Copy a member; more than the size that its archive says, or than there is room for, is an error."""
    if target.exists() or target.is_symlink():
        raise FormatError(f"{name}: {quoted(member.name)} is in it twice; do not use this archive.")
    target.parent.mkdir(parents=True, exist_ok=True)
    free, copied = _free(target.parent), 0
    with target.open("xb") as copy:
        while block := source.read(BLOCK):
            copied += len(block)
            if member.size is None:
                _refuse_too_large(name, copied, free)
                _refuse_dense(name, copied, packed)
            elif copied > member.size:
                raise FormatError(f"{name}: {quoted(member.name)} holds more than its archive says; do not use it.")
            copy.write(block)


def _refuse_bomb(name: str, members: list[_Member]) -> None:
    """Refuse too many files, and one that is too large."""
    if len(members) > MOST_FILES:
        raise FormatError(f"{name}: has {len(members):,} files, and {MOST_FILES:,} are the most; {BY_HAND}.")
    for member in members:
        if (member.size or 0) > MOST_OF_ONE:
            raise FormatError(
                f"{name}: {quoted(member.name)} has {member.size:,} bytes, and {MOST_OF_ONE:,} are the most of one "
                f"file; {BY_HAND}."
            )


def _refuse_dense(name: str, size: int, packed: int) -> None:
    """Refuse what was made to fill the disk: zeros, or entries that share their bytes."""
    if size > max(HARMLESS, DENSEST * packed):
        raise FormatError(
            f"{name}: unpacks to at least {size:,} bytes, more than {DENSEST:,} times its own {packed:,}; {BY_HAND}."
        )


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _refuse_too_large(name: str, size: int, free: int) -> None:
    refuse_no_room(f"{name}: unpacks to at least", size, free, MOST, "use another disk or unpack it by hand")


def refuse_no_room(what: str, size: int, free: int, most: int, remedy: str) -> None:
    """Refuse more bytes than the disk has room for, or than are allowed at most."""
    if size > min(most, free):
        limit = f"the disk has room for {free:,}" if size > free else f"{most:,} are the most"
        raise InputError(f"{what} {size:,} bytes, and {limit}; {remedy}.")


def _refuse_page(file: Path, name: str) -> None:
    """Refuse a web page: a server often answers with one if a file has moved."""
    with file.open("rb") as opened:
        head = opened.read(256).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        raise FormatError(f"{name}: is an HTML page, not the file; open its address in a browser, and fetch it again.")


def _unlike(file: Path, name: str, error: Exception) -> FormatError:
    """An archive that begins as one is broken further on; anything else is not an archive."""
    with file.open("rb") as opened:
        head = opened.read(32)
    if isinstance(error, NotImplementedError):
        return FormatError(f"{name}: cannot be unpacked here ({error}); unpack it by hand.")
    if head.startswith(BEGINNINGS):
        return FormatError(f"{name}: cannot be unpacked, since it is truncated or damaged; fetch it again.")
    what = f"begins with {head!r}" if head else "is empty"
    return FormatError(f"{name}: cannot be unpacked, since it is not an archive: it {what}; fetch it again.")


def _lift(folder: Path) -> None:
    """Where all lies in one folder, that folder's contents take its place."""
    held = list(folder.iterdir())
    if len(held) != 1 or not held[0].is_dir():
        return
    inner = held[0].rename(folder / ".inner")
    for path in list(inner.iterdir()):
        path.rename(folder / path.name)
    inner.rmdir()


def names(paths: Iterable[Path], folder: Path) -> list[str]:
    """Paths relative to a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in paths)
