"""The routes of the API: one table, of which the server and `/openapi.json` are made."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, get_type_hints

import msgspec

from facepairs.server.service import Service


class ApiRoute:
    """A route and the method of `Service` that answers it, which also tells its types.

    Args:
        method: HTTP's.
        path: May have a parameter in braces, the request's only field.
        call: Takes a service and, unless the request has no body and no parameter, its type.
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
        """What it does, in a sentence."""
        return (self.call.__doc__ or "").partition("\n")[0]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.call)


ROUTES = (
    ApiRoute("GET", "/v1/model", Service.model),
    ApiRoute("POST", "/v1/verify", Service.verify),
    ApiRoute("POST", "/v1/verify-batch", Service.verify_batch),
    ApiRoute("POST", "/v1/detect", Service.detect),
    ApiRoute("POST", "/v1/embed", Service.embed),
    ApiRoute("POST", "/v1/compare", Service.compare),
    ApiRoute("GET", "/v1/people", Service.people),
    ApiRoute("POST", "/v1/people", Service.enrol),
    ApiRoute("DELETE", "/v1/people/{name}", Service.forget),
    ApiRoute("POST", "/v1/identify", Service.identify),
    ApiRoute("GET", "/readyz", Service.ready),
)
