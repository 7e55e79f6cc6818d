"""What the operator's pointer and keys do: they move the camera and the tool, and ask for the rest.

Pure: a window feeds it events, and so can a test. Where the pointer is the haptic device, it moves the tool's
held point while a button or the grip key holds it; letting go leaves the tool where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.render.camera import Camera
from palpo.render.overlays import Overlays
from palpo.render.pointer import compose, recede, slide, trackball
from palpo.render.requests import Request

Floats = NDArray[np.float64]
Modifiers = frozenset[str]
"""Those that are pressed of "shift", "ctrl" and "alt"."""

PLAIN: Modifiers = frozenset()
ORBIT = 180.0
"""Degrees that a drag over the picture's height turns the view."""
ZOOM = 1.1
"""Factor of one notch of the wheel."""
NOTCH = 0.01
"""Way of the tool in depth for one notch, in heights of the picture."""
STILL = 3.0
"""Pixels that a pointer may move between press and release of a click."""
FASTEST = 10.0
"""Notches in one event that are heeded."""


NEAR = 2.5
"""Margin around what is held when the view comes near to follow it."""
KEPT = 1.02
"""Margin of what is kept in view: nearer to the edge than a fitted view comes, which so can stand a while."""
_RISE = np.linspace(-1.0, 1.0, 64)
_ROUND = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(64)
ALL_ROUND = np.array([np.cos(_ROUND) * np.sqrt(1 - _RISE**2), _RISE, np.sin(_ROUND) * np.sqrt(1 - _RISE**2)])
"""Directions (3, 64), evenly over the sphere: of what was in view, the farthest each way is remembered."""


class Drag(NamedTuple):
    """What moving the pointer does while `button` and at least the modifiers are down."""

    button: str
    modifiers: Modifiers
    does: Literal["move", "depth", "turn", "orbit", "pan"]
    words: str

    @property
    def moves_tool(self) -> bool:
        """Whether it moves the tool, or else the camera."""
        return self.does in ("move", "depth", "turn")


# The first row that fits is taken, so the rows with more modifiers stand first. With alt, a trackpad's one
# button does all.
_VIEW = (
    Drag("left", frozenset({"alt", "shift"}), "pan", "shift the view"),
    Drag("left", frozenset({"alt"}), "orbit", "turn the view"),
    Drag("right", PLAIN, "orbit", "turn the view"),
    Drag("middle", PLAIN, "pan", "shift the view"),
)
_TOOL = (
    Drag("left", frozenset({"ctrl"}), "turn", "turn the tool"),
    Drag("left", frozenset({"shift"}), "depth", "move the tool in depth"),
    Drag("left", PLAIN, "move", "move the tool in the picture's plane"),
)
DRAGS = {
    True: (*_VIEW, *_TOOL),
    False: (*_VIEW, Drag("left", PLAIN, "orbit", "turn the view")),
}
"""By whether the pointer drives the tool."""


class Key(NamedTuple):
    """What a key asks for."""

    name: str
    request: Request
    words: str
    only: Literal["", "live", "recorded"] = ""
    """Where it does something: in a run, or where one is looked at again."""


KEYS = (
    Key("escape", Request("emergency"), "emergency stop: force off", "live"),
    Key("space", Request("pause"), "pause or go on"),
    Key(".", Request("step"), "one slow step while paused; next picture"),
    Key(",", Request("back"), "previous picture", "recorded"),
    Key("r", Request("reset"), "reset the scene", "live"),
    Key("o", Request("record"), "start or stop recording", "live"),
    Key("k", Request("keep"), "keep the scene's state", "live"),
    Key("z", Request("undo"), "go back to the kept state", "live"),
    Key("e", Request("save"), "save the scene with its present values as a file", "live"),
    Key("g", Request("grip"), "hold the tool without a button, or let go", "live"),
    Key("x", Request("press"), "press or release the tool's button; a cup's or a pump's valve", "live"),
    Key("f", Request("fit"), "fit the scene into the picture, and keep it there"),
    Key("t", Request("follow"), "follow the tool closely, or see everything"),
    *(
        Key(str(i), Request("view", value=name), f"view: {name}")
        for i, name in enumerate(("front", "back", "left", "right", "top", "bottom", "perspective"), 1)
    ),
    Key("w", Request("overlay", "wireframe"), "wireframe"),
    Key("c", Request("overlay", "strain"), "colours of strain"),
    Key("u", Request("overlay", "rest"), "undeformed shape"),
    Key("v", Request("overlay", "forces"), "force vectors"),
    Key("p", Request("overlay", "contacts"), "contact points"),
    Key("n", Request("overlay", "nearness"), "contact discs, and the distance to the nearest surface"),
    Key("i", Request("align"), "take how the device is held now for neutral: the tool is as at rest", "live"),
    Key("j", Request("mirror"), "the tool into the other hand, mirrored", "live"),
    Key("m", Request("mute"), "vibrations and sounds at contact, slip and click on, off", "live"),
    Key("d", Request("overlay", "device"), "device, held point and the coupling between them"),
    Key("a", Request("overlay", "anaglyph"), "3D for red and cyan glasses"),
    Key("b", Request("overlay", "side_by_side"), "3D, a picture for each eye"),
    Key("s", Request("screenshot"), "screenshot"),
    Key("f11", Request("fullscreen"), "full screen, window"),
    Key("l", Request("scenes"), "end the run and show all scenes", "live"),
    Key("h", Request("help"), "this list"),
    Key("q", Request("quit"), "quit"),
)
_REQUESTS = {key.name: key.request for key in KEYS}


