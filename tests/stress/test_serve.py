"""The server under load: killed while people are enrolled, and an hour's worth of requests."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from drawn.scenes import drawn_faces
from processes.live_server import live_server

from facepairs import Gallery

KILLS = int(os.environ.get("FACEPAIRS_STRESS_KILLS", "5"))
HOUR = 3600  # requests, one a second
WARM, GROWTH_MB = 600, 30


@pytest.mark.slow
def test_a_kill_loses_no_acknowledged_enrolment(tmp_path: Path) -> None:
    place = tmp_path / "known.gallery"
    photo = drawn_faces(tmp_path / "people", people=1, images=1)[0].read_bytes()
    chance = random.Random(1)
    acknowledged: list[str] = []
    for round_ in range(KILLS):
        with live_server("--gallery", place, "--rate", 0) as server:
            killed = threading.Event()

            def enrol(prefix: str, url: str, killed: threading.Event) -> None:
                number = 0
                while not killed.is_set():
                    name = f"{prefix} {number}"
                    # Bytes after the end of a JPEG make another file of the same photo.
                    files = {"photo": photo + name.encode()}
                    data = {"name": name, "any_quality": "true"}
                    try:
                        answer = httpx.post(f"{url}/v1/people", files=files, data=data, timeout=60)
                    except httpx.TransportError:
                        return
                    if answer.status_code == 200 and answer.json()["enrolled"] == 1:
                        acknowledged.append(name)
                    number += 1

            before = len(acknowledged)
            with ThreadPoolExecutor(4) as pool:
                clients = [pool.submit(enrol, f"P{round_} {client}", server.url, killed)
                           for client in range(4)]  # fmt: skip
                while len(acknowledged) < before + 4:
                    time.sleep(0.01)
                time.sleep(chance.random())
                server.process.kill()
                server.process.wait()
                killed.set()
            for one in clients:
                one.result()
        with Gallery(place, write=True) as gallery:
            assert gallery.check() == []
            kept = {person.name for person in gallery.people()}
        assert set(acknowledged) <= kept
        assert len(kept) <= len(acknowledged) + 4 * (round_ + 1)  # those in work at the kill


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_hours_worth_of_requests_leaves_memory_flat(tmp_path: Path) -> None:
    photos = [path.read_bytes() for path in drawn_faces(tmp_path / "people")]
    broken = photos[0][:500]
    with live_server("--gallery", tmp_path / "g", "--rate", 0) as server:
        process = psutil.Process(server.process.pid)
        sizes_mb = {}
        with httpx.Client(base_url=server.url, timeout=60) as client, ThreadPoolExecutor(4) as pool:

            def ask(number: int) -> int:
                left, right = (photos[(number * step) % len(photos)] for step in (1, 5))
                files = {"left": left, "right": broken if number % 10 == 3 else right}
                return client.post("/v1/verify", files=files).status_code

            for begin in range(0, HOUR, WARM):
                statuses = set(pool.map(ask, range(begin, begin + WARM)))
                assert statuses == {200, 422}
                sizes_mb[begin + WARM] = process.memory_info().rss >> 20
        assert process.num_fds() < 100
    assert sizes_mb[HOUR] - sizes_mb[WARM] < GROWTH_MB, sizes_mb
