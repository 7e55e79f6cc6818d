"""A SpaceMouse or a gamepad that turns the view, while another device leads the tool."""

import threading

from palpo.haptics.errors import HapticsError
from palpo.haptics.led import Source
from palpo.haptics.rate import QUIET, Deflection, speed_of
from palpo.render.controls import Controls

ORBIT, PAN, ZOOM = 90.0, 0.5, 1.0
"""Speed at full deflection: degrees, heights of the picture, and e-folds of its scale, a second."""
PATIENCE = 0.05
"""Seconds for which a report is waited for."""


def open_knob(word: str) -> "ViewKnob":
    """The device that `--camera` names. Raises HapticsError for one that turns no view, or is not there."""
    from palpo.haptics.backends.gamepad import Gamepad
    from palpo.haptics.backends.spacemouse import SpaceMouse

    makers = {"spacemouse": SpaceMouse, "gamepad": Gamepad}
    if word not in makers:
        raise HapticsError(f"--camera {word}: choose {' or '.join(makers)}")
    return ViewKnob(makers[word]())


class ViewKnob:
    """An open device whose deflection turns, shifts and zooms a view, read by a thread of its own.

    As if it held the scene: pushed to the right, the scene goes to the right; pulled, it comes; twisted, it
    turns. A device that is silent counts as released.
    """

    def __init__(self, source: Source[Deflection]) -> None:
        self.title, self.lost = source.title, ""
        self._source, self._deflection, self._quiet = source, Deflection(), 0.0
        self._over = threading.Event()
        self._reading = threading.Thread(target=self._read, name="camera", daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while not self._over.is_set():
            try:
                news = self._source.read(PATIENCE)
            except OSError as error:
                self._deflection = Deflection()
                self.lost = f"{self.title} was lost; the view is the pointer's ({error.strerror or error})"
                return
            self._quiet = 0.0 if news is not None else self._quiet + PATIENCE
            if news is not None:
                self._deflection = news
            elif self._quiet > QUIET:
                self._deflection = Deflection()

    def turn(self, controls: Controls, seconds: float) -> None:
        """Bring a view as far as the deflection leads it in a time [s]."""
        now = self._deflection
        right, up, near = seconds * speed_of(now.along, 1.0)
        tilt, twist, _ = seconds * ORBIT * speed_of(now.about, 1.0)
        if right or up or near or tilt or twist:
            controls.glide(PAN * right, PAN * up, ZOOM * near, -twist, -tilt)

    def close(self) -> None:
        """Leave it."""
        self._over.set()
        self._reading.join()
        self._source.close()
