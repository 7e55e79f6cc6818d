"""A process between a Haply Inverse3 and the servo: the maker's WebSocket service here, shared memory there.

The service answers each message with the present state, as JSON, and wants a force in every message. That is
Python's work, at about a millisecond a turn, and none of the servo's: poses and forces go through two triple
buffers in shared memory, which the compiled tick reads and writes without waiting. A servo that has left no
force for STALE seconds gets zero; when the program that started this process is gone, so does the device, and
the connection is closed.

What the service says is a `Message` or it is not looked at: what does not fit is counted and answered with a
force as any other, and the servo, which gets no pose from it, loses its device if that goes on.

The service's axes are x right, y away from the user, z up: its vector (x, y, z) is (x, z, -y) here.
"""

import json
import math
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from palpo.physics.exchange.buffer import SLOTS, acquire, make_control, publish, writer_slot

SERVICE = "ws://localhost:10001"
"""Where the maker's service listens."""
STALE = 0.05
"""Seconds without a force from the servo after which zero is sent."""
FAREWELL = 0.1
"""Seconds for which the answer to the last zero is waited for."""
PATIENCE = 1.0
"""Seconds that the service may take to answer."""
POSE, FORCE, WORDS = 12, 4, 256
"""Numbers of a pose (position 3, velocity 3, orientation 4, buttons, 1) and of a force (3, and a count);
bytes of a sentence."""
STARTING, READY, OVER = 0, 1, 2
"""What the process says of itself."""
SKIPPED = 1
"""Place in `Shared.state` of the number of messages that did not fit."""


class Shared(NamedTuple):
    """The memory that both processes see."""

    poses: NDArray[np.float64]
    pose_control: NDArray[np.int64]
    forces: NDArray[np.float64]
    force_control: NDArray[np.int64]
    state: NDArray[np.int64]
    """STARTING, READY or OVER; how many messages did not fit; shape (8,)."""
    sentence: NDArray[np.uint8]
    """Name of the device, or why it is over; UTF-8, ends at a zero."""


_CONTROL = len(make_control())
SIZE = 8 * (SLOTS * (POSE + FORCE) + 2 * _CONTROL + 8) + WORDS


