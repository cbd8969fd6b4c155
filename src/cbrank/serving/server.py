"""The process: a socket, signals and the application."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from cbrank.kernels.threads import one_thread
from cbrank.serving import logs
from cbrank.serving.app import App
from cbrank.serving.connections import Connection
from cbrank.serving.guard import Guard
from cbrank.serving.limits import Limits
from cbrank.serving.memory import keep_less
from cbrank.serving.tokens import Tokens, exposure

if TYPE_CHECKING:
    from cbrank.serving.service import Service

log = logging.getLogger("cbrank.serving")

_DRAIN = 10  # seconds for open requests at the end
_GOODBYE = 0.5  # seconds for the others to close connections
# Seconds after which a thread that computes lets another go on: by default the loop would wait 5 ms for
# each turn while the writer learns.
_TURN = 0.0005


class _Server(uvicorn.Server):
    """A server that says when it can be reached, and lets others know that it ends."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready, self._ending = ready, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        cutting = asyncio.create_task(self._cut())
        await super().shutdown(sockets)
        cutting.cancel()

    async def _cut(self) -> None:
        """Cut connections that have their answers: TLS would wait for the other side's goodbye."""
        while True:
            await asyncio.sleep(_GOODBYE)
            for connection in [*self.server_state.connections]:
                protocol: Any = connection
                if protocol.cycle is None or protocol.cycle.response_complete:
                    protocol.transport.abort()


def run(
    open_service: Callable[[], "Service"],
    limits: Limits,
    *,
    host: str,
    port: int,
    tokens: Path | None,
    certificate: Path | None,
    key: Path | None,
    log_requests: bool,
) -> None:
    """Serve until a signal comes; then do what waits, and make a snapshot."""
    hangup = _Hangup()
    logs.begin()
    keep_less()
    who = None if tokens is None else _who(tokens)
    with _listening(host, port) as listening:
        service = open_service()
        told = logs.request if log_requests else None
        app = Guard(App(service, limits), who, limits, service.counts, told)
        config = uvicorn.Config(
            app, http=Connection.within(limits, service.counts), loop="auto", ws="none",
            lifespan="on", access_log=False, log_config=None, server_header=False,
            proxy_headers=False, timeout_keep_alive=75, timeout_graceful_shutdown=_DRAIN,
            ssl_certfile=certificate, ssl_keyfile=key,
            h11_max_incomplete_event_size=None,
        )  # fmt: skip

        def ready() -> None:
            url = _address(listening, secure=config.is_ssl)
            facts = {"url": url, "model": service.name, "events": service.counts.events}
            log.info("serving", extra={"facts": facts})
            hangup.reload_from_now(who)
            sys.setswitchinterval(_TURN)

        for number in (signal.SIGINT, signal.SIGTERM):  # which uvicorn raises again at the end
            signal.signal(number, lambda *_: None)
        server = _Server(config, ready, service.end_soon)
        with one_thread:  # the loop and the writer have the others
            server.run(sockets=[listening])
        if service.stopped is not None:
            raise OSError(service.stopped)
    log.info("ended", extra={"facts": {"events": service.counts.events}})


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound, before the model is read: a port in use is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OSError(f"{host}:{port} cannot be listened on: {error.strerror or error}.") from error
    return listening


def _address(listening: socket.socket, *, secure: bool) -> str:
    """Return the URL of a socket."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def _who(path: Path) -> Tokens:
    tokens = Tokens.open(path)
    if note := exposure(path):
        log.warning("tokens", extra={"facts": {"reason": note}})
    return tokens


class _Hangup:
    """What SIGHUP does: tokens are read again; while the service starts, as soon as it has started."""

    def __init__(self) -> None:
        self._tokens: Tokens | None = None
        self._came = False
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._handle)

    def reload_from_now(self, tokens: Tokens | None) -> None:
        self._tokens = tokens
        if self._came:
            self._handle()

    def _handle(self, *_: Any) -> None:
        self._came = True
        if self._tokens is None:
            return
        if fault := self._tokens.reload():
            log.error("tokens not read again", extra={"facts": {"reason": fault}})
        else:
            log.info("tokens read again", extra={"facts": {"tokens": len(self._tokens)}})
