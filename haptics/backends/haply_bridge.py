"""A process between a Haply Inverse3 and the servo: the maker's WebSocket service here, shared memory there.

The service answers each message with the present state, as JSON, and wants a force in every message. That is
Python's work, at about a millisecond a turn, and none of the servo's: poses and forces go through two triple
buffers in shared memory, which the compiled tick reads and writes without waiting. A servo that has left no
force for STALE seconds gets zero; when the program that started this process is gone, so does the device, and
the connection is closed.

The service's axes are x right, y away from the user, z up: its vector (x, y, z) is (x, z, -y) here.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS, acquire, make_control, publish, writer_slot

SERVICE = "ws://localhost:10001"
"""Where the maker's service listens."""
STALE = 0.05
"""Seconds without a force from the servo after which zero is sent."""
PATIENCE = 1.0
"""Seconds that the service may take to answer."""
POSE, FORCE, WORDS = 12, 4, 256
"""Numbers of a pose (position 3, velocity 3, orientation 4, buttons, 1) and of a force (3, and a count);
bytes of a sentence."""
STARTING, READY, OVER = 0, 1, 2
"""What the process says of itself."""


class Shared(NamedTuple):
    """The memory that both processes see."""

    poses: NDArray[np.float64]
    pose_control: NDArray[np.int64]
    forces: NDArray[np.float64]
    force_control: NDArray[np.int64]
    state: NDArray[np.int64]
    """STARTING, READY or OVER; shape (8,)."""
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


def _vector(named: Mapping[str, Any], keys: str) -> list[float]:
    values = [float(named[key]) for key in keys]
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{dict(named)} is not finite")
    return values


def _buttons(state: Mapping[str, Any]) -> int:
    """Mask of the buttons that a grip names, in their order; older ones have but one."""
    named = state.get("buttons")
    if isinstance(named, Mapping):
        return sum(1 << k for k, name in enumerate(sorted(named)) if named[name])
    return int(bool(state.get("button", False)))


def decode(message: Mapping[str, Any]) -> tuple[str, list[float]]:
    """(the device's id, POSE numbers in the servo's axes) of a message of the service.

    Without a grip it is upright. Raises KeyError, ValueError or TypeError for a message that is none.
    """
    arm = message["inverse3"][0]
    x, y, z = _vector(arm["state"]["cursor_position"], "xyz")
    u, v, w = _vector(arm["state"].get("cursor_velocity") or dict.fromkeys("xyz", 0.0), "xyz")
    grips = [*message.get("wireless_verse_grip", ()), *message.get("verse_grip", ())]
    grip = grips[0].get("state", {}) if grips else {}
    turn, buttons = [1.0, 0.0, 0.0, 0.0], _buttons(grip)
    if grip.get("orientation"):
        a, b, c, d = _vector(grip["orientation"], "wxyz")
        turn = [a, b, d, -c]
    return str(arm["device_id"]), [x, z, -y, u, w, -v, *turn, float(buttons), 1.0]


def encode(device: str, force: NDArray[np.float64]) -> str:
    """The message that sets a force (3,) [N] of the servo's axes."""
    values = {"x": float(force[0]), "y": -float(force[2]), "z": float(force[1])}
    return json.dumps(
        {"inverse3": [{"device_id": device, "commands": {"set_cursor_force": {"values": values}}}]}
    )


def _turns(connection: Any, shared: Shared, over: threading.Event) -> str:
    """A state and a force in turn; why it ended."""
    count, heard, device = -1.0, time.monotonic(), ""
    while not over.is_set():
        try:
            device, pose = decode(json.loads(connection.recv(timeout=PATIENCE)))
        except TimeoutError:
            return f"the service has not answered for {PATIENCE:g} s"
        except (KeyError, IndexError, ValueError, TypeError):
            return "no Inverse3; check its power and cable, and Haply Hub"
        shared.poses[writer_slot(shared.pose_control)] = pose
        publish(shared.pose_control)
        if shared.state[0] == STARTING:
            say(shared, f"Inverse3 {device}", READY)
        slot, _ = acquire(shared.force_control)
        if shared.forces[slot, 3] != count:
            count, heard = float(shared.forces[slot, 3]), time.monotonic()
        stale = time.monotonic() - heard > STALE
        connection.send(encode(device, np.zeros(3) if stale else shared.forces[slot, :3]))
    if device:
        connection.send(encode(device, np.zeros(3)))
    return "ended"


def bridge(address: str, shared: Shared, over: threading.Event) -> None:
    """Connect, and go on until `over` is set or the device is lost; leaves why in the memory."""
    try:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect
    except ImportError:
        say(shared, "websockets is not installed; pip install palpo[haply]", OVER)
        return
    try:
        with connect(address, open_timeout=PATIENCE, close_timeout=0.1, max_size=1 << 20) as connection:
            words = _turns(connection, shared, over)
    except (OSError, WebSocketException) as error:
        words = f"Haply's service at {address} was lost, or is not there ({' '.join(str(error).split())})"
    say(shared, words, OVER)


def main() -> None:
    """Arguments: the shared file, and the service's address; ends with its standard input."""
    path, address = sys.argv[1:3]
    over = threading.Event()

    def watch() -> None:
        # not by sys.stdin, whose lock a thread must not hold when the interpreter ends
        while os.read(0, 1):
            continue
        over.set()

    threading.Thread(target=watch, daemon=True).start()
    bridge(address, shared_views(Path(path)), over)


if __name__ == "__main__":
    main()