def shared_views(path: Path) -> Shared:
    """The arrays in a file of SIZE bytes, mapped into memory."""
    block: NDArray[np.uint8] = np.asarray(np.memmap(path, np.uint8, "r+", shape=(SIZE,)))
    at = 0

    def take(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        nonlocal at
        size = math.prod(shape) * np.dtype(dtype).itemsize
        view: NDArray[Any] = block[at : at + size].view(dtype).reshape(shape)
        at += size
        return view

    return Shared(
        take((SLOTS, POSE), np.float64),
        take((_CONTROL,), np.int64),
        take((SLOTS, FORCE), np.float64),
        take((_CONTROL,), np.int64),
        take((8,), np.int64),
        take((WORDS,), np.uint8),
    )


def begin(shared: Shared) -> None:
    """Empty buffers; once, by whoever made the file."""
    for control in (shared.pose_control, shared.force_control):
        control[:] = make_control()


def say(shared: Shared, words: str, state: int) -> None:
    """Leave a sentence, then the state that it belongs to."""
    text = words.encode()[: WORDS - 1]
    shared.sentence[: len(text)] = np.frombuffer(text, np.uint8)
    shared.sentence[len(text) :] = 0
    shared.state[0] = state


def said(shared: Shared) -> str:
    """The sentence that was left."""
    return bytes(shared.sentence).split(b"\0")[0].decode(errors="replace")


class _Part(BaseModel):
    """A part of a message: what else it holds is not looked at, and nothing is taken for what it is not."""

    model_config = ConfigDict(strict=True, frozen=True)


class Vector(_Part):
    """Three numbers."""

    x: FiniteFloat
    y: FiniteFloat
    z: FiniteFloat


class Turn(Vector):
    """A quaternion."""

    w: FiniteFloat


class ArmState(_Part):
    """Where the handle is [m] and how fast [m/s], in the service's axes."""

    cursor_position: Vector
    cursor_velocity: Vector | None = None


class HaplyArm(_Part):
    """An Inverse3."""

    device_id: Annotated[str, Field(min_length=1, max_length=64)]
    state: ArmState


class GripState(_Part):
    """How a grip is turned, and its buttons; older ones have but one."""

    orientation: Turn | None = None
    buttons: Annotated[dict[str, bool], Field(max_length=32)] | None = None
    button: bool = False


class HaplyGrip(_Part):
    """A VerseGrip, on a cable or without."""

    state: GripState = GripState()


class Message(_Part):
    """What the service says at each turn."""

    inverse3: tuple[HaplyArm, ...] = ()
    wireless_verse_grip: tuple[HaplyGrip, ...] = ()
    verse_grip: tuple[HaplyGrip, ...] = ()


def _buttons(state: GripState) -> int:
    """Mask of the buttons that a grip names, in their order."""
    if state.buttons is None:
        return int(state.button)
    return sum(1 << k for k, name in enumerate(sorted(state.buttons)) if state.buttons[name])


def decode(text: str | bytes, wanted: str = "") -> tuple[str, list[float]] | None:
    """(the device's id, POSE numbers in the servo's axes) of a message of the service; None: no such device.

    wanted: its id, empty for the first. Of several grips each arm has that of its place. Without a grip
    it is upright. Raises ValidationError for anything that is no `Message`.
    """
    message = Message.model_validate_json(text)
    ids = [arm.device_id for arm in message.inverse3]
    if not ids or (wanted and wanted not in ids):
        return None
    place = ids.index(wanted) if wanted else 0
    arm = message.inverse3[place]
    at, speed = arm.state.cursor_position, arm.state.cursor_velocity or Vector(x=0.0, y=0.0, z=0.0)
    grips = message.wireless_verse_grip + message.verse_grip
    grip = grips[place].state if place < len(grips) else GripState()
    q = grip.orientation or Turn(w=1.0, x=0.0, y=0.0, z=0.0)
    pose = [at.x, at.z, -at.y, speed.x, speed.z, -speed.y, q.w, q.x, q.z, -q.y, float(_buttons(grip)), 1.0]
    return arm.device_id, pose


def encode(device: str, force: NDArray[np.float64]) -> str:
    """The message that sets a force (3,) [N] of the servo's axes."""
    values = {"x": float(force[0]), "y": -float(force[2]), "z": float(force[1])}
    return json.dumps(
        {"inverse3": [{"device_id": device, "commands": {"set_cursor_force": {"values": values}}}]}
    )


def _turns(connection: Any, shared: Shared, over: threading.Event, wanted: str) -> str:
    """A state and a force in turn; why it ended."""
    count, heard, device, fitted, words = -1.0, time.monotonic(), "", time.monotonic(), "ended"
    while not over.is_set():
        try:
            told = decode(connection.recv(timeout=PATIENCE, decode=False), wanted)
        except TimeoutError:
            return f"the service has not answered for {PATIENCE:g} s"
        except ValidationError as error:
            shared.state[SKIPPED] += 1
            if time.monotonic() - fitted > PATIENCE:
                return f"the service has said nothing that fits for {PATIENCE:g} s ({_misfit(error)})"
        else:
            if told is None:
                words = f"no Inverse3{wanted and f' {wanted}'}; check its power and cable, and Haply Hub"
                break
            device, shared.poses[writer_slot(shared.pose_control)] = told
            publish(shared.pose_control)
            fitted = time.monotonic()
            if shared.state[0] == STARTING:
                say(shared, f"Inverse3 {device}", READY)
        slot, _ = acquire(shared.force_control)
        if shared.forces[slot, 3] != count:
            count, heard = float(shared.forces[slot, 3]), time.monotonic()
        stale = time.monotonic() - heard > STALE
        connection.send(encode(device, np.zeros(3) if stale else shared.forces[slot, :3]) if device else "{}")
    if device:
        connection.send(encode(device, np.zeros(3)))
        # the answers to the force before and to this one: a service that closes first may never have read it
        with suppress(TimeoutError):
            for _ in range(2):
                connection.recv(timeout=FAREWELL, decode=False)
    return words


def _misfit(error: ValidationError) -> str:
    """Where a message does not fit, and why."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'message'}: {first['msg']}"[:120]


def bridge(address: str, shared: Shared, over: threading.Event, wanted: str = "") -> None:
    """Connect, and go on until `over` is set or the device is lost; leaves why in the memory."""
    try:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect
    except ImportError:
        say(shared, "websockets is not installed; pip install palpo[haply]", OVER)
        return
    try:
        with connect(address, open_timeout=PATIENCE, close_timeout=0.1, max_size=1 << 20) as connection:
            words = _turns(connection, shared, over, wanted)
    except (OSError, WebSocketException) as error:
        words = f"Haply's service at {address} was lost, or is not there ({' '.join(str(error).split())})"
    say(shared, words, OVER)


def main() -> None:
    """Arguments: the shared file, the service's address, the device's id or nothing; ends with its input."""
    path, address, wanted = sys.argv[1:4]
    over = threading.Event()

    def watch() -> None:
        # not by sys.stdin, whose lock a thread must not hold when the interpreter ends
        while os.read(0, 1):
            continue
        over.set()

    threading.Thread(target=watch, daemon=True).start()
    bridge(address, shared_views(Path(path)), over, wanted)


if __name__ == "__main__":
    main()
