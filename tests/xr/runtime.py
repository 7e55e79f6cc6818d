"""An OpenXR runtime without a headset, as strict as the specification: behind the real loader.

Written from the OpenXR 1.0 specification, with pyopenxr's structures, which are made from Khronos' registry.
What an application may not do is refused with the result that the specification names, and noted:
  session: the graphics requirements were asked for before, the binding is the current context;
  states: READY, then xrBeginSession; frames only of a running session; STOPPING, then xrEndSession;
  frames: xrWaitFrame, xrBeginFrame, xrEndFrame in turn, with the predicted time and a known blend mode;
  images: acquired, waited for, released in this order, each before the frame that shows it ends;
  layers: a projection of two views, whose images, poses (unit quaternions) and angles are valid;
  handles: none is used after it was destroyed, and none is left with its parent.
Knobs: where the head is (`head`), whether it is known, whether pictures are wanted, states that are told, and
results with which functions fail.
"""

import ctypes
import json
import math
import os
import threading
import time
from pathlib import Path

import numpy as np
import xr
from OpenGL import GL, GLX

from tests.stand_in_library import build
from tests.xr.eyes import ANGLES, HALF_IPD, HEIGHT, HZ, IMAGES, WIDTH

FORMATS = (0x8058, 0x8C43)
R = xr.Result


def unit(q):
    return abs(math.sqrt(q.x**2 + q.y**2 + q.z**2 + q.w**2) - 1.0) < 0.01


class Refused(Exception):
    """A result that an application gets for what it may not do."""


def turned(q, v):
    """A vector (3,) turned by a quaternion (x, y, z, w)."""
    u, w = np.array(q[:3]), q[3]
    return v + 2.0 * np.cross(u, np.cross(u, v) + w * np.asarray(v))


