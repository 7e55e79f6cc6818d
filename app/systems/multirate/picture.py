"""What there is to see of a scene: its shapes, and their present state for the picture.

The slow loop's thread writes what it has. Whoever draws then moves everything on to the servo's own newest
state: the tool, the hand, the contacts, and the soft bodies by their reduced models.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.material_parts import borders
from palpo.app.build.shapes import look_of
from palpo.app.visual.colours import SMALLEST_STRAIN, colour_range
from palpo.app.visual.picture import Picture, Shapes
from palpo.app.visual.solids import plate, rotate, round_surface
from palpo.config.schema.body import Beam, Plane, Rigid, Soft, Static
from palpo.config.schema.scene import Body, SceneSpec
from palpo.physics.bodies.chain_models import ChainState
from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.contract.stages import POINT
from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.snapshot import NO_SCALAR, STRAIN, Drawable, SceneState
from palpo.physics.exchange.tool_state import ToolState
from palpo.physics.fem.strain import NodalStrain
from palpo.physics.systems.multirate.high_state import HighRate
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.scene import Scene

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]


class _Shape:
    """One body's drawable, its number, and a rigid body's vertices in its own axes."""

    def __init__(self, drawable: Drawable, number: int, local: Floats | None) -> None:
        self.drawable, self.number, self.local = drawable, number, local


class _Place(NamedTuple):
    """Where a body is: all its points (n, 3) [m], and the pose of the axes that a rigid one is told in."""

    points: Floats
    origin: Floats
    turn: Floats


class _ShownTool(NamedTuple):
    """A tool: its points in the scene, its frames among those of all tools, and it at rest."""

    span: tuple[int, int]
    frames: slice
    state: ChainState


Places = dict[int, _Place]
"""By the bodies' numbers."""


def _place(member: Member) -> _Place:
    """Where the slow loop has a member."""
    body = member.body
    turn = UPRIGHT if isinstance(body, SoftBody) else body.q[0]
    return _Place(member.body.positions(), body.x[0], turn)


