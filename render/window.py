"""The operator's window: draws snapshots at its own pace, and hands pointer and keys to `Controls`.

Each frame is drawn into a framebuffer, as offscreen pictures are, and then copied to the window: a screenshot
is whole also where another window covers this one, and what has not changed since the last frame need not be
drawn again: what is behind the bodies, the panel, or all of it. Everything here belongs to the main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render import gl
from palpo.render.controls import Controls, key_list
from palpo.render.events import Events
from palpo.render.framebuffer import Framebuffer, Picture, on_processor, window_samples
from palpo.render.glfw_context import GlfwContext
from palpo.render.headset import Headset
from palpo.render.layer import Layer
from palpo.render.pace import Pace, Paced
from palpo.render.scene_view import SceneView, visible_points

__all__ = ["Layer", "Window"]

SOFTWARE_SHARE = 0.9
"""Part of the time that a renderer on the processor may take for drawing."""

SOFTWARE_HZ = 30.0
"""Pictures a second that such a renderer draws at most: more would take the time from the loops."""

MIRRORED_HZ = 20.0
"""Pictures a second in the window while a headset is worn."""


class Window(Paced):
    """A window with a scene in it; RenderUnavailable, in one sentence, where there can be none.

    samples: of each pixel; None takes what the renderer can afford. render_hz: frames a second at most.
    """

    def __init__(
        self,
        title: str,
        width: int = 1280,
        height: int = 800,
        layer: Layer | None = None,
        visible: bool = True,
        samples: int | None = None,
        render_hz: float = 60.0,
    ) -> None:
        self._context = GlfwContext(title, width, height, visible)
        self._glfw, self.handle = self._context.glfw, self._context.handle
        self._glfw.swap_interval(1)
        self.renderer = gl.renderer()
        software = on_processor(self.renderer)
        self._samples = window_samples(self.renderer) if samples is None else samples
        self.scene_size = (width, height)
        """Width and height of the scene's part of the last frame [pixels]: what the layer does not cover."""
        self.arrow_scale = 0.0
        """Length of the force arrows in the last frame [m/N]."""
        self.most_hz = min(render_hz, SOFTWARE_HZ) if software else render_hz
        """Frames a second at most."""
        self._pace = Pace(self.most_hz, SOFTWARE_SHARE if software else 1.0)
        self._frame: Framebuffer | None = None
        self._backdrop: Framebuffer | None = None
        """What is behind the bodies, kept until the camera moves."""
        self._behind: object = None
        """What the backdrop was drawn from."""
        self._shown: object = None
        """What the frame was drawn from."""
        self._view: SceneView | None = None
        self._restored: tuple[int, int, int, int] | None = None  # place and size before full screen
        self._layer = layer
        self._headset: Headset | None = None
        self._events = Events(self._glfw, self.handle, layer)
        if layer is not None:
            layer.attach(self.handle)

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def should_close(self) -> bool:
        """Whether the operator closed the window."""
        return bool(self._glfw.window_should_close(self.handle))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture [pixels]; zero while it is an icon."""
        width, height = self._glfw.get_framebuffer_size(self.handle)
        return int(width), int(height)

    @property
    def told(self) -> tuple[str, ...]:
        """Sentences for whoever opened it: what keys and pointer do."""
        return tuple(f"  {keys:<24}{words}" for keys, words in key_list(True))

    def wear(self, headset: Headset | None) -> None:
        """Draw for this headset too, at its pace, and the window's own picture less often; None for none."""
        self._headset = headset
        self._glfw.swap_interval(0 if headset is not None else 1)

    def show(self, geometry: SceneGeometry, state: SceneState, held: str = "") -> None:
        """Draw this scene from now on; the one before is given back.

        held: the shape that the hand holds, which the pointer leads here from wherever it is pressed.
        """
        self._context.make_current()
        view = SceneView(geometry, state, smooth=not self._samples)
        if self._view is not None:
            self._view.delete()
        self._view, self._shown = view, None

    def haunt(self, ghost: SceneGeometry | None) -> None:
        """Draw these shapes faintly beside the scene, where `frame` is told they are; None for none."""
        self._context.make_current()
        if self._view is not None:
            self._view.haunt(ghost)
        self._shown = None

    def frame(
        self,
        state: SceneState,
        controls: Controls,
        ui: Callable[[], object] | None = None,
        ghost: NDArray[np.float64] | None = None,
    ) -> None:
        """Draw a frame, if it differs from the last, and heed events until the next one is due.

        ui: fills the layer. ghost: where the shapes of `haunt` are (n, 3) [m].

        What failed in a callback is raised here; RuntimeError if no scene was shown.
        """
        if self._view is None:
            raise RuntimeError("show a scene before its first frame.")
        began = time.perf_counter_ns()
        self._events.controls = controls
        if self._headset is not None and self._worn(self._headset, state, controls, ghost):
            return
        width, height = self.size
        drawn = False
        if width and height:
            self._context.make_current()
            fresh = self._fit(width, height)
            if self._layer is not None and (fresh or self._layer.due):
                fresh = True
                self._layer.begin()
                if ui is not None:
                    ui()
            drawn = fresh or self._layer is None or self._shown != _sight(state, controls)
            if drawn:
                if ghost is not None:
                    self._view.ghost_at(ghost)
                self._draw(self._view, state, controls, fresh)
                self._glfw.swap_buffers(self.handle)
                # with the camera that it was drawn by, which keeps the scene in the picture
                self._shown = _sight(state, controls)
        self._pace.shown(began, time.perf_counter_ns(), state.published_ns, drawn)
        self._heed()

    def screenshot(self) -> Picture:
        """The last frame, shape (height, width, 3), the first row on top; RuntimeError before the first."""
        if self._frame is None:
            raise RuntimeError("there is no frame to take a picture of yet.")
        self._context.make_current()
        return self._frame.read()

    def toggle_fullscreen(self) -> None:
        """Fill the monitor that shows most of the window, or return to the place before."""
        glfw, handle = self._glfw, self.handle
        if self._restored is not None:
            glfw.set_window_monitor(handle, None, *self._restored, glfw.DONT_CARE)
            self._restored = None
            return
        monitor = self._monitor()
        if monitor is not None:
            self._restored = (*glfw.get_window_pos(handle), *glfw.get_window_size(handle))
            mode = glfw.get_video_mode(monitor)
            glfw.set_window_monitor(handle, monitor, 0, 0, *mode.size, mode.refresh_rate)

    def close(self) -> None:
        """Give everything back and close the window."""
        self._context.make_current()
        if self._layer is not None:
            self._layer.detach()
        if self._view is not None:
            self._view.delete()
        self._give_back()
        self._context.close()

    def _draw(self, view: SceneView, state: SceneState, controls: Controls, fresh: bool) -> None:
        """Draw the scene beside the layer, then the layer: whole if it is `fresh`."""
        assert self._frame is not None and self._backdrop is not None
        width, height, layer = self._frame.width, self._frame.height, self._layer
        beside = max(1, width - (layer.covered if layer is not None else 0))
        self.scene_size = beside, height
        self._events.scene_share = beside / width
        controls.see(partial(visible_points, view.geometry, state), beside / height)
        camera, overlays = controls.camera, controls.overlays
        if overlays.paired:
            self._frame.bind()
            self.arrow_scale, self._behind = view.draw(state, camera, beside, height, overlays), None
        else:
            self._draw_one(view, state, controls, beside)
        if layer is not None:
            (layer.end if fresh else layer.again)(width, height)
        self._frame.show()

    def _draw_one(self, view: SceneView, state: SceneState, controls: Controls, beside: int) -> None:
        """Draw the scene over the backdrop, which is kept until the camera moves."""
        assert self._frame is not None and self._backdrop is not None
        height, camera, overlays = self._frame.height, controls.camera, controls.overlays
        backdrop = view, camera, beside, overlays.grid, overlays.axes
        if backdrop != self._behind:
            self._backdrop.bind()
            view.draw_backdrop(camera, beside, height, overlays)
            self._behind = backdrop
        self._frame.take(self._backdrop, beside)
        self.arrow_scale = view.draw_bodies(state, camera, beside, height, overlays)

    def _worn(
        self, headset: Headset, state: SceneState, controls: Controls, ghost: NDArray[np.float64] | None
    ) -> bool:
        """Draw for the headset; whether it is its turn again before the window's."""
        assert self._view is not None
        self._context.make_current()
        if ghost is not None:
            self._view.ghost_at(ghost)
        if not headset.draw(self._view, state, controls.camera, controls.overlays):
            return False
        self._pace.at_most(MIRRORED_HZ)
        self._glfw.poll_events()
        self._events.raise_failure()
        return self._pace.left(time.perf_counter_ns()) > 0.0

    def _fit(self, width: int, height: int) -> bool:
        """Have framebuffers of this size; whether they are new ones."""
        if self._frame is not None and (self._frame.width, self._frame.height) == (width, height):
            return False
        self._give_back()
        self._frame = Framebuffer(width, height, self._samples)
        self._backdrop = Framebuffer(width, height, self._samples)
        return True

    def _give_back(self) -> None:
        for buffer in (self._frame, self._backdrop):
            if buffer is not None:
                buffer.delete()
        self._frame = self._backdrop = self._behind = self._shown = None

    def _heed(self) -> None:
        """Sleep and heed events until the next frame is due, at least once."""
        worn = self._headset is not None and self._headset.running
        left = 0.0 if worn else self._pace.left(time.perf_counter_ns())
        self._glfw.poll_events()
        while left > 0.0:
            self._events.raise_failure()
            self._glfw.wait_events_timeout(left)
            left = self._pace.left(time.perf_counter_ns())
        self._events.raise_failure()

    def _monitor(self) -> Any:
        """The monitor on which the window's middle is, else the first; None if there is none."""
        glfw = self._glfw
        (x, y), (w, h) = glfw.get_window_pos(self.handle), glfw.get_window_size(self.handle)
        for monitor in glfw.get_monitors():
            left, top, width, height = glfw.get_monitor_workarea(monitor)
            if left <= x + w // 2 < left + width and top <= y + h // 2 < top + height:
                return monitor
        return glfw.get_primary_monitor()


def _sight(state: SceneState, controls: Controls) -> object:
    """What a frame's scene depends on: two that are equal look the same."""
    moving = (state.device_point, state.device_turn, state.held_point, state.hand_force, state.nearest)
    values = (state.vertices.ctypes.data, state.scalar_kind, *(array.tobytes() for array in moving))
    return state.tick, state.published_ns, controls.camera, controls.overlays, values
