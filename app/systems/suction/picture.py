"""What there is to see of a suction scene: bodies, contacts, cavities' walls in the colour of their pressure.

A cavity lies hidden between the bodies, and its walls are drawn through them. They end where the cavity does,
inside the cells of the bodies' meshes.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.shapes import look_of
from palpo.app.systems.suction.build import SuctionBuild, walls_on
from palpo.app.visual.picture import Picture, Shapes
from palpo.config.schema.body import Static
from palpo.config.schema.suction import FigureDrive, FreeDrive, SuctionScene
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.exchange.buffer import acquire, reader_slot
from palpo.physics.exchange.snapshot import PRESSURE, Drawable, SceneState
from palpo.physics.gas.cavity import RIBBON_AGAIN, WALL_A
from palpo.physics.gas.pockets import walls_of
from palpo.physics.gas.tracking import LIVING
from palpo.physics.gas.wall_regions import kinds_of_triangles
from palpo.physics.mesh.toy import toy
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.systems.suction.servo import SuctionServo

SMALLEST = 1.0
"""A colour bar never ends above this suction [kPa], so that a breath is not shown as a grip."""

POROUS, ROUGHER = (0.85, 0.65, 0.45), (0.75, 0.75, 0.75)
"""Share of the partner's colour that is left where air goes through it, and where it is rough."""

SLIPPING = 1.0 - 1e-6
"""Share of mu r_n from which a tangential force slips."""


