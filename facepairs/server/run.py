"""Run the server: open its socket, model and gallery; start and stop it."""

import contextlib
import errno
import ipaddress
import signal
import socket
from collections.abc import Callable

import uvicorn

from facepairs.errors import BadConfig
from facepairs.gallery.gallery import Gallery
from facepairs.server.app import build_app
from facepairs.server.guard import Access
from facepairs.server.service import Service
from facepairs.support.platform import cores
from facepairs.verification.verifier import Verifier

SHORTEST_TOKEN = 16
STOP_S, IDLE_S = 30, 30  # for requests in work when it stops; for a connection between requests
MOST_CONNECTIONS = 512
BACKLOG = 256


def run_server(
    model: str,
    gallery: str | None,
    *,
    host: str,
    port: int,
    access: Access,
    read_only: bool,
    workers: int | None,
    max_photo_bytes: int,
    started: Callable[[int], None],
) -> None:
    """Serve until SIGINT or SIGTERM; finish the requests in progress first.

    Args:
        model: A bundle, or the TOML of an external embedder.
        gallery: File or database of known people, created if it is missing; None for none.
        host: Address or name to listen on.
        port: The port; 0 for any free one.
        access: Who may use the server.
        read_only: Whether the gallery is never changed.
        workers: Number of requests processed at the same time; None for one per core.
        max_photo_bytes: The largest photo.
        started: Called with the port once the server accepts requests.

    Raises:
        BadConfig: The address cannot be used, or other machines can reach it without a token.
        BadBundle: The model cannot be used.
        BadData: The gallery cannot be used.
    """
    listener = _listen(host, port, access)
    with contextlib.closing(listener), contextlib.ExitStack() as stack:
        # One thread per call of the network: the requests in work share the cores.
        verifier = Verifier.load(model, threads=1)
        people = None
        if gallery is not None:
            people = stack.enter_context(Gallery(gallery, verifier, write=not read_only))
        service = Service(verifier, people, not read_only, max_photo_bytes)
        config = uvicorn.Config(
            build_app(service, access, workers or cores()),
            access_log=False,
            limit_concurrency=MOST_CONNECTIONS,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=STOP_S,
            timeout_keep_alive=IDLE_S,
        )
        server = _Server(config, lambda: started(listener.getsockname()[1]))
        # uvicorn repeats the signal that stopped it; without a handler that would kill us.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)
        server.run([listener])


class _Server(uvicorn.Server):
    """Calls back once it accepts connections."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell_started()


def _listen(host: str, port: int, access: Access) -> socket.socket:
    """Return a socket that listens at the address."""
    place = f"{host}:{port}"
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        own = ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
        # A name of its own means that a proxy lets other machines in.
        if (access.hosts or not own) and len(access.token) < SHORTEST_TOKEN:
            raise BadConfig(
                f"{place}: other machines can reach this server; set a token of at least "
                f"{SHORTEST_TOKEN} characters, or serve on 127.0.0.1 without other names",
                "token",
            )
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
        # Connections inherit it. Else an answer's second packet waits 40 ms for the client, because
        # asyncio sets it only where the socket names its protocol.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except socket.gaierror:
        raise BadConfig(f"{host}: no such host; give an address", "host") from None
    except (OSError, OverflowError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise BadConfig(
                f"{place}: the port is in use; stop the other server, or give another port", "port"
            ) from None
        why = getattr(error, "strerror", None) or error
        raise BadConfig(f"{place}: {why}; give another address", "host", "port") from None
