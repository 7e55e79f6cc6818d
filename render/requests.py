"""What the operator asks for, by key, pointer or panel: the same words whichever way they come."""

from typing import NamedTuple


class Request(NamedTuple):
    """One wish of the operator; the application decides what becomes of it.

    kind: "set" (the knob `key` to `value`), "overlay" (the flag `key` of `Overlays` to `value`), "scene" or
    "view" (the one named `value`); "pick" (the body at `value`, right and down in shares of the picture);
    of a recording "seek" (the moment `value` [s]) or "speed" (`value` seconds of it in one); or one of
    "pause", "step", "back", "reset", "keep", "undo", "save", "record", "mute", "align", "mirror",
    "emergency", "screenshot", "fullscreen", "fit", "follow", "grip", "press", "scenes",
    "help" and "quit", which need no more.
    `Controls.ask` answers "overlay" (the other value, if it is None), "view", "fit", "follow", "grip"
    and, of a tool that the pointer drives, "press" itself.
    """

    kind: str
    key: str = ""
    value: object = None
