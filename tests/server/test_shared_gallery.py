"""Two servers on one gallery in a database, which stops and comes back."""

from pathlib import Path

import httpx
import pytest
from drawn.scenes import drawn_faces
from processes.live_server import live_server

from facepairs import Gallery


@pytest.mark.slow
def test_servers_share_a_database_and_outlive_its_stop(postgres, tmp_path):
    url = postgres.new_database()
    photo = drawn_faces(tmp_path / "people", people=1, images=1)[0].read_bytes()
    with (
        live_server("--gallery", url) as writer,
        live_server("--gallery", url, "--read-only") as reader,
    ):

        def identify() -> httpx.Response:
            return httpx.post(f"{reader.url}/v1/identify", files={"image": photo}, timeout=60)

        empty = identify()
        assert (empty.status_code, empty.json()["error"]["kind"]) == (404, "not_enrolled")
        data = {"name": "Ann", "any_quality": "true"}
        added = httpx.post(f"{writer.url}/v1/people", files={"photo": photo}, data=data, timeout=60)
        assert added.json()["enrolled"] == 1
        assert identify().json()["name"] == "Ann"
        postgres.stop()
        try:
            for answer in (identify(), httpx.get(f"{reader.url}/readyz")):
                assert answer.status_code == 503
                assert answer.headers["retry-after"] == "1"
                error = answer.json()["error"]
                assert error["kind"] == "gallery"
                assert "postgres" not in error["message"]
            assert httpx.get(f"{reader.url}/healthz").status_code == 200
        finally:
            postgres.start()
        assert identify().json()["name"] == "Ann"
        assert httpx.get(f"{reader.url}/readyz").status_code == 200


def test_a_gallery_made_again_in_the_database_is_another(postgres, tmp_path):
    url = postgres.new_database()
    ann, bo = drawn_faces(tmp_path / "people", people=2, images=1)

    def enrol(name: str, photo: Path) -> None:
        with Gallery(url, write=True) as gallery:
            gallery.add(name, [photo], any_quality=True)

    enrol("Ann", ann)
    with (
        live_server("--gallery", url) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):

        def names() -> list[str | None]:
            files = [{"image": photo.read_bytes()} for photo in (ann, bo)]
            return [client.post("/v1/identify", files=one).json()["name"] for one in files]

        assert names() == ["Ann", None]
        postgres.run_sql("DROP SCHEMA facepairs CASCADE", url.partition("?")[0].rpartition("/")[2])
        enrol("Bo", bo)
        assert names() == [None, "Bo"]
        postgres.stop()
        postgres.start()
        assert client.get("/readyz").status_code == 200
        assert names() == [None, "Bo"]


def test_a_gallery_that_is_gone_acknowledges_nothing(tmp_path):
    place = tmp_path / "known.gallery"
    photo = drawn_faces(tmp_path / "people", people=1, images=1)[0].read_bytes()
    with (
        live_server("--gallery", place) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        assert client.get("/readyz").status_code == 200
        place.unlink()
        assert client.get("/readyz").status_code == 503
        data = {"name": "Ann", "any_quality": "true"}
        answer = client.post("/v1/people", files={"photo": photo}, data=data)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "gallery")
        assert str(place) not in answer.text
        assert client.get("/healthz").status_code == 200
