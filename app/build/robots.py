"""Robots from URDF and MJCF files, whose joints are held: links as surfaces, with the masses of the file.

MuJoCo, an extra, reads both formats, places the links and fills in what a file leaves open: E. Todorov,
T. Erez, Y. Tassa, MuJoCo: a physics engine for model-based control (IROS 2012).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.robot_files import mujoco_here, read_robot
from palpo.app.visual.solids import capsule_surface
from palpo.config.schema.geometry import Robot
from palpo.config.words import choose
from palpo.physics.mesh import generate
from palpo.physics.mesh.mending import mended
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

LARGEST = 1e9
"""Mass [kg], place [m] and inertia [kg m^2]."""
AROUND = 24
"""Cells around a cylinder."""
FOLLOWS, DEEPEST = 2, 8
"""Kind of the constraint by which a joint follows another, by MuJoCo's numbers; followers of followers."""
SLIDE, HINGE = 2, 3
"""Kinds of joints that are held at a value, by MuJoCo's numbers."""


class Masses(NamedTuple):
    """Of links together, in the robot's frame."""

    mass: float
    """[kg]"""
    centre: Floats
    """[m], shape (3,)."""
    inertia: Floats
    """About the centre [kg m^2], shape (3, 3)."""


class HeldRobot:
    """A robot with its joints held where a scene says.

    links, joints: numbers by name, of joints those that are held at a value. Raises InputError for a file
    that cannot be read and names that it does not have, and Refusal without MuJoCo.
    """

    def __init__(self, told: Robot) -> None:
        self.told = told
        self.model = read_robot(told.path)
        self.data = mujoco_here().MjData(self.model)
        model = self.model
        self.joints = {
            model.joint(j).name: j for j in range(model.njnt) if model.jnt_type[j] in (SLIDE, HINGE)
        }
        for j in self.joints.values():
            if model.jnt_limited[j]:
                at = model.jnt_qposadr[j]
                self.data.qpos[at] = np.clip(self.data.qpos[at], *model.jnt_range[j])
        for key, kind, unit in (("angles", HINGE, "rad"), ("travels", SLIDE, "m")):
            for name, value in getattr(told, key).items():
                self._hold(key, kind, unit, name, value)
        self._follow()
        mujoco_here().mj_kinematics(model, self.data)
        self.links = {model.body(b).name: b for b in range(1, model.nbody)}
        self.chosen = self._chosen()

    def _hold(self, key: str, kind: int, unit: str, name: str, value: float) -> None:
        model = self.model
        known = {joint: j for joint, j in self.joints.items() if model.jnt_type[j] == kind}
        if name not in known:
            raise InputError(
                f"{self.told.path}: has no joint for geometry.{key}.{name}; {choose(name, known)}."
            )
        j = known[name]
        low, high = model.jnt_range[j]
        if model.jnt_limited[j] and not low <= value <= high:
            said = f"{self.told.path} lets it go from {low:g} to {high:g}"
            raise InputError(f"geometry.{key}.{name} = {value:g} {unit}: {said}.")
        self.data.qpos[model.jnt_qposadr[j]] = value

    def _follow(self) -> None:
        """Put joints that are not told where those that they follow lead them, by the file's polynomials."""
        model, q, q0 = self.model, self.data.qpos, self.model.qpos0
        told = {self.joints[name] for name in (*self.told.angles, *self.told.travels)}
        rows = [e for e in range(model.neq) if model.eq_type[e] == FOLLOWS and model.eq_obj1id[e] not in told]
        # one may follow another that follows
        for e in rows * min(len(rows), DEEPEST):
            one, other = (int(model.jnt_qposadr[j]) for j in (model.eq_obj1id[e], model.eq_obj2id[e]))
            way = q[other] - q0[other] if model.eq_obj2id[e] >= 0 else 0.0
            q[one] = q0[one] + np.polynomial.polynomial.polyval(way, model.eq_data[e, :5])

    def _chosen(self) -> list[int]:
        """Numbers of the links that the body is made of."""
        for key, name in (("link", self.told.link), *(("without", name) for name in self.told.without)):
            if name is not None and name not in self.links:
                raise InputError(
                    f'{self.told.path}: has no geometry.{key} "{name}"; {choose(name, self.links)}.'
                )
        begun = None if self.told.link is None else self.links[self.told.link]
        ends = {self.links[name] for name in self.told.without}
        chosen: dict[int, bool] = {0: begun is None}
        for b in range(1, self.model.nbody):
            chosen[b] = (chosen[int(self.model.body_parentid[b])] or b == begun) and b not in ends
        return [b for b, held in chosen.items() if held and b]

    def surface(self) -> SurfaceMesh:
        """The shapes of the links, in the robot's frame [m]; where links overlap, so do they."""
        points, triangles, count = [], [], 0
        for b in self.chosen:
            for g in self._shapes_of(b):
                shape = self._shape(g, self.model.body(b).name)
                turned = shape.vertices @ self.data.geom_xmat[g].reshape(3, 3).T + self.data.geom_xpos[g]
                points.append(turned)
                triangles.append(shape.triangles + count)
                count += len(turned)
        if not points:
            raise InputError(f"{self.told.path}: the links that are chosen have no shape.")
        return SurfaceMesh.from_triangles(np.concatenate(points), np.concatenate(triangles), self.told.path)

    def _shapes_of(self, b: int) -> list[int]:
        """Shapes of a link that touch, or without any those that are only seen."""
        first = int(self.model.body_geomadr[b])
        shapes = list(range(first, first + int(self.model.body_geomnum[b])))
        return [g for g in shapes if self.model.geom_contype[g] or self.model.geom_conaffinity[g]] or shapes

    def _shape(self, g: int, link: str) -> SurfaceMesh:
        size, kind = [float(x) for x in self.model.geom_size[g]], int(self.model.geom_type[g])
        # by MuJoCo's numbers
        match kind:
            case 2:
                return SurfaceMesh.from_triangles(*capsule_surface(size[0], 0.0))
            case 3:
                upright = SurfaceMesh.from_triangles(*capsule_surface(size[0], 2.0 * size[1]))
                # about z here, about y there
                return upright.with_vertices(upright.vertices[:, [2, 0, 1]])
            case 4:
                ball = SurfaceMesh.from_triangles(*capsule_surface(1.0, 0.0))
                return ball.with_vertices(ball.vertices * size)
            case 5:
                return generate.cylinder(size[0], 2.0 * size[1], AROUND, 1, "z").surface().compact()
            case 6:
                return generate.box_surface([2.0 * side for side in size])
            case 7:
                return self._mesh(int(self.model.geom_dataid[g]), link)
        raise InputError(
            f"{self.told.path}: link {link} has a shape that is no ball, capsule, cylinder, box or mesh."
        )

    def _mesh(self, m: int, link: str) -> SurfaceMesh:
        model = self.model
        vertices = model.mesh_vert[model.mesh_vertadr[m] :][: model.mesh_vertnum[m]].astype(float)
        faces = model.mesh_face[model.mesh_faceadr[m] :][: model.mesh_facenum[m]]
        source = f"{self.told.path}: a mesh of link {link}"
        surface = mended(vertices, faces, source)[0]
        surface.require_volume(source)
        return surface

    def masses(self) -> Masses:
        """Of the links together; InputError where they have none."""
        data, m = self.data, self.model.body_mass[self.chosen]
        mass = float(m.sum())
        if not mass > 0.0:
            raise InputError(f"{self.told.path}: the links that are chosen have no mass; give the body one.")
        if not all(np.abs(values).max() < LARGEST for values in (m, data.xipos, self.model.body_inertia)):
            raise InputError(f"{self.told.path}: has masses or places too large to compute with.")
        centre = m @ data.xipos[self.chosen] / mass
        inertia = np.zeros((3, 3))
        for b in self.chosen:
            axes, off = data.ximat[b].reshape(3, 3), data.xipos[b] - centre
            inertia += axes @ np.diag(self.model.body_inertia[b]) @ axes.T
            inertia += self.model.body_mass[b] * (off @ off * np.eye(3) - np.outer(off, off))
        return Masses(mass, centre, inertia)
