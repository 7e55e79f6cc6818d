"""A run over a websocket: readings as JSON, and poses that lead its tool.

It listens on this machine unless told otherwise. A token in the address is asked for before anything is said,
pages of other origins are refused, and a message that is no pose closes its connection and changes nothing.
Somebody who reads too slowly misses readings.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from palpo.app.streams.door import BUSY, LACKING, OPEN, VIOLATION, quiet, refused, same, token_of, within
from palpo.app.streams.stream import Moment, Stream
from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import SentPose, pose_of

TOKEN_VARIABLE = "PALPO_STREAM_TOKEN"
"""Variable that holds the token; without it each run makes one."""
LONGEST = 512
"""Bytes of a message that is read."""
MOST_MESSAGES = 1000
"""Messages a second that one connection may send."""
LISTENERS = 8
"""Connections at a time."""
BEHIND = 1 << 16
"""Bytes that may wait for a slow reader before it misses readings."""
PATIENCE = 5.0
"""Seconds that a connection may take to open, to answer a ping, and that a stream may take to begin."""


class Sent(BaseModel):
    """A message: where the hand is to go, scene axes [m], how it is turned (w, x, y, z), and its buttons."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    position: tuple[FiniteFloat, FiniteFloat, FiniteFloat]
    orientation: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat] = (1.0, 0.0, 0.0, 0.0)
    buttons: int = 0


def decode(text: str | bytes) -> SentPose:
    """The pose of a message. Raises ValueError, in a sentence, for one that is none."""
    try:
        sent = Sent.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "message"
        raise ValueError(f"{where}: {first['msg']}"[:100]) from None
    return pose_of(sent.position, sent.orientation, sent.buttons)


def encode(reading: Moment) -> str:
    """The message of a reading; null for what is not there yet."""

    def numbers(values: Any) -> list[float] | None:
        listed = [float(value) for value in values]
        return listed if all(map(math.isfinite, listed)) else None

    contacts = zip(reading.points, reading.forces, reading.states, strict=True)
    return json.dumps({
        "tick": reading.tick,
        "time": reading.seconds,
        "position": numbers(reading.position),
        "orientation": numbers(reading.orientation),
        "tool": numbers(reading.held),
        "force": numbers(reading.force),
        "contacts": [
            {"point": numbers(point), "force": numbers(force), "state": state}
            for point, force, state in contacts
        ],
        "led": reading.led,
    })  # fmt: skip


class Websocket(Stream):
    """A server in a thread of its own.

    host, port: where it listens, port 0 for a free one. token: None for that of TOKEN_VARIABLE, or a new one.
    origins: of pages that may connect; programs that are no page always may.
    """

    def __init__(
        self,
        rate: float,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        super().__init__(rate, "a websocket")
        self.token = token_of(TOKEN_VARIABLE, token)
        self._host, self._port = host, port
        self._origins: list[Any] = [None, *origins]
        self._listeners: set[Any] = set()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._begun, self._failed = threading.Event(), ""
        self._thread = threading.Thread(target=self._run, name="websocket", daemon=True)

    @property
    def address(self) -> str:
        """Where others connect, once it is open; whoever has it may lead."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"ws://{host}:{self._port}/{self.token}"

    @property
    def told(self) -> tuple[str, ...]:
        return (f"listening at {self.address}", *(() if within(self._host) else (OPEN,)))

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._begun.wait(PATIENCE) or self._failed:
            raise HapticsError(self._failed or f"{self._host}: no socket for {PATIENCE:g} s")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join(PATIENCE)

    def publish(self, reading: Moment) -> None:
        if self._listeners:
            self._loop.call_soon_threadsafe(self._spread, encode(reading))

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except ImportError:
            self._failed = "a websocket needs websockets: pip install 'palpo[stream]'"
        except OSError as error:
            self._failed = f"{self._host}:{self._port} cannot be used ({error.strerror or error})"
        finally:
            self._loop.close()
            self._begun.set()

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        async with serve(
            self._attend, self._host, self._port, origins=self._origins, process_request=self._admit,
            compression=None, max_size=LONGEST, max_queue=4, open_timeout=PATIENCE, ping_interval=PATIENCE,
            ping_timeout=PATIENCE, close_timeout=0.5, server_header=None, logger=quiet(),
        ) as server:  # fmt: skip
            self._port = next(iter(server.sockets)).getsockname()[1]
            self._begun.set()
            await self._over.wait()

    def _admit(self, connection: Any, request: Any) -> Any:
        """Nothing, or the answer to somebody without the token."""
        there = same(request.path.removeprefix("/"), self.token)
        return None if there else refused(connection, LACKING)

    async def _attend(self, connection: Any) -> None:
        """Hear somebody until the connection ends."""
        if len(self._listeners) >= LISTENERS:
            await connection.close(BUSY, f"{LISTENERS} are connected already")
            return
        self._listeners.add(connection)
        try:
            since, count = time.monotonic(), 0
            async for text in connection:
                now, count = time.monotonic(), count + 1
                if now - since > 1.0:
                    since, count = now, 1
                try:
                    if count > MOST_MESSAGES:
                        raise ValueError(f"more than {MOST_MESSAGES} messages in a second")
                    self.guide.put(decode(text), connection)
                except ValueError as error:
                    await connection.close(VIOLATION, str(error))
        finally:
            self._listeners.discard(connection)

    def _spread(self, text: str) -> None:
        from websockets.asyncio.server import broadcast

        broadcast([c for c in self._listeners if c.transport.get_write_buffer_size() < BEHIND], text)
