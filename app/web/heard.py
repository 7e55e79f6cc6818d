"""What a page may say, and nothing else: from where it looks, what it drags, and which control was moved.

Viser's own client sends more (downloads, a public tunnel): the rest is passed over. What is too long,
malformed, not finite or too often ends its connection, before viser sees it.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

LONGEST = 1 << 12
"""Bytes of a message that is read."""
MOST_MESSAGES = 300
"""Messages a second that one page may send."""
LARGEST = 1e6
"""Largest number that a page may send."""
LETTERS = 200
"""Of a word or a text."""

Vector = tuple[float, float, float]
Modifier = Literal[
    "cmd/ctrl", "alt", "shift", "cmd/ctrl+alt", "cmd/ctrl+shift", "alt+shift", "cmd/ctrl+alt+shift"
]


class Said(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    """A message of viser's client; its class is in its `type`."""


class Looks(Said, tag="ViewerCameraMessage"):
    """From where the page looks."""

    wxyz: tuple[float, float, float, float]
    position: Vector
    fov: float
    near: float
    far: float
    image_height: int
    image_width: int
    look_at: Vector
    up_direction: Vector


class Drags(Said, tag="SceneNodeDragMessage"):
    """What it drags, from and to where."""

    phase: Literal["start", "update", "end"]
    name: str
    start_position: Vector
    start_screen_pos: tuple[float, float]
    end_position: Vector
    end_screen_pos: tuple[float, float]
    button: Literal["left", "middle", "right"]
    instance_index: int | None = None
    modifier: Modifier | None = None
    owner: str = ""


class Value(msgspec.Struct, forbid_unknown_fields=True):
    """Of a control."""

    value: bool | int | float | str


class Sets(Said, tag="GuiUpdateMessage"):
    """A control, and its new value."""

    uuid: str
    updates: Value


KNOWN = msgspec.msgpack.Decoder(Looks | Drags | Sets)


class KindOnly(msgspec.Struct):
    """Which message it is."""

    type: str


KIND = msgspec.msgpack.Decoder(KindOnly)
KINDS = {str(kind.__struct_config__.tag): kind for kind in (Looks, Drags, Sets)}


def heed(raw: object, leads: bool) -> bool:
    """Whether a message is to be heard. leads: whether its page may do more than look.

    Raises ValueError, in words, for one that is none.
    """
    if not isinstance(raw, bytes):
        raise ValueError("a text is no message")
    try:
        kind = KINDS.get(KIND.decode(raw).type)
        said = None if kind is None else KNOWN.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)[:100]) from None
    if said is None:
        return False
    _check(msgspec.to_builtins(said))
    return leads or isinstance(said, Looks)


def _check(value: object) -> None:
    """ValueError for numbers that are not finite or far too large, and for long texts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            _check(each)
    elif isinstance(value, str) and len(value) > LETTERS:
        raise ValueError("a text is too long")
    elif isinstance(value, int | float) and not (math.isfinite(value) and abs(value) <= LARGEST):
        raise ValueError("a number is too large, or none")
