"""A part designer: a plug and two hooks from STL files, how they go in and hold, and a joint for MuJoCo."""

import sys
from pathlib import Path

import palpo

folder = Path(sys.argv[1])  # with plug.stl, socket-1.stl and socket-2.stl, in millimetres
hooks = []
for name, side in (("socket-1.stl", -1), ("socket-2.stl", 1)):
    foot = palpo.Region(box=((0, "-5 mm", "-7 mm"), (side * 0.02, "0.1 mm", "7 mm")))
    tip = palpo.Region(box=((side * 0.0066, "28.3 mm", "-7 mm"), (side * 0.0101, "35.6 mm", "7 mm")))
    part = palpo.ProngFile(
        path=str(folder / name), scale=0.001, size="1.5 mm", mesher="palpo", clamped=[foot], contact=[tip]
    )  # palpo mesh socket-1.stl --scale 0.001 --size 0.0015 --picture hook.png shows it
    hooks.append(part)
scene = palpo.Scene(
    title="My connector", friction={"default": 0.163},
    material=palpo.Elastic(youngs_modulus="165 MPa", poisson_ratio=0.35, density=1040),
    admittance={"stiffness": "45 N/mm"}, model={"segments": 1},
    connector=palpo.FilesConnector(
        prongs=hooks, plug=palpo.PlugFile(path=str(folder / "plug.stl"), scale=0.001), stroke="12.28 mm"
    ),
)  # fmt: skip
found = palpo.snap(scene, insertion_below=60.0, strain_below=0.03)
print(f"in with {found.row['insertion_N']:.1f} N, latched: {found.row['latched']}")
print(f"strained by {100 * found.row['strain']:.1f} %: {'good' if found.row['passes'] else 'not good'}")
found.export(folder / "joint")  # then: cd joint; python snap_in_mujoco.py
scene.save(folder / "connector.toml")  # then: palpo run connector.toml, and feel it click
