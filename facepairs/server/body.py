"""Read the body of a request into its type: multipart or JSON, within limits, in memory alone."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar, get_origin

import msgspec
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from facepairs.server.answers import RequestProblem
from facepairs.server.schema import MOST_PHOTOS

T = TypeVar("T", bound=msgspec.Struct)
PHOTOS_PER_BODY = 3  # of the largest size: two, in base64
MOST_FILES, MOST_FIELDS, FIELD_BYTES = 2 * MOST_PHOTOS, 32, 4096
AS_FILE = "send a photo as a file, with a file name: curl -F left=@photo.jpg"
READ_S = 30.0  # for a whole body
DISCARDED = 4  # bodies' worth that are read and thrown away, so that the client reads the answer


class _InMemoryParser(MultiPartParser):
    spool_max_size = sys.maxsize  # photos must not reach a disk; `_counted` limits them


async def read_request(
    request: Request, kind: type[T], max_photo_bytes: int, hold: Callable[[int], None]
) -> T:
    """Read and check a body.

    Args:
        request: The request; its headers name the content type.
        kind: The type to read.
        max_photo_bytes: Limit for each file in the body.
        hold: Called with the size of each chunk before it is kept.

    Raises:
        RequestProblem: The body is too large, too slow, or not of that type, or the URL has query
            parameters, which would be ignored.
    """
    if request.url.query:
        raise RequestProblem(422, "value", "send values in the body, not in the URL")
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    chunks = _counted(request, PHOTOS_PER_BODY * max_photo_bytes, hold)
    try:
        async with asyncio.timeout(READ_S):
            if media == "multipart/form-data":
                return _from_form(await _read_form(request, chunks), kind, max_photo_bytes)
            if media == "application/json":
                body = b"".join([chunk async for chunk in chunks])
                return _checked(msgspec.json.decode(body, type=kind), max_photo_bytes)
    except TimeoutError:
        raise RequestProblem(408, "slow", f"the body did not arrive within {READ_S:g} s") from None
    except msgspec.ValidationError as error:
        if "base64" in str(error):
            is_json = media == "application/json"
            advice = "send it in one line (base64 -w0), without blanks" if is_json else AS_FILE
            raise RequestProblem(422, "value", f"{error}; {advice}") from None
        fields = ", ".join(kind.__struct_fields__)
        raise RequestProblem(422, "value", f"{error}; the fields are {fields}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestProblem(400, "json", f"the body is not JSON: {error}") from None
    raise RequestProblem(415, "type", "send multipart/form-data or application/json")


async def _counted(
    request: Request, most: int, hold: Callable[[int], None]
) -> AsyncGenerator[bytes, None]:
    """Yield the body's chunks; a body that is too large is read to its end and refused."""
    declared = request.headers.get("content-length", "")
    received = 0
    refused = declared.isdecimal() and int(declared) > most
    async for chunk in request.stream():
        received += len(chunk)
        refused = refused or received > most
        if received > DISCARDED * most:
            break
        if not refused:
            hold(len(chunk))
            yield chunk
    if refused:
        raise RequestProblem(413, "too_large", f"the body has over {most >> 20} MB")


async def _read_form(request: Request, chunks: AsyncGenerator[bytes, None]) -> dict[str, list[Any]]:
    """Return the values of each field: text, or the bytes of a file."""
    parser = _InMemoryParser(
        request.headers,
        chunks,
        max_files=MOST_FILES,
        max_fields=MOST_FIELDS,
        max_part_size=FIELD_BYTES,
    )
    try:
        form = await parser.parse()
    except (MultiPartException, UnicodeDecodeError) as error:
        too_long = "exceeded maximum size" in str(error)
        text = f"a field has over {FIELD_BYTES >> 10} KB; {AS_FILE}" if too_long else str(error)
        raise RequestProblem(400, "multipart", text) from None
    values: dict[str, list[Any]] = {}
    for name, value in form.multi_items():
        content = await value.read() if isinstance(value, UploadFile) else value
        values.setdefault(name, []).append(content)
    await form.close()
    return values


def _from_form(values: dict[str, list[Any]], kind: type[T], max_photo_bytes: int) -> T:
    """Convert a form's fields to a type; a field with several values becomes a list."""
    several = {
        field.name
        for field in msgspec.structs.fields(kind)
        if get_origin(getattr(field.type, "__origin__", None)) is list  # Annotated[list[…], …]
    }
    given = {
        name: found if name in several or len(found) > 1 else found[0]
        for name, found in values.items()
    }
    return _checked(msgspec.convert(given, kind, strict=False), max_photo_bytes)


def _checked(request: T, max_photo_bytes: int) -> T:
    """Raise RequestProblem if a photo has too many bytes."""
    for name in request.__struct_fields__:
        value = getattr(request, name)
        photos = value if isinstance(value, list) else [value]
        if any(isinstance(photo, bytes) and len(photo) > max_photo_bytes for photo in photos):
            limit = f"over {max_photo_bytes >> 20} MB"
            raise RequestProblem(413, "too_large", f"{name}: {limit}; send a smaller photo")
    return request
