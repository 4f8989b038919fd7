"""The server as an ASGI application."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from facepairs.errors import BadImage, FacepairsError
from facepairs.server.answers import answer, error_answer
from facepairs.server.body import PHOTOS_PER_BODY, read_request
from facepairs.server.guard import Access, Guard
from facepairs.server.metrics import Metrics
from facepairs.server.routes import ROUTES, ApiRoute, openapi
from facepairs.server.schema import StatusResult
from facepairs.server.service import Service
from facepairs.server.work import Work

STATIC = Path(__file__).parent / "static"
BODIES_HELD = 4  # of the largest size, at the same time
Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(service: Service, access: Access, threads: int) -> ASGIApp:
    """Return the application.

    Args:
        service: Answers the requests.
        access: Who may send them.
        threads: Number of requests processed at the same time.
    """
    work = Work(threads, BODIES_HELD * PHOTOS_PER_BODY * service.max_photo_bytes)
    metrics = Metrics(lambda: work.admitted, service.score_limits())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        work.close()

    async def failed(_: Request, error: Exception) -> Response:
        if isinstance(error, BadImage):
            metrics.refused_photos.labels(error.problem).inc()
        return error_answer(error)

    routes = [
        _route(route.method, route.path, _api_endpoint(route, service, work, metrics))
        for route in ROUTES
    ]
    description = openapi()
    plain: dict[str, Callable[[], Response]] = {
        "/": partial(FileResponse, STATIC / "index.html"),
        "/healthz": partial(answer, StatusResult("ok")),
        "/metrics": lambda: Response(metrics.text(), media_type="text/plain; version=0.0.4"),
        "/openapi.json": partial(JSONResponse, description),
    }
    routes += [_route("GET", path, _plain_endpoint(respond)) for path, respond in plain.items()]
    errors = (HTTPException, FacepairsError, ClientDisconnect, Exception)
    app: ASGIApp = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))],
        exception_handlers=dict.fromkeys(errors, failed),
        lifespan=lifespan,
    )
    app = Guard(app, access, metrics, routes)
    if access.origins:
        app = CORSMiddleware(
            app,
            allow_origins=access.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["retry-after", "x-request-id"],
        )
    return app


def _route(method: str, path: str, endpoint: Endpoint) -> Route:
    return Route(path.replace("{name}", "{name:path}"), endpoint, methods=[method])


def _plain_endpoint(respond: Callable[[], Response]) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return respond()

    return endpoint


def _api_endpoint(route: ApiRoute, service: Service, work: Work, metrics: Metrics) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        if route.takes is None:
            return answer(await work.run(partial(route.call, service)))
        work.check_room()  # before the body is read
        with work.holding() as hold:
            if request.path_params:
                value = msgspec.convert(request.path_params, route.takes)
            else:
                value = await read_request(request, route.takes, service.max_photo_bytes, hold)
            result = await work.run(partial(route.call, service, value))
            metrics.count(result)
            return answer(result)

    return endpoint
