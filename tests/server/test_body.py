"""Bodies become requests, and what is wrong with one is told by the right status."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.requests import Request

from facepairs.server import body
from facepairs.server.answers import RequestProblem
from facepairs.server.body import read_request
from facepairs.server.schema import DetectRequest, EmbedRequest, EnrolRequest, VerifyRequest

MOST = 1 << 20  # bytes of a photo
PHOTO = b"\xff\xd8\xff a photo"


CHUNK = 1 << 16


def read(
    kind, files=(), *, content=None, media="application/json", query=b"", wait_s=0.0,
    declared=None, sent=None, **data,
):  # fmt: skip
    """Read a form of files and fields, or a content; also return how many bytes were held.

    What was read of the body is added to the list `sent`.
    """
    if content is None:
        form = httpx.Request("POST", "http://x", files=list(files), data=data)
        media, content = form.headers["content-type"], form.read()

    async def chunks() -> AsyncIterator[dict[str, object]]:
        for at in range(0, len(content), CHUNK):
            await asyncio.sleep(wait_s)
            if sent is not None:
                sent.append(CHUNK)
            yield {"type": "http.request", "body": content[at : at + CHUNK], "more_body": True}
        yield {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "method": "POST", "path": "/", "query_string": query,
        "headers": [(b"content-type", media.encode())], "server": ("x", 80), "scheme": "http",
    }  # fmt: skip
    if declared is not None:
        scope["headers"].append((b"content-length", str(declared).encode()))
    held = []
    request = Request(scope, chunks().__anext__)
    value = asyncio.run(read_request(request, kind, MOST, held.append))
    return value, sum(held), len(content)


def refusal(*arguments, **options):
    with pytest.raises(RequestProblem) as caught:
        read(*arguments, **options)
    return caught.value.status_code, caught.value.kind, caught.value.detail


def file(name, content=PHOTO):
    return name, ("f.jpg", content)


def as_json(**values):
    photos = {k: base64.b64encode(v).decode() for k, v in values.items() if isinstance(v, bytes)}
    return json.dumps({**values, **photos}).encode()


def test_a_form_and_json_give_the_same_request():
    form, held, sent = read(
        VerifyRequest, [file("left"), file("right", b"2")], left_face="1", describe="true"
    )
    assert (form.left, form.right, form.left_face, form.describe) == (PHOTO, b"2", 1, True)
    assert held == sent
    content = as_json(left=PHOTO, right=b"2", left_face=1, describe=True)
    assert read(VerifyRequest, content=content) == (form, len(content), len(content))


def test_two_files_of_one_name_are_refused_where_one_is_taken_and_kept_where_several_are():
    two = [file("left", b"1"), file("left", b"2"), file("right")]
    assert refusal(VerifyRequest, two)[:2] == (422, "value")
    value, *_ = read(EmbedRequest, [file("image", b"1"), file("image", b"2")])
    assert value.image == [b"1", b"2"]
    assert read(EmbedRequest, [file("image", b"1")])[0].image == [b"1"]


@pytest.mark.parametrize("sizes", [(MOST + 1, 1), (1, MOST + 1), (1, MOST + 1, 1)])
def test_one_photo_that_is_too_large_is_refused_whatever_the_others_are(sizes):
    files = [file("photo", bytes(size)) for size in sizes]
    status, kind, detail = refusal(EnrolRequest, files, name="Ann")
    assert (status, kind, detail.split(":")[0]) == (413, "too_large", "photo")


def test_photos_of_just_the_largest_size_are_taken():
    value, *_ = read(EnrolRequest, [file("photo", bytes(MOST))] * 2, name="Ann")
    assert [len(photo) for photo in value.photo] == [MOST, MOST]


@pytest.mark.parametrize("more", [0, None])  # declared, or not
def test_a_body_may_have_three_times_the_bytes_of_a_photo(more):
    content = as_json(image=PHOTO)
    most = 3 * MOST
    whole = content + b" " * (most - len(content))
    declared = {} if more is None else {"declared": most}
    assert read(DetectRequest, content=whole, **declared)[0].image == PHOTO
    assert refusal(DetectRequest, content=whole + b" ", **declared)[:2] == (413, "too_large")
    assert refusal(DetectRequest, content=content, declared=most + 1)[:2] == (413, "too_large")


def test_a_body_that_is_too_large_is_read_so_that_the_client_hears_but_not_for_ever():
    sent = []
    assert refusal(DetectRequest, content=bytes(20 * MOST), sent=sent)[0] == 413
    assert sum(sent) == 4 * 3 * MOST + CHUNK


@pytest.mark.parametrize(
    ("files", "fields", "bytes_of_a_field", "status"),
    [
        (16, 0, 0, 200),
        (17, 0, 0, 422),  # more than the network takes at once
        (32, 0, 0, 422),
        (33, 0, 0, 400),  # more than a form may have
        (1, 32, 0, 422),
        (1, 33, 0, 400),
        (1, 1, 4096, 422),
        (1, 1, 4097, 400),
    ],
)
def test_a_form_has_limits(files, fields, bytes_of_a_field, status):
    sent = {f"field{number}": "x" * bytes_of_a_field for number in range(fields)}
    images = [file("image", b"1")] * files
    if status == 200:
        assert read(EmbedRequest, images, **sent)[0].image == [b"1"] * files
    else:
        assert refusal(EmbedRequest, images, **sent)[0] == status


@pytest.mark.parametrize("media", ["application/json", "multipart/form-data; boundary=b"])
def test_a_slow_body_is_called_slow(monkeypatch, media):
    monkeypatch.setattr(body, "READ_S", 0.05)
    assert refusal(DetectRequest, content=bytes(9), media=media, wait_s=5)[:2] == (408, "slow")


@pytest.mark.parametrize("media", ["", "text/plain", "image/jpeg"])
def test_a_body_of_another_type_is_refused(media):
    assert refusal(DetectRequest, content=PHOTO, media=media)[:2] == (415, "type")


def test_values_in_the_address_are_refused():
    refused = refusal(DetectRequest, content=as_json(image=PHOTO), query=b"crops=true")
    assert refused[:2] == (422, "value")


def test_base64_in_lines_is_called_by_its_name():
    text = base64.encodebytes(bytes(range(200))).decode()
    status, kind, detail = refusal(DetectRequest, content=json.dumps({"image": text}).encode())
    assert (status, kind) == (422, "value")
    assert "$.image" in detail
    assert "one line" in detail


@pytest.mark.parametrize(
    ("photo", "refused"), [(PHOTO, (422, "value")), (b"x" * 5000, (400, "multipart"))]
)
def test_a_photo_without_a_file_name_is_called_by_its_name(photo, refused):
    part = b'--b\r\nContent-Disposition: form-data; name="image"\r\n\r\n' + photo + b"\r\n--b--\r\n"
    *status, detail = refusal(DetectRequest, content=part, media="multipart/form-data; boundary=b")
    assert tuple(status) == refused
    assert "file name" in detail
