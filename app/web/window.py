"""The operator's window as a page: draws snapshots on viser, and hands what pages drag to `Controls`.

It answers as `palpo.render.window.Window` does. Each page has its own camera, which is taken for the
controls' while it drags, so that the tool moves as under a pointer in a window. One page leads at a time, the
last that took the tool; the hand goes on as long as that page is there, and lets go when it is not.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.app.web.server import Server
from palpo.app.web.stage import Stage
from palpo.config.words import Refusal
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render.camera import CLOSEST, FARTHEST, Camera
from palpo.render.controls import PLAIN, Controls, Modifiers
from palpo.render.pace import Pace, Paced
from palpo.render.scene_view import visible_points

PAGE_HZ = 30.0
"""Pictures a second that pages get at most."""
PANEL = 0.1
"""Seconds between two looks at the panel."""
MODIFIERS: dict[str | None, Modifiers] = {
    None: PLAIN,
    "shift": frozenset({"shift"}),
    "cmd/ctrl": frozenset({"ctrl"}),
}
"""Keys that are held, as viser says it."""
SHAPED = 0.1
"""Share by which width over height of a page changes before its view does."""
BEAT = 0.05
"""Seconds between two times that the hand is said again."""
WAITING = 256
"""Moves of a drag that wait, at most, for the next picture."""
REACH = 20.0
"""How far from the scene's middle a drag leads, in lengths of the page: ten scenes."""
NARROW = 0.8
"""Width over height below which the panel lies over the lower half of a page."""
MOVED = 0.02
"""Way of a page's eye, in distances from what it looks at, from which somebody has moved it."""


class Dragged(NamedTuple):
    """What a page said of a drag."""

    page: int
    phase: str
    modifiers: Modifiers
    x: float
    y: float
    """Where its pointer is, in shares of the picture from the upper left corner."""
    camera: Camera
    width: int
    height: int


class GivenView(NamedTuple):
    """A view that a page was given: for the scene's own and for the page's shape at that time."""

    home: Camera
    aspect: float
    own: Camera