def key_list(drives_tool: bool, recorded: bool = False) -> tuple[tuple[str, str], ...]:
    """What to press and what it does, line by line; where a recording is looked at, if `recorded`."""
    drags = [(" + ".join([*sorted(d.modifiers), f"{d.button} drag"]), d.words) for d in DRAGS[drives_tool]]
    drags.append((f"{'right' if drives_tool else 'left'} click", "choose a body, to change it"))
    wheel = [("wheel", "zoom")]
    if drives_tool:
        drags.reverse()
        wheel = [("wheel while held", "move the tool in depth"), ("wheel, ctrl + wheel", "zoom")]
    here = [key for key in KEYS if key.only in ("", "recorded" if recorded else "live")]
    keys = [(key.name, key.words) for key in here if drives_tool or key.request.kind != "grip"]
    return *drags, *wheel, *keys


@dataclass(frozen=True, eq=False)
class PointedPose:
    """Where the pointer wants the tool's held point: position (3,) [m] and quaternion (4,), scene axes.

    A new one replaces it at each change, so that another thread always reads one that belongs together.
    """

    position: Floats
    orientation: Floats
    grip: bool = False
    pressed: bool = False
    """Whether the tool's own button is down."""

    @property
    def buttons(self) -> int:
        """The device's buttons as a mask: bit 0 while the tool's own is down."""
        return int(self.pressed)


def _nothing() -> Floats:
    return np.zeros((0, 3))


