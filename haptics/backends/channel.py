"""How the two ends of a remote hand find each other, get ready, and part: before and after the servos speak.

Both ends say hello again and again: who they are, a nonce of their own, the other's as they heard it, the
hand's largest force, and whether they are ready; with an HMAC-SHA256 under the key that both were given. Who
says this end's nonce has heard it now, and has the key: nothing that was recorded before does. The scene
answers whoever has the key and is led by the first that answers in turn. The servos' own datagrams are sealed
by keys of both nonces (palpo.haptics.backends.sealing).

The hand begins once it and the scene are ready, and the scene once it hears the hand's servo: so neither
waits for the other's compiler with a loop that runs. A thread says hello until then.
"""

import hmac
import math
import os
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from palpo.haptics.backends.sealing import direction_key, sealing_functions, secret_of
from palpo.haptics.backends.udp import (
    SIZE,
    compile_line,
    make_line,
    scene_link_data,
    scene_link_read,
    scene_link_write,
    send_datagram,
    take_datagram,
)
from palpo.haptics.errors import HapticsError
from palpo.haptics.polled import PolledThread
from palpo.haptics.remote import SILENCE
from palpo.haptics.servo import Servo

HAND, SCENE = b"hand ", b"scene"
CALLING = 0.05
"""Seconds between two hellos."""
PATIENCE = 10.0
"""Seconds for which a busy end may say nothing before its servo runs."""
STRONGEST = 1000.0
"""Largest force that a hand may name [N]."""
FAREWELLS = 5
"""As one may be lost."""
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
_HELLO = struct.Struct("<8s5s16s16sdBB")
_MARK = b"palpo/1\n"
_PROOF = 32
_NOBODY = bytes(16)


def endpoint(text: str, host: str = "127.0.0.1") -> tuple[str, int]:
    """HOST:PORT or PORT. Raises HapticsError for what is neither."""
    named, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise HapticsError(f"{text}: give PORT or HOST:PORT, with a port from 1 to 65535")
    return named or host, int(port)


