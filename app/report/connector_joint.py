"""A connector's force over travel as a joint with friction and a latch: MuJoCo, Drake, USD, and Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from palpo.app.exported import copy_out
from palpo.app.report.gripper import UPRIGHT, text_of, vector_of, write_obj
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.systems.snap.connectors.connector import Connector
from palpo.physics.systems.snap.travel import GONE, Travel, TravelDirection

POINTS = 801
"""Of the curves."""
STICK = 0.005
"""Way within which friction turns round, over the stroke."""
MASS, DAMPING, STEP = 0.1, 2.0, 2e-4
"""Of the plug in the models [kg], of its joint [N s/m], and of a step [s]."""
FILES = ("snap_joint.py", "snap_in_mujoco.py", "snap_in_drake.py")


def law_of_joint(connector: Connector, travel: Travel) -> dict[str, Any]:
    """The law as JSON has it, SI units; `about` says what each is."""
    x = np.linspace(0.0, connector.stroke, POINTS)
    inward = _on(x, travel.insertion)
    outward = _on(x, travel.retention)
    # where it was not pulled: nothing of a plug that came loose, else what held it last
    before = x < travel.retention.travel.min()
    outward[before] = 0.0 if travel.released else travel.retention.peak
    peak = int(inward.argmax())
    over = np.flatnonzero(inward[peak:] < GONE * inward[peak])
    click = float(x[peak + over[0]]) if over.size else connector.stroke
    return {
        "about": {
            "travel_m": "of the plug along the push, from where it starts",
            "inward_N": "with which the socket resists on the way in; negative where it draws the plug on",
            "outward_N": "with which it resists on the way out; positive where it holds the plug",
            "stick_m": "way within which friction turns round",
            "click_m": "behind which the plug is latched",
        },
        "travel_m": x.tolist(), "inward_N": inward.tolist(), "outward_N": outward.tolist(),
        "stick_m": STICK * connector.stroke, "click_m": click, "stroke_m": connector.stroke,
        "insertion_N": travel.insertion.peak, "retention_N": travel.retention.peak,
        "released": travel.released, "push": (UPRIGHT @ connector.push).tolist(),
    }  # fmt: skip


def write_joint(folder: Path, name: str, connector: Connector, travel: Travel) -> None:
    """Models and modules into a folder that exists."""
    law = law_of_joint(connector, travel)
    (folder / "connector.json").write_text(json.dumps(law, indent=1) + "\n", "utf-8")
    parts = {f"socket-{i}": prong.mesh.surface().compact() for i, prong in enumerate(connector.prongs, 1)}
    for part, surface in {**parts, "plug": connector.plug_at(0.0)}.items():
        turned = SurfaceMesh.from_triangles(surface.vertices @ UPRIGHT.T, surface.triangles, part)
        write_obj(folder / f"{part}.obj", turned)
    (folder / "connector.xml").write_text(_mjcf(name, law, list(parts)), "utf-8")
    (folder / "connector.sdf").write_text(_sdf(name, law, list(parts)), "utf-8")
    (folder / "connector.usda").write_text(_usda(name, law), "utf-8")
    copy_out(FILES, folder)


def _on(x: np.ndarray, way: TravelDirection) -> np.ndarray:
    """The force of one way at travels x (n,) [m]."""
    order = np.argsort(way.travel, kind="stable")
    return np.interp(x, way.travel[order], way.force[order])


def _mjcf(name: str, law: dict[str, Any], sockets: list[str]) -> str:
    shown = 'contype="0" conaffinity="0" mass="0"'
    meshes = "\n".join(f'    <mesh name="{part}" file="{part}.obj"/>' for part in [*sockets, "plug"])
    socket = "\n".join(f'      <geom type="mesh" mesh="{part}" {shown}/>' for part in sockets)
    joint = f'axis="{text_of(law["push"])}" range="0 {law["stroke_m"]:.7g}" damping="{DAMPING:g}"'
    return f"""<!-- {name}: `python snap_in_mujoco.py`; connector.json has its force over travel. -->
<mujoco model="{name}">
  <option timestep="{STEP:g}" integrator="implicitfast" gravity="0 0 0"/>
  <asset>
{meshes}
  </asset>
  <worldbody>
    <body name="socket">
{socket}
    </body>
    <body name="plug">
      <inertial pos="0 0 0" mass="{MASS:g}" diaginertia="1e-5 1e-5 1e-5"/>
      <joint name="travel" type="slide" limited="true" {joint}/>
      <geom type="mesh" mesh="plug" {shown} rgba="0.8 0.6 0.3 1"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="travel"/></actuator>
</mujoco>
"""


def _sdf(name: str, law: dict[str, Any], sockets: list[str]) -> str:
    def visual(part: str) -> str:
        shape = f"<geometry><mesh><uri>{part}.obj</uri></mesh></geometry>"
        return f'      <visual name="{part}">{shape}</visual>'

    inertia = "<inertia><ixx>1e-5</ixx><iyy>1e-5</iyy><izz>1e-5</izz></inertia>"
    limit = f"<limit><lower>0</lower><upper>{law['stroke_m']:.7g}</upper></limit>"
    return f"""<?xml version="1.0"?>
<!-- {name}: `python snap_in_drake.py`; connector.json has its force over travel. -->
<sdf version="1.9">
  <model name="{name}">
    <link name="socket">
{chr(10).join(map(visual, sockets))}
    </link>
    <joint name="mount" type="fixed"><parent>world</parent><child>socket</child></joint>
    <link name="plug">
      <inertial><mass>{MASS:g}</mass>{inertia}</inertial>
{visual("plug")}
    </link>
    <joint name="travel" type="prismatic"><parent>socket</parent><child>plug</child>
      <axis><xyz>{text_of(law["push"])}</xyz>{limit}
        <dynamics><damping>{DAMPING:g}</damping></dynamics></axis>
    </joint>
  </model>
</sdf>
"""


def _usda(name: str, law: dict[str, Any]) -> str:
    """The joint and its law as attributes; its axis is the joint's own x, turned to the push."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.align_vectors([law["push"]], [[1.0, 0.0, 0.0]])[0].as_quat(scalar_first=True)
    curves = "\n".join(
        f"        custom double[] palpo:snap:{key} = [{', '.join(f'{v:.7g}' for v in law[key])}]"
        for key in ("travel_m", "inward_N", "outward_N")
    )
    numbers = "\n".join(
        f"        custom double palpo:snap:{key} = {law[key]:.9g}"
        for key in ("stick_m", "click_m", "stroke_m", "insertion_N", "retention_N")
    )
    return f"""#usda 1.0
(
    defaultPrim = "world"
    doc = "{name}: snap_joint.py computes the force on the joint from its attributes."
    metersPerUnit = 1
    kilogramsPerUnit = 1
    upAxis = "Z"
)

def Xform "world"
{{
    def Xform "socket" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
    {{
        bool physics:kinematicEnabled = true
    }}
    def Xform "plug" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {{
        float physics:mass = {MASS:g}
        float3 physics:diagonalInertia = (1e-5, 1e-5, 1e-5)
    }}
    def PhysicsPrismaticJoint "travel"
    {{
        rel physics:body0 = </world/socket>
        rel physics:body1 = </world/plug>
        uniform token physics:axis = "X"
        quatf physics:localRot0 = {vector_of(turn)}
        quatf physics:localRot1 = {vector_of(turn)}
        float physics:lowerLimit = 0
        float physics:upperLimit = {law["stroke_m"]:.7g}
{curves}
{numbers}
    }}
}}
"""
