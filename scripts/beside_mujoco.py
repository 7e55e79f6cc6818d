"""The probe in the middle of its press beside MuJoCo's picture of the same block, ball, way and camera:

MUJOCO_GL=egl python scripts/beside_mujoco.py docs/pictures/beside-mujoco.png
"""

import sys
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

from palpo.app.report.gallery import run
from palpo.config.load import load_scene
from palpo.render.camera import Camera
from palpo.render.offscreen import render_picture
from palpo.render.overlays import Overlays

MOMENT = 1.9
BEGINS = 0.8
"""Of MuJoCo's run, when the ball is still above the block [s]."""
WIDTH, HEIGHT = 640, 560
EYE, TARGET, ANGLE = np.array([0.06, 0.14, 0.24]), np.array([0.0, 0.02, 0.0]), 24.0
UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""From Palpo's axes, y up, to MuJoCo's, z up."""
MODEL = """
<mujoco>
  <option timestep="0.001" integrator="discrete"/>
  <visual>
    <global offwidth="{width}" offheight="{height}" fovy="{angle}"/>
    <quality offsamples="8" shadowsize="4096"/>
    <map znear="0.02"/>
  </visual>
  <asset>
    <texture name="ground" type="2d" builtin="checker" rgb1="0.91 0.93 0.95" rgb2="0.84 0.87 0.91"
             width="512" height="512"/>
    <material name="ground" texture="ground" texrepeat="50 50"/>
  </asset>
  <worldbody>
    <light directional="true" dir="0.42 0.29 -0.86" diffuse="0.7 0.7 0.7"/>
    <geom type="plane" size="1 1 0.1" material="ground" contype="0" conaffinity="0"/>
    <body name="probe" mocap="true">
      <geom type="sphere" size="0.01" rgba="0.70 0.72 0.78 1" friction="0.4"/>
    </body>
    <flexcomp name="block" type="grid" count="13 13 4" spacing="0.005 0.005 0.01" pos="0 0 0.015" dim="3"
              mass="0.108" radius="0.0005" rgba="0.85 0.60 0.50 1">
      <contact friction="0.4" selfcollide="none" solref="0.004 1"/>
      <elasticity young="15000" poisson="{poisson}" damping="0.01"/>
      <pin gridrange="0 0 0 12 12 0"/>
    </flexcomp>
  </worldbody>
</mujoco>
"""


def palpo_s() -> tuple[np.ndarray, np.ndarray]:
    """Palpo's picture, and where its ball was over time (n, 4) [s, m]."""
    geometry, states = run("probe", [MOMENT])
    state = min(states, key=lambda state: abs(state.time - MOMENT))
    back = EYE - TARGET
    distance = float(np.linalg.norm(back))
    rise = float(np.degrees(np.arcsin(back[1] / distance)))
    camera = Camera(tuple(TARGET), distance, float(np.degrees(np.arctan2(back[0], back[2]))), rise, ANGLE)
    plain = Overlays(contacts=False, nearness=False, forces=False, device=False, axes=False, labels=False)
    picture = render_picture(geometry, state, camera, WIDTH, HEIGHT, plain)
    return picture, np.array([[state.time, *state.held_point] for state in states[1:]])


def mujoco_s(path: np.ndarray, poisson: float) -> np.ndarray:
    """MuJoCo's picture."""
    words = {"width": WIDTH, "height": HEIGHT, "angle": ANGLE}
    model = mujoco.MjModel.from_xml_string(MODEL.format(poisson=poisson, **words))
    data = mujoco.MjData(model)
    data.time = BEGINS
    while data.time < MOMENT:
        data.mocap_pos[0] = UP @ [np.interp(data.time, path[:, 0], path[:, k]) for k in (1, 2, 3)]
        mujoco.mj_step(model, data)
    camera, back = mujoco.MjvCamera(), UP @ (TARGET - EYE)
    camera.lookat[:], camera.distance = UP @ TARGET, np.linalg.norm(back)
    camera.azimuth = np.degrees(np.arctan2(back[1], back[0]))
    camera.elevation = np.degrees(np.arcsin(back[2] / camera.distance))
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(data, camera)
        return renderer.render()


def main(out: str) -> None:
    """Both, Palpo's on the left."""
    picture, path = palpo_s()
    poisson = load_scene("probe").body("block").material.poisson_ratio
    both = Image.fromarray(np.hstack([picture, mujoco_s(path, poisson)]))
    both.quantize(256).save(Path(out), optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
