"""The API's description for programs, `/openapi.json`, and for people, `/docs`."""

from html import escape
from typing import Any

import msgspec

from facepairs.server.routes import ROUTES, ApiRoute
from facepairs.server.schema import ErrorResult
from facepairs.version import __version__

ERRORS = {
    "400": "The request cannot be read.",
    "401": "The token is missing or wrong.",
    "403": "A page of another site asks, or the gallery is read-only.",
    "404": "No such route, no gallery, nobody of that name in it, or nobody at all.",
    "405": "The route takes another method.",
    "408": "The body came too slowly.",
    "413": "The body, a photo, or its number of pixels is too large.",
    "415": "The body is of another type, or a photo is no image of a known format.",
    "422": "A value or a photo cannot be used: no face, too small a face, damage.",
    "429": "Too many requests of this client; Retry-After says when to come back.",
    "503": "Too many requests at once, or no gallery now; Retry-After says when to come back.",
}
REF = "#/components/schemas/{name}"


def openapi() -> dict[str, Any]:
    """Return the API's description, OpenAPI 3.1."""
    types = [kind for route in ROUTES for kind in (route.takes, route.returns) if kind]
    _, components = msgspec.json.schema_components([*types, ErrorResult], ref_template=REF)
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "facepairs", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
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


def docs_page() -> str:
    """Return the description as an HTML page that loads nothing from elsewhere."""
    schemas = openapi()["components"]["schemas"]
    parts = []
    for route in ROUTES:
        parts.append(f"<h2><code>{route.method} {escape(route.path)}</code></h2>")
        parts.append(f"<p>{escape(route.summary)}</p>")
        for title, kind in (("Takes", route.takes), ("Returns", route.returns)):
            if kind:
                parts.append(f"<h3>{title}</h3>{_table(schemas[kind.__name__])}")
    errors = "".join(f"<tr><td>{status}<td>{text}" for status, text in ERRORS.items())
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>facepairs: API</title>"
        '<meta name=viewport content="width=device-width"><link rel=stylesheet '
        "href=static/style.css><main><h1>API</h1><p>Bodies are <code>multipart/form-data</code> or "
        "<code>application/json</code> with photos in base64. Also: <a href=openapi.json>"
        "openapi.json</a>, <a href=metrics>metrics</a>, <a href=healthz>healthz</a>.</p>"
        f'{"".join(parts)}<h2>Errors</h2><p><code>{{"error": {{"kind", "message"}}}}</code>'
        f"</p><table>{errors}</table></main></html>"
    )


def _table(schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(type_in_words(field))}"
        f"<td>{escape(meaning(field))}"
        for name, field in schema["properties"].items()
    )
    return f"<table>{rows}</table>"


def meaning(field: dict[str, Any]) -> str:
    """Return a field's description, which for a nullable one belongs to its type."""
    described = [field, *field.get("anyOf", ()), field.get("items", {})]
    return next((one["description"] for one in described if "description" in one), "")


def type_in_words(field: dict[str, Any]) -> str:
    """Return a field's type in a word or two."""
    if "anyOf" in field:
        return " or ".join(type_in_words(one) for one in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if field.get("type") == "array":
        return f"list of {type_in_words(field.get('items') or {})}"
    return str(field.get("type", "any"))
