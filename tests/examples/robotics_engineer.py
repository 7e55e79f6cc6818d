"""A robotics engineer: a gripper with cups of one's own drawing, what they hold, and a lift in MuJoCo."""

import sys
from pathlib import Path

import palpo

folder = Path(sys.argv[1])
drawn = palpo.DrawnCup(
    points=[("12 mm", 0), ("9 mm", "5 mm"), ("4 mm", "7 mm")], wall="2 mm", rim="3 mm", stem="8 mm"
)
silicone = palpo.Elastic.named("silicone", youngs_modulus="1 MPa")
path = [[0, 0, 0, 0], [1, 0, "-2 mm", 0]]
left = palpo.Cup(
    name="left", geometry=drawn, material=silicone, drive=palpo.ScriptedDrive(path=path),
    placement=palpo.Placement(position=("-40 mm", "1 mm", 0)),
)  # fmt: skip
right = palpo.Cup(
    name="right", geometry=drawn, material=silicone, drive=palpo.SameDrive(cup="left"),
    placement=palpo.Placement(position=("40 mm", "1 mm", 0)),
)  # fmt: skip
plate = palpo.Static(name="plate", geometry=palpo.Plate())
scene = palpo.Scene(title="My gripper", bodies=[left, right, plate])

found = palpo.lift(scene, mass=0.1)
print({name: round(margin, 2) for name, margin in found.margins.items()})
print([f"{cup.name} holds {cup.law.limit:.1f} N" for cup in found.cups])
found.export(folder / "gripper")  # then: cd gripper; python in_mujoco.py
