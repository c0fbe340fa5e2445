"""Where compiled kernels are kept; a folder that cannot be written or a damaged entry costs time alone.

numba keeps them where NUMBA_CACHE_DIR says, beside the source, or in the user's cache folder. Where none of these can
be written they go to a folder of the user's own among the temporary ones, and else they are compiled anew in each run.
An entry has its digest at its end, and one that lacks it is compiled again: numba reads it with pickle and runs the
machine code in it. This finds damage, not malice: anyone who can write there can run code as the user.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,  # pyright: ignore[reportPrivateUsage]
    _SourceFileBackedLocatorMixin,  # pyright: ignore[reportPrivateUsage]
)

SIZE = 32  # bytes of a digest
USUAL = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 (names to compare with)


def keep(kernel: Any) -> Any:
    """Let a compiled function be kept, if there is a place for it."""
    try:
        kernel._cache = KernelCache(kernel.py_func)  # noqa: SLF001 (as its enable_caching does)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
    return kernel


def private_folder() -> Path | None:
    """A temporary folder that no other user can write to, created if needed; None if there is none.

    Its name is predictable, so another user may have created it first, to have their code run.
    """
    try:
        folder = Path(tempfile.gettempdir()) / f"openloop-numba-{_user()}"
        if _is_nowhere(folder.parent) or _is_open(folder.parent):
            return None
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == _user() and not found.st_mode & 0o022
    return folder if own or os.name != "posix" else None


def _user() -> int:
    return os.getuid() if os.name == "posix" else 0  # elsewhere each user has temporary folders of their own


def _is_nowhere(folder: Path) -> bool:
    """Whether this is the working folder, in which Python puts temporary files where no other place takes them."""
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    return folder == Path.cwd() and str(folder) not in (*named, *USUAL)


def _is_open(folder: Path) -> bool:
    """Whether anyone may rename what is in a folder, as where /tmp lacks its sticky bit."""
    mode = folder.stat().st_mode
    return os.name == "posix" and bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


class _Temporary(_SourceFileBackedLocatorMixin, _CacheLocator):  # pyright: ignore[reportIncompatibleMethodOverride]
    """numba's manner to say where a function is kept: in the private folder."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file, self._lineno = py_file, py_func.__code__.co_firstlineno
        self._place = private_folder()

    def get_cache_path(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._place is None:
            raise FileNotFoundError("there is no temporary folder that is private to this user")  # numba looks further
        return str(self._place / self.get_suitable_cache_subpath(self._py_file))


class _Places(CompileResultCacheImpl):
    _locator_classes = [*CompileResultCacheImpl._locator_classes, _Temporary]  # noqa: RUF012, SLF001


class _Sealed(IndexDataCacheFile):
    """Files that end in the digest of what is before it."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Generator[Any]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue() + _digest(content.getvalue()))

    def _load_index(self) -> dict[Any, str]:
        return super()._load_index() if _whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        if not _whole(self._data_path(name)):
            raise FileNotFoundError(name)  # which numba takes for an entry that is not there
        return super()._load_data(name)  # pickle reads to its own end, which is before the digest


class KernelCache(FunctionCache):
    """numba's cache of a function, in one place more, and with sealed files."""

    _impl_class = _Places

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file = _Sealed(self.cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; where the disk is full or the folder has gone, it is used and not kept."""
        try:
            super().save_overload(sig, data)
        except OSError:
            self.disable()


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=SIZE).digest()


def _whole(path: str) -> bool:
    """Whether a file is there, can be read, and ends in its digest."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return False
    return _digest(content[:-SIZE]) == content[-SIZE:]
