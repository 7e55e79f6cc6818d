"""The attachments of a scene as bilateral blocks, and the scripted points that some of them follow."""

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.parts import BodyPart, key_of, places_on
from palpo.config.schema.attachment import FrameAttachment, SlideAttachment, WeldAttachment
from palpo.config.schema.body import Beam, Place, Rigid, Soft
from palpo.config.schema.scene import SceneSpec
from palpo.haptics.path import TickPath, oscillation, waypoints
from palpo.haptics.workspace import quaternion_matrix, quaternion_product
from palpo.physics.bodies import chain_body
from palpo.physics.contract.stages import POINT, ROTATION
from palpo.physics.engine.joints import SLIDE
from palpo.physics.exchange.ahead import ROWS, Ahead
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.multirate.scene import Attachments, MovingPoints


class JointBlocks:
    """Attachment blocks while they are collected."""

    def __init__(self, spec: SceneSpec, parts: list[BodyPart], first: NDArray[np.int32]) -> None:
        self.spec, self.parts, self.first = spec, parts, first
        self.names = [part.spec.name for part in parts]
        self.taken = [0] * len(parts)
        self.rows: list[tuple[int, list[int], NDArray, NDArray, int]] = []
        self.moving: list[tuple[int, TickPath, NDArray, NDArray]] = []
        """Point, path of its displacements from rest, place at rest [m] and orientation."""

    def point(self, place: Place, name: str, key: str) -> int:
        """Global point of a place on a body."""
        b = self.names.index(name)
        part = self.parts[b]
        if isinstance(part.spec, Soft | Beam):
            nodes = part.points[: part.n_points]
            if place.node is not None:
                if place.node >= len(nodes):
                    raise InputError(
                        f"{key}.node = {place.node}: there is no such node; {name} has 0 to {len(nodes) - 1}."
                    )
                local = place.node
            elif place.end is not None:
                local = 0 if place.end == "first" else len(nodes) - 1
            else:
                local = int(np.argmin(((nodes - np.array(place.at)) ** 2).sum(axis=1)))
        else:
            n_extra = len(places_on(self.spec, name))
            local = part.n_points - n_extra + self.taken[b]
            self.taken[b] += 1
        return int(self.first[b]) + local

    def rotation(self, point: int, name: str) -> int:
        """Global rotation that goes with a point; -1 on a body that cannot turn."""
        b = self.names.index(name)
        part = self.parts[b]
        if isinstance(part.spec, Beam):
            return point + part.n_points
        if isinstance(part.spec, Rigid):
            return int(self.first[b]) + part.n_points
        return -1

    def orientation(self, rotation: int) -> NDArray[np.float64]:
        """Orientation at rest of a global rotation."""
        if rotation < 0:
            return np.array([1.0, 0.0, 0.0, 0.0])
        b = int(np.searchsorted(self.first, rotation, side="right")) - 1
        part = self.parts[b]
        assert isinstance(part.body, chain_body.ChainBody)
        return part.body.q[rotation - int(self.first[b]) - part.n_points]

    def add(self, kind: int, a: int, b: int, direction: NDArray, reference: NDArray, turn: int = -1) -> None:
        """One block."""
        self.rows.append((kind, [a, b], direction, reference, turn))

    def arrays(self) -> Attachments:
        """The blocks as the kernels take them."""
        n = len(self.rows)
        points = np.full((n, 2, 3), -1, np.int32)
        weights = np.zeros((n, 2, 3))
        weights[:, :, 0] = 1.0
        for k, (_, sides, _, _, _) in enumerate(self.rows):
            points[k, :, 0] = sides
        return Attachments(
            np.array([row[0] for row in self.rows], np.int32).reshape(n),
            points,
            weights,
            np.array([row[3] for row in self.rows]).reshape(n, 4),
            np.array([row[2] for row in self.rows]).reshape(n, 3),
            np.array([row[4] for row in self.rows], np.int32).reshape(n),
        )


def make_joints(spec: SceneSpec, parts: list[BodyPart], first: NDArray[np.int32], rate: float) -> JointBlocks:
    joints = JointBlocks(spec, parts, first)
    nothing, upright = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    for i, attachment in enumerate(spec.attachments):
        key = key_of(spec, "attachments", i)
        a = joints.point(attachment.a, attachment.a.body, f"{key}.a")
        if isinstance(attachment, FrameAttachment):
            _moving_frame(joints, attachment, a, int(first[-1]), rate)
            continue
        b = joints.point(attachment.b, attachment.b.body, f"{key}.b")
        if isinstance(attachment, SlideAttachment):
            direction = np.array(attachment.direction, float) / np.linalg.norm(attachment.direction)
            turn = joints.rotation(b, attachment.b.body)
            rest = quaternion_matrix(joints.orientation(turn))
            joints.add(SLIDE, a, b, direction @ rest, upright, turn)
            continue
        joints.add(POINT, a, b, nothing, upright)
        if isinstance(attachment, WeldAttachment):
            turn_a = joints.rotation(a, attachment.a.body)
            turn_b = joints.rotation(b, attachment.b.body)
            inverse = joints.orientation(turn_b) * np.array([1.0, -1.0, -1.0, -1.0])
            reference = quaternion_product(joints.orientation(turn_a), inverse)
            joints.add(ROTATION, turn_a, turn_b, nothing, reference)
    return joints


def _moving_frame(
    joints: JointBlocks, attachment: FrameAttachment, a: int, first_free: int, rate: float
) -> None:
    """A block (two with orientation) against a scripted point, whose number follows all others."""
    b = int(np.searchsorted(joints.first, a, side="right")) - 1
    rest = joints.parts[b].points[a - int(joints.first[b])]
    if attachment.path is not None:
        path = waypoints(attachment.path, "smooth", None, rate)
    elif attachment.oscillation is not None:
        o = attachment.oscillation
        axis = np.array(o.direction, float)
        amplitude = o.amplitude * axis / np.linalg.norm(axis)
        path = oscillation(np.zeros(3), amplitude, o.frequency, rate_hz=rate)
    else:
        path = waypoints(np.zeros((1, 4)))
    point = first_free + 2 * len(joints.moving)
    turn = joints.rotation(a, attachment.a.body)
    q = joints.orientation(turn)
    joints.moving.append((point, path, rest, q))
    nothing, upright = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    joints.add(POINT, a, point, nothing, upright)
    if attachment.orientation:
        joints.add(ROTATION, turn, point + 1, nothing, upright)


def moving_points(joints: JointBlocks) -> tuple[MovingPoints, Ahead]:
    """The scripted points, and what keeps their paths ahead of the ticks; the last row of a path is held."""
    n = len(joints.moving)
    ticks = max((path.ticks for _, path, _, _ in joints.moving), default=1)
    points = np.zeros(2 * n, np.int32)
    for k, (point, _, _, _) in enumerate(joints.moving):
        points[2 * k : 2 * k + 2] = point, point + 1

    def script(first: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x, q = np.zeros((2 * n, stop - first, 3)), np.zeros((2 * n, stop - first, 4))
        q[..., 0] = 1.0
        for k, (_, path, rest, turn) in enumerate(joints.moving):
            x[2 * k] = rest + path.rows(first, stop)[0]
            q[2 * k + 1] = turn
        return x.swapaxes(0, 1), q.swapaxes(0, 1)

    x, q = script(0, min(ticks, ROWS))
    known = np.array([len(x)])
    moving = MovingPoints(points, x.swapaxes(0, 1), q.swapaxes(0, 1), known)
    return moving, Ahead(script, ticks, (x, q), known)
