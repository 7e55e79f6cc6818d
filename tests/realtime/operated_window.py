"""Opens a window on DISPLAY, acts on it with pointer and keys, and writes what became of it into a folder.

A process of its own, because OpenGL's platform is fixed at the first import: `python -m ... FOLDER`.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from PIL import ImageGrab

from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.render import gl
from palpo.render.camera import Camera
from palpo.render.controls import Controls
from palpo.render.glfw_context import GlfwContext
from palpo.render.offscreen import render_picture
from palpo.render.overlays import Overlays
from palpo.render.solids import BALL, unit_shapes
from palpo.render.window import Window

WIDTH, HEIGHT = 560, 400  # of the scene's part of the window
HELD = np.array([0.05, 0.12, 0.03])
TURNED = np.array([1.0, 0.0, 0.0, 0.0])
CAMERA = Camera((0.0, 0.0, 0.0), 1.0, 20.0, 15.0)
PLAIN = Overlays(labels=False, grid=False, axes=False)
REDDISH, GREENISH = (0.85, 0.40, 0.35), (0.35, 0.70, 0.45)
MAGENTA = (1.0, 0.0, 1.0)
STRIPE = 80  # pixels on the right that belong to the layer


def ball(colour):
    rows, triangles = unit_shapes()[BALL]
    vertices = 0.1 * rows[:, :3].astype(float)
    geometry = make_geometry(
        [Drawable("ball", "surface", 0, len(vertices), triangles, colour=colour)], vertices
    )
    return geometry, SceneState(
        vertices, held_point=HELD, device_point=HELD, hand_force=np.array([0, 1.0, 0])
    )


class Stripe:
    """A layer that covers the right edge, where the pointer is its own; keys are its own on request."""

    covered, due = STRIPE, True

    def __init__(self):
        self.calls, self.keys, self.inside = [], False, False

    def attach(self, window):
        glfw = sys.modules["glfw"]
        self.calls.append("attach")

        def moved(window, x, y):
            self.inside = x >= glfw.get_window_size(window)[0] - STRIPE
            before(window, x, y)

        before = glfw.set_cursor_pos_callback(window, moved)

    def begin(self):
        self.calls.append("begin")

    def wants_pointer(self):
        return self.inside

    def wants_keys(self):
        return self.keys

    def end(self, width, height):
        self.calls.append("end")
        gl.glEnable(gl.GL_SCISSOR_TEST)
        gl.glScissor(width - STRIPE, 0, STRIPE, height)
        gl.glClearColor(*MAGENTA, 1.0)
        gl.glClear(gl.GL_COLOR_BUFFER_BIT)
        gl.glDisable(gl.GL_SCISSOR_TEST)

    def again(self, width, height):
        self.calls.append("again")

    def detach(self):
        self.calls.append("detach")


class Operator:
    """Acts on a window as a person would, while it goes on drawing."""

    def __init__(self, window, state):
        self.window, self.state = window, state
        self.id = str(sys.modules["glfw"].get_x11_window(window.handle))
        self.begin()

    def begin(self):
        self.controls = Controls(CAMERA, PLAIN, drives_tool=True)
        self.controls.take_hold(HELD, TURNED)
        self.frames(2)

    def frames(self, n, **more):
        for _ in range(n):
            self.window.frame(self.state, self.controls, **more)

    def act(self, *words):
        """Commands of xdotool; places are the window's."""
        command = ["xdotool"]
        for word in words:
            command += ["mousemove", "--window", self.id] if word == "to" else [str(word)]
        acting = subprocess.Popen(command)
        while acting.poll() is None:
            self.frames(1)
        assert acting.returncode == 0, command
        self.frames(3)

    def pixel(self):
        """Where the tool's held point is seen."""
        return [float(v) for v in self.controls.camera.project(self.controls.hand.position, WIDTH, HEIGHT)[0]]

    def asked(self):
        return [request.kind for request in self.controls.requests()]


