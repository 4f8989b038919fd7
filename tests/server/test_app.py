"""The application without a socket: its queue, its threads, its rate limit and its times."""

import asyncio
import io
import itertools
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import httpx
import pytest
from PIL import Image
from tiny.bundles import tiny_bundle

from facepairs.errors import NoFace
from facepairs.server import guard
from facepairs.server.app import build_app
from facepairs.server.guard import Access
from facepairs.server.service import Service
from facepairs.verification.verifier import Verifier

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def pair_bundle(tmp_path_factory):
    """A network that scores pairs, of whole images."""
    return tiny_bundle(tmp_path_factory.mktemp("pairs") / "bundle").folder


@pytest.fixture
def app(pair_bundle):
    return app_of(Verifier.load(pair_bundle))


def app_of(verifier, access=None):
    return build_app(Service(verifier, None, False, 1 << 20), access or Access(), 1)


def client_of(app, address=("127.0.0.1", 9)):
    transport = httpx.ASGITransport(app, client=address)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


def asked(app, ask: Callable[[httpx.AsyncClient], Awaitable[object]]):
    """Start the application, return what a function gets of it, and stop it."""

    async def run():
        events, told = asyncio.Queue(), asyncio.Queue()
        life = asyncio.create_task(app({"type": "lifespan", "state": {}}, events.get, told.put))
        await events.put({"type": "lifespan.startup"})
        await told.get()
        async with client_of(app) as client:
            got = await ask(client)
        await events.put({"type": "lifespan.shutdown"})
        await life
        return got

    return asyncio.run(run())


def test_a_full_queue_refuses_a_photo_before_it_is_sent(pair_bundle):
    go, sent = threading.Event(), []

    class Slow(Verifier):
        def detect(self, *_, **__):
            go.wait(20)
            raise NoFace("no face")

    async def content():
        sent.append(b"{")
        yield b"{"

    async def ask(client):
        photo = {"image": b"x"}
        jobs = [asyncio.create_task(client.post("/v1/detect", files=photo)) for _ in range(9)]
        async with asyncio.timeout(20):
            while "\nfacepairs_queue 9.0\n" not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.01)
        refused = await client.post("/v1/detect", content=content(), headers=JSON)
        go.set()
        return refused, await asyncio.gather(*jobs)

    refused, answers = asked(app_of(Slow.load(pair_bundle)), ask)
    assert (refused.status_code, sent) == (503, [])
    assert [answer.json()["error"]["kind"] for answer in answers] == ["no_face"] * 9


def test_four_bodies_of_the_largest_size_are_held_at_the_same_time(app):
    async def ask(client):
        go, held = asyncio.Event(), []

        async def large():
            yield bytes(3 << 20)
            held.append(1)
            await go.wait()

        async def post(content):
            return (await client.post("/v1/detect", content=content, headers=JSON)).status_code

        jobs = [asyncio.create_task(post(large())) for _ in range(4)]
        async with asyncio.timeout(20):
            while len(held) < len(jobs):
                await asyncio.sleep(0.001)
        refused = await post(b"{")
        go.set()
        return refused, await asyncio.gather(*jobs), await post(b"{")

    assert asked(app, ask) == (503, [400] * 4, 400)


def test_its_threads_end_when_it_stops(app):
    def workers():
        return [one for one in threading.enumerate() if one.name.startswith("facepairs-work")]

    before = workers()

    async def ask(client):
        return (await client.get("/readyz")).json(), len(workers()) - len(before)

    assert asked(app, ask) == ({"status": "ready"}, 1)
    assert workers() == before


def test_each_address_may_ask_as_often_as_the_rate_says(pair_bundle, monkeypatch):
    still = SimpleNamespace(monotonic=lambda: 0.0, perf_counter=time.perf_counter)
    monkeypatch.setattr(guard, "time", still)
    app = app_of(Verifier.load(pair_bundle), Access(per_second=2))
    requests = (
        (("10.0.0.1", 1), "/v1/model", 200),
        (("10.0.0.1", 2), "/v1/model", 200),
        (("10.0.0.1", 3), "/v1/model", 429),
        (("10.0.0.1", 3), "/healthz", 200),
        (("10.0.0.2", 1), "/v1/model", 200),
        (None, "/v1/model", 200),  # a socket without addresses
    )

    async def ask(_):
        for address, path, status in requests:
            async with client_of(app, address) as client:
                answer = await client.get(path)
            assert answer.status_code == status, (address, path)
            assert answer.headers.get("retry-after") == ("1" if status == 429 else None)

    asked(app, ask)


def test_the_log_and_the_metrics_tell_how_long_a_request_took(app, monkeypatch, caplog):
    monkeypatch.setattr(guard.logger, "propagate", True)
    monkeypatch.setattr(
        guard, "time", SimpleNamespace(perf_counter=itertools.count(1, 0.25).__next__)
    )

    async def ask(client):
        for path in ("/healthz", "/static/nothing"):
            await client.get(path, headers={"x-request-id": "an-id"})
        return await client.get("/metrics")

    with caplog.at_level(logging.INFO, "facepairs.server"):
        text = asked(app, ask).text
    assert caplog.messages[:2] == [
        "GET /healthz 200 250 ms id=an-id",
        "GET /static 404 250 ms id=an-id",
    ]
    assert 'facepairs_request_seconds_sum{route="/healthz"} 0.25' in text


def test_a_network_of_pairs_has_no_embeddings_to_send(app):
    photo = io.BytesIO()
    Image.new("RGB", (32, 32)).save(photo, "PNG")
    files = {"image": photo.getvalue()}
    answer = asked(app, lambda client: client.post("/v1/embed", files=files))
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "bundle")
