"""A signal ends a training after its epoch, a second one at once, and handlers are put back."""

import signal
import threading

import pytest

import facepairs
from facepairs.training.stop import stop_on_signal

NUMBERS = (signal.SIGINT, signal.SIGTERM)


def test_the_first_signal_asks_to_stop_and_the_second_one_interrupts():
    before, lines = [signal.getsignal(number) for number in NUMBERS], []
    with facepairs.showing(log=lines.append), stop_on_signal() as outer:
        with stop_on_signal() as inner:
            assert (outer(), inner()) == (False, False)
            signal.raise_signal(signal.SIGTERM)
            assert (outer(), inner()) == (True, True)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert [line.partition(";")[0] for line in lines] == ["stopping after this epoch"]
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_outside_the_main_thread_nothing_is_handled():
    found = []

    def work():
        with stop_on_signal() as should_stop:
            found.append((should_stop(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGINT))]
