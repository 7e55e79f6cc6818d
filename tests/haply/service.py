"""A stand-in for Haply's service, as strict as its description: a state for each message, a force in each.

The service's own words: an arm's first state comes with its configuration; whoever is connected is answered
message by message; a command names an arm that is there and gives three finite numbers of newtons. What does
not keep to that is counted (`illegal`), and moves nothing. Axes x right, y away from the user, z up.

`python -m tests.haply.service FILE` runs one in a process of its own over a stylus with mass, dry friction,
an encoder and delay; FILE holds CONTROLS doubles, by which a test moves its hand.
"""

import contextlib
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

ARM = "04BA"
MOST = 10.0
"""Force [N] that an Inverse3 can give."""
CONTROLS = 16
PORT, ILLEGAL, CHANGED, TURN = 0, 1, 2, 12
"""Places of what the process tells: where it listens and how many messages were illegal; and of a number that
changes with what a test says; the mean time of a turn [s]:"""
HAND, STIFFNESS, DAMPING = 3, 6, 7
COUNT, DELAY, FRICTION, MASS = 8, 9, 10, 11
"""the hand's place (3) [m] and its grip; the encoder's count [m], delay [frames], friction [N], mass [kg]."""


def state_of(position, turn=None, buttons=None, device=ARM, velocity=(0.1, 0.2, 0.3)):
    """The service's message of a position (3,) [m] in its own axes."""
    message = {"inverse3": [{"device_id": device, "state": {
        "cursor_position": dict(zip("xyz", map(float, position), strict=True)),
        "cursor_velocity": dict(zip("xyz", map(float, velocity), strict=True)),
    }}]}  # fmt: skip
    if turn is not None:
        grip = {"orientation": dict(zip("wxyz", map(float, turn), strict=True)), "buttons": buttons or {}}
        message["wireless_verse_grip"] = [{"device_id": "61576", "state": grip}]
    return message


class Ramp:
    """A hand that presses from 1 mm before a wall at x = 0 to 5 mm into it, and stays."""

    begun = None

    def pose(self, force):
        self.begun = self.begun or time.monotonic()
        return (-1e-3 + min(6e-3, 0.03 * (time.monotonic() - self.begun)), 0.0, 0.0), (0.1, 0.2, 0.3)


class Service:
    """It answers each message with the present state, and keeps the forces that it was sent, by arm."""

    def __init__(self, arms=(ARM,), hand=None):
        server = pytest.importorskip("websockets.sync.server", reason="needs palpo[haply]")
        self.arms, self.hand = arms, hand or Ramp()
        self.forces = {arm: [] for arm in arms}
        self.silent, self.gone, self.empty, self.misfits, self.dropped = False, False, False, [], 0
        self.illegal, self.turns, self.turn = [], 0, 0.0
        self.server = server.serve(self.speak, "127.0.0.1", 0)
        self.port = self.server.socket.getsockname()[1]
        self.address = f"ws://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.gone, self.silent = True, False
        self.server.shutdown()

    def state(self, first, force):
        place, velocity = self.hand.pose(force)
        arms = [state_of(place, device=arm, velocity=velocity)["inverse3"][0] for arm in self.arms]
        for arm in arms if first else ():
            arm["config"] = {"device_info": {"major_version": 3}, "type": "inverse3", "handedness": "right"}
        return json.dumps({"inverse3": [] if self.empty else arms})

    def commands(self, text):
        """(arm, force) of each command of a message, if it keeps to the rules."""
        told = json.loads(text)
        if not isinstance(told, dict) or not set(told) <= {"inverse3"}:
            raise ValueError("a key that there is not")
        for entry in told.get("inverse3", ()):
            if set(entry) != {"device_id", "commands"} or entry["device_id"] not in self.arms:
                raise ValueError("no such arm")
            command = entry["commands"].get("set_cursor_force", {})
            if len(entry["commands"]) != 1 or set(command) != {"values"}:
                raise ValueError("no such command")
            values = command["values"]
            force = [values.get(axis) for axis in "xyz"]
            if len(values) != 3 or not all(type(v) is float and math.isfinite(v) for v in force):
                raise ValueError("three finite numbers are wanted")
            if math.hypot(*force) > MOST * (1 + 1e-9):
                raise ValueError("more than an arm can give")
            yield entry["device_id"], force

    def speak(self, connection):
        from websockets.exceptions import ConnectionClosed

        first, force = True, [0.0, 0.0, 0.0]
        with contextlib.suppress(ConnectionClosed):
            began = time.monotonic()
            while not self.gone:
                while self.silent:
                    time.sleep(0.01)
                connection.send(self.misfits.pop() if self.misfits else self.state(first, force), text=True)
                first, self.turns = False, self.turns + 1
                self.turn = (time.monotonic() - began) / self.turns
                text = connection.recv()
                if self.dropped:  # lost on the bus: the arm goes on with what it had
                    self.dropped -= 1
                    continue
                try:
                    for arm, force in self.commands(text):
                        self.forces[arm].append(force)
                except ValueError as wrong:
                    self.illegal.append(str(wrong))
                time.sleep(1e-3)


