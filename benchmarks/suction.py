"""Suction's steps: rows and time by stage for the eight scenes, the twelve meshes, and for grippers.

As in tables 4.2 and 4.3 and figure 4.6 of thesis 000, whose laptop had a Core i7-7820HQ and a Quadro P3000:
means over the steps from the scene's beginning, a step is 10 ms. A contact has three rows; `contacts looked
at` are those from which the rows were chosen. A scene is run several times over, and the least time of a
stage of a step counts: the same step does the same work, so the rest is the machine's. `as run ms` has all.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.outcome import distribution
from palpo.app.systems.suction.build import SuctionBuild, build
from palpo.benchmarks.timing import Figures, bare_loop_us, beside, within
from palpo.config.load import load_scene
from palpo.config.schema.suction import SuctionScene
from palpo.haptics.path import waypoint_path
from palpo.physics.systems.suction.step import HISTORY, STAGES

SCENES = {
    "suction-plane": (451.39, 10.0),
    "suction-bunny": (678.19, 10.0),
    "suction-sphere": (827.68, 10.0),
    "suction-cube": (910.04, 10.0),
    "suction-arm": (300.15, 15.0),
    "suction-toy": (477.74, 15.0),
    "suction-softcube": (1498.57, 30.0),
    "suction-dart": (1133.17, 30.0),
}
"""Of each scene the thesis's mean step, table 4.2, and the median that is aimed at [ms]."""

CUBE = "suction-cube"
MESHES = {
    76: 11.66, 125: 52.95, 141: 75.94, 151: 75.48, 159: 104.65, 203: 132.82, 363: 486.40, 415: 603.13,
    455: 703.27, 502: 839.36, 552: 896.17, 576: 993.11,
}  # fmt: skip
"""The thesis's mean step with a rigid cube [ms] by the nodes of the cup, table 4.3."""

GRIPPER, SIXTEEN = "suction-gripper", 16
LARGE = 4800
"""Of a cup's mesh, by its nodes."""
TARGETS = {"cup of 576 nodes": 10.0, f"{SIXTEEN} cups": 15.0, f"cup of {LARGE} nodes": 20.0}
"""Aims for the 99th percentile of a step [ms], of the largest mesh for its median."""

ROUNDS = 3
"""Runs of the same scene."""

COUNTS = ("contacts that are rows", "contacts looked at", "sweeps", "rounds")
"""Of Suction.counts."""


def suction(
    most: int = HISTORY, scenes: Sequence[str] = tuple(SCENES), meshes: Sequence[int] = tuple(MESHES)
) -> Figures:
    """The steps of the scenes of table 4.1, and of `suction-cube` on twelve meshes, beside the thesis's."""
    finest = _of_mesh(max(MESHES))
    by_scene = {name: _measured(name, finest if name == CUBE else [], most, *SCENES[name]) for name in scenes}
    by_mesh = {str(nodes): _measured(CUBE, _of_mesh(nodes), most, MESHES[nodes]) for nodes in meshes}
    figures: Figures = {"scenes": by_scene, "cube by nodes of the cup": by_mesh, "grippers": _grippers(most)}
    if len(meshes) > 1:
        figures["growth with the nodes"] = _growth(by_mesh)
    return figures | {"bare loop us": bare_loop_us()}


def _of_mesh(nodes: int) -> list[str]:
    """Overrides of the cube's scene, which ships with a coarser cup than the thesis's."""
    return [f"bodies.0.geometry.resolution={nodes}"]


def _measured(
    scene: str, overrides: Sequence[str], most: int, thesis_ms: float, aim_ms: float | None = None
) -> Figures:
    spec = load_scene(scene, overrides)
    assert isinstance(spec, SuctionScene)
    return _of(spec, most, thesis_ms, aim_ms)


def _of(
    spec: SuctionScene, most: int, thesis_ms: float | None = None, aim_ms: float | None = None
) -> Figures:
    # what is compiled or loaded in the first steps belongs to no scene
    _run(spec, min(most, 3))
    runs = [_run(spec, most) for _ in range(ROUNDS)]
    made = runs[0]
    n = made.suction.steps
    every = 1e3 * np.array([run.suction.times[:n] for run in runs])
    times, counts = every.min(axis=0), made.suction.counts[:n]
    step = times.sum(axis=1)
    mean = float(step.mean())
    figures: Figures = {
        "nodes": sum(len(form.mesh.nodes) for form in made.soft),
        "elements": sum(len(form.mesh.cells) for form in made.soft),
        "steps": n,
        "rows": {"mean": float(3 * counts[:, 0].mean()), "most": int(3 * counts[:, 0].max())},
        "mean of": dict(zip(COUNTS, counts.mean(axis=0).tolist(), strict=True)),
        "lost for room": max(int(run.suction.contacts.count["lost"][0]) for run in runs),
        "mean ms": mean if thesis_ms is None else beside(mean, thesis_ms, "thesis 000"),
        "step ms": distribution(step, 1.0),
        "as run ms": distribution(every.sum(axis=2).ravel(), 1.0),
        "stage mean ms": dict(zip(STAGES, times.mean(axis=0).tolist(), strict=True)),
        "by rows": _by_rows(counts[:, 0], step),
    }
    if aim_ms is not None:
        figures["target median ms"] = within(float(np.median(step)), aim_ms)
    return figures


