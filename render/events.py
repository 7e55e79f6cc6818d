"""glfw's events in the words of `Controls`, after a layer has had its choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palpo.render.controls import Controls, Modifiers
from palpo.render.layer import Layer

BUTTONS = ("left", "right", "middle")


class Events:
    """Installs the window's callbacks; what they hear goes to `controls` as soon as there are any."""

    def __init__(self, glfw: Any, handle: Any, layer: Layer | None) -> None:
        self._glfw, self._handle, self._layer = glfw, handle, layer
        self.controls: Controls | None = None
        self.scene_share = 1.0  # of the window's width, from the left
        self._failure: BaseException | None = None
        glfw.set_cursor_pos_callback(handle, self._guarded(self._move))
        glfw.set_mouse_button_callback(handle, self._guarded(self._button))
        glfw.set_scroll_callback(handle, self._guarded(self._scroll))
        glfw.set_key_callback(handle, self._guarded(self._key))
        glfw.set_cursor_enter_callback(handle, self._guarded(self._presence))
        glfw.set_window_focus_callback(handle, self._guarded(self._presence))

    def raise_failure(self) -> None:
        """Raise what failed first in a callback since the last call."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _guarded(self, heed: Callable[..., None]) -> Callable[..., None]:
        """A callback that keeps what fails: it cannot be raised through glfw's own frames."""

        def callback(_: Any, *event: Any) -> None:
            try:
                if self.controls is not None:
                    heed(self.controls, *event)
            except BaseException as failure:
                self._failure = self._failure or failure

        return callback

    def _move(self, controls: Controls, x: float, y: float) -> None:
        if self._layer is not None and self._layer.wants_pointer():
            controls.pass_by(x, y)
        else:
            width, height = self._glfw.get_window_size(self._handle)
            controls.move(x, y, round(width * self.scene_share), height, self._modifiers())

    def _button(self, controls: Controls, button: int, action: int, bits: int) -> None:
        pressed = action == self._glfw.PRESS
        # A release is heard everywhere, or a drag that ends over the layer would go on.
        if button >= len(BUTTONS) or (pressed and self._layer is not None and self._layer.wants_pointer()):
            return
        controls.button(BUTTONS[button], pressed, self._named(bits))

    def _scroll(self, controls: Controls, dx: float, dy: float) -> None:
        if self._layer is None or not self._layer.wants_pointer():
            controls.scroll(dx, dy, self._modifiers())

    def _key(self, controls: Controls, key: int, code: int, action: int, bits: int) -> None:
        if action != self._glfw.PRESS:
            return
        name = self._key_name(key, code)
        # The emergency stop is heard whoever has the keys.
        if name == "escape" or self._layer is None or not self._layer.wants_keys():
            controls.key(name, self._named(bits))

    def _presence(self, controls: Controls, present: int) -> None:
        """The pointer or the keyboard's focus came, or left."""
        if not present:
            controls.release()

    def _named(self, bits: int) -> Modifiers:
        """Modifiers by name; a Mac's command key counts as ctrl, with which it clicks the right button."""
        glfw = self._glfw
        ctrl = glfw.MOD_CONTROL | glfw.MOD_SUPER
        names = {"shift": glfw.MOD_SHIFT, "ctrl": ctrl, "alt": glfw.MOD_ALT}
        return frozenset(name for name, bit in names.items() if bits & bit)

    def _modifiers(self) -> Modifiers:
        """Those that are down now, for events that do not bring them."""
        keys = {"SHIFT": "shift", "CONTROL": "ctrl", "SUPER": "ctrl", "ALT": "alt"}
        glfw = self._glfw
        return frozenset(
            name
            for key, name in keys.items()
            for side in ("LEFT", "RIGHT")
            if glfw.get_key(self._handle, getattr(glfw, f"KEY_{side}_{key}")) == glfw.PRESS
        )

    def _key_name(self, key: int, code: int) -> str:
        """The key by what it writes in the operator's layout; digits by their place, shifted or not."""
        glfw = self._glfw
        named = {glfw.KEY_ESCAPE: "escape", glfw.KEY_SPACE: "space", glfw.KEY_F11: "f11"}
        for zero in (glfw.KEY_0, glfw.KEY_KP_0):
            named.update({zero + digit: str(digit) for digit in range(10)})
        return named.get(key) or str(glfw.get_key_name(key, code) or "").lower()
