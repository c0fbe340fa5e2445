"""SIGTERM and SIGHUP end a command as Ctrl-C does: by an exception in its main thread, so that it cleans up."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
AGAIN = 5.0  # seconds in which a signal is the same one: `timeout` sends it to a process and then to its group


class Terminated(KeyboardInterrupt):
    """The system asks this process to end; code that handles Ctrl-C handles this too."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_in_order() -> Generator[None]:
    """Signals to end raise `Terminated` here; one that was ignored before (`nohup`) stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = float("-inf")

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > AGAIN:
            raise Terminated(number)

    usual = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in usual if last == float("-inf") else ():  # while a process ends, none ends it halfway
            signal.signal(number, signal.SIG_DFL)
