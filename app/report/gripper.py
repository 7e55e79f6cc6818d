"""Cups and what carries them for robots' simulators: MuJoCo, Drake, USD; with their law in Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.app.exported import copy_out
from palpo.app.report.lift_page import as_data
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.suction.reduced_cup import GRAVITY, ReducedCup

Floats = NDArray[np.float64]

UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""From our axes, y up, to those of robots, z up."""
CLEARANCE = 5e-3
"""Height of the lowest rim over the load at first [m]."""
BESIDE, THICK = 0.02, 0.02
"""How much wider than the cups the load is, and how thick [m]."""
LOADED = 0.25
"""Share of what all cups hold that the load weighs."""
MOUNT = 5e-3
"""Thickness of the plate that the cups hang on [m]."""
FILES = ("suction_cup.py", "in_mujoco.py", "in_drake.py", "in_newton.py")


class PlacedCup(NamedTuple):
    """A cup of a gripper, in axes with z up."""

    name: str
    law: ReducedCup
    rim: Floats
    """Middle of its rim at rest [m], (3,)."""
    axes: Floats
    """(3, 3), columns; the third is its axis, away from what it grips."""
    surface: SurfaceMesh
    """Where it is at rest [m]."""

    @property
    def local(self) -> Floats:
        """Vertices of its surface from its rim, in its own axes [m]."""
        return np.asarray((self.surface.vertices - self.rim) @ self.axes)

    @property
    def height(self) -> float:
        """From its rim to its top along the axis [m]."""
        return float(self.local[:, 2].max())