def _grippers(most: int) -> Figures:
    """Cups on one pump, and the tails of large problems."""
    cube, gripper = load_scene(CUBE, _of_mesh(max(MESHES))), load_scene(GRIPPER)
    assert isinstance(cube, SuctionScene) and isinstance(gripper, SuctionScene)
    large = load_scene(CUBE, _of_mesh(LARGE))
    assert isinstance(large, SuctionScene)
    cases = dict(zip(TARGETS, (cube, of_sixteen(gripper), large), strict=True))
    figures: Figures = {f"{len(gripper.cups)} cups": _of(gripper, most)}
    for name, spec in cases.items():
        found = figures[name] = _of(spec, most)
        tail = "p50" if spec is large else "p99"
        found[f"target {tail} ms"] = within(found["step ms"][tail], TARGETS[name])
    return figures


def of_sixteen(spec: SuctionScene) -> SuctionScene:
    """The gripper's scene with four rows of four cups, all on its first cup's drive, and a plate to match."""
    first, pitch = spec.cups[0], 0.06
    cups = []
    for k in range(SIXTEEN):
        x, z = pitch * (k % 4 - 1.5), pitch * (k // 4 - 1.5)
        placement = first.placement.model_copy(update={"position": (x, first.placement.position[1], z)})
        cups.append(first.model_copy(update={"name": f"cup{k}", "placement": placement}))
    plate = spec.partner.geometry.model_copy(update={"size": (0.27, 0.008, 0.27), "divisions": (18, 1, 18)})
    return spec.model_copy(update={"bodies": (*cups, spec.partner.model_copy(update={"geometry": plate}))})


def _run(spec: SuctionScene, most: int) -> SuctionBuild:
    """The scene from its beginning to the end of the device's path, or for so many steps."""
    made = build(spec)
    suction = made.suction
    table = waypoint_path(
        spec.device.path, "smooth" if spec.device.smooth else "linear", None, 1.0 / suction.h
    )[0]
    for position in table[1 : min(most, HISTORY) + 1]:
        for drive in made.drives:
            drive.prepare(suction.time + suction.h)
        if made.hand is not None:
            made.hand.handle.drive(position)
        if made.gauge is not None:
            suction.gauge = made.gauge(suction.time + suction.h)
        suction.step()
    return made


def _by_rows(contacts: NDArray[np.int64], step: NDArray[np.float64]) -> Figures:
    """Median step [ms] of fifths of the steps by their rows, as figure 4.6, and its slope per row [us]."""
    order = np.argsort(contacts, kind="stable")
    parts = [part for part in np.array_split(order, 5) if part.size]
    figures: Figures = {
        f"fifth {k + 1}": {"rows": float(3 * np.median(contacts[part])), "ms": float(np.median(step[part]))}
        for k, part in enumerate(parts)
    }
    if np.ptp(contacts) > 0:
        figures["slope us"] = float(1e3 * np.polyfit(3.0 * contacts, step, 1)[0])
    return figures


def _growth(by_mesh: Figures) -> Figures:
    """Exponents of the mean times over the nodes, and the stage that takes most on the finest mesh."""
    nodes = [figures["nodes"] for figures in by_mesh.values()]

    def exponent(values: Sequence[float]) -> float:
        return float(np.polyfit(np.log(nodes), np.log(values), 1)[0])

    stages = {name: [f["stage mean ms"][name] for f in by_mesh.values()] for name in STAGES}
    last = {name: values[-1] for name, values in stages.items()}
    longest = max(last, key=lambda name: last[name])
    return {
        "exponent of the step": exponent([figures["mean ms"]["ours"] for figures in by_mesh.values()]),
        "exponent of the rows": exponent([figures["rows"]["mean"] for figures in by_mesh.values()]),
        "exponent in the thesis": exponent([figures["mean ms"]["other"] for figures in by_mesh.values()]),
        "exponents of the stages": {name: exponent(values) for name, values in stages.items()},
        "longest stage on the finest": longest,
        "its share": last[longest] / sum(last.values()),
    }
