"""A robotics engineer: a gripper from its URDF file, a finger of which presses on a gel."""

import sys
from pathlib import Path

import palpo

folder = Path(sys.argv[1])
urdf = str(folder / "gripper.urdf")  # palpo mesh gripper.urdf lists its links, joints and masses
down = palpo.Placement(position=(0, "0.18 m", 0), rotation=(1, 0, 0, "90 deg"))  # its z points down
pose = {"left_slide": "20 mm", "right_slide": "20 mm"}
palm = palpo.Static(
    name="palm", geometry=palpo.Robot(path=urdf, travels=pose, without=["left"]), placement=down
)
finger = palpo.Rigid(  # its mass and inertia are the file's
    name="finger", rate="high", geometry=palpo.Robot(path=urdf, travels=pose, link="left"), placement=down
)
gel = palpo.Soft(
    name="gel", geometry=palpo.Block(size=(0.12, 0.04, 0.06), divisions=(12, 4, 6)), material="ecoflex-00-30",
    placement=palpo.Placement(position=(0, "20 mm", 0)),
    fixed=[palpo.Region(box=((-1, -0.001, -1), (1, 0.001, 1)))],
)  # fmt: skip
state = palpo.Scene(
    title="A finger on a gel", bodies=[gel, palm, finger], tool=palpo.Tool(body="finger")
).build().start()  # fmt: skip

x, y, z = state.hand.position
above = y - state.positions["finger"][:, 1].min()  # of the hand over the finger's tip
for depth in (-0.005, 0.002, 0.004, 0.006):  # the gel's top is 40 mm high
    state.step(hand=(x, 0.04 + above - depth, z), ticks=500)
    print(f"{1e3 * depth:g} mm deep: {state.force[1]:.2f} N")
