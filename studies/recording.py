"""A real hand's recording on `needle` and `probe`, and a real liver as the organ.

The recordings are reaches of a hand that moved a Touch stylus; each is resampled to the servo's rate without
stairs, scaled and placed so that its lowest point presses into the soft body. The liver's mesh becomes the
organ of a scene of its own. Forces must be finite, bounded and continuous.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.app.systems.multirate.picture import Visual
from palpo.config.load import load_scene
from palpo.haptics.backends.replay import place, read_trajectory, resample
from palpo.haptics.path import waypoint_path
from palpo.physics.exchange.snapshot import SceneState
from palpo.physics.mesh.io import read_tet_mesh
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import render_picture
from palpo.studies.claims import Claim, Skipped, at_most
from palpo.studies.runs import SceneDrive
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
DATA = "PALPO_DATA"
"""Environment variable: folder of the recordings and of the liver; by default ../shared/data."""

LIMIT = 3.3
"""Largest force of the Touch [N]."""
LIVER_LENGTH = 0.12
"""The liver's longest side [m], about half of a grown one's."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Every recording on every scene. Raises Skipped where the data are not there."""
    folder = data_folder()
    recordings = ["touch_reach_low.txt"] if quick else ["touch_reach_low.txt", "touch_reach_high.txt"]
    claims, rows = [], []
    with tempfile.TemporaryDirectory() as scratch:
        liver = write_liver_scene(Path(scratch) / "liver.toml", folder / "liver.msh")
        for scene, depth in (("probe", 0.011), ("needle", 0.014), (liver, 0.022)):
            for recording in recordings:
                touch = replay(scene, folder / recording, depth, 2.0 if quick else None, out)
                rows.append(touch.row())
                claims += touch.claims()
    write_csv(out / "recorded.csv", rows)
    return claims


def data_folder() -> Path:
    """Folder that holds the data; Skipped with the reason if there is none."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get(DATA, default)).expanduser()
    missing = [name for name in ("touch_reach_low.txt", "liver.msh") if not (folder / name).is_file()]
    if missing:
        raise Skipped(f"{folder} has no {missing[0]}; set {DATA} to the folder of the recordings")
    return folder


def write_liver_scene(path: Path, mesh_file: Path) -> str:
    """A scene file like `needle` with the mesh as its organ, 12 cm long, bedded in its lower half."""
    mesh = read_tet_mesh(mesh_file)
    lower, upper = mesh.nodes.min(axis=0), mesh.nodes.max(axis=0)
    scale = LIVER_LENGTH / float((upper - lower).max())
    middle = mesh.nodes.mean(axis=0)
    x, y, z = (float(v) for v in -scale * np.array([middle[0], lower[1], middle[2]]))
    height = scale * float(upper[1] - lower[1])
    surface = mesh.surface()
    top = height_above_axis(scale * surface.vertices + [x, y, z], surface.triangles)
    tip, end = [0.0, top + 0.004, 0.0], [0.072, top + 0.1, 0.0]
    path.write_text(f"""
title = "Needle on a liver"
description = "The flexible needle on a liver's own mesh."

[[bodies]]
name = "organ"
kind = "tets"
elements = "tet4"
geometry = {{ kind = "file", path = "{mesh_file.resolve()}", scale = {scale!r} }}
placement = {{ position = [{x!r}, {y!r}, {z!r}] }}
material = "liver"
fixed = [{{ box = [[-0.2, -0.01, -0.2], [0.2, {0.5 * height!r}, 0.2]] }}]
colour = [0.60, 0.22, 0.20]

[[bodies]]
name = "needle"
kind = "beam"
rate = "high"
geometry = {{ kind = "line", start = {tip}, end = {end}, elements = 12, radius = "0.7 mm" }}
material = "steel"
colour = [0.75, 0.77, 0.80]

[friction]
default = 0.3

[tool]
body = "needle"