class SuctionVisual(Picture):
    """Geometry of a scene, and the frames of its state.

    `look` takes down what only exists at the end of a step: contacts and cavities.
    """

    def __init__(self, spec: SuctionScene, built: SuctionBuild, servo: SuctionServo) -> None:
        self._suction, self._servo = built.suction, servo
        self._held = built.hand is not None
        shapes = Shapes()
        self._cups: list[slice] = []
        for told, side in zip(spec.cups, built.suction.cups, strict=True):
            led = not isinstance(told.drive, FreeDrive | FigureDrive)
            fixed = np.flatnonzero(led & np.isin(side.nodes, side.body.fixed)).astype(np.int32)
            cup = shapes.add(
                told.name, side.local, side.surface.triangles, colour=told.colour, fixed=fixed,
                look=look_of(told),
            )  # fmt: skip
            self._cups.append(cup.span)
        whole = shapes.add(
            spec.partner.name, self._partner_vertices(), built.suction.partner.surface.triangles,
            colour=spec.partner.colour, static=isinstance(spec.partner, Static), look=look_of(spec.partner),
        )  # fmt: skip
        self._partner = whole.span
        shapes.drawables[-1:] = self._regions(whole, spec, built)
        self._figures: list[tuple[int, slice, slice, NDArray, NDArray]] = []
        for i, told in enumerate(spec.cups):
            if isinstance(told.drive, FigureDrive):
                self._add_figure(i, shapes)
        super().__init__(
            shapes, len(built.suction.contacts.gap),
            patches=sum(len(e.cavities.triangles) for e in built.suction.enclosures),
        )  # fmt: skip
        self._scalar = np.full(len(self.vertices), np.nan)
        self._lower, self._upper = -SMALLEST, 0.0
        self._time = 0.0
        self._contacts = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int64)
        self._walls = np.zeros((0, 3, 3)), np.zeros(0)
        self._force = np.full(3, np.nan)

    @staticmethod
    def _regions(whole: Drawable, spec: SuctionScene, built: SuctionBuild) -> list[Drawable]:
        """The partner in parts: its triangles in each region are darker than the others."""
        walls = walls_on(spec, built.soft[0].material, built.rest) if spec.partner.regions else None
        kind = np.zeros(len(whole.triangles), np.int64)
        if walls is not None:
            kinds_of_triangles(walls, whole.triangles, kind)
        parts = [replace(whole, triangles=whole.triangles[kind == 0])]
        for number, region in enumerate(spec.partner.regions, 1):
            r, g, b = np.array(whole.colour) * (POROUS if region.permeability is not None else ROUGHER)
            name, inside = f"{whole.name}, region {number}", whole.triangles[kind == number]
            parts.append(replace(whole, name=name, triangles=inside, colour=(r, g, b)))
        return [part for part in parts if len(part.triangles)]

    def _add_figure(self, i: int, shapes: Shapes) -> None:
        """The figure on the handle of cup i, and the coil around it."""
        handle = self._suction.cups[i].body.handle
        assert handle is not None
        base = float(self._partner_vertices()[:, 1].max())
        height = float(handle.position[1]) - base
        shape = toy(height, 0.0)
        middle = np.array([handle.position[0], base, handle.position[2]])
        figure = shapes.add(
            "figure", shape.figure.vertices + middle, shape.figure.triangles, colour=(0.45, 0.70, 0.45)
        )
        coil = shapes.add(
            "spring", shape.spring.nodes + middle, kind="tube", radius=float(shape.spring.radius)
        )
        local = shape.figure.vertices - np.array([0.0, height, 0.0])
        self._figures.append(
            (i, figure.span, coil.span, local, shape.spring.nodes / np.array([1.0, height, 1.0]))
        )

    def _partner_vertices(self) -> NDArray[np.float64]:
        origin, turn = self._suction.partner.axes
        return origin + self._suction.partner.local @ turn.T

    def look(self) -> None:
        """Take down the step that has just ended."""
        s = self._suction
        contacts, solved = s.contacts, s.solved
        force = s.r.reshape(-1, 3)
        slides = np.linalg.norm(force[:, 1:], axis=1) >= SLIPPING * contacts.mu[solved] * force[:, 0]
        status = np.where(force[:, 0] <= 0.0, OPEN, np.where(slides, SLIP, STICK))
        touching = status != OPEN
        world = contacts.force[solved[touching]]
        self._contacts = s.rows.places()[touching], world, status[touching].astype(np.int64)
        self._time = s.time
        self._force = -s.hold[0, :3].copy() if s.cups[0].body.handle is not None else np.full(3, np.nan)
        for cup, where in zip(s.cups, self._cups, strict=True):
            self.vertices[where] = cup.body.x[cup.nodes]
        if self._suction.partner.place.max(initial=-1) >= 0:
            self.vertices[self._partner] = self._partner_now()
        self._find_walls(1e-3 * (s.pressure - s.air.atmosphere))
        for i, figure, coil, local, turns in self._figures:
            self._place_figure(i, figure, coil, local, turns)

    def _partner_now(self) -> NDArray[np.float64]:
        partner = self._suction.partner
        body = getattr(partner, "body", None)
        if body is not None and len(body.x) > 1:
            return np.asarray(body.x[partner.nodes])
        return self._partner_vertices()

    def _find_walls(self, gauge: NDArray[np.float64]) -> None:
        """Triangles of all cavities at the step's end, with their pressures (k,) [kPa]."""
        s = self._suction
        corners, values = [np.zeros((0, 3, 3))], [np.zeros(0)]
        j = 0
        for cup, enclosure in zip(self._cups, s.enclosures, strict=True):
            cavities, pockets = enclosure.cavities, enclosure.pockets
            for c in enclosure.active.tolist():
                if enclosure.tracks.state[c] == LIVING:
                    a, b = cavities.first[c : c + 2]
                    first = np.where(cavities.body[a:b] == 0, cup.start, self._partner.start)
                    points = self._points(cavities.parents[a:b] + first[:, None], cavities.weights[a:b])
                    span = cavities.span[c]
                    corners.append(points[cavities.triangles[span[WALL_A] : span[RIBBON_AGAIN]] - a])
                if pockets.has[c]:
                    triangles, parents, weights = walls_of(pockets, c)
                    corners.append(self._points(parents + cup.start, weights)[triangles])
                values.append(np.full(sum(map(len, corners)) - sum(map(len, values)), gauge[j]))
                j += 1
        self._walls = np.concatenate(corners), np.concatenate(values)
        self._lower = min(self._lower, float(gauge.min(initial=0.0)))
        self._upper = max(self._upper, float(gauge.max(initial=0.0)))

    def _points(self, parents: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Barycentric points (k, 3) [m] of the picture's vertices."""
        return np.asarray(np.einsum("kj,kji->ki", weights, self.vertices[parents]))

    def _place_figure(self, i: int, figure: slice, coil: slice, local: NDArray, turns: NDArray) -> None:
        handle = self._suction.cups[i].body.handle
        assert handle is not None
        turn = np.empty((3, 3))
        quat_to_matrix(handle.orientation, turn)
        self.vertices[figure] = handle.position + local @ turn.T
        vertices = self.vertices[self._partner]
        foot = np.array([vertices[:, 0].mean(), vertices[:, 1].max(), vertices[:, 2].mean()])
        across = turns * np.array([1.0, 0.0, 1.0])
        self.vertices[coil] = foot + across + turns[:, 1:2] * (handle.position - foot)

    def take_tool(self) -> int:
        """Slot of the state of the hand that the last step began with."""
        return int(reader_slot(self._servo.state_control))

    def publish(self, k: int, tick: int, counters: NDArray[np.int64]) -> None:
        """Hand over the step last looked at, with the hand of slot k."""
        state, nowhere = self._servo.state, np.full(3, np.nan)
        started = self._held and state.tick[k] >= 0
        handle = self._suction.cups[0].body.handle
        self.hand_over(
            SceneState(
                vertices=self.vertices,
                tick=tick,
                time=self._time,
                contact_point=self._contacts[0],
                contact_force=self._contacts[1],
                contact_state=self._contacts[2],
                device_point=state.target[k] if started else nowhere,
                device_turn=state.target_q[k] if started else np.full(4, np.nan),
                held_point=nowhere if handle is None else handle.position,
                hand_force=state.force[k] if started else self._force,
                counters=counters,
                scalar=self._scalar,
                scalar_kind=PRESSURE,
                scalar_range=np.array([self._lower, self._upper]),
                patch=self._walls[0],
                patch_scalar=self._walls[1],
            )
        )

    def latest(self) -> tuple[SceneState, bool]:
        """The newest step, and whether it is new; with the hand as the servo has it, to follow it.

        Cups and cavities are computed by the slow loop alone.
        """
        state, fresh = super().latest()
        if not (self.follows and self._held):
            return state, fresh
        shown, k = self._servo.shown, int(acquire(self._servo.shown_control)[0])
        if shown.tick[k] < state.tick:
            return state, fresh
        hand = replace(
            state, device_point=shown.target[k], device_turn=shown.target_q[k],
            held_point=shown.position[k], hand_force=shown.force[k],
        )  # fmt: skip
        return hand, fresh
