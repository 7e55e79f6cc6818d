"""Viser's server behind our door: it hears whoever has a token, this page alone, and what a page may say.

Viser asks for no token, checks no origin, and reads messages of 50 MB. It serves page and websocket by one
call of `websockets.asyncio.server.serve`, which is met here, in one place: with a socket that is bound
already, with our door before viser's own answer, and with connections that pass on what `heard` lets through.
A version of viser that would begin in another way is noticed, and nothing is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import socket
import time
from typing import Any, Literal
from unittest import mock

from palpo.app.streams.door import (
    BUSY,
    LACKING,
    OPEN,
    VIOLATION,
    foreign,
    quiet,
    refused,
    same,
    token_of,
    within,
)
from palpo.haptics.errors import HapticsError
from palpo.render.gl import RenderUnavailable

LEAD_VARIABLE, WATCH_VARIABLE = "PALPO_SERVE_TOKEN", "PALPO_SERVE_WATCH_TOKEN"
"""Variables that hold the tokens of who may drag and press, and of who may look; else each run makes them."""
PAGES = 64
"""Connections at a time."""
PATIENCE = 5.0
"""Seconds that a connection may take to open."""
PING, ANSWER = 1.0, 2.0
"""Seconds between two questions whether a page is there, and for its answer."""
POLICY = (
    "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; connect-src 'self' data: blob: ws://{0} ; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)
"""What the page may load and reach: this server, and what it holds itself."""

Role = Literal["lead", "watch"]


class Server:
    """Viser, served from a socket that is bound here. Raises RenderUnavailable without viser, and OSError.

    host, port: where it listens, port 0 for a free one. tokens: of each role, else of its variable.
    """

    def __init__(self, host: str, port: int, tokens: dict[Role, str] | None = None) -> None:
        given = tokens or {}
        self.tokens: dict[Role, str] = {
            "lead": token_of(LEAD_VARIABLE, given.get("lead")),
            "watch": token_of(WATCH_VARIABLE, given.get("watch")),
        }
        self._host, self._names = host, ("localhost", host)
        try:
            import viser
            import websockets.asyncio.server as server
        except ImportError as missing:
            raise RenderUnavailable(
                f"a page needs viser, which is not here ({missing}): pip install 'palpo[serve]'"
            ) from None
        self._socket = socket.create_server((host, port), family=_family(host), backlog=PAGES)
        self.port = int(self._socket.getsockname()[1])
        self._pages: set[Any] = set()
        # viser announces itself, without the token
        begun = mock.patch.object(server, "serve", self._serve(server))
        with begun, contextlib.redirect_stdout(io.StringIO()):
            self.viser = viser.ViserServer(host, self.port, verbose=False)
        self.viser.get_event_loop().set_exception_handler(lambda *_: None)
        self.viser.gui.configure_theme(show_logo=False, show_share_button=False)
        self.viser.gui.main_panel.dock_right()
        if not self._closed():
            self.stop()
            raise HapticsError(f"viser {viser.__version__} begins in an unknown way; nothing is served")

    def address(self, role: Role) -> str:
        """Of the page; whoever has it may do what the role may."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}/{self.tokens[role]}/"

    @property
    def told(self) -> tuple[str, ...]:
        """Sentences for whoever opened it: how others reach it, and what to mind."""
        return (
            f"open {self.address('lead')} in a browser to see the scene and drag its tool",
            f"open {self.address('watch')} to look on",
            *(() if within(self._host) else (OPEN,)),
        )

    def leaders(self) -> set[int]:
        """Numbers that viser gave to the pages that may lead, of those that are there now."""
        live = dict(self.viser._websock_server._live_connections)
        return {number for number, page in live.items() if getattr(page, "role", "") == "lead"}

    def stop(self) -> None:
        """Let everybody go."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.viser.stop()
        self._socket.close()

    # ---- at the door

    def _serve(self, server: Any) -> Any:
        """What viser calls in the place of `websockets.asyncio.server.serve`."""
        began = server.serve
        door, connection = self._admit, _connection(server.ServerConnection)

        def serve(handler: Any, _host: str, _port: int, *, process_request: Any, **settings: Any) -> Any:
            def admit(page: Any, request: Any) -> Any:
                answer = door(page, request) or process_request(page, request)
                if answer is not None:
                    for name, value in _headers(request).items():
                        answer.headers[name] = value
                return answer

            async def attend(page: Any) -> None:
                self._pages.add(page)
                try:
                    if len(self._pages) > PAGES:
                        await page.close(BUSY, f"{PAGES} pages are open already")
                    else:
                        await handler(page)
                finally:
                    self._pages.discard(page)

            from palpo.app.web.heard import LONGEST

            settings |= {
                "process_request": admit, "create_connection": connection, "max_size": LONGEST,
                "max_queue": 16, "open_timeout": PATIENCE, "ping_interval": PING,
                "ping_timeout": ANSWER, "close_timeout": 0.5, "server_header": None, "logger": quiet(),
            }  # fmt: skip
            return began(attend, sock=self._socket, **settings)

        return serve

    def _admit(self, page: Any, request: Any) -> Any:
        """Nothing, or the answer to somebody who may not come in; the path loses its token."""
        token, _, rest = request.path.removeprefix("/").partition("?")[0].partition("/")
        role = next((role for role, own in self.tokens.items() if same(token, own)), None)
        if role is None:
            return refused(page, LACKING)
        if why := foreign(request.headers, self._names):
            return refused(page, why)
        page.role, request.path = role, f"/{rest}"
        return None

    def _closed(self) -> bool:
        """Whether somebody without a token is refused."""
        host, port = self._socket.getsockname()[:2]
        asked = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        try:
            asked.request("GET", "/")
            return asked.getresponse().status == http.HTTPStatus.FORBIDDEN
        except OSError:
            return False
        finally:
            asked.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _headers(request: Any) -> dict[str, str]:
    """What a browser is told of an answer: it is not kept, told further, framed, or loaded from elsewhere."""
    return {
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": POLICY.format(request.headers.get("Host", "")),
    }


def _connection(plain: Any) -> Any:
    """A connection that passes on what may be said, and ends where something else is."""
    from palpo.app.web.heard import MOST_MESSAGES, heed

    class Page(plain):
        role = ""

        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            self._since, self._count = 0.0, 0

        async def recv(self, *arguments: Any, **settings: Any) -> Any:
            while True:
                raw = await super().recv(*arguments, **settings)
                now, self._count = time.monotonic(), self._count + 1
                if now - self._since > 1.0:
                    self._since, self._count = now, 1
                try:
                    if self._count > MOST_MESSAGES:
                        raise ValueError(f"more than {MOST_MESSAGES} messages in a second")
                    if heed(raw, self.role == "lead"):
                        return raw
                except ValueError as error:
                    await self.close(VIOLATION, str(error))
                await asyncio.sleep(0.0)

    return Page
