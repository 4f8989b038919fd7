"""A function runs beside the caller, and its result or error arrives."""

import threading

import pytest

from facepairs.verification.quick import Background


def test_it_runs_in_another_thread():
    started, go_on = threading.Event(), threading.Event()

    def work():
        started.set()
        go_on.wait()
        return threading.get_ident()

    running = Background(work)
    assert started.wait(10)
    go_on.set()
    assert running.result() != threading.get_ident()
    assert running.result() == running.result()


def test_an_error_is_raised_where_the_result_is_asked_for():
    running = Background(lambda: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            running.result()
