"""A window with a headset that is a strict runtime's; writes what became of it into a folder.

A process of its own, because OpenGL's platform is fixed at the first import: `python -m ... FOLDER`.
"""

import json
import sys
from pathlib import Path

import numpy as np

from palpo.app.cli.progress import Progress
from palpo.app.runtime.operator import Operator
from palpo.app.runtime.options import Options
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.render.camera import Camera
from palpo.render.controls import Controls
from palpo.render.gl import RenderUnavailable
from palpo.render.headset import Headset
from palpo.render.overlays import Overlays
from palpo.render.solids import BALL, unit_shapes
from palpo.render.window import Window

CAMERA = Camera((0.1, 0.05, -0.02), 0.4, 20.0, 15.0)
PLAIN = Overlays(labels=False, grid=False, axes=False, shadow=False)
PLACES = np.array([[0.1, 0.05, -0.02], [0.15, 0.05, -0.02], [0.1, 0.08, 0.05]])
"""Of the balls in the scene [m]: the first is where the camera looks."""
COLOURS = ((1.0, 0.1, 0.1), (0.1, 1.0, 0.1), (0.1, 0.1, 1.0))
RADIUS, SCALE = 0.008, 2.0
HEADS = {
    "rest": ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]),
    "aside": ([0.03, 0.02, -0.05], [0.0, 0.0, 0.0, 1.0]),
    "turned": ([0.0, 0.0, 0.0], [0.0, np.sin(0.1), 0.0, np.cos(0.1)]),
}


def balls():
    rows, triangles = unit_shapes()[BALL]
    shape = RADIUS * rows[:, :3].astype(float)
    n = len(shape)
    drawn = [
        Drawable(f"ball{k}", "surface", k * n, n, triangles, colour=colour)
        for k, colour in enumerate(COLOURS)
    ]
    vertices = np.vstack([place + shape for place in PLACES])
    return make_geometry(drawn, vertices), SceneState(vertices)


def middles(picture):
    """Column and row of each ball's middle, from the lower left corner, NaN for one out of sight."""
    found = []
    for k in range(3):
        own, others = picture[..., k].astype(int), picture.astype(int).sum(axis=-1) - picture[..., k]
        rows, columns = np.nonzero(own > others + 30)
        if len(rows):
            found.append([float(columns.mean() + 0.5), float(len(picture) - rows.mean() - 0.5)])
        else:
            found.append([float("nan")] * 2)
    return found


def main(folder: Path) -> None:
    from tests.xr.runtime import R, Runtime, xr

    runtime, seen = Runtime(), {}
    runtime.install(folder)
    pictures = {}
    with Window("worn", 320, 240) as window:
        geometry, state = balls()
        window.show(geometry, state)
        controls = Controls(CAMERA, PLAIN)

        def frames(until):
            for _ in range(400):
                window.frame(state, controls)
                if until():
                    return
            raise AssertionError("it did not come to that")

        def after(count):
            first = runtime.frames
            frames(lambda: runtime.frames >= first + count)

        for tracking in ("still", "tracked"):
            headset = Headset(tracking)
            headset.scale = SCALE
            window.wear(headset)
            for name, head in HEADS.items():
                runtime.head = tuple(map(np.array, head))
                after(4)
                for eye, picture in zip(("left", "right"), runtime.pictures, strict=True):
                    pictures[f"{tracking} {name} {eye}"] = picture
            runtime.known = False
            after(2)
            seen[f"{tracking} unknown"] = len(runtime.pictures)
            runtime.known, runtime.wanted = True, False
            after(2)
            seen[f"{tracking} unwanted"] = len(runtime.pictures)
            runtime.wanted = True
            # taken off, and put on again
            runtime.tell(xr.SessionState.STOPPING)
            frames(lambda: not runtime.running)
            runtime.tell(xr.SessionState.READY)
            after(2)
            seen[f"{tracking} again"] = len(runtime.pictures)
            window.wear(None)
            headset.close()
        seen["refused"] = list(runtime.refused)
        # lost in the middle of a frame, and for good
        seen["lost"] = {}
        for name, result in (("xrEndFrame", R.ERROR_SESSION_LOST), ("xrWaitFrame", R.ERROR_INSTANCE_LOST),
                             ("xrWaitSwapchainImage", R.TIMEOUT_EXPIRED)):  # fmt: skip
            headset = Headset()
            window.wear(headset)
            after(2)
            runtime.fails = {name: result}
            frames(lambda: headset.lost)  # noqa: B023
            seen["lost"][name] = headset.lost
            window.wear(None)
            runtime.fails = {}
            runtime._begun = runtime._waited = None
            runtime.refused.clear()
            headset.close()
            runtime._handles.clear()
        runtime.refused.clear()
        runtime.there = False
        try:
            Headset()
        except RenderUnavailable as missing:
            seen["missing"] = str(missing)
        runtime.there = True
    runtime._handles.clear()
    before = runtime.frames
    with Operator(Progress(), headset="tracked") as operator:
        done = operator.run(Options("wire", device="mock", duration=2.0, baseline=False, window=True))
    seen["run"] = {"status": done.status, "frames": runtime.frames - before, "refused": runtime.refused}
    seen["left"] = [handle["kind"] for handle in runtime._handles.values()]
    if runtime.pictures:
        pictures["run left"], pictures["run right"] = runtime.pictures
    seen["middles"] = {name: middles(picture) for name, picture in pictures.items()}
    seen["failure"] = []
    np.savez(folder / "pictures.npz", **pictures)
    (folder / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
