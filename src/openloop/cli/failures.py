"""How a command fails: every exception becomes one line with name, rule, value and remedy, and an exit code.

    0    it did what was asked
    1    something outside failed: a disk, the memory, a library; or openloop has a bug
    2    it was asked for what it cannot do
    130  Ctrl-C; 143 SIGTERM; 129 SIGHUP; 141 who read its output has gone

A command may have codes of its own, as `openloop audit` has 3. With OPENLOOP_TRACEBACK=1 the traceback comes first.
"""

from __future__ import annotations

import errno
import os
import re
import select
import signal
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import typer

from openloop.cli.options import FAILED, MISUSED, complain, say
from openloop.cli.signals import Terminated
from openloop.cli.voice import for_command
from openloop.errors import OpenloopError
from openloop.support.escaping import visible
from openloop.support.system_errors import FULL, system_error
from openloop.support.wording import cut

TOLD: tuple[type[Exception], ...] = (typer.Exit, typer.Abort, typer.BadParameter.__mro__[2])  # the last, ClickException
USAGE: Any = TOLD[2]
BY_SIGNAL, SIGINT, SIGPIPE = 128, 2, 13


@dataclass(frozen=True, slots=True)
class Failure:
    """The message of a failure, empty where there is nothing to say, and the exit code."""

    text: str
    code: int


# What the system refuses: the rule, the remedy, and the code. A fault in the path is the user's.
_FULL = ("the disk is full", "free some space, or write to another disk", FAILED)
_PRIVATE = ("may not be read or written", "change its permissions, or name another path", MISUSED)
REFUSED: dict[int, tuple[str, str, int]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("the disk quota is used up", "free some space, or write to another disk", FAILED),
    errno.EFBIG: ("is larger than a file may be here", "raise the limit (ulimit -f), or write to another disk", FAILED),
    errno.EIO: ("the device failed", "check the disk, or name a path on another", FAILED),
    errno.EACCES: _PRIVATE,
    errno.EPERM: _PRIVATE,
    errno.EROFS: ("is on a file system that is read only", "name another path", MISUSED),
    errno.ENOENT: ("does not exist", "check the path", MISUSED),
    errno.ENOTDIR: ("is below a file, not below a folder", "check the path", MISUSED),
    errno.EISDIR: ("is a folder", "name a file", MISUSED),
    errno.ELOOP: ("is a link that leads back to itself", "name the file", MISUSED),
    errno.ENAMETOOLONG: ("is longer than a name may be here", "name a shorter path", MISUSED),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n)", FAILED),
    errno.ENFILE: ("too many files are open on this system", "close other programs", FAILED),
}
OTHERWISE = ("the system refused", "try again, or name another path", FAILED)
MEMORY = "the work needs more than there is"


@contextmanager
def told(command: Callable[[], Any]) -> Generator[None]:
    """Report what ends this block in the words of the command, and exit with its code; typer reports its own errors."""
    try:
        yield
    except USAGE as error:  # typer quotes what was typed, and sends some of it to the terminal
        error.message = visible(error.message, lines=True)
        raise
    except (SystemExit, GeneratorExit, *TOLD):
        raise
    except BaseException as error:
        failure = failure_of(error, command())
        tell(failure)
        raise typer.Exit(failure.code) from error


def failure_of(error: BaseException, command: Any = None) -> Failure:
    """The line and the code for what ended a command."""
    for kind, told in RULES:
        if isinstance(error, kind) and (found := told(error)) is not None:
            return Failure(for_command(_lines_joined(found.text), command), found.code)
    return _bug(error)


def tell(failure: Failure) -> None:
    """Print the line on stderr, if stderr takes it; with a traceback where that is wanted."""
    with suppress(OSError):
        if os.environ.get("OPENLOOP_TRACEBACK") == "1":
            say(traceback.format_exc().rstrip(), err=True)
        if failure.text:
            complain(failure.text)
    if stdout_error() is not None:
        silence_stdout()