class Runtime:
    """Its functions are found by the loader; `install` says where, before xr creates an instance."""

    def __init__(self):
        self.refused, self.calls, self.pictures, self.frames = [], [], [], 0
        self.head = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        """Place [m] and turn (x, y, z, w) in the local space."""
        self.known = self.wanted = True
        self.fails = {}
        """Results by function."""
        self.there = True
        self._handles, self._next = {}, 0x1000
        self._events, self._asked, self.state = [], False, None
        self.running, self._waited, self._begun, self._time = False, None, None, 0
        self._kept, self._thread, self._due = {}, None, 0.0

    # ---- for tests

    def install(self, folder):
        library = build(Path(__file__).with_name("runtime.c"), "libstandin_xr.so", Path(folder))
        manifest = Path(folder) / "runtime.json"
        runtime = {"name": "stand-in", "library_path": str(library)}
        manifest.write_text(json.dumps({"file_format_version": "1.0.0", "runtime": runtime}))
        self._kept[""] = xr.PFN_xrGetInstanceProcAddr(self._address)
        address = ctypes.cast(self._kept[""], ctypes.c_void_p).value
        os.environ |= {"STANDIN_XR": str(address), "XR_RUNTIME_JSON": str(manifest)}

    def tell(self, state):
        """Change the session's state, and say so."""
        self.state = state
        event = xr.EventDataSessionStateChanged(session=self.session, state=state, time=1)
        self._events.append(event)

    # ---- finding functions

    def _address(self, instance, name, function):
        name = name.decode()
        method = getattr(self, name, None)
        if method is None:
            ctypes.cast(function, ctypes.POINTER(ctypes.c_void_p))[0] = None
            return R.ERROR_FUNCTION_UNSUPPORTED.value
        if name not in self._kept:
            self._kept[name] = getattr(xr, f"PFN_{name}")(self._guarded(name, method))
        address = ctypes.cast(self._kept[name], ctypes.c_void_p).value
        ctypes.cast(function, ctypes.POINTER(ctypes.c_void_p))[0] = address
        return 0

    def _guarded(self, name, method):
        def call(*arguments):
            self.calls.append(name)
            try:
                if name in self.fails:
                    return self.fails[name].value
                done = method(*arguments)
                return 0 if done is None else done
            except Refused as refused:
                result, why = refused.args
                self.refused.append(f"{name}: {why}")
                return result.value
            except BaseException as error:
                self.refused.append(f"{name}: {type(error).__name__} {error}")
                return R.ERROR_RUNTIME_FAILURE.value

        return call

    # ---- handles

    def _make(self, kind, out, parent=None, **content):
        self._next += 0x10
        self._handles[self._next] = {"kind": kind, "parent": parent} | content
        ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[0] = self._next
        return self._next

    def _get(self, handle, kind):
        key = ctypes.cast(handle, ctypes.c_void_p).value
        found = self._handles.get(key)
        if found is None or found["kind"] != kind:
            raise Refused(R.ERROR_HANDLE_INVALID, f"no {kind} {key}")
        return key, found

    def _destroy(self, handle, kind):
        key, _ = self._get(handle, kind)
        left = [h["kind"] for h in self._handles.values() if h["parent"] == key]
        if left:
            self.refused.append(f"a {kind} was destroyed before its {left}")
        del self._handles[key]

    def _check(self, true, result, why):
        if not true:
            raise Refused(result, why)

    def _typed(self, pointer, kind):
        content = pointer.contents
        self._check(content.type == kind, R.ERROR_VALIDATION_FAILURE, f"type is not {kind}")
        return content

    def _several(self, capacity, count, out, values, fill):
        """The two calls that ask for a number, then for that many."""
        count[0] = len(values)
        if capacity == 0:
            return
        self._check(capacity >= len(values), R.ERROR_SIZE_INSUFFICIENT, "too little room")
        for k, value in enumerate(values):
            fill(k, value)

    # ---- instance and system

    def xrEnumerateInstanceExtensionProperties(self, layer, capacity, count, out):
        def fill(k, name):
            out[k].extension_name = name
            out[k].extension_version = 10

        return self._several(capacity, count, out, [xr.KHR_OPENGL_ENABLE_EXTENSION_NAME.encode()
            if isinstance(xr.KHR_OPENGL_ENABLE_EXTENSION_NAME, str) else xr.KHR_OPENGL_ENABLE_EXTENSION_NAME],
            fill)  # fmt: skip

    def xrCreateInstance(self, info, out):
        told = self._typed(info, xr.StructureType.INSTANCE_CREATE_INFO)
        self._check(told.application_info.application_name, R.ERROR_NAME_INVALID, "no name")
        names = [str(told.enabled_extension_names[k]) for k in range(told.enabled_extension_count)]
        self._check(
            any("XR_KHR_opengl_enable" in name for name in names), R.ERROR_EXTENSION_NOT_PRESENT, names
        )
        self._make("instance", out)

    def xrDestroyInstance(self, instance):
        self._destroy(instance, "instance")

    def xrGetInstanceProperties(self, instance, out):
        self._get(instance, "instance")
        out.contents.runtime_name = b"stand-in"

    def xrResultToString(self, instance, value, out):
        text = R(value).name.encode()[:63]
        ctypes.memmove(out, text + b"\0", len(text) + 1)

    def xrGetSystem(self, instance, info, out):
        self._get(instance, "instance")
        told = self._typed(info, xr.StructureType.SYSTEM_GET_INFO)
        hmd = told.form_factor == xr.FormFactor.HEAD_MOUNTED_DISPLAY
        self._check(hmd, R.ERROR_FORM_FACTOR_UNSUPPORTED, "no head-mounted display")
        if not self.there:
            return R.ERROR_FORM_FACTOR_UNAVAILABLE.value
        ctypes.cast(out, ctypes.POINTER(ctypes.c_uint64))[0] = 1
        return 0

    def xrGetOpenGLGraphicsRequirementsKHR(self, instance, system, out):
        self._get(instance, "instance")
        self._asked = True
        out.contents.min_api_version_supported = xr.Version(3, 3, 0).number()
        out.contents.max_api_version_supported = xr.Version(4, 6, 0).number()

    def xrEnumerateEnvironmentBlendModes(self, instance, system, kind, capacity, count, out):
        modes = [xr.EnvironmentBlendMode.OPAQUE.value]
        return self._several(capacity, count, out, modes, lambda k, mode: out.__setitem__(k, mode))

    def xrEnumerateViewConfigurationViews(self, instance, system, kind, capacity, count, out):
        self._stereo(kind)

        def fill(k, _):
            view = out[k]
            self._check(
                view.type == xr.StructureType.VIEW_CONFIGURATION_VIEW, R.ERROR_VALIDATION_FAILURE, "type"
            )
            view.recommended_image_rect_width = view.max_image_rect_width = WIDTH
            view.recommended_image_rect_height = view.max_image_rect_height = HEIGHT
            view.recommended_swapchain_sample_count = view.max_swapchain_sample_count = 1

        return self._several(capacity, count, out, [0, 1], fill)

    def _stereo(self, kind):
        wanted = xr.ViewConfigurationType.PRIMARY_STEREO.value
        self._check(getattr(kind, "value", kind) == wanted, R.ERROR_VIEW_CONFIGURATION_TYPE_UNSUPPORTED, kind)

    # ---- session and space

    def xrCreateSession(self, instance, info, out):
        key, _ = self._get(instance, "instance")
        told = self._typed(info, xr.StructureType.SESSION_CREATE_INFO)
        self._check(
            self._asked, R.ERROR_GRAPHICS_REQUIREMENTS_CALL_MISSING, "requirements were not asked for"
        )
        self._check(told.next, R.ERROR_GRAPHICS_DEVICE_INVALID, "no graphics binding")
        binding = ctypes.cast(told.next, ctypes.POINTER(xr.GraphicsBindingOpenGLXlibKHR)).contents
        kind = xr.StructureType.GRAPHICS_BINDING_OPENGL_XLIB_KHR
        context = ctypes.cast(GLX.glXGetCurrentContext(), ctypes.c_void_p).value
        mine = ctypes.cast(binding.glx_context, ctypes.c_void_p).value
        whole = binding.x_display and binding.glx_drawable and binding.visualid and binding.glx_fbconfig
        fits = binding.type == kind and whole and mine == context
        self._check(fits, R.ERROR_GRAPHICS_DEVICE_INVALID, "not the current context of X")
        self._thread = threading.get_ident()
        self.session = xr.Session(
            ctypes.cast(self._make("session", out, key), ctypes.POINTER(xr.Session_T)).contents
        )
        for state in (xr.SessionState.IDLE, xr.SessionState.READY):
            self.tell(state)

    def xrDestroySession(self, session):
        self._destroy(session, "session")
        self.running = False

    def xrCreateReferenceSpace(self, session, info, out):
        key, _ = self._get(session, "session")
        told = self._typed(info, xr.StructureType.REFERENCE_SPACE_CREATE_INFO)
        kinds = xr.ReferenceSpaceType.VIEW, xr.ReferenceSpaceType.LOCAL
        self._check(told.reference_space_type in kinds, R.ERROR_REFERENCE_SPACE_UNSUPPORTED, "space")
        self._check(
            unit(told.pose_in_reference_space.orientation), R.ERROR_POSE_INVALID, "no unit quaternion"
        )
        self._make("space", out, key, of=told.reference_space_type)

    def xrDestroySpace(self, space):
        self._destroy(space, "space")

    def xrPollEvent(self, instance, out):
        self._get(instance, "instance")
        if not self._events:
            return R.EVENT_UNAVAILABLE.value
        event = self._events.pop(0)
        ctypes.memmove(out, ctypes.byref(event), ctypes.sizeof(event))
        return 0

    def xrBeginSession(self, session, info):
        self._get(session, "session")
        self._stereo(self._typed(info, xr.StructureType.SESSION_BEGIN_INFO).primary_view_configuration_type)
        self._check(self.state == xr.SessionState.READY, R.ERROR_SESSION_NOT_READY, self.state)
        self.running = True

    def xrEndSession(self, session):
        self._get(session, "session")
        self._check(self.running, R.ERROR_SESSION_NOT_RUNNING, "not running")
        self._check(self.state == xr.SessionState.STOPPING, R.ERROR_SESSION_NOT_STOPPING, self.state)
        self.running = False
        self.tell(xr.SessionState.IDLE)

    # ---- images

    def xrEnumerateSwapchainFormats(self, session, capacity, count, out):
        self._get(session, "session")
        return self._several(capacity, count, out, FORMATS, lambda k, value: out.__setitem__(k, value))

    def xrCreateSwapchain(self, session, info, out):
        key, _ = self._get(session, "session")
        told = self._typed(info, xr.StructureType.SWAPCHAIN_CREATE_INFO)
        self._check(told.format in FORMATS, R.ERROR_SWAPCHAIN_FORMAT_UNSUPPORTED, told.format)
        size = (told.width, told.height, told.face_count, told.array_size, told.mip_count, told.sample_count)
        self._check(size == (WIDTH, HEIGHT, 1, 1, 1, 1), R.ERROR_FEATURE_UNSUPPORTED, size)
        textures = []
        for _ in range(IMAGES):
            textures.append(int(GL.glGenTextures(1)))
            GL.glBindTexture(GL.GL_TEXTURE_2D, textures[-1])
            GL.glTexImage2D(
                GL.GL_TEXTURE_2D, 0, told.format, WIDTH, HEIGHT, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, None
            )
        GL.glBindTexture(GL.GL_TEXTURE_2D, 0)
        self._make("swapchain", out, key, textures=textures, at=0, phase="free", shown=None)

    def xrDestroySwapchain(self, chain):
        _, content = self._get(chain, "swapchain")
        GL.glDeleteTextures(len(content["textures"]), content["textures"])
        self._destroy(chain, "swapchain")

    def xrEnumerateSwapchainImages(self, chain, capacity, count, out):
        _, content = self._get(chain, "swapchain")
        images = ctypes.cast(out, ctypes.POINTER(xr.SwapchainImageOpenGLKHR))

        def fill(k, texture):
            kind = xr.StructureType.SWAPCHAIN_IMAGE_OPENGL_KHR
            self._check(images[k].type == kind, R.ERROR_VALIDATION_FAILURE, "image type")
            images[k].image = texture

        return self._several(capacity, count, out, content["textures"], fill)

    def _step(self, chain, before, after):
        _, content = self._get(chain, "swapchain")
        here = threading.get_ident() == self._thread
        self._check(here, R.ERROR_VALIDATION_FAILURE, "another thread than the context's")
        self._check(content["phase"] == before, R.ERROR_CALL_ORDER_INVALID, f"image is {content['phase']}")
        content["phase"] = after
        return content

    def xrAcquireSwapchainImage(self, chain, info, index):
        content = self._step(chain, "free", "acquired")
        content["at"] = (content["at"] + 1) % IMAGES
        index[0] = content["at"]

    def xrWaitSwapchainImage(self, chain, info):
        told = self._typed(info, xr.StructureType.SWAPCHAIN_IMAGE_WAIT_INFO)
        self._check(told.timeout > 0, R.ERROR_VALIDATION_FAILURE, "no patience")
        self._step(chain, "acquired", "waited")

    def xrReleaseSwapchainImage(self, chain, info):
        content = self._step(chain, "waited", "free")
        content["shown"] = content["textures"][content["at"]]

    # ---- frames

    def xrWaitFrame(self, session, info, out):
        self._get(session, "session")
        self._check(self.running, R.ERROR_SESSION_NOT_RUNNING, "not running")
        self._check(self._waited is None, R.ERROR_CALL_ORDER_INVALID, "waited for twice")
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._due = max(self._due, time.monotonic()) + 1.0 / HZ
        self._time += round(1e9 / HZ)
        self._waited = self._time
        state = self._typed(out, xr.StructureType.FRAME_STATE)
        state.predicted_display_time, state.predicted_display_period = self._time, round(1e9 / HZ)
        state.should_render = int(self.wanted)

    def xrBeginFrame(self, session, info):
        self._get(session, "session")
        self._check(self._waited is not None, R.ERROR_CALL_ORDER_INVALID, "begun before waited for")
        discarded = self._begun is not None
        self._begun, self._waited = self._waited, None
        return R.FRAME_DISCARDED.value if discarded else 0

    def xrLocateViews(self, session, info, state, capacity, count, out):
        self._get(session, "session")
        told = self._typed(info, xr.StructureType.VIEW_LOCATE_INFO)
        self._stereo(told.view_configuration_type)
        self._check(told.display_time == self._time, R.ERROR_TIME_INVALID, "another time than the frame's")
        _, space = self._get(told.space, "space")
        flags = xr.ViewStateFlags.POSITION_VALID_BIT | xr.ViewStateFlags.ORIENTATION_VALID_BIT
        state.contents.view_state_flags = flags if self.known else xr.ViewStateFlags.NONE
        place, q = self.head if space["of"] == xr.ReferenceSpaceType.LOCAL else (np.zeros(3), (0, 0, 0, 1))

        def fill(k, side):
            view = out[k]
            self._check(view.type == xr.StructureType.VIEW, R.ERROR_VALIDATION_FAILURE, "view type")
            at = np.asarray(place) + turned(q, np.array([side * HALF_IPD, 0.0, 0.0]))
            p, o, f = view.pose.position, view.pose.orientation, view.fov
            p.x, p.y, p.z = map(float, at)
            o.x, o.y, o.z, o.w = map(float, q)
            f.angle_left, f.angle_right, f.angle_up, f.angle_down = ANGLES[k]

        return self._several(capacity, count, out, [-1, 1], fill)

    def xrEndFrame(self, session, info):
        self._get(session, "session")
        told = self._typed(info, xr.StructureType.FRAME_END_INFO)
        self._check(self._begun is not None, R.ERROR_CALL_ORDER_INVALID, "ended before begun")
        self._check(told.display_time == self._begun, R.ERROR_TIME_INVALID, "another time than predicted")
        opaque = told.environment_blend_mode == xr.EnvironmentBlendMode.OPAQUE
        self._check(opaque, R.ERROR_ENVIRONMENT_BLEND_MODE_UNSUPPORTED, "blend mode")
        self._begun, self.frames = None, self.frames + 1
        shown = [self._shown(told.layers[k]) for k in range(told.layer_count)]
        self._check(len(shown) <= 1, R.ERROR_LAYER_LIMIT_EXCEEDED, "layers")
        self._check(self.wanted or not shown, R.ERROR_VALIDATION_FAILURE, "a layer that nobody wanted")
        self.pictures = shown[0] if shown else []
        if self.state == xr.SessionState.READY:
            for state in (xr.SessionState.SYNCHRONIZED, xr.SessionState.VISIBLE, xr.SessionState.FOCUSED):
                self.tell(state)

    def _shown(self, pointer):
        """The pictures of a layer, each (height, width, 3) with the first row on top."""
        kind = xr.StructureType.COMPOSITION_LAYER_PROJECTION
        self._check(pointer.contents.type == kind, R.ERROR_LAYER_INVALID, "no projection")
        layer = ctypes.cast(pointer, ctypes.POINTER(xr.CompositionLayerProjection)).contents
        self._get(layer.space, "space")
        self._check(layer.view_count == 2, R.ERROR_LAYER_INVALID, "not two views")
        pictures = []
        for k in range(2):
            view = layer.views[k]
            self._check(unit(view.pose.orientation), R.ERROR_POSE_INVALID, "no unit quaternion")
            f, rect = view.fov, view.sub_image.image_rect
            angles = np.array([f.angle_left, f.angle_right, f.angle_up, f.angle_down])
            self._check(np.allclose(angles, ANGLES[k]), R.ERROR_VALIDATION_FAILURE, "other angles than told")
            whole = (rect.offset.x, rect.offset.y, rect.extent.width, rect.extent.height)
            self._check(whole == (0, 0, WIDTH, HEIGHT), R.ERROR_SWAPCHAIN_RECT_INVALID, whole)
            _, chain = self._get(view.sub_image.swapchain, "swapchain")
            done = chain["phase"] == "free" and chain["shown"] is not None
            self._check(done, R.ERROR_LAYER_INVALID, "an image that was not released")
            GL.glBindTexture(GL.GL_TEXTURE_2D, chain["shown"])
            data = GL.glGetTexImage(GL.GL_TEXTURE_2D, 0, GL.GL_RGB, GL.GL_UNSIGNED_BYTE)
            GL.glBindTexture(GL.GL_TEXTURE_2D, 0)
            pictures.append(np.frombuffer(data, np.uint8).reshape(HEIGHT, WIDTH, 3)[::-1].copy())
        return pictures
