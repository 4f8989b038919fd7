"""The routes of the API: one table, from which the server and its description are built."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, get_type_hints

import msgspec

from facepairs.server.schema import ErrorResult
from facepairs.server.service import Service
from facepairs.support.results import REF, json_schemas
from facepairs.version import __version__

ERRORS = {
    "400": "The request cannot be read.",
    "401": "The token is missing or wrong.",
    "403": "A page of another site asks, or the gallery is read-only.",
    "404": "Unknown route, no gallery, an empty one, or no person of this name.",
    "405": "The route takes another method.",
    "408": "The body came too slowly.",
    "413": "The body, a photo, or its number of pixels is too large.",
    "415": "The body has another type, or a photo is not an image of a known format.",
    "422": "A value or a photo cannot be used: no face, a face that is too small, a damaged file.",
    "429": "Too many requests of this client; Retry-After says when to try again.",
    "503": "Too many requests at once, or no gallery now; Retry-After says when to try again.",
}


class ApiRoute:
    """A route and the method of `Service` that answers it, whose annotations give the types.

    Args:
        method: The HTTP method.
        path: The path; it may have a parameter in braces, the request's only field.
        call: The method; it takes a request unless the route has neither body nor parameter.
    """

    def __init__(self, method: str, path: str, call: Callable[..., Any]) -> None:
        self.method, self.path, self.call = method, path, call

    @cached_property
    def takes(self) -> type[msgspec.Struct] | None:
        """The type of the request."""
        return self._hints.get("request")

    @property
    def returns(self) -> type[msgspec.Struct]:
        """The type of the answer."""
        kind: type[msgspec.Struct] = self._hints["return"]
        return kind

    @property
    def summary(self) -> str:
        """A description in one sentence."""
        return (self.call.__doc__ or "").partition("\n")[0]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.call)


ROUTES = (
    ApiRoute("GET", "/v1/model", Service.model),
    ApiRoute("POST", "/v1/verify", Service.verify),
    ApiRoute("POST", "/v1/detect", Service.detect),
    ApiRoute("POST", "/v1/embed", Service.embed),
    ApiRoute("GET", "/v1/people", Service.people),
    ApiRoute("POST", "/v1/people", Service.enrol),
    ApiRoute("DELETE", "/v1/people/{name}", Service.forget),
    ApiRoute("POST", "/v1/identify", Service.identify),
    ApiRoute("GET", "/readyz", Service.ready),
)


def openapi() -> dict[str, Any]:
    """Return the API's description, OpenAPI 3.1."""
    types = [kind for route in ROUTES for kind in (route.takes, route.returns) if kind]
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "facepairs", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": json_schemas([*types, ErrorResult]),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    errors = {
        status: {"description": text, "content": _json(ErrorResult)}
        for status, text in ERRORS.items()
    }
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.call.__name__,
        "responses": {"200": {"description": "Done.", "content": _json(route.returns)}, **errors},
    }
    if route.takes and "{" in route.path:
        parameter = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [parameter]
    elif route.takes:
        content = _json(route.takes)
        content["multipart/form-data"] = content["application/json"]
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _json(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REF.format(name=kind.__name__)}}}