class Controls:
    """Holds the camera, the overlays and the hand, and changes them as events come.

    drives_tool: whether the pointer is the haptic device. follow: called with each new hand, if given.
    """

    def __init__(
        self,
        camera: Camera,
        overlays: Overlays | None = None,
        drives_tool: bool = False,
        follow: Callable[[PointedPose], None] | None = None,
    ) -> None:
        self.camera = camera
        self.overlays = overlays or Overlays()
        self.drives_tool = drives_tool
        self.follow = follow
        self.hand = PointedPose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
        self._pointer: tuple[float, float] | None = None
        self._pressed: tuple[float, float] | None = None  # where a button went down, until it is a drag
        self._size: tuple[int, int] | None = None
        self._held: dict[str, bool] = {}  # buttons that are down, and whether they hold the tool
        self._latched = False  # the grip key holds the tool
        self._extent: Callable[[], Floats] = _nothing
        self._seen = _nothing()
        self._keeps = True
        self.follows = False
        """Whether the view follows what is held."""
        self._near = False
        self._aspect = 1.5
        self._requests: list[Request] = []

    def take_hold(self, position: ArrayLike, orientation: ArrayLike) -> None:
        """Let go, and begin anew from where the tool's held point is (3,) [m], (4,)."""
        self._held, self._latched = {}, False
        self._change(
            position=np.array(position, float),
            orientation=np.array(orientation, float),
            grip=False,
            pressed=False,
        )

    def see(self, extent: Callable[[], Floats], aspect: float) -> None:
        """Tell which points (n, 3) [m] a fitted view has to hold, and width over height of the picture."""
        self._extent, self._aspect = extent, aspect

    def keep(self, points: Floats, aspect: float) -> None:
        """Let the view grow with the scene: what once was in it stays in it, these points (n, 3) [m] too.

        Not once the operator has shifted or zoomed the view, until it is fitted again.
        """
        if self._keeps and len(points):
            both = np.vstack([self._seen, points])
            self._seen = both[np.unique(np.argmax(both @ ALL_ROUND, axis=0))]
            self.camera = self.camera.keep(self._seen, aspect, KEPT)

    def track(self, held: Floats, point: Floats, aspect: float) -> None:
        """While it is wanted, follow the held point (3,) [m], from near to the held body's points (n, 3)."""
        if not self.follows or not np.isfinite(point).all():
            return
        if not self._near:
            self.camera, self._near = self.camera.fit(held, aspect, NEAR), True
        self.camera = self.camera.follow(point, aspect)

    def button(self, which: str, pressed: bool, modifiers: Modifiers = PLAIN) -> None:
        """A button of the pointer ("left", "right" or "middle") went down or up."""
        drag = self._first(which, modifiers)
        if not pressed:
            moves_tool = self._held.pop(which, None)
            if moves_tool is False and self._pressed is not None and self._size is not None:
                self._requests.append(Request("pick", value=tuple(np.divide(self._pressed, self._size))))
        elif drag is not None:
            self._held[which] = drag.moves_tool
            self._pressed = self._pointer
        self._grip()

    def move(self, x: float, y: float, width: int, height: int, modifiers: Modifiers = PLAIN) -> None:
        """The pointer is at pixel (x, y) of a window of width x height."""
        before, self._size = self._pointer, (width, height)
        self.pass_by(x, y)
        if self._pressed is not None and np.hypot(x - self._pressed[0], y - self._pressed[1]) > STILL:
            self._pressed = None
        drag = self._drag(modifiers)
        if before is None or drag is None:
            return
        dx, dy = x - before[0], y - before[1]
        camera, hand = self.camera, self.hand
        match drag.does:
            case "orbit":
                self.camera = camera.orbit(-ORBIT * dx / height, ORBIT * dy / height)
            case "pan":
                self.camera, self._keeps = camera.pan(-dx / height, dy / height), False
            case "move":
                self._change(position=slide(camera, hand.position, dx, dy, height))
            case "depth":
                self._change(position=recede(camera, hand.position, -dy / height))
            case "turn":
                turn = trackball(camera, hand.position, before, (x, y), width, height)
                self._change(orientation=compose(turn, hand.orientation))

    def pass_by(self, x: float, y: float) -> None:
        """The pointer is at (x, y), over something to which its moves belong."""
        self._pointer = (x, y)

    def scroll(self, dx: float, dy: float, modifiers: Modifiers = PLAIN) -> None:
        """The wheel turned by `dy` notches, away from the user if positive; sideways `dx` does nothing."""
        notches = float(np.clip(dy, -FASTEST, FASTEST))
        if self.hand.grip and "ctrl" not in modifiers:
            self._change(position=recede(self.camera, self.hand.position, NOTCH * notches))
        else:
            self.camera, self._keeps = self.camera.zoom(ZOOM**notches), False

    def glide(self, right: float, up: float, nearer: float, azimuth: float, elevation: float) -> None:
        """Move the scene in the picture: to the right and up in its heights, nearer by a factor e^nearer.

        azimuth, elevation [degrees]: by which the view goes around it.
        """
        if right or up or nearer:
            self.camera, self._keeps = self.camera.pan(-right, -up).zoom(math.exp(nearer)), False
        self.camera = self.camera.orbit(azimuth, elevation)

    def key(self, name: str, modifiers: Modifiers = PLAIN) -> None:
        """A key went down ("a", "1", "space", "f11" ...); with ctrl or alt, only escape is heeded."""
        request = _REQUESTS.get(name)
        if request is not None and (name == "escape" or not modifiers & {"ctrl", "alt"}):
            self.ask(request)

    def release(self) -> None:
        """Let go of the tool, which stays where it is."""
        self._held = {button: tool for button, tool in self._held.items() if not tool}
        self._latched = False
        self._grip()

    def ask(self, request: Request) -> None:
        """Do what concerns camera, overlays and grip; keep the rest for `requests`.

        Of an overlay without a value, the other value is taken. Raises ValueError for a view or an overlay
        that there is not.
        """
        match request.kind:
            case "fit":
                extent = self._extent()
                self.camera = self.camera.fit(extent, self._aspect)
                self._seen, self._keeps, self.follows = _nothing(), True, False
                self.keep(extent, self._aspect)
            case "follow" if self.follows:
                self.ask(Request("fit"))
            case "follow":
                self.follows, self._keeps, self._near = True, False, False
            case "view":
                self.camera = self.camera.seen_from(str(request.value))
            case "overlay":
                self._overlay(request.key, request.value)
            case "press":
                self._change(pressed=self.drives_tool and not self.hand.pressed)
                self._requests.append(request)
            case "grip":
                self._latched = self.drives_tool and not self._latched
                self._grip()
            case kind:
                if kind == "emergency":
                    self.release()
                self._requests.append(request)

    def requests(self) -> list[Request]:
        """Those that the application has to answer, once each, in their order."""
        asked, self._requests = self._requests, []
        return asked

    def _overlay(self, name: str, value: object) -> None:
        known = [f.name for f in fields(Overlays)]
        if name not in known:
            raise ValueError(f"overlay {name!r} is unknown; choose one of {', '.join(known)}.")
        shown = not getattr(self.overlays, name) if value is None else value
        self.overlays = replace(self.overlays, **{name: shown})  # type: ignore[arg-type]

    def _first(self, button: str, modifiers: Modifiers) -> Drag | None:
        drags = DRAGS[self.drives_tool]
        return next((d for d in drags if d.button == button and d.modifiers <= modifiers), None)

    def _drag(self, modifiers: Modifiers) -> Drag | None:
        """What a move does now: the camera goes before the tool; a press stays with what it began with."""
        holds_camera = [button for button, tool in self._held.items() if not tool]
        if holds_camera:
            drag = self._first(holds_camera[-1], modifiers)
            return drag if drag is not None and not drag.moves_tool else None
        if self.hand.grip:
            return next(d for d in _TOOL if d.modifiers <= modifiers)
        return None

    def _grip(self) -> None:
        grip = self._latched or any(self._held.values())
        if grip != self.hand.grip:
            self._change(grip=grip)

    def _change(self, **news: object) -> None:
        self.hand = replace(self.hand, **news)  # type: ignore[arg-type]
        if self.follow is not None:
            self.follow(self.hand)
