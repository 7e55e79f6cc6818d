"""A headset beside the window, by OpenXR: two eyes that see the scene at the size at which the hand feels it.

The window's camera says from where: its target lies as far in front of the eyes as the camera is from it, in
metres of the device's workspace, so that what is drawn can be brought to where the device is.
  still:   whichever way the head turns, the eyes look as the camera does;
  tracked: the scene stands in the room. The head at the origin of OpenXR's local space, which the headset's
           own way of recentring sets, looks as the camera does, upright; from there its pose turns the view.
An eye at e (3,) [m] of the room, the target at c, sees from x = t + s A (e - c), with the target t, metres s
of the scene for one of the room, and A whose columns are the room's axes in the scene.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.exchange.snapshot import SceneState
from palpo.render import gl
from palpo.render.camera import Camera
from palpo.render.framebuffer import Framebuffer
from palpo.render.gl import RenderUnavailable

if TYPE_CHECKING:
    from palpo.render.overlays import Overlays
    from palpo.render.scene_view import SceneView

Floats = NDArray[np.float64]
Tracking = Literal["still", "tracked"]

SRGB8_ALPHA8, RGBA8 = 0x8C43, 0x8058
"""OpenGL's numbers of the formats that are drawn into, the better one first: shaders write sRGB."""
NEAR, FAR = 1 / 50.0, 50.0
"""Nearest and farthest that is drawn, in distances of the target."""
PATIENCE = 10**9
"""Nanoseconds for which an image of the headset's is waited for."""


class Eye(NamedTuple):
    """One eye: what `SceneView` draws with in place of a camera."""

    eye: Floats
    """Where it is in the scene, shape (3,) [m]."""
    axes: Floats
    """Right, up and backward unit vectors as rows, shape (3, 3)."""
    tangents: tuple[float, float, float, float]
    """Of the angles to the left, right, upper and lower edge of its picture; left and lower are negative."""
    distance: float
    """Of the target [m]."""

    def matrix(self, aspect: float) -> Floats:
        """World to clip coordinates, shape (4, 4); the picture's shape is the tangents', not `aspect`."""
        left, right, up, down = self.tangents
        near, far = NEAR * self.distance, FAR * self.distance
        view, frustum = np.eye(4), np.zeros((4, 4))
        view[:3, :3], view[:3, 3] = self.axes, -self.axes @ self.eye
        frustum[0, 0], frustum[0, 2] = 2.0 / (right - left), (right + left) / (right - left)
        frustum[1, 1], frustum[1, 2] = 2.0 / (up - down), (up + down) / (up - down)
        frustum[2, 2], frustum[2, 3] = (far + near) / (near - far), 2 * far * near / (near - far)
        frustum[3, 2] = -1.0
        return frustum @ view


def rotation(quaternion: ArrayLike) -> Floats:
    """Matrix (3, 3) of a quaternion (x, y, z, w), as OpenXR orders it."""
    x, y, z, w = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def eye_of(
    camera: Camera, scale: float, tracking: Tracking, place: ArrayLike, turn: ArrayLike, angles: ArrayLike
) -> Eye:
    """An eye as OpenXR tells it: place (3,) [m], turn (x, y, z, w), angles (left, right, up, down) [rad].

    Both are in the head's axes if still, in those of the room if tracked. scale: metres of the scene for one
    of the room.
    """
    level = Camera(azimuth=camera.azimuth, elevation=0.0) if tracking == "tracked" else camera
    axes = level.axes.T
    target = np.asarray(camera.target)
    before = -camera.distance / scale * (level.axes @ camera.axes[2])
    seen = target + scale * axes @ (np.asarray(place, float) - before)
    left, right, up, down = np.tan(np.asarray(angles, float)).tolist()
    return Eye(seen, (axes @ rotation(turn)).T, (left, right, up, down), camera.distance)


