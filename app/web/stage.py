"""A scene in viser's terms: a mesh a shape, which follows its vertices, and the marks of our pictures.

The page computes normals itself, so a mesh is split where the program's own pictures show a crease.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState, plane_corners
from palpo.render import palette
from palpo.render.ground import REACH, UP, grid_spacing, plane_of
from palpo.render.normals import face_normals
from palpo.render.overlays import Overlays, fixed_marks, force_scale, place_marks
from palpo.render.scene_view import LIGHT
from palpo.render.smooth_surface import SmoothSurface
from palpo.render.solids import COLUMNS, Solids, unit_shapes
from palpo.render.surfaces import shares
from palpo.render.tubes import Tube

Floats = NDArray[np.float64]

SIZE = 2.0
"""Length of a scene on the page, whose near plane, limits and shadows are made for such."""
BALL = 0.035
"""Radius of what is taken to lead the tool, in scene lengths."""
BANDS = 9
"""Colours of the colour map that a page tells apart."""
LIFT = 1.5e-3
"""By how much a coloured face stands out of its body, in scene lengths, so that it is seen."""
KEY, FILL = 2.4, 1.5
"""Intensity of the light from above and of that from all sides."""


def rgb(colour: tuple[float, float, float]) -> tuple[int, int, int]:
    """A colour as bytes."""
    r, g, b = (round(255 * part) for part in colour)
    return r, g, b


class _Shape:
    """One drawable on the page."""

    def __init__(self, scene: Any, number: int, drawable: Drawable, rest: Floats, scale: float) -> None:
        self.drawable, self._scale = drawable, scale
        points = rest[drawable.span]
        if drawable.kind == "tube":
            self._shape: Tube | SmoothSurface = Tube(drawable.n_vertices, drawable.radius)
        else:
            self._shape = SmoothSurface(points, drawable.triangles)
        self._at = points
        self.handle = scene.add_mesh_simple(
            f"/{number}",
            self._vertices(points),
            self._shape.triangles,
            color=rgb(drawable.colour),
            receive_shadow=0.13,
        )

    def follow(self, vertices: Floats) -> None:
        points = vertices[self.drawable.span]
        if not np.array_equal(points, self._at):
            self._at = points.copy()
            self.handle.vertices = self._vertices(points)

    def _vertices(self, points: Floats) -> NDArray[np.float32]:
        return np.asarray(self._scale * self._shape.drawn(points).points, np.float32)


class _Marks:
    """All marks of one unit shape on the page."""

    def __init__(self, scene: Any, name: str, kind: str, scale: float) -> None:
        rows, triangles = unit_shapes()[kind]
        self._kind, self._scale, self._shown = kind, scale, np.zeros((0, COLUMNS))
        self._handle = scene.add_batched_meshes_simple(
            f"/{name}/{kind}", rows[:, :3], triangles, batched_wxyzs=np.array([[1.0, 0.0, 0.0, 0.0]]),
            batched_positions=np.zeros((1, 3)), batched_scales=np.full((1, 3), 1e-6),
            batched_colors=np.zeros((1, 3), np.uint8), lod="off", visible=False, cast_shadow=False,
            receive_shadow=False,
        )  # fmt: skip

    def show(self, marks: Solids) -> None:
        rows = marks.rows(self._kind).astype(float)
        if np.array_equal(rows, self._shown):
            return
        self._shown = rows
        axes = rows[:, 3:12].reshape(-1, 3, 3)
        sizes = np.linalg.norm(axes, axis=2)
        there = (sizes > 0.0).all(axis=1)
        rows, axes, sizes = rows[there], axes[there], sizes[there]
        handle = self._handle
        if len(rows):
            turns = Rotation.from_matrix(np.swapaxes(axes / sizes[:, :, None], 1, 2)).as_quat()
            handle.batched_positions = (self._scale * rows[:, :3]).astype(np.float32)
            handle.batched_wxyzs = turns[:, [3, 0, 1, 2]].astype(np.float32)
            handle.batched_scales = (self._scale * sizes).astype(np.float32)
            handle.batched_colors = np.round(255 * rows[:, 12:]).astype(np.uint8)
        if handle.visible != bool(len(rows)):
            handle.visible = bool(len(rows))


class _Colours:
    """Triangles that stand for numbers: a mesh for each part of the colour map."""

    def __init__(self, scene: Any, scale: float) -> None:
        self._scale = scale
        nothing = np.zeros((3, 3), np.float32), np.arange(3).reshape(-1, 3)
        middles = palette.COLOUR_MAP[:: (len(palette.COLOUR_MAP) - 1) // (BANDS - 1)]
        self._handles = [
            scene.add_mesh_simple(
                f"/colours/{k}", *nothing, color=rgb(tuple(colour)), side="double", flat_shading=True,
                visible=False, cast_shadow=False, receive_shadow=False,
            )
            for k, colour in enumerate(middles)
        ]  # fmt: skip

    def show(self, corners: Floats, share: Floats) -> None:
        """corners (n, 3, 3) [m]; share (n,): where each lies on the colour map, negative for nowhere."""
        band = np.where(share >= 0.0, np.minimum(np.round(share * (BANDS - 1)), BANDS - 1), -1)
        for k, handle in enumerate(self._handles):
            there = corners[band == k]
            if len(there):
                faces = np.arange(3 * len(there), dtype=np.uint32).reshape(-1, 3)
                handle.vertices = (self._scale * there.reshape(-1, 3)).astype(np.float32)
                handle.faces = faces
            if handle.visible != bool(len(there)):
                handle.visible = bool(len(there))


class Stage:
    """What pages show of one scene, at `scale` of their lengths per metre.

    held: name of the shape that the hand holds. With the ball at the hand it is what can be taken: `taken`.
    """

    def __init__(self, scene: Any, geometry: SceneGeometry, state: SceneState, held: str) -> None:
        self._scene, self._geometry = scene, geometry
        length = max(geometry.length, 1e-3)
        self.scale = SIZE / length
        scene.reset()
        scene.set_up_direction("+y")
        scene.configure_default_lights(enabled=False)
        scene.configure_environment_map(None)
        turn = Rotation.align_vectors([-LIGHT], [[0.0, 0.0, -1.0]])[0].as_quat()
        self._light = scene.add_light_directional(
            "/light", intensity=KEY, cast_shadow=True, wxyz=turn[[3, 0, 1, 2]], position=4 * SIZE * LIGHT
        )
        scene.add_light_ambient("/fill", intensity=FILL)
        self._ground(state)
        shapes = [d for d in geometry.drawables if d.kind != "plane" and d.n_vertices]
        self._shapes = [_Shape(scene, k, d, state.vertices, self.scale) for k, d in enumerate(shapes)]
        self._marks = [_Marks(scene, "marks", kind, self.scale) for kind in unit_shapes()]
        self._fixed = [_Marks(scene, "fixed", kind, self.scale) for kind in unit_shapes()]
        self.ball = scene.add_icosphere(
            "/hand", BALL * SIZE, color=rgb(palette.DEVICE), opacity=0.3, visible=False,
            cast_shadow=False, receive_shadow=False,
        )  # fmt: skip
        self.taken = [self.ball, *(s.handle for s in self._shapes if s.drawable.name == held)]
        self._colours = _Colours(scene, self.scale)
        self._ghost: _Shape | None = None

    def haunt(self, ghost: SceneGeometry | None) -> None:
        """From now on this tool is shown beside, faintly; None for none."""
        if self._ghost is not None:
            self._ghost.handle.remove()
        self._ghost = None if ghost is None else _Shape(
            self._scene, len(self._shapes), ghost.drawables[0], ghost.rest, self.scale
        )  # fmt: skip
        if self._ghost is not None:
            self._ghost.handle.color, self._ghost.handle.opacity = rgb(palette.GHOST), 0.4

    def show(self, state: SceneState, overlays: Overlays, led: bool, ghost: Floats | None) -> float:
        """Bring the page to this state; the arrows' scale [m/N]. led: whether pages may lead the tool."""
        for shape in self._shapes:
            shape.follow(state.vertices)
        if self._ghost is not None and ghost is not None:
            self._ghost.follow(ghost)
        if self._light.cast_shadow != overlays.shadow:
            self._light.cast_shadow = overlays.shadow
        self._colours.show(*self._coloured(state, overlays.coloured(state)))
        scale = force_scale(self._geometry, state)
        marks, fixed = place_marks(self._geometry, state, overlays, scale), Solids()
        if overlays.fixed:
            fixed = fixed_marks(self._geometry, state)
        for kinds, solids in ((self._marks, marks), (self._fixed, fixed)):
            for kind in kinds:
                kind.show(solids)
        at = state.device_point if np.isfinite(state.device_point).all() else state.held_point
        there = led and bool(np.isfinite(at).all())
        if there:
            self.ball.position = self.scale * at
        if self.ball.visible != there:
            self.ball.visible = there
        return scale

    def _coloured(self, state: SceneState, bodies: bool) -> tuple[Floats, Floats]:
        """Triangles (n, 3, 3) [m] that are coloured, and where each lies on the colour map (n,)."""
        corners, share = [state.patch], [shares(state, state.patch_scalar)]
        for shape in self._shapes if bodies else ():
            d = shape.drawable
            faces, points, values = d.triangles, state.vertices[d.span], state.scalar[d.span]
            if len(faces) and np.isfinite(values).any():
                normals = face_normals(points, faces)
                normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
                corners.append(points[faces] + LIFT * self._geometry.length * normals[:, None, :])
                share.append(shares(state, values[faces].mean(axis=1)))
        return np.concatenate(corners), np.concatenate(share)

    def _ground(self, state: SceneState) -> None:
        """The scene's planes, or a grid below everything where it has none, with the shadows on them."""
        geometry, length = self._geometry, max(self._geometry.length, 1e-3)
        planes = [(state.vertices[d.span], d.colour) for d in geometry.drawables if d.kind == "plane"]
        if not planes:
            below = geometry.centre.copy()
            below[1] = geometry.lower[1]
            planes = [(plane_corners(below, UP, REACH * length), palette.GROUND)]
        for k, (corners, colour) in enumerate(planes):
            turn = Rotation.align_vectors([plane_of(corners)[:3]], [UP])[0].as_quat()
            sides = self.scale * np.linalg.norm(corners[[1, 3]] - corners[0], axis=1)
            cell, line = self.scale * grid_spacing(length), rgb(palette.GRID_LINE)
            self._scene.add_grid(
                f"/ground/{k}", width=sides[0], height=sides[1], plane="xz", cell_size=cell,
                section_size=5 * cell, cell_color=line, section_color=line,
                cell_thickness=0.6, section_thickness=0.9, plane_color=rgb(colour), plane_opacity=1.0,
                shadow_opacity=0.2, fade_distance=REACH * SIZE * 2, wxyz=turn[[3, 0, 1, 2]],
                position=self.scale * corners.mean(axis=0),
            )  # fmt: skip
