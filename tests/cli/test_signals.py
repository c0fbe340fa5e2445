"""SIGTERM and SIGHUP raise once, in the main thread, and only while a command runs."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from openloop.cli import signals
from openloop.cli.signals import Terminated, ending_in_order


@pytest.fixture(autouse=True)
def usual():
    """Handlers as a program finds them."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in signals.SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_a_signal_is_an_exception_that_contexts_clean_up_after(number):
    cleaned = []

    def work():
        with ending_in_order():
            try:
                os.kill(os.getpid(), number)
                signal.pause()
            finally:
                cleaned.append(True)

    with pytest.raises(Terminated) as caught:
        work()
    assert caught.value.number == number
    assert cleaned
    assert isinstance(caught.value, KeyboardInterrupt)  # who keeps a checkpoint on Ctrl-C keeps one now


def test_the_second_of_two_signals_does_not_disturb_the_cleaning_up():
    cleaned = []

    def work():
        with ending_in_order():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                cleaned.append(True)

    with pytest.raises(Terminated):
        work()
    assert cleaned
    os.kill(os.getpid(), signal.SIGTERM)  # nor what the interpreter does at its end


def test_a_later_signal_raises_again_since_the_first_may_have_been_swallowed(monkeypatch):
    monkeypatch.setattr(signals, "AGAIN", 0)

    def work():
        with ending_in_order():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except Terminated:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Terminated):
        work()


def test_handlers_are_as_they_were_after_a_command():
    with ending_in_order():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    with ending_in_order():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_another_thread_leaves_signals_alone():
    seen = []

    def work():
        with ending_in_order():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