class Headset:
    """Needs the window's context to be current at every call, in the main thread.

    tracking: whether the head's pose turns the view. Raises RenderUnavailable, in one sentence, where there
    is no pyopenxr, no runtime, or no headset.
    """

    def __init__(self, tracking: Tracking = "still") -> None:
        self.tracking = tracking
        self.scale = 1.0
        """Metres of the scene for one of the room."""
        self.running = False
        """Whether it shows pictures now: the loop then keeps its pace, which `draw` waits for."""
        self.lost = ""
        """Why it is over, in words, once it is."""
        os.environ.setdefault("XR_LOADER_DEBUG", "none")  # what is missing is said here, once
        try:
            self._xr: Any = importlib.import_module("xr")
        except (ImportError, OSError) as error:
            raise RenderUnavailable(
                f"a headset needs pyopenxr ({error}); pip install 'palpo[headset]'."
            ) from error
        self._undo: list[Callable[[], object]] = []
        try:
            self._open()
        except self._xr.exception.ResultException as error:
            self.close()
            raise RenderUnavailable(
                f"no headset (OpenXR: {_words(error)}); start its runtime, and connect it."
            ) from error
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        xr = self._xr
        self.instance = xr.create_instance(xr.InstanceCreateInfo(
            application_info=xr.ApplicationInfo(application_name="palpo", api_version=xr.Version(1, 0, 0)),
            enabled_extension_names=[xr.KHR_OPENGL_ENABLE_EXTENSION_NAME],
        ))  # fmt: skip
        self._undo.append(lambda: xr.destroy_instance(self.instance))
        system = xr.get_system(
            self.instance, xr.SystemGetInfo(form_factor=xr.FormFactor.HEAD_MOUNTED_DISPLAY)
        )
        _require_gl(xr, self.instance, system)
        self._binding = _binding(xr)
        bound = ctypes.cast(ctypes.pointer(self._binding), ctypes.c_void_p)
        self.session = xr.create_session(self.instance, xr.SessionCreateInfo(system_id=system, next=bound))
        self._undo.append(lambda: xr.destroy_session(self.session))
        kind = xr.ReferenceSpaceType.LOCAL if self.tracking == "tracked" else xr.ReferenceSpaceType.VIEW
        self._space = xr.create_reference_space(
            self.session, xr.ReferenceSpaceCreateInfo(reference_space_type=kind)
        )
        self._undo.append(lambda: xr.destroy_space(self._space))
        self._views = xr.ViewConfigurationType.PRIMARY_STEREO
        self._blend = xr.enumerate_environment_blend_modes(self.instance, system, self._views)[0]
        formats = [int(one) for one in xr.enumerate_swapchain_formats(self.session)]
        chosen = next((one for one in (SRGB8_ALPHA8, RGBA8) if one in formats), None)
        if chosen is None:
            raise RenderUnavailable("no headset: it takes no pictures of 8 bits a colour.")
        self._frame = int(gl.glGenFramebuffers(1))
        self._undo.append(lambda: gl.glDeleteFramebuffers(1, np.array([self._frame], np.uint32)))
        self._eyes = [
            self._swapchain(view, chosen)
            for view in xr.enumerate_view_configuration_views(self.instance, system, self._views)
        ]

    def _swapchain(self, view: Any, chosen: int) -> tuple[Any, list[int], Framebuffer]:
        """Images of one eye: the chain, their textures, and what is drawn into before."""
        xr = self._xr
        width, height = view.recommended_image_rect_width, view.recommended_image_rect_height
        chain = xr.create_swapchain(self.session, xr.SwapchainCreateInfo(
            usage_flags=xr.SwapchainUsageFlags.COLOR_ATTACHMENT_BIT, format=chosen, sample_count=1,
            width=width, height=height, face_count=1, array_size=1, mip_count=1,
        ))  # fmt: skip
        self._undo.append(lambda: xr.destroy_swapchain(chain))
        images = xr.enumerate_swapchain_images(chain, xr.SwapchainImageOpenGLKHR)
        drawn = Framebuffer(width, height)
        self._undo.append(drawn.delete)
        return chain, [int(one.image) for one in images], drawn

    def close(self) -> None:
        """Give everything back. A second time does nothing."""
        self.running = False
        while self._undo:
            undo = self._undo.pop()
            try:
                undo()
            except self._xr.exception.ResultException:
                continue  # it is gone already

    def draw(self, view: SceneView, state: SceneState, camera: Camera, overlays: Overlays) -> bool:
        """Wait for the headset's next picture and draw it, if it shows any now; whether it does."""
        try:
            self._heed()
            if self.running:
                self._picture(view, state, camera, overlays)
        except self._xr.exception.ResultException as error:
            self._end(f"the headset was lost ({_words(error)}); the run goes on")
        return self.running

    def _end(self, words: str) -> None:
        self.running, self.lost = False, self.lost or words

    def _heed(self) -> None:
        """Take the runtime's events, as far as there are any."""
        xr = self._xr
        while not self.lost:
            try:
                event = xr.poll_event(self.instance)
            except xr.EventUnavailable:
                return
            if event.type == xr.StructureType.EVENT_DATA_INSTANCE_LOSS_PENDING:
                self._end("the headset's runtime has ended; the run goes on")
            if event.type != xr.StructureType.EVENT_DATA_SESSION_STATE_CHANGED:
                continue
            kind = ctypes.POINTER(xr.EventDataSessionStateChanged)
            state = xr.SessionState(ctypes.cast(ctypes.pointer(event), kind).contents.state)
            if state == xr.SessionState.READY:
                xr.begin_session(
                    self.session, xr.SessionBeginInfo(primary_view_configuration_type=self._views)
                )
                self.running = True
            elif state == xr.SessionState.STOPPING:
                self.running = False
                xr.end_session(self.session)
            elif state in (xr.SessionState.EXITING, xr.SessionState.LOSS_PENDING):
                self._end("the headset was taken away; the run goes on")

    def _picture(self, view: SceneView, state: SceneState, camera: Camera, overlays: Overlays) -> None:
        xr = self._xr
        due = xr.wait_frame(self.session, xr.FrameWaitInfo())
        with suppress(xr.FrameDiscarded):  # of the picture before, if it came too late
            xr.begin_frame(self.session, xr.FrameBeginInfo())
        layers = []
        try:
            if due.should_render:
                found, eyes = xr.locate_views(self.session, xr.ViewLocateInfo(
                    view_configuration_type=self._views, display_time=due.predicted_display_time,
                    space=self._space,
                ))  # fmt: skip
                known = xr.ViewStateFlags.POSITION_VALID_BIT | xr.ViewStateFlags.ORIENTATION_VALID_BIT
                if found.view_state_flags & known == known:
                    layers.append(self._layer(view, state, camera, overlays, eyes))
        finally:
            xr.end_frame(self.session, xr.FrameEndInfo(
                display_time=due.predicted_display_time, environment_blend_mode=self._blend,
                layers=[ctypes.pointer(layer) for layer in layers],
            ))  # fmt: skip

    def _layer(
        self, view: SceneView, state: SceneState, camera: Camera, overlays: Overlays, eyes: Any
    ) -> Any:
        """Both eyes drawn, as the layer that shows them."""
        xr, shown = self._xr, []
        for (chain, images, drawn), told in zip(self._eyes, eyes, strict=True):
            p, q, f = told.pose.position, told.pose.orientation, told.fov
            eye = eye_of(
                camera, self.scale, self.tracking, (p.x, p.y, p.z), (q.x, q.y, q.z, q.w),
                (f.angle_left, f.angle_right, f.angle_up, f.angle_down),
            )  # fmt: skip
            drawn.bind()
            view.draw_backdrop(eye, drawn.width, drawn.height, overlays)
            view.draw_bodies(state, eye, drawn.width, drawn.height, overlays)
            image = images[xr.acquire_swapchain_image(chain, xr.SwapchainImageAcquireInfo())]
            xr.wait_swapchain_image(chain, xr.SwapchainImageWaitInfo(timeout=PATIENCE))
            drawn.copy_to_texture(self._frame, image)
            xr.release_swapchain_image(chain, xr.SwapchainImageReleaseInfo())
            part = xr.SwapchainSubImage(
                swapchain=chain,
                image_rect=xr.Rect2Di(xr.Offset2Di(0, 0), xr.Extent2Di(drawn.width, drawn.height)),
            )
            shown.append(xr.CompositionLayerProjectionView(pose=told.pose, fov=told.fov, sub_image=part))
        return xr.CompositionLayerProjection(space=self._space, views=shown)


