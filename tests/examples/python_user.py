"""A Python user: two bodies made in code, pressed, looked at inside, swept, and handed to other programs."""

import sys
from pathlib import Path

import palpo

folder = Path(sys.argv[1])
tissue = palpo.Soft(
    name="tissue", geometry=palpo.Block(size=(0.06, 0.02, 0.06), divisions=(6, 3, 6)),
    material=palpo.materials()["liver"].material, placement=palpo.Placement(position=(0, -0.01, 0)),
    fixed=[palpo.Region(box=((-1, -0.021, -1), (1, -0.019, 1)))],
)  # fmt: skip
ball = palpo.Rigid(
    name="ball", rate="high", mass=0.03, geometry=palpo.Sphere(radius=0.008),
    placement=palpo.Placement(position=(0, 0.0088, 0)),
)  # fmt: skip
press = [[0, 0, 0.0088, 0], [0.2, 0, 0.0048, 0], [0.3, 0, 0.0048, 0]]
scene = palpo.Scene(
    title="A ball on tissue", bodies=[tissue, ball], tool=palpo.Tool(body="ball"),
    device=palpo.HapticDevice(path=press),
)  # fmt: skip

state = scene.build().start()
state.step(300)
felt = state.fields("tissue")
deepest = felt.von_mises.argmax()
print(f"{felt.von_mises[deepest]:.0f} Pa at {felt.positions[deepest]}")
print(f"pressed by {felt.contact_pressure.max():.0f} Pa")
state.mesh("tissue").write(folder / "tissue.vtu")  # opens in ParaView; state.pyvista("tissue").plot() here

for row in palpo.sweep(scene, {"friction.default": [0.1, 0.5]}):
    print(row["friction.default"], row["force_N.max_norm"])

palpo.run(scene, lock_step=True, record=folder / "run.h5")
print(palpo.export(folder / "run.h5", vtk=folder / "vtk"))