def stdout_error() -> OSError | None:
    """Why stdout cannot take what is still to be written, if it cannot."""
    try:
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def silence_stdout() -> None:
    """Discard what is left for stdout; otherwise the interpreter would complain at its end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# -- kinds of errors -----------------------------------------------------------------------------------------


def _openloop(error: OpenloopError) -> Failure:
    return Failure(str(error), MISUSED)


def _terminated(error: Terminated) -> Failure:
    return Failure(f"ended by {signal.Signals(error.number).name}", BY_SIGNAL + error.number)


def _interrupted(_error: KeyboardInterrupt) -> Failure:
    return Failure("interrupted", BY_SIGNAL + SIGINT)


def _memory(error: MemoryError) -> Failure:
    value = f" ({error})" if str(error) else ""
    text = f"memory: {MEMORY}{value}; pass stream=, or use fewer rows or models, or a machine with more memory."
    return Failure(text, FAILED)


def _system(error: BaseException) -> Failure | None:
    """An error of the system, or of a library that tells one."""
    refused = system_error(error)
    if refused is None:
        return None
    if refused.errno == errno.ENOMEM:
        return _memory(MemoryError(refused.strerror))
    if refused.errno == errno.EPIPE and _reader_has_gone():
        return Failure("", BY_SIGNAL + SIGPIPE)
    rule, remedy, code = REFUSED.get(refused.errno or 0, OTHERWISE)
    return Failure(f"{_name(refused)}: {rule} ({refused.strerror or refused}); {remedy}.", code)


def _reader_has_gone() -> bool:
    """Whether nothing reads stdout any more, as when `| head` has enough."""
    try:
        watch = select.poll()
        watch.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
    except (OSError, AttributeError):  # no such call, or no such stream
        return False


def _name(refused: OSError) -> str:
    """The file; what cannot be written and has no name is stdout, since `openloop.support.atomic` names the others."""
    if refused.filename is not None:
        return repr(os.fsdecode(refused.filename))
    if refused.errno == errno.EIO and stdout_error() is None:  # a device may also fail to read
        return "a file or device"
    return "stdout" if refused.errno in (*FULL, errno.EPIPE) else "a file or device"


def _undecodable(error: UnicodeDecodeError) -> Failure:
    byte = f"byte 0x{error.object[error.start]:02x} at {error.start:,}"
    return Failure(f"text: must be {error.encoding}, and {byte} is not; save the file as UTF-8.", MISUSED)


def _unencodable(error: UnicodeEncodeError) -> Failure:
    text = ascii(error.object[error.start : error.end])
    return Failure(f"text: {text} cannot be written as {error.encoding}; rename what has this name.", MISUSED)


def _package(error: ImportError) -> Failure:
    return Failure(f"package {error.name}: cannot be loaded ({error}); run openloop doctor.", FAILED)


def _of_library(error: BaseException) -> Failure | None:
    """Polars and safetensors have errors of their own, which openloop foresees where it can."""
    for base in type(error).__mro__:
        library = base.__module__.split(".")[0]
        if library in LIBRARIES:
            told = cut(f"{type(error).__name__}: {error}")
            text = f"{LIBRARIES[library]}: {library} cannot read or write it ({told})"
            return Failure(f"{text}; check the file, or save it again.", FAILED)
    return None


def _bug(error: BaseException) -> Failure:
    what = cut(_lines_joined(f"{type(error).__name__}: {error}"))
    return Failure(f"bug: {what}; please report it, with what OPENLOOP_TRACEBACK=1 shows.", FAILED)


def _lines_joined(text: str) -> str:
    """Lines, as those of a library's error, one after another; what else a terminal would obey, `complain` shows."""
    return re.sub(r"\s*\n\s*", " ", text.strip())


LIBRARIES = {"polars": "table", "safetensors": "model file", "narwhals": "table"}
RULES: list[tuple[type[BaseException], Callable[[Any], Failure | None]]] = [  # the first that knows an error
    (OpenloopError, _openloop),
    (Terminated, _terminated),
    (KeyboardInterrupt, _interrupted),
    (MemoryError, _memory),
    (Exception, _system),
    (UnicodeDecodeError, _undecodable),
    (UnicodeEncodeError, _unencodable),
    (ImportError, _package),
    (Exception, _of_library),
]
