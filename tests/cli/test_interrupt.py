"""Ctrl-C stops at once, or waits, but is never lost."""

import signal

import pytest

from sortformer.cli.interrupt import ctrl_c


def test_it_stops_at_once():
    with pytest.raises(KeyboardInterrupt), ctrl_c():
        signal.raise_signal(signal.SIGINT)


def test_it_waits_while_held_and_is_not_forgotten():
    with ctrl_c() as interrupt:
        interrupt.hold(True)
        signal.raise_signal(signal.SIGINT)
        for held in (True, False):
            with pytest.raises(KeyboardInterrupt):
                interrupt.hold(held)


def test_it_stops_at_once_again_after_the_hold():
    with ctrl_c() as interrupt:
        interrupt.hold(True)
        interrupt.hold(False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_all_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
