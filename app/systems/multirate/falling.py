"""Which bodies of a multi-rate scene nothing holds up, so that they fall for as long as it runs."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.parts import BodyPart
from palpo.config.schema.attachment import FrameAttachment
from palpo.config.schema.body import Beam, Plane, Rigid, Soft
from palpo.config.schema.scene import SceneSpec


def falling(spec: SceneSpec, parts: Sequence[BodyPart]) -> list[str]:
    """Names of the bodies that neither are held or attached nor have something under them.

    A plane is under all others. Another body is under one if part of it lies deeper than the one's top, and
    their boxes across gravity meet: so none is named that could come to rest.
    """
    gravity = np.array(spec.gravity)
    if not gravity.any():
        return []
    axes = np.linalg.svd(gravity[None])[2]
    axes[0] = gravity / np.linalg.norm(gravity)  # where it points; it may be the other way
    boxes = {part.spec.name: _box(part, axes) for part in parts if not isinstance(part.spec, Plane)}
    loose = _loose(spec)
    held = {body.name for body in spec.bodies} - loose | {WORLD}
    joined = set(_joined(spec))
    while kept := {
        name for name in loose if any((name, other) in joined or _under(boxes, name, other) for other in held)
    }:
        loose, held = loose - kept, held | kept
    return [body.name for body in spec.bodies if body.name in loose]


WORLD = ""
"""To which a frame attaches."""


def _loose(spec: SceneSpec) -> set[str]:
    """Bodies that move, that no hand leads and of which no node is fixed."""
    tools = {spec.tool.body, *(tool.body for tool in spec.tools)}
    moving = [b for b in spec.bodies if isinstance(b, Soft | Beam | Rigid)]
    return {b.name for b in moving if b.name not in tools and not getattr(b, "fixed", ())}


def _joined(spec: SceneSpec) -> Iterator[tuple[str, str]]:
    """Bodies that an attachment joins, in both orders."""
    for attachment in spec.attachments:
        a = attachment.a.body
        b = WORLD if isinstance(attachment, FrameAttachment) else attachment.b.body
        yield a, b
        yield b, a


def _box(part: BodyPart, axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least and greatest coordinates of a body along axes (3, 3): (2, 3) [m]."""
    x = part.points[: part.n_points] @ axes.T
    return np.stack([x.min(axis=0) - part.shape.radius, x.max(axis=0) + part.shape.radius])


def _under(boxes: dict[str, NDArray[np.float64]], name: str, other: str) -> bool:
    """Whether a body that falls can meet another one."""
    if other == WORLD:
        return False
    if other not in boxes:
        return True
    one, two = boxes[name], boxes[other]
    beside = (one[0, 1:] > two[1, 1:]) | (two[0, 1:] > one[1, 1:])
    return bool(not beside.any() and two[1, 0] > one[0, 0])
