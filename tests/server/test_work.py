"""A short queue in front of some threads, and a bound on the bytes of bodies."""

import asyncio
import threading

import pytest

from facepairs.server.answers import RequestProblem
from facepairs.server.work import Work


def test_bodies_may_hold_as_many_bytes_as_allowed_and_no_more():
    work = Work(1, 100)
    with work.holding() as hold:
        hold(60)
        with work.holding() as other:
            other(40)
            with pytest.raises(RequestProblem) as caught:
                other(1)
            assert caught.value.status_code == 503
        hold(40)  # the other's bytes are free again
    with work.holding() as hold:
        hold(100)
        with pytest.raises(RequestProblem):
            hold(1)
    work.close()


def test_its_threads_end_with_it():
    before, work = set(threading.enumerate()), Work(2, 0)
    assert asyncio.run(work.run(lambda: 7)) == 7
    assert set(threading.enumerate()) > before
    work.close()
    assert set(threading.enumerate()) <= before


def test_as_many_requests_wait_as_the_queue_holds():
    work, go = Work(2, 0), threading.Event()
    most = 2 * (1 + 8)

    def answer(number: int) -> int:
        return number if go.wait(30) else -1

    async def ask() -> tuple[int, list[int]]:
        jobs = [
            asyncio.create_task(work.run(lambda n=n: n if go.wait(30) else -1)) for n in range(most)
        ]
        await asyncio.sleep(0)
        admitted = work.admitted
        with pytest.raises(RequestProblem) as caught:
            work.check_room()
        assert (caught.value.status_code, caught.value.kind) == (503, "overloaded")
        with pytest.raises(RequestProblem):
            await work.run(int)
        go.set()
        return admitted, await asyncio.gather(*jobs)

    assert asyncio.run(ask()) == (most, list(range(most)))
    assert work.admitted == 0
    work.check_room()
    work.close()