[tool.hold]
end = "last"
orientation = true
stiffness = "0.5 N/mm"
damping = "1 N s/m"
rotational_stiffness = "5 N m/rad"
rotational_damping = "0.005 N m s/rad"

[device]
path = [[0.0, 0.072, {top + 0.1!r}, 0.0]]

[view]
eye = [0.02, {top + 0.10!r}, 0.30]
target = [0.01, {0.7 * top!r}, 0]
""", "utf-8")  # fmt: skip
    return str(path)


def height_above_axis(vertices: Floats, triangles: NDArray[np.int32]) -> float:
    """Highest point [m] at which the y axis meets the surface. Skipped where it passes beside it."""
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    flat = [np.stack([p[:, 0], p[:, 2]], axis=1) for p in (a, b, c)]
    area = _cross(flat[1] - flat[0], flat[2] - flat[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (
            np.stack([_cross(flat[1], flat[2]), _cross(flat[2], flat[0]), _cross(flat[0], flat[1])]) / area
        )
    met = (shares >= 0.0).all(axis=0) & (area != 0.0)
    if not met.any():
        raise Skipped("the liver's middle is hollow from above; give a mesh that lies under its own centre")
    return float((shares * np.stack([a[:, 1], b[:, 1], c[:, 1]])).sum(axis=0)[met].max())


def _cross(p: Floats, q: Floats) -> Floats:
    return p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]


def placed_path(
    recording: Path, begin: Floats, touching: Floats, depth: float, seconds: float | None
) -> Floats:
    """The recorded hand (n, 3) [m] at 1 kHz, led in from `begin` at rest.

    One factor scales the recording so that it dips by `depth` below its start; its deepest point comes to
    lie straight below `touching`. `seconds`: keep that much about the deepest point only.
    """
    raw = read_trajectory(recording)
    hand = resample(raw.times, raw.positions).positions
    deepest = int(np.argmin(hand[:, 1]))
    scale = depth / float(hand[0, 1] - hand[deepest, 1])
    path = place(hand, scale, offset=touching - [0.0, depth, 0.0] - scale * hand[deepest])
    if seconds is not None:
        path = path[max(0, deepest - round(600 * seconds)) :][: round(1000 * seconds)]
    lead_in = waypoint_path([(0.0, *begin), (0.5, *path[0])])[0]
    return np.vstack([lead_in, path])


@dataclass
class TouchRecording:
    """One recording on one scene."""

    scene: str
    recording: str
    trace: dict[str, NDArray[Any]]
    path: Floats
    stopped: bool
    rate_limit: float
    """Fastest change of the force that the safety lets through [N/s]."""

    @property
    def size(self) -> Floats:
        """Norm of the constraint sum [N]."""
        return np.linalg.norm(self.trace["force"], axis=1)

    @property
    def largest_change(self) -> float:
        """Of the force from one tick to the next [N]."""
        return float(np.linalg.norm(np.diff(self.trace["force"], axis=0), axis=1).max(initial=0.0))

    def row(self) -> dict[str, object]:
        """For the table."""
        return {
            "scene": self.scene, "recording": self.recording, "ticks": len(self.path), "done": len(self.size),
            "max_force_N": float(self.size.max()), "largest_change_N": self.largest_change,
            "contacts_max": int(self.trace["contacts"].max()),
            "depth_max_m": float(self.trace["depth"].max()),
            "share_in_contact": float((self.trace["contacts"] > 0).mean()),
            "hand_speed_max_m_s": float(np.linalg.norm(np.diff(self.path, axis=0), axis=1).max() * 1e3),
        }  # fmt: skip

    def claims(self) -> list[Claim]:
        """Finite, touching, bounded, continuous."""
        name = f"{self.scene}, {self.recording}"
        finite = not self.stopped and bool(np.isfinite(self.size).all())
        share = 100.0 * float((self.trace["contacts"] > 0).mean())
        return [
            Claim(f"{name}: finite forces", len(self.size), "", f"all {len(self.path)}", finite),
            Claim(f"{name}: time in contact", share, "%", "> 5%: the hand does touch", share > 5.0),
            at_most(f"{name}: largest force", float(self.size.max()), LIMIT, "N", "Touch"),
            at_most(f"{name}: largest change in a tick", self.largest_change, 1e-3 * self.rate_limit, "N",
                    f"the device's rate limit, {self.rate_limit:g} N/s"),
        ]  # fmt: skip


def replay(scene: str, recording: Path, depth: float, seconds: float | None, out: Path) -> TouchRecording:
    """Run one recording; a figure of its forces and a picture at the largest."""
    spec = load_scene(scene)
    title = Path(scene).stem
    begin = np.array(spec.device.path[0][1:])
    # the tool's tip starts this far above the body
    gap = 0.004 if spec.tool_body.kind == "beam" else 0.005
    path = placed_path(recording, begin, begin - [0.0, gap, 0.0], depth, seconds)
    stem = f"{title}-{recording.stem.removeprefix('touch_reach_')}"
    with SceneDrive(scene) as drive:
        visual = Visual(drive.spec, drive.lock.scene, drive.lock.high)
        best = _Best(visual)
        trace = drive.go(path, best)
        touch = TouchRecording(title, recording.stem, trace, path, drive.stopped, spec.safety.max_rate)
        save_figure(out / f"{stem}.png", 5.4, lambda figure: _draw(figure, touch, best.picture()))
    return touch


class _Best:
    """Keeps the picture's state at the largest force seen so far."""

    def __init__(self, visual: Visual) -> None:
        self.visual, self.force = visual, -1.0
        self.state: SceneState | None = None

    def __call__(self, drive: SceneDrive) -> None:
        force = float(np.linalg.norm(drive.trace["force"][-1]))
        if force > self.force:
            self.force = force
            self.visual.publish(self.visual.take_tool(), drive.ticks, np.zeros(4, np.int64))
            self.state = self.visual.latest()[0].copy()

    def picture(self) -> Callable[[Axes], None]:
        """Draws the picture, or says in its place why there is none."""

        def draw(ax: Axes) -> None:
            ax.set_axis_off()
            try:
                assert self.state is not None
                ax.imshow(render_picture(self.visual.geometry, self.state, width=900, height=900))
            except RenderUnavailable as reason:
                ax.text(0.5, 0.5, f"no picture: {reason}", ha="center", wrap=True, fontsize=8)

        return draw