def ask_to_close(window):
    """What a window manager sends when its close button is pressed."""
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.restype = ctypes.c_ulong

    class Message(ctypes.Structure):
        _fields_ = (
            ("type", ctypes.c_int),
            ("serial", ctypes.c_ulong),
            ("sent", ctypes.c_int),
            ("display", ctypes.c_void_p),
            ("window", ctypes.c_ulong),
            ("message", ctypes.c_ulong),
            ("format", ctypes.c_int),
            ("data", ctypes.c_long * 19),
        )

    display = ctypes.c_void_p(x.XOpenDisplay(None))
    protocols, delete = (x.XInternAtom(display, name, 0) for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW"))
    client_message, id = 33, ctypes.c_ulong(sys.modules["glfw"].get_x11_window(window.handle))
    message = Message(type=client_message, window=id.value, message=protocols, format=32)
    message.data[0] = delete
    x.XSendEvent(display, id, 0, 0, ctypes.byref(message))
    x.XCloseDisplay(display)


def on_screen(window):
    """What the screen shows where the window is, shape (height, width, 3)."""
    x, y = sys.modules["glfw"].get_window_pos(window.handle)
    width, height = window.size
    return np.array(ImageGrab.grab(xdisplay=os.environ["DISPLAY"]))[y : y + height, x : x + width, :3]


def see(operator, out, pictures):
    window, state = operator.window, operator.state
    out["size"], out["scene_size"] = window.size, window.scene_size
    pictures["first"], pictures["on_screen"] = window.screenshot(), on_screen(window)
    pictures["hidden_context"] = render_picture(*ball(REDDISH), CAMERA, WIDTH, HEIGHT, PLAIN)
    operator.frames(1)
    pictures["after_another_context"] = window.screenshot()
    operator.state = replace(state, published_ns=time.perf_counter_ns())
    operator.frames(2)
    out["statistics"] = [window.frame_rate, window.draw_ms, *window.latency]
    window.show(*ball(GREENISH))
    operator.frames(1)
    pictures["second_scene"] = window.screenshot()
    window.show(*ball(REDDISH))
    operator.state = replace(state, vertices=state.vertices + np.array([0.1, 0.0, 0.0]))
    operator.frames(1)
    pictures["moved"] = window.screenshot()
    operator.state = state


def point(operator, out):
    operator.act("to", 400, 200, "mousedown", 3, "to", 450, 200, "to", 500, 200, "mouseup", 3, "to", 300, 90)
    out["orbit"] = operator.controls.camera.azimuth - CAMERA.azimuth
    operator.begin()
    operator.act("to", 200, 90, "keydown", "alt", "mousedown", 1, "to", 100, 90, "mouseup", 1, "keyup", "alt")
    out["alt_orbit"] = operator.controls.camera.azimuth - CAMERA.azimuth
    operator.begin()
    x, y = map(round, operator.pixel())
    before = operator.pixel()
    operator.act("to", x, y, "mousedown", 1, "to", x + 30, y + 10, "to", x + 90, y + 60)
    out["drag"] = [before, operator.pixel(), operator.controls.hand.grip]
    operator.act("mouseup", 1, "to", x, y)
    out["released"] = [operator.pixel(), operator.controls.hand.grip]
    operator.begin()
    depth = CAMERA.depth(HELD)
    operator.act(
        "to", 400, 250, "mousedown", 1, "keydown", "shift", "to", 400, 210, "keyup", "shift", "mouseup", 1
    )
    out["shift_drag"] = operator.controls.camera.depth(operator.controls.hand.position) - depth
    operator.begin()
    operator.act("to", 400, 250, "mousedown", 1, "click", 4, "click", 4, "mouseup", 1)
    out["wheel_held"] = operator.controls.camera.depth(operator.controls.hand.position) - depth
    operator.act("click", 5)
    out["wheel"] = operator.controls.camera.distance
    operator.begin()
    operator.act(
        "to", 400, 200, "keydown", "ctrl", "mousedown", 1, "to", 430, 190, "mouseup", 1, "keyup", "ctrl"
    )
    out["turn"] = operator.controls.hand.orientation.tolist()


def press(operator, out):
    operator.begin()
    operator.act("key", "space", "key", "period", "key", "o", "key", "r", "key", "s", "key", "h", "key", "q")
    out["requests"] = operator.asked()
    operator.act("key", "ctrl+c", "key", "Escape")
    out["ctrl_c_escape"], out["ctrl_c"] = operator.asked(), operator.controls.overlays == PLAIN
    operator.act("key", "w", "key", "2")
    out["key_2"], out["key_w"] = operator.controls.camera.azimuth, operator.controls.overlays.wireframe


def go_away(operator, out):
    for name, away in (("left", ("mousemove", 1100, 700)), ("unfocused", ())):
        operator.begin()
        operator.act("to", 300, 200, "key", "g")
        gripped = operator.controls.hand.grip
        if away:
            operator.act(*away)
        else:
            other = GlfwContext("other", 200, 100, visible=True)
            id = sys.modules["glfw"].get_x11_window(other.handle)
            operator.act("windowfocus", "--sync", id)
            other.close()
        after = operator.controls.hand
        operator.act("windowfocus", "--sync", operator.id, "to", 330, 240)
        stays = np.array_equal(operator.controls.hand.position, after.position)
        out[name] = [gripped, after.grip, stays]


def share(operator, layer, out):
    operator.begin()
    operator.act("to", 600, 200, "mousedown", 3, "to", 620, 200, "mouseup", 3, "click", 4)
    out["over_layer"] = operator.controls.camera == CAMERA
    operator.act("to", 200, 200, "mousedown", 1, "to", 230, 200, "to", 600, 200, "mouseup", 1)
    out["ended_over_layer"] = operator.controls.hand.grip
    layer.keys = True
    operator.act("key", "space", "key", "Escape")
    out["layer_keys"] = operator.asked()
    layer.keys = False
    filled = []
    operator.frames(1, ui=lambda: filled.append(layer.calls[-1]))
    out["ui_after"], out["then"] = filled, layer.calls[-1]


def keep(operator, layer, out, pictures):
    """A frame in which nothing changes, and frames in which only the bodies move."""
    window, state = operator.window, operator.state
    operator.begin()
    pictures["drawn"] = window.screenshot()
    layer.due, before = False, len(layer.calls)
    operator.frames(1)
    out["kept"] = layer.calls[before:]
    pictures["kept"] = window.screenshot()
    for name, shift in (("moved_away", 0.05), ("moved_back", 0.0)):
        moved = replace(state, vertices=state.vertices + shift)
        window.frame(moved, operator.controls)
        pictures[name] = window.screenshot()
    out["moved"] = layer.calls[before:]
    layer.due = True


def change_size(operator, out, pictures):
    window = operator.window
    operator.begin()
    operator.act("windowsize", "--sync", operator.id, 500, 450)
    out["resized"] = window.size
    pictures["resized"] = window.screenshot()
    operator.act("key", "f")
    out["fitted"] = asdict(operator.controls.camera)
    operator.begin()
    operator.act("windowsize", "--sync", operator.id, WIDTH + STRIPE, HEIGHT)
    for name in ("fullscreen", "restored"):
        window.toggle_fullscreen()
        operator.frames(5)
        out[name] = window.size
        pictures[name] = window.screenshot()


def fail(operator, out):
    operator.begin()

    def broken(_):
        raise ArithmeticError("the hand went wrong")

    operator.controls.follow = broken
    try:
        operator.act("to", 300, 200, "key", "g")
        out["failure"] = ""
    except ArithmeticError as error:
        out["failure"] = str(error)
    operator.controls.follow = None
    operator.frames(2)
    operator.act("key", "Escape")
    out["after_failure"] = operator.asked()


def main(folder):
    out, pictures, layer = {}, {}, Stripe()
    geometry, state = ball(REDDISH)
    with Window("Palpo, operated", WIDTH + STRIPE, HEIGHT, layer, samples=4) as window:
        window.show(geometry, state)
        operator = Operator(window, state)
        operator.act("windowfocus", "--sync", operator.id, "to", 320, 200)
        see(operator, out, pictures)
        point(operator, out)
        press(operator, out)
        go_away(operator, out)
        share(operator, layer, out)
        fail(operator, out)
        keep(operator, layer, out, pictures)
        change_size(operator, out, pictures)
        out["close"] = [window.should_close]
        ask_to_close(window)
        operator.frames(3)
        out["close"].append(window.should_close)
    out["calls"] = [layer.calls[0], layer.calls[-1]]
    np.savez(folder / "pictures.npz", **pictures)
    (folder / "seen.json").write_text(json.dumps(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
