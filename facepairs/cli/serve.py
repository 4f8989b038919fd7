"""`facepairs serve`: a web page and an HTTP API."""

import json as json_
import logging
import os
import sys
from typing import Annotated

from typer import Option

from facepairs.cli.shared.options import Bundle, Json
from facepairs.cli.shared.output import log, quiet
from facepairs.support.console import showing
from facepairs.support.extras import require_extra

EXAMPLE = """\b
Examples:
  facepairs serve
  facepairs serve --gallery known.gallery --port 8080
  FACEPAIRS_TOKEN=… facepairs serve --host 0.0.0.0 --allow-host faces.example
"""


def serve(
    bundle: Bundle = "default",
    gallery: Annotated[
        str | None,
        Option(
            metavar="GALLERY",
            help="File or database (postgresql://…) of known people, to identify and enrol.",
        ),
    ] = None,
    read_only: Annotated[bool, Option("--read-only", help="Never change the gallery.")] = False,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8756,
    token: Annotated[
        str,
        Option(
            envvar="FACEPAIRS_TOKEN",
            help="Token that clients must send as `Authorization: Bearer TOKEN`; required unless "
            "only this machine can reach the address, and with --allow-host. Other users can see "
            "options, so prefer the variable.",
            show_default=False,
        ),
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        Option(help="Host name of this server, besides localhost and IP addresses."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        Option(help="Site whose pages may use the API (CORS), such as https://app.example."),
    ] = None,
    rate: Annotated[
        float, Option(min=0, help="Requests per second of one client; 0 for no limit.")
    ] = 200,
    workers: Annotated[
        int | None,
        Option(min=1, help="Requests processed at the same time. [default: one per core]"),
    ] = None,
    max_mb: Annotated[int, Option(min=1, max=100, help="Size of the largest photo.")] = 10,
    json: Json = False,
) -> None:
    """Serve a web page and an HTTP API that compare photos.

    By default only this machine can reach them. Open the printed address, or send photos: curl -F
    left=@a.jpg -F right=@b.jpg http://127.0.0.1:8756/v1/verify; /openapi.json describes all routes.
    With --gallery, also enrols, identifies and forgets people. Photos are never stored or logged.
    Ctrl+C or SIGTERM finishes the requests in progress and stops. --json prints the first line as
    an object. Requires the serve extra: pip install '.[serve]'
    """
    require_extra("serve", "facepairs serve")
    from facepairs.server.guard import Access
    from facepairs.server.run import run_server

    if not quiet():
        _log_requests()

    def started(port: int) -> None:
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        values = {"url": url, "pid": os.getpid(), "model": bundle}
        print(json_.dumps(values) if json else f"serving at {url}; Ctrl+C stops", flush=True)

    hosts = tuple(name.lower() for name in allow_host or ())
    origins = tuple(site.lower() for site in allow_origin or ())
    with showing(log):  # no progress bar of a request that takes long
        run_server(
            bundle,
            gallery,
            host=host,
            port=port,
            access=Access(token, hosts, origins, rate),
            read_only=read_only,
            workers=workers,
            max_photo_bytes=max_mb * 2**20,
            started=started,
        )


def _log_requests() -> None:
    """Write a line per request on stderr."""
    logger = logging.getLogger("facepairs.server")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
