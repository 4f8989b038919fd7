"""Check host, rate, origin and token of every request, and log it.

A page of another site must not reach this server through a visitor's browser, neither by a name
that suddenly points to this machine (DNS rebinding) nor by sending forms.
"""

import hashlib
import hmac
import ipaddress
import logging
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facepairs.errors import BadConfig
from facepairs.server.answers import GONE, RequestProblem, error_answer
from facepairs.server.metrics import Metrics

logger = logging.getLogger("facepairs.server")

OPEN = ("/", "/openapi.json", "/healthz", "/readyz")  # need no token, as /static
UNLIMITED = ("/healthz", "/readyz")
HOST = re.compile(r"[\w.-]+")
SITE = re.compile(r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d+)?")
MOST_CLIENTS = 10_000
REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob: data:; media-src 'self' "
    "blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """Who may use the server.

    Attributes:
        token: The token that clients must send; "" for none.
        hosts: Host names that the server answers to, besides localhost and IP addresses.
        origins: Other sites whose pages may call it, such as `https://app.example`.
        per_second: Requests of one client address; 0 for any number.

    Raises:
        BadConfig: A host or an origin could never match a request, or the rate is not finite.
    """

    token: str = ""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    per_second: float = 0.0

    def __post_init__(self) -> None:
        for host in self.hosts:
            if not HOST.fullmatch(host):
                raise BadConfig(f"allow-host is {host}; give a host name, such as faces.example")
        for origin in self.origins:
            if not SITE.fullmatch(origin):
                raise BadConfig(
                    f"allow-origin is {origin}; give a scheme and a host without a path, such as "
                    "https://app.example"
                )
        if not 0 <= self.per_second < math.inf:
            raise BadConfig(f"rate is {self.per_second}; use a number from 0 (no limit)")


class RateLimit:
    """A token bucket per client, which holds the requests of one second."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        """Return whether a client may send a request now; if so, count it."""
        if not self._per_second:
            return True
        now, most = time.monotonic(), max(1.0, self._per_second)
        level, since = self._buckets.pop(client, (most, now))
        level = min(most, level + (now - since) * self._per_second)
        allowed = level >= 1
        self._buckets[client] = (level - allowed, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return allowed


class Guard:
    """ASGI middleware: checks, security headers, request ids, metrics and the log.

    Logs and metrics name the route of a request, even of a refused one. A log line has method,
    route, status, time and id; never a name, an address or a photo.
    """

    def __init__(
        self, app: ASGIApp, access: Access, metrics: Metrics, routes: Sequence[Route]
    ) -> None:
        self._app = app
        self._routes = routes
        self._access = access
        self._metrics = metrics
        self._rate = RateLimit(access.per_second)
        self._token = _digest(access.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        status = GONE

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered.setdefault(name, value)
                answered["x-request-id"] = request_id
            await send(message)

        try:
            try:
                self._check(scope, headers)
            except RequestProblem as error:
                await error_answer(error)(scope, receive, send_guarded)
            else:
                await self._app(scope, receive, send_guarded)
        except Exception:  # Starlette raises it again once it is answered
            logger.exception("a bug in facepairs, in request %s", request_id)
        finally:
            self._note(scope, status, time.perf_counter() - begun, request_id)

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = self._route_of(scope["path"])
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE") else "other"
        self._metrics.requests.labels(route, method, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        logger.info("%s %s %d %.0f ms id=%s", method, route, status, 1000 * seconds, request_id)

    def _route_of(self, path: str) -> str:
        """Return the path of the route, which has no names of people; "other" if unknown."""
        found = (route.path for route in self._routes if route.path_regex.match(path))
        route = next(found, "/static" if path.startswith("/static/") else "other")
        return route.replace(":path}", "}")

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Raise RequestProblem for a request that must not pass."""
        access, path = self._access, scope["path"]
        host = headers.get("host", "")
        if not _is_known_host(host, access.hosts):
            raise RequestProblem(
                400, "host", "unknown name of this server; start it with --allow-host NAME"
            )
        client = (scope.get("client") or ("",))[0]
        if path not in UNLIMITED and not self._rate.allows(client):
            raise RequestProblem(429, "rate", "too many requests; try again in a second")
        if scope["method"] not in ("GET", "HEAD") and not _is_same_site(headers, host, access):
            raise RequestProblem(403, "origin", "pages of other sites may not use this server")
        if not access.token or path in OPEN or path.startswith("/static/"):
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(_digest(token), self._token):
            raise RequestProblem(401, "token", "send the header Authorization: Bearer TOKEN")


def _digest(token: str) -> bytes:
    """Return a digest of the token, of the same length for every token."""
    return hashlib.sha256(token.strip().encode()).digest()


def _is_known_host(host: str, names: tuple[str, ...]) -> bool:
    """Return whether a host is an IP address, localhost or one of the names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name in names:
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same_site(headers: Headers, host: str, access: Access) -> bool:
    """Return whether a request comes from a page of this server or an allowed site, or no page."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and origin in access.origins:
        return True
    if origin is not None and origin.partition("://")[2] != host:
        return False
    return site in ("same-origin", "none")