def write_gripper(folder: Path, name: str, cups: Sequence[PlacedCup]) -> None:
    """Models and modules of a gripper into a folder that exists."""
    about = as_data(cups[0].law)["about"]
    told = [
        {
            "name": cup.name, "rim_m": cup.rim.tolist(), "axes": cup.axes.tolist(), "height_m": cup.height,
            **{key: value for key, value in as_data(cup.law).items() if key != "about"},
        }
        for cup in cups
    ]  # fmt: skip
    data = {"about": about, "gripper": name, "cups": told}
    (folder / "gripper.json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    for cup in cups:
        write_obj(folder / f"{cup.name}.obj", cup.surface)
    (folder / "gripper.xml").write_text(_mjcf(name, cups), "utf-8")
    (folder / "lift.xml").write_text(_mjcf(name, cups, lifting=True), "utf-8")
    (folder / "gripper.sdf").write_text(_sdf(name, cups), "utf-8")
    (folder / "lift.sdf").write_text(_sdf(name, cups, lifting=True), "utf-8")
    (folder / "gripper.usda").write_text(_usda(name, cups), "utf-8")
    (folder / "lift.usda").write_text(_usda(name, cups, lifting=True), "utf-8")
    copy_out(FILES, folder)


def write_obj(path: Path, surface: SurfaceMesh) -> None:
    """A surface as a Wavefront file, in metres."""
    lines = [f"v {x:.7g} {y:.7g} {z:.7g}" for x, y, z in surface.vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in surface.triangles + 1]
    path.write_text("\n".join(lines) + "\n", "utf-8")


class _Lift(NamedTuple):
    """The load of the model that lifts one: a box on the ground, its middle and half sizes [m], mass [kg]."""

    middle: Floats
    half: Floats
    mass: float
    start: float
    """Height of the gripper's origin [m]."""


def _lift(cups: Sequence[PlacedCup]) -> _Lift:
    rims = np.array([cup.rim for cup in cups])
    wide = max(float(np.abs((c.surface.vertices - c.rim)[:, :2]).max()) for c in cups) + BESIDE
    low, high = rims.min(axis=0), rims.max(axis=0)
    half = np.array([*(0.5 * (high - low)[:2] + wide), 0.5 * THICK])
    middle = np.array([*(0.5 * (high + low)[:2]), half[2]])
    mass = LOADED * sum(cup.law.limit for cup in cups) / GRAVITY
    return _Lift(middle, half, mass, THICK + CLEARANCE - float(low[2]))


def _plate(cups: Sequence[PlacedCup]) -> tuple[Floats, Floats]:
    """Middle and half sizes of what the cups hang on [m]."""
    tops = np.array([cup.rim + cup.height * cup.axes[:, 2] for cup in cups])
    low, high = tops.min(axis=0), tops.max(axis=0)
    half = 0.5 * (high - low) + [0.01, 0.01, 0.0]
    half[2] = 0.5 * MOUNT
    return np.array([*(0.5 * (low + high)[:2]), high[2] + half[2]]), half


def _quaternion(axes: Floats) -> Floats:
    """(w, x, y, z) of axes (3, 3)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(axes).as_quat(scalar_first=True))


def text_of(values: Any) -> str:
    """Numbers with spaces between."""
    return " ".join(f"{value + 0.0:.7g}" for value in np.ravel(values))


def vector_of(values: Any) -> str:
    """As USD writes one."""
    return "(" + ", ".join(f"{value + 0.0:.7g}" for value in values) + ")"


def _mjcf(name: str, cups: Sequence[PlacedCup], lifting: bool = False) -> str:
    """MuJoCo: the gripper, fixed, to be attached where one wants it; or led over a load."""
    middle, half = _plate(cups)
    meshes = "\n".join(f'    <mesh name="{cup.name}" file="{cup.name}.obj"/>' for cup in cups)
    shown = 'contype="0" conaffinity="0" group="1" mass="0"'
    parts = "\n".join(
        f'      <geom type="mesh" mesh="{cup.name}" {shown} rgba="0.45 0.65 0.85 1"/>\n'
        f'      <site name="{cup.name}" pos="{text_of(cup.rim)}" quat="{text_of(_quaternion(cup.axes))}"/>'
        for cup in cups
    )
    lift = _lift(cups)
    led = f' mocap="true" pos="0 0 {lift.start:.7g}"' if lifting else ""
    world = "" if not lifting else (
        '    <light pos="0.3 -0.3 0.6" dir="-0.4 0.4 -0.8"/>\n'
        '    <geom name="floor" type="plane" size="1 1 0.1" rgba="0.9 0.9 0.9 1"/>\n'
        f'    <body name="load" pos="{text_of(lift.middle)}">\n      <freejoint/>\n'
        f'      <geom type="box" size="{text_of(lift.half)}" mass="{lift.mass:.6g}" rgba="0.8 0.6 0.3 1"/>\n'
        "    </body>\n"
    )  # fmt: skip
    return f"""<!-- {name}: `python in_mujoco.py` runs lift.xml; gripper.json has the law of each cup. -->
<mujoco model="{name}">
  <option timestep="0.001" integrator="implicitfast"/>
  <custom><numeric name="clearance" data="{CLEARANCE:g}"/></custom>
  <asset>
{meshes}
  </asset>
  <worldbody>
{world}    <body name="gripper"{led}>
      <inertial pos="{text_of(middle)}" mass="0.2" diaginertia="2e-4 2e-4 2e-4"/>
      <geom type="box" pos="{text_of(middle)}" size="{text_of(half)}" {shown} rgba="0.5 0.5 0.55 1"/>
{parts}
    </body>
  </worldbody>
</mujoco>
"""


def _sdf(name: str, cups: Sequence[PlacedCup], lifting: bool = False) -> str:
    """Drake: the gripper's link, with a frame at each cup's rim; or on a rail over a load."""
    middle, half = _plate(cups)

    def pose(place: Floats, axes: Floats | None = None) -> str:
        from scipy.spatial.transform import Rotation

        turn = np.zeros(3) if axes is None else Rotation.from_matrix(axes).as_euler("xyz")
        return text_of([*place, *turn])

    def visual(name: str, shape: str, at: str = "") -> str:
        return f'      <visual name="{name}">{at}<geometry>{shape}</geometry></visual>'

    skins = [visual(cup.name, f"<mesh><uri>{cup.name}.obj</uri></mesh>") for cup in cups]
    frames = "\n".join(
        f'    <frame name="{cup.name}" attached_to="gripper"><pose relative_to="gripper">'
        f"{pose(cup.rim, cup.axes)}</pose></frame>"
        for cup in cups
    )
    lift = _lift(cups)
    size, load = text_of(2.0 * half), text_of(2.0 * lift.half)
    inertia = _box_inertia(lift.mass, lift.half)
    start = f"<pose>0 0 {lift.start:.7g} 0 0 0</pose>" if lifting else ""
    more = "" if not lifting else f"""    <joint name="rail" type="prismatic">
      <parent>world</parent><child>gripper</child>
      <axis><xyz>0 0 1</xyz></axis>
    </joint>
    <link name="load"><pose>{pose(lift.middle)}</pose>
      <inertial><mass>{lift.mass:.6g}</mass>{inertia}</inertial>
      <visual name="box"><geometry><box><size>{load}</size></box></geometry></visual>
      <collision name="box"><geometry><box><size>{load}</size></box></geometry>
        <drake:proximity_properties><drake:rigid_hydroelastic/></drake:proximity_properties>
      </collision>
    </link>
"""  # fmt: skip
    floor = "" if not lifting else """  <model name="floor">
    <static>true</static>
    <link name="floor"><pose>0 0 -0.05 0 0 0</pose>
      <collision name="box"><geometry><box><size>2 2 0.1</size></box></geometry>
        <drake:proximity_properties>
          <drake:compliant_hydroelastic/><drake:hydroelastic_modulus>1e7</drake:hydroelastic_modulus>
          <drake:mesh_resolution_hint>0.1</drake:mesh_resolution_hint>
          <drake:hunt_crossley_dissipation>1</drake:hunt_crossley_dissipation>
        </drake:proximity_properties>
      </collision>
    </link>
  </model>
"""  # fmt: skip
    plate = visual("plate", f"<box><size>{size}</size></box>", f"<pose>{pose(middle)}</pose>")
    visuals = "\n".join([plate, *skins])
    model = f"""  <model name="{name}">
    <link name="gripper">{start}
      <inertial><mass>0.2</mass>{_box_inertia(0.2, half)}</inertial>
{visuals}
    </link>
{frames}
{more}  </model>
"""
    about = f"<!-- {name}: `python in_drake.py` runs lift.sdf; gripper.json has the law of each cup. -->"
    world = f'<world name="lift">\n{floor}{model}</world>\n' if lifting else model
    return f'<?xml version="1.0"?>\n{about}\n<sdf version="1.9">\n{world}</sdf>\n'


def _box_inertia(mass: float, half: Floats) -> str:
    x, y, z = (2.0 * half) ** 2
    values = {"ixx": y + z, "iyy": x + z, "izz": x + y}
    found = {key: max(mass / 12.0 * value, 1e-6) for key, value in values.items()}
    return "<inertia>" + "".join(f"<{key}>{value:.6g}</{key}>" for key, value in found.items()) + "</inertia>"


def _usda(name: str, cups: Sequence[PlacedCup], lifting: bool = False) -> str:
    """USD with physics: the gripper as a rigid body whose cups carry their laws as attributes."""
    middle, half = _plate(cups)
    lift = _lift(cups)
    start = lift.start if lifting else 0.0

    def numbers(values: Any) -> str:
        return "[" + ", ".join(f"{value:.7g}" for value in np.ravel(values)) + "]"

    def attributes(law: ReducedCup) -> str:
        told = as_data(law)
        lines = []
        for key, value in told.items():
            if isinstance(value, bool):
                lines.append(f"            custom bool palpo:cup:{key} = {str(value).lower()}")
            elif isinstance(value, float | int):
                lines.append(f"            custom double palpo:cup:{key} = {value:.9g}")
            elif isinstance(value, list):
                lines.append(f"            custom double[] palpo:cup:{key} = {numbers(value)}")
        return "\n".join(lines)

    parts = "\n".join(
        f"""        def Xform "{cup.name}"
        {{
            double3 xformOp:translate = {vector_of(cup.rim)}
            quatd xformOp:orient = {vector_of(_quaternion(cup.axes))}
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
{attributes(cup.law)}
            def Mesh "skin"
            {{
                int[] faceVertexCounts = {numbers(np.full(len(cup.surface.triangles), 3))}
                int[] faceVertexIndices = {numbers(cup.surface.triangles)}
                point3f[] points = [{", ".join(map(vector_of, cup.local))}]
                color3f[] primvars:displayColor = [(0.45, 0.65, 0.85)]
                uniform token subdivisionScheme = "none"
            }}
        }}"""
        for cup in cups
    )
    physics = "" if not lifting else f"""
    def PhysicsScene "physics"
    {{
        vector3f physics:gravityDirection = (0, 0, -1)
        float physics:gravityMagnitude = {GRAVITY}
    }}

    def Cube "load" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"])
    {{
        double size = 2
        float physics:mass = {lift.mass:.6g}
        double3 xformOp:translate = {vector_of(lift.middle)}
        float3 xformOp:scale = {vector_of(lift.half)}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }}

    def Cube "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {{
        double size = 2
        double3 xformOp:translate = (0, 0, -0.05)
        float3 xformOp:scale = (1, 1, 0.05)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }}
"""  # fmt: skip
    return f"""#usda 1.0
(
    defaultPrim = "world"
    doc = "{name}: gripper.json has the law of each cup, in_newton.py applies it."
    metersPerUnit = 1
    kilogramsPerUnit = 1
    upAxis = "Z"
)

def Xform "world"
{{{physics}
    def Xform "gripper" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {{
        bool physics:kinematicEnabled = {str(lifting).lower()}
        float physics:mass = 0.2
        float3 physics:diagonalInertia = (2e-4, 2e-4, 2e-4)
        double3 xformOp:translate = (0, 0, {start:.7g})
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Cube "plate"
        {{
            double size = 2
            double3 xformOp:translate = {vector_of(middle)}
            float3 xformOp:scale = {vector_of(half)}
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
        }}
{parts}
    }}
}}
"""