class Visual(Picture):
    """Geometry of a scene, and the frames of its state; the strain is the tetrahedra's equivalent strain."""

    def __init__(self, spec: SceneSpec, scene: Scene, high: HighRate, lows: Sequence[LowRate] = ()) -> None:
        """lows: the slow loops, whose reduced models the servo moves the bodies by; the first one writes.

        Without them a reader gets what the slow loop has.
        """
        self.scene, self.high, self._lows = scene, high, tuple(lows)
        self.members = {member.number: member for member in scene.members}
        own = lows[0].members if lows else scene.members
        self._own = {member.number: member for member in own}
        """Bodies of the loop that writes; those of others are where the servo has them."""
        owners = scene.topology.point_body
        states = [scene.tool, *(tool.state for tool in scene.further)]
        firsts = [0, *(tool.frame for tool in scene.further)]
        self._tools = {
            int(owners[span[0]]): _ShownTool(span, slice(first, first + len(state.x)), state)
            for span, first, state in zip(scene.tool_spans(), firsts, states, strict=True)
        }
        self._shapes: list[_Shape] = []
        shapes = Shapes()
        for number, body in enumerate(spec.bodies):
            if not isinstance(body, Plane):
                self._add(shapes, body, number)
        solid = np.vstack([*shapes.points, np.array([p[1:] for p in spec.device.path])])
        for number, body in enumerate(spec.bodies):
            if isinstance(body, Plane):
                drawable = shapes.add(
                    body.name, plate(body, solid), kind="plane", colour=body.colour, static=True
                )
                self._shapes.append(_Shape(drawable, number, None))
        joints = scene.attachments
        points = np.flatnonzero(joints.kind == POINT)
        self._joined = joints.points[points, 0, 0].astype(np.intp) if len(points) else np.zeros(0, np.intp)
        super().__init__(shapes, scene.capacity.contacts, len(self._joined))
        self._growing = [shape for shape in self._shapes if shape.drawable.face_room]
        self._faces = np.full((sum(shape.drawable.face_room for shape in self._growing), 3), -1, np.int32)
        self._parted = self._cuts = 0
        self._join_faces()
        self._scalar, self._upper = np.full(len(self.vertices), np.nan), SMALLEST_STRAIN
        self._gauges = [
            (shape, NodalStrain(member.body.mesh))
            for shape in self._shapes
            if (member := self.members.get(shape.number)) and isinstance(member.body, SoftBody)
        ]
        self._measure()  # compiled before the loop starts
        self._present = self.vertices.copy()

    def _join_faces(self) -> None:
        """The surfaces of bodies that blades cut, where they are at rest."""
        self._cuts = sum(self.members[shape.number].body.surface.parted for shape in self._growing)
        for shape in self._growing:
            d, body = shape.drawable, self.members[shape.number].body
            own = self._faces[d.first_face : d.first_face + d.face_room]
            triangles = body.surface.triangles
            own[: len(triangles)], own[len(triangles) :] = triangles, -1
            self.geometry.rest[d.span] = body.at_rest()[: d.n_vertices]
        self._parted += 1

    def _triangles(self, number: int) -> tuple[int, int, Indices]:
        """First point, number of points and triangles, from the first point on, of a body."""
        topology = self.scene.topology
        own = np.flatnonzero(topology.point_body == number)
        triangles = topology.triangles[topology.point_body[topology.triangles[:, 0]] == number]
        return int(own[0]), len(own), triangles - own[0]

    def _add(self, shapes: Shapes, body: Body, number: int) -> None:
        """A body's drawable, where it is at rest."""
        scene = self.scene
        first, n_points, triangles = self._triangles(number)
        local, fixed, more = None, np.zeros(0, np.int32), dict[str, Any]()
        if isinstance(body, Beam):
            rest = scene.rest[first : first + n_points // 2]
            more = {"kind": "tube", "radius": float(scene.topology.body_radius[number])}
            triangles = np.zeros((0, 3), np.int32)
            if number in self.members:
                fixed = np.flatnonzero(self.members[number].body.model.fixed).astype(np.int32)
        elif isinstance(body, Rigid):
            local, triangles = self._rigid(body, number, triangles)
            rest = self._placed(number, local)
        else:
            if isinstance(body, Soft):
                soft = self.members[number].body
                # after its nodes come the fields of cavities, which are no places, or points of cuts
                n_points = soft.count if isinstance(soft, CutBody) else len(soft.mesh.nodes)
                fixed = (
                    soft.fixed[soft.fixed < len(soft.cut.nodes)] if isinstance(soft, CutBody) else soft.fixed
                )
                if isinstance(soft, CutBody) and soft.surface.room.triangles > len(soft.surface.triangles):
                    room = soft.surface.room.triangles
                    more = {"face_room": room, "first_face": sum(d.face_room for d in shapes.drawables)}
                    triangles = soft.surface.triangles
            rest = scene.rest[first : first + n_points]
        static = isinstance(body, Static)
        points = [needle.spec.points[0] for needle in scene.needles]
        drawable = shapes.add(
            body.name, rest, triangles, colour=body.colour, fixed=fixed, static=static, look=look_of(body),
            pierces=number in scene.topology.point_body[points], **more,
        )  # fmt: skip
        self._shapes.append(_Shape(drawable, number, local))
        if isinstance(body, Soft):
            shapes.drawables += borders(drawable, body, soft.mesh)

    def _rigid(self, body: Rigid, number: int, triangles: Indices) -> tuple[Floats, Indices]:
        """Vertices in body axes and triangles of a rigid body."""
        shown = round_surface(body.geometry, body.placement.scale)
        if shown is not None:
            return shown
        if number in self.members:
            return self.members[number].body.points, triangles
        start, stop = self._tools[number].span
        return self.scene.tool_points.lever[start : stop - 1], triangles

    def _placed(self, number: int, local: Floats) -> Floats:
        """A rigid body's vertices where it is when the scene is built."""
        tool = self._tools.get(number)
        state = tool.state if tool is not None else self.members[number].body.state
        return state.x[0] + rotate(state.q[0], local)

    def follow_servo(self) -> None:
        """From now on the reader gets what the servo has; before the loops start."""
        super().follow_servo()
        for low in self._lows:
            low.drawn.wanted = True

    def take_tool(self) -> int:
        """Slot of the newest tool state; it stays until the slow loop or this asks again."""
        return int(acquire(self.high.link.state_control)[0])

    def publish(self, k: int, tick: int, counters: NDArray[np.int64]) -> None:
        """Write the bodies as they are, with the tool and its contacts from state slot k."""
        told = self.high.link.state
        places = {number: _place(member) for number, member in self._own.items()}
        if len(self._lows) > 1:
            places |= self._reduced(told, k, self._lows[1:])
        if told.tick[k] >= 0:
            self._move(self.vertices, places, told, k)
        strain = self.strain and bool(self._gauges)
        if strain:
            self._measure()
        if self._cuts != sum(self.members[shape.number].body.surface.parted for shape in self._growing):
            self._join_faces()
        now = SceneState(
            vertices=self.vertices,
            faces=self._faces,
            parted=self._parted,
            tick=tick,
            time=tick * self.scene.numbers.dt,
            counters=counters,
            scalar=self._scalar,
            scalar_kind=STRAIN if strain else NO_SCALAR,
            scalar_range=np.array([0.0, self._upper]),
        )
        self.hand_over(self._with_tool(now, places, told, k))

    def latest(self) -> tuple[SceneState, bool]:
        """The slow loop's newest frame, and whether it is new; moved on to the servo's state to follow it.

        Strain and counters stay the slow loop's. Where the servo has no reduced model of a body, or one that
        is no longer kept, so does the body.
        """
        state, fresh = super().latest()
        if not self.follows:
            return state, fresh
        told = self.high.shown
        k = int(acquire(self.high.shown_control)[0])
        if told.tick[k] < state.tick:
            return state, fresh
        places = self._reduced(told, k, self._lows)
        self._present[:] = state.vertices
        self._move(self._present, places, told, k)
        now = replace(
            state,
            vertices=self._present,
            tick=int(told.tick[k]),
            time=told.tick[k] * self.scene.numbers.dt,
            published_ns=self.clock(),
        )
        return self._with_tool(now, places, told, k), fresh

    @staticmethod
    def _reduced(told: ToolState, k: int, lows: Sequence[LowRate]) -> Places:
        """Where the servo has the bodies of these loops, of which the last frames' models are kept."""
        places = {}
        for low in lows:
            j = low.number
            for i, (member, model) in enumerate(
                zip(low.members, low.drawn.of(int(told.frame[k, j])), strict=False)
            ):
                centre, turn = told.centre[k, j, i], told.orientation[k, j, i]
                places[member.number] = _Place(model.positions(told.z[k, j], centre, turn), centre, turn)
        return places

    def _with_tool(self, now: SceneState, places: Places, told: ToolState, k: int) -> SceneState:
        """The state with the tool, the hand and the contacts of slot k."""
        started = told.tick[k] >= 0
        n = int(told.n_contacts[k]) if started else 0
        now.contact_point, now.contact_force = told.contact_point[k, :n], told.contact_force[k, :n]
        now.contact_state = told.contact_status[k, :n].astype(np.int64)
        if started:
            hold = self.high.held.hold
            frame = int(hold.frame[0])
            now.device_point, now.device_turn, now.hand_force = (
                told.target[k],
                told.target_q[k],
                told.force[k],
            )
            now.held_point = told.x[k, frame] + rotate(told.q[k, frame], hold.lever[None])[0]
        now.attachment_point = self._joints(places, told, k)
        return now

    def _move(self, vertices: Floats, places: Places, told: ToolState, k: int) -> None:
        """Bring the vertices of the tool and of the bodies that have a place to where these are."""
        for shape in self._shapes:
            d = shape.drawable
            if shape.number in self._tools:
                x, q = (field[k, self._tools[shape.number].frames] for field in (told.x, told.q))
                place = _Place(x, x[0], q[0])
            elif shape.number in places:
                place = places[shape.number]
            else:
                continue
            vertices[d.span] = (
                place.points[: d.n_vertices]
                if shape.local is None
                else place.origin + rotate(place.turn, shape.local)
            )

    def _measure(self) -> None:
        """Strain of the tetrahedral bodies as they are."""
        for shape, gauge in self._gauges:
            body, own = self.members[shape.number].body, self._scalar[shape.drawable.span]
            gauge.evaluate(body.x, own[: len(body.x)])
            if isinstance(body, CutBody):
                own[len(body.x) :] = (body.inner_weights * own[body.inner]).sum(axis=1)
        self._upper = colour_range(self._upper, self._scalar)

    def _joints(self, places: Places, told: ToolState, k: int) -> Floats:
        """Positions of the attached points, where they are known."""
        out = np.full((len(self._joined), 3), np.nan)
        points = self.scene.tool_points
        for i, p in enumerate(self._joined):
            number = int(self.scene.topology.point_body[p])
            if number in places:
                out[i] = places[number].points[p - self.members[number].first]
            elif told.tick[k] >= 0 and points.frame[p] >= 0:
                frame = int(points.frame[p])
                out[i] = told.x[k, frame] + rotate(told.q[k, frame], points.lever[p][None])[0]
        return out