class PageWindow(Paced):
    """Pages with a scene on them, at a server. render_hz: pictures a second at most."""

    def __init__(self, server: Server, render_hz: float = PAGE_HZ) -> None:
        self.server, self._viser = server, server.viser
        self.scene_size = self.size = (1280, 800)
        self.arrow_scale = 0.0
        self.most_hz, self._pace = render_hz, Pace(render_hz)
        self.should_close = False
        self.mode: Modifiers = PLAIN
        """What a drag without a key does, as if these keys were held."""
        self._stage: Stage | None = None
        self._drags: deque[Dragged] = deque(maxlen=WAITING)
        self.placed: dict[int, GivenView] = {}
        """Pages that were given a view."""
        self._leader: int | None = None
        """The page that took the tool last."""
        self._gone = False
        """Whether that page left since."""
        self._there: set[int] = set()
        self._looked = 0.0
        self._controls: Controls | None = None
        self._viser.get_event_loop().call_soon_threadsafe(self._beat)

    # ---- as a window

    renderer = "pages in browsers"
    told: tuple[str, ...] = ()
    """The panel says what can be done."""

    def wear(self, headset: object) -> None:
        """No headset is worn by a page."""

    def toggle_fullscreen(self) -> None:
        """A browser's own key does it."""

    def screenshot(self) -> NDArray[np.uint8]:
        """A browser takes it itself."""
        raise Refusal("a page takes no screenshot; the browser does")

    def show(self, geometry: SceneGeometry, state: SceneState, held: str = "") -> None:
        """Draw this scene from now on. held: the shape that the hand holds."""
        before = self._stage
        with self._viser.atomic():
            self._stage = stage = Stage(self._viser.scene, geometry, state, held)
            for handle in stage.taken:
                for modifier in MODIFIERS:
                    handle.on_drag("left", modifier=modifier)(self._hear)
        self._drags.clear()
        self._points, self._centre = visible_points(geometry, state), geometry.centre
        if before is None or before.scale != stage.scale:
            self.placed = {}

    def haunt(self, ghost: SceneGeometry | None) -> None:
        """Draw these shapes faintly beside the scene, where `frame` is told they are; None for none."""
        if self._stage is not None:
            self._stage.haunt(ghost)

    def frame(
        self, state: SceneState, controls: Controls, ui: Any = None, ghost: NDArray[np.float64] | None = None
    ) -> None:
        """Show a state and heed the pages until the next picture is due."""
        assert self._stage is not None
        began = time.perf_counter_ns()
        self._attend(controls)
        if not controls.hand.grip:
            self._place(controls.camera)
        if self._viser.get_clients():
            with self._viser.atomic():
                self.arrow_scale = self._stage.show(state, controls.overlays, controls.drives_tool, ghost)
        if ui is not None and 1e-9 * began - self._looked >= PANEL:
            self._looked = 1e-9 * began
            ui()
        self._pace.shown(began, time.perf_counter_ns(), state.published_ns)
        time.sleep(self._pace.left(time.perf_counter_ns()))

    def close(self) -> None:
        """Let all pages go."""
        self.server.stop()

    # ---- pages

    @property
    def scale(self) -> float:
        """Lengths of the page in a metre of the scene."""
        assert self._stage is not None
        return self._stage.scale

    @property
    def attended(self) -> bool:
        """Whether a page is there that leads, or may, and none has left that did."""
        there, leader = self.server.leaders(), self._leader
        return bool(there) and not self._gone and (leader is None or leader in there)

    def _attend(self, controls: Controls) -> None:
        """See which pages are there, and move the tool as one of them drags it."""
        there = self.server.leaders()
        if there - self._there:
            self._gone = False
        self._there = there
        if self._leader is not None and self._leader not in there:
            self._leader, self._gone = None, True
            controls.release()
        while self._drags:
            self._drag(self._drags.popleft(), controls)
        self._controls = controls

    def _beat(self) -> None:
        """Say again where the hand is, since silence is letting go, however seldom pictures are drawn.

        In viser's thread, which knows who is there.
        """
        controls = self._controls
        if controls is not None and controls.follow is not None and self.attended:
            controls.follow(controls.hand)
        self._viser.get_event_loop().call_later(BEAT, self._beat)

    def _drag(self, drag: Dragged, controls: Controls) -> None:
        """One move of a drag; those of another page than the one that holds the tool are passed over."""
        if not controls.drives_tool or (controls.hand.grip and drag.page != self._leader):
            return
        keys = drag.modifiers or self.mode
        x, y = drag.x * drag.width, drag.y * drag.height
        if drag.phase == "end":
            controls.button("left", False, keys)
            return
        self._leader, self._gone = drag.page, False
        home, controls.camera, before = controls.camera, drag.camera, controls.hand
        if not controls.hand.grip:
            controls.pass_by(x, y)
            controls.button("left", True, keys)
        controls.move(x, y, drag.width, drag.height, keys)
        controls.camera, hand = home, controls.hand
        # a camera that looks from nowhere, or a way that leads there
        away = np.abs(hand.position - self._centre).max()
        if not (away <= REACH / self.scale and np.isfinite(hand.orientation).all()):
            controls.take_hold(before.position, before.orientation)

    async def _hear(self, event: Any) -> None:
        """A page drags; in viser's thread, where these come in their order."""
        x, y = (min(max(float(part), 0.0), 1.0) for part in event.end_screen_pos)
        view = event.client.camera
        self._drags.append(
            Dragged(
                event.client_id, event.phase, MODIFIERS.get(event.modifier, PLAIN), x, y, self.seen_by(view),
                max(int(view.image_width), 1), max(int(view.image_height), 1),
            )
        )  # fmt: skip

    def seen_by(self, view: Any) -> Camera:
        """A page's camera, in metres."""
        target, eye = view.look_at / self.scale, view.position / self.scale
        back = eye - target
        distance = float(np.clip(np.linalg.norm(back), CLOSEST, FARTHEST))
        azimuth, rise = math.atan2(back[0], back[2]), math.asin(min(max(back[1] / distance, -1.0), 1.0))
        angle = min(max(math.degrees(view.fov), 1.0), 120.0)
        return Camera(tuple(target.tolist()), distance, math.degrees(azimuth), math.degrees(rise), angle)

    def _place(self, home: Camera) -> None:
        """Let pages look from where the scene is seen, and follow as it grows, until somebody moves them."""
        pages = self._viser.get_clients()
        for number, page in pages.items():
            view, placed = page.camera, self.placed.get(number)
            if placed is not None:
                way = np.linalg.norm(self.seen_by(view).eye - placed.own.eye)
                moved = bool(way > MOVED * placed.own.distance)
                fits = placed.home is home and abs(view.aspect - placed.aspect) < SHAPED * placed.aspect
                if moved or fits:
                    continue
            own = home.keep(self._points, view.aspect)
            if view.aspect < NARROW:
                own = own.zoom(0.7).pan(0.0, -0.25)
            with page.atomic():
                view.position, view.look_at = self.scale * own.eye, self.scale * np.array(own.target)
                view.up_direction, view.fov = (0.0, 1.0, 0.0), math.radians(own.field_of_view)
            self.placed[number] = GivenView(home, view.aspect, own)
        self.placed = {number: given for number, given in self.placed.items() if number in pages}