def _draw(figure: Figure, touch: TouchRecording, picture: Callable[[Axes], None]) -> None:
    grid = figure.add_gridspec(2, 2, width_ratios=(1.35, 1))
    top = figure.add_subplot(grid[0, 0])
    bottom = figure.add_subplot(grid[1, 0], sharex=top)
    t = 1e-3 * np.arange(len(touch.size))
    for k, (axis, colour) in enumerate(zip("xyz", ("#d64550", "#3f9b57", "#2f6fc0"), strict=True)):
        top.plot(t, touch.trace["force"][:, k], color=colour, lw=1.0, label=axis)
        moved = 1e3 * (touch.path[: len(t), k] - touch.path[0, k])
        bottom.plot(t, moved, color=colour, lw=1.0, label=f"{axis} of the hand")
    top.plot(t, touch.size, color=COLOURS["monolithic"], lw=1.2, label="norm")
    top.set_ylabel("constraint sum [N]")
    top.set_title(f"{touch.scene}, {touch.recording}", loc="left", fontsize=10)
    top.legend(frameon=False, fontsize=8, ncols=4)
    bottom.set_ylabel("recorded hand [mm]")
    bottom.set_xlabel("time [s]")
    bottom.legend(frameon=False, fontsize=8, ncols=3)
    picture(figure.add_subplot(grid[:, 1]))