class Held:
    """A stylus that moves in real time under the force of the last message; controls: what a test says."""

    def __init__(self, controls, library):
        self.controls, self.library, self.changed = controls, library, 0.0
        self.until = time.monotonic()
        self.out = np.zeros(6)

    def pose(self, force):
        c = self.controls
        if c[CHANGED] != self.changed:
            self.changed = float(c[CHANGED])
            self.library.standin_mechanics(0, c[COUNT], int(c[DELAY]), c[FRICTION], c[MASS])
            self.library.standin_held_at(0, *c[HAND : HAND + 3], c[STIFFNESS], c[DAMPING])
        while self.until < time.monotonic():
            self.library.standin_move(*force)
            self.until += 1e-3
        self.library.standin_read(self.out.ctypes.data)
        return self.out[:3], self.out[3:]


class ServiceProcess:
    """A `Service` over a held stylus in a process of its own, as the real one is."""

    def __init__(self):
        with tempfile.NamedTemporaryFile(prefix="haply-stand-in-", delete=False) as file:
            file.truncate(8 * CONTROLS)
        self.path = Path(file.name)
        self.controls = np.memmap(self.path, np.float64, "r+", shape=(CONTROLS,))
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self.path)], stdin=subprocess.PIPE
        )
        end = time.monotonic() + 60.0
        while not self.controls[PORT]:
            assert self.process.poll() is None and time.monotonic() < end, "the service does not begin"
            time.sleep(0.01)
        self.address = f"ws://127.0.0.1:{int(self.controls[PORT])}"

    def mechanics(self, device, count, delay, friction, mass):
        self.controls[[COUNT, DELAY, FRICTION, MASS]] = count, delay, friction, mass
        self.controls[CHANGED] += 1

    def held_at(self, device, x, y, z, stiffness, damping):
        self.controls[HAND : HAND + 3] = x, y, z
        self.controls[[STIFFNESS, DAMPING]] = stiffness, damping
        self.controls[CHANGED] += 1

    @property
    def illegal(self):
        return int(self.controls[ILLEGAL])

    @property
    def turn(self):
        return float(self.controls[TURN])

    def disconnect(self):
        self.process.stdin.close()
        self.process.wait(10.0)
        self.path.unlink()


def main(path):
    import ctypes

    from tests.stand_in_library import loaded

    number, several = ctypes.c_int, [ctypes.c_double] * 3
    library = loaded(Path(__file__).with_name("stylus.c"), "libhaply_stand_in.so", {
        "mechanics": (number, ctypes.c_double, number, ctypes.c_double, ctypes.c_double),
        "held_at": (number, *several, ctypes.c_double, ctypes.c_double), "hand": (number, *several[:2]),
        "move": several, "read": (ctypes.c_void_p,),
    })  # fmt: skip
    controls = np.memmap(path, np.float64, "r+", shape=(CONTROLS,))
    with Service(hand=Held(controls, library)) as service:
        controls[PORT] = service.port
        ended = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
        while not ended.wait(0.05):
            controls[ILLEGAL], controls[TURN] = len(service.illegal), service.turn


if __name__ == "__main__":
    main(sys.argv[1])