def _words(error: Any) -> str:
    """What OpenXR calls a result."""
    return str(error.get_result_enum().name.removeprefix("ERROR_").replace("_", " ").lower())


def _require_gl(xr: Any, instance: Any, system: Any) -> None:
    """Ask what OpenGL the runtime needs, as must be done before a session."""
    address = xr.get_instance_proc_addr(instance, "xrGetOpenGLGraphicsRequirementsKHR")
    ask = ctypes.cast(address, xr.PFN_xrGetOpenGLGraphicsRequirementsKHR)
    result = xr.check_result(
        xr.Result(ask(instance, system, ctypes.byref(xr.GraphicsRequirementsOpenGLKHR())))
    )
    if result.is_exception():
        raise result


def _binding(xr: Any) -> Any:
    """The current OpenGL context as the runtime is told it."""
    if gl.window_platform() != "x11":
        wgl: Any = importlib.import_module("OpenGL.WGL")
        return xr.GraphicsBindingOpenGLWin32KHR(h_dc=wgl.wglGetCurrentDC(), h_glrc=wgl.wglGetCurrentContext())
    glx: Any = importlib.import_module("OpenGL.GLX")
    display, context = glx.glXGetCurrentDisplay(), glx.glXGetCurrentContext()
    number, count = ctypes.c_int(), ctypes.c_int()
    glx.glXQueryContext(display, context, glx.GLX_FBCONFIG_ID, ctypes.byref(number))
    wanted = (ctypes.c_int * 3)(glx.GLX_FBCONFIG_ID, number.value, 0)
    config = glx.glXChooseFBConfig(display, 0, wanted, ctypes.byref(count))[0]
    visual = ctypes.c_int()
    glx.glXGetFBConfigAttrib(display, config, glx.GLX_VISUAL_ID, ctypes.byref(visual))
    return xr.GraphicsBindingOpenGLXlibKHR(
        x_display=display, visualid=visual.value, glx_fbconfig=config,
        glx_drawable=glx.glXGetCurrentDrawable(), glx_context=context,
    )  # fmt: skip
