"""Errors of the operating system by number and file, also where another library words them differently."""

from __future__ import annotations

import errno
import os
import re

IN_WORDS = re.compile(r"\(os error ([0-9]+)\)(?:: (.+?)(?: \(set POLARS_VERBOSE=1.*)?$)?", re.MULTILINE)  # as Rust does
CUT_SHORT = re.compile(r"[0-9]+ requested and [0-9]+ written")  # as numpy does
LOOP = re.compile(r"Symlink loop from '(.*)'")  # as pathlib did before Python 3.13

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # no more can be written


def system_error(error: BaseException) -> OSError | None:
    """What the operating system refused, if that is what an error tells; with its number, and its file if it has one.

    Polars and safetensors say "(os error 28)" in errors of their own, and numpy how many values were written.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error
    text = str(error)
    if (found := IN_WORDS.search(text)) is not None:
        return _told(int(found[1]), found[2])
    if (found := LOOP.fullmatch(text)) is not None:
        return _told(errno.ELOOP, found[1])
    if isinstance(error, OSError):
        return _told(errno.ENOSPC, None) if CUT_SHORT.search(text) else error
    return None


def _told(number: int, name: str | None) -> OSError:
    return OSError(number, os.strerror(number)) if name is None else OSError(number, os.strerror(number), name)
