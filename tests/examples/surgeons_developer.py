"""A surgeon's developer: parts of a segmented scan, a soft organ and the bone below it, felt with a probe."""

import sys
from pathlib import Path

import palpo

folder = Path(sys.argv[1])
scan = str(folder / "scan.nii.gz")  # palpo mesh scan.nii.gz lists its labels: 1 is the organ, 2 the bone
lies = palpo.Placement(position=(0, 0, 0), rotation=(1, 0, 0, "-90 deg"))  # the scan's z, to the head, is up
organ = palpo.Soft(
    name="organ", geometry=palpo.Segment(path=scan, label=1, size="6 mm"), material="liver", placement=lies,
    colour=(0.7, 0.35, 0.3), fixed=[palpo.Region(box=((-1, -1, -1), (1, "-18 mm", 1)))],
)  # fmt: skip
bone = palpo.Static(
    name="bone",
    geometry=palpo.Segment(path=scan, label=2, size="4 mm"),
    placement=lies,
    colour=(0.9, 0.9, 0.8),
)
probe = palpo.Rigid(
    name="probe", rate="high", mass=0.03, geometry=palpo.Sphere(radius="6 mm"),
    placement=palpo.Placement(position=(0, "30 mm", 0)),
)  # fmt: skip
press = [[0, 0, "30 mm", 0], [0.4, 0, "20 mm", 0], [0.6, 0, "20 mm", 0]]
scene = palpo.Scene(
    title="A scan", bodies=[organ, bone, probe], tool=palpo.Tool(body="probe"),
    device=palpo.HapticDevice(path=press),
)  # fmt: skip

state = scene.build().start()
for ms in range(0, 600, 100):
    state.step(100)
    print(f"{ms + 100} ms: {state.force[1]:.2f} N")
scene.save(folder / "scan.toml")  # then: palpo run scan.toml, and feel it by the mouse or a device