class Channel:
    """One end of a remote hand; a context manager that says farewell.

    Raises HapticsError where there can be none.
    """

    def __init__(
        self, role: bytes, key: str, largest: float = 0.0, resolution: float = 0.0, dt: float = 1e-3
    ) -> None:
        """role: HAND or SCENE; key: as people write it; largest: force of this end's hand [N].

        resolution: the count of its encoder [m]; dt: period of this end's servo [s].
        """
        if os.name != "posix":
            raise HapticsError("a remote hand needs the sockets of Linux or macOS")
        self._secret, self._role, self._own = secret_of(key), role, secrets.token_bytes(16)
        functions = sealing_functions()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self.line = make_line(self._socket.fileno(), largest, resolution, dt, functions)
        self.largest = largest
        """Force that the hand may be given [N], of whichever end it is; known once it is `joined`."""
        self._dt = dt
        self._peer: tuple[str, int] | None = None
        self._nonce = _NOBODY
        self._heard, self._begun = time.monotonic(), math.inf
        self._prepared = self._left = self._answered = False
        self._joined, self._ready, self._over = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._keep, name="remote hand", daemon=True)

    def listen(self, host: str, port: int) -> int:
        """Let a hand call here, 0 for any free port; returns the port. Raises HapticsError if it cannot."""
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise HapticsError(f"no hand can call at {host}:{port}: {error.strerror}") from None
        compile_line()
        self._thread.start()
        return int(self._socket.getsockname()[1])

    def call(self, host: str, port: int) -> None:
        """Call a scene there. Raises HapticsError where there is no host of that name."""
        try:
            self._peer = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_DGRAM)[0][4][:2]  # type: ignore[assignment]
        except OSError as error:
            raise HapticsError(f"{host}:{port} cannot be reached: {error.strerror}") from None
        compile_line()
        self._thread.start()

    def join(self, patience: float, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Until both ends know each other; False if `patience` [s] ran out or nobody waits any more."""
        end = time.monotonic() + patience
        while not self._joined.wait(CALLING):
            if time.monotonic() > end or given_up():
                return False
        return True

    def begin(self, given_up: Callable[[], bool] = lambda: False) -> bool:
        """This end has compiled: until its servo may start. False if the other has gone, or nobody waits."""
        self._prepared = True
        while not self._ready.wait(CALLING):
            if self.gone or given_up():
                return False
        self._over.set()
        self._thread.join()
        assert self._peer is not None
        self._socket.connect(self._peer)
        self._begun = time.monotonic()
        return True

    @property
    def gone(self) -> bool:
        """Whether the other end has said farewell, or is silent for too long."""
        words = self.line.end.words[0]
        if self._left or words["left"]:
            return True
        if self._begun == math.inf:
            return self._joined.is_set() and time.monotonic() - self._heard > PATIENCE
        if not words["newest"]:
            return time.monotonic() - self._begun > PATIENCE
        return bool(words["quiet"] * self._dt > SILENCE)

    @property
    def lost(self) -> str:
        """What became of the other end, in words."""
        if self._left or self.line.end.words["left"][0]:
            return "the other end of the remote hand has ended"
        seconds = SILENCE if self.line.end.words["newest"][0] else PATIENCE
        return f"the other end of the remote hand has not been heard for {seconds:g} s"

    def close(self) -> None:
        """Say farewell, more than once as one may be lost, and close."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._socket.fileno() < 0:
            return
        for _ in range(FAREWELLS):
            if self._begun < math.inf:
                send_datagram(self.line, self.line.end.position, UPRIGHT, 0, True)
            elif self._joined.is_set() and self._peer is not None:
                self._say(self._peer, self._nonce, leaving=True)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- hellos, by the thread

    def _keep(self) -> None:
        due = 0.0
        while not self._over.is_set():
            select.select([self._socket], [], [], CALLING)
            for _ in range(1000):
                try:
                    data, sender = self._socket.recvfrom(SIZE + 1 + _HELLO.size + _PROOF)
                except BlockingIOError:
                    break
                except OSError:  # somebody's port was shut: nothing of ours
                    continue
                self._hear(data, sender)
            if time.monotonic() >= due and self._peer is not None:
                due = time.monotonic() + CALLING
                self._say(self._peer, self._nonce)

    def _say(self, to: tuple[str, int], nonce: bytes, leaving: bool = False) -> None:
        told = _HELLO.pack(_MARK, self._role, self._own, nonce, self.largest, self._prepared, leaving)
        try:
            self._socket.sendto(told + hmac.digest(self._secret, told, "sha256"), to)
        except OSError:  # nobody there yet
            return

    def _hear(self, data: bytes, sender: Any) -> None:
        if len(data) == SIZE:
            self._hear_servo(data, sender)
            return
        told, proof = data[: _HELLO.size], data[_HELLO.size :]
        if len(data) != _HELLO.size + _PROOF:
            return
        if not hmac.compare_digest(proof, hmac.digest(self._secret, told, "sha256")):
            return
        mark, role, theirs, ours, largest, prepared, leaving = _HELLO.unpack(told)
        if mark != _MARK or role == self._role or (self._joined.is_set() and theirs != self._nonce):
            return
        if ours != self._own:
            # it has the key, but may be a recording: whoever answers this one is there
            if self._role == SCENE and ours == _NOBODY and not self._joined.is_set():
                self._say(sender, theirs)
            return
        if self._role == SCENE and not 0.0 < largest <= STRONGEST:
            return
        if not self._joined.is_set():
            self._meet(theirs, sender, largest)
        self._heard, self._left = time.monotonic(), self._left or bool(leaving)
        # the hand begins once both are ready, and the scene once the hand has begun
        if self._role == HAND and prepared and self._prepared:
            self._ready.set()

    def _meet(self, theirs: bytes, sender: Any, largest: float) -> None:
        self._nonce, self._peer = theirs, sender
        hand, scene = (theirs, self._own) if self._role == SCENE else (self._own, theirs)
        other = HAND if self._role == SCENE else SCENE
        for k, who in enumerate((other, self._role)):
            self.line.keys[k] = direction_key(self._secret, hand, scene, who)
        if self._role == SCENE:
            self.largest = self.line.end.largest[0] = largest
        self._joined.set()

    def _hear_servo(self, data: bytes, sender: Any) -> None:
        if not self._joined.is_set() or not self._prepared or sender != self._peer:
            return
        self.line.arriving[:SIZE] = np.frombuffer(data, dtype=np.uint8)
        if take_datagram(self.line):
            self._heard = time.monotonic()
            self._ready.set()


class SceneThread(PolledThread):
    """Runs a scene's servo under the hand at the other end."""

    def __init__(self, servo: Servo, channel: Channel, given_up: Callable[[], bool] = lambda: False) -> None:
        self._channel, self._given_up = channel, given_up
        super().__init__(
            servo,
            scene_link_read.address,
            scene_link_write.address,
            scene_link_data(servo, channel.line),
            lambda: channel.lost,
        )

    def start(self) -> Self:
        """Compile, let the hand begin, then start. Raises HapticsError where it has gone."""
        self.prepare()
        self.accompany()
        return super().start()

    def accompany(self) -> None:
        """Let the hand begin; returns once it has. Raises HapticsError where it has gone."""
        if not self._channel.begin(self._given_up):
            raise HapticsError(self._channel.lost)
