"""`palpo converge`: how far a scene's mesh is from converged, by its own press on two finer meshes.

With forces f_1, f_2, f_3 on meshes of sizes h_1 > h_2 > h_3, Richardson's extrapolation f = f_0 + c h^p has
the order p that agrees with all three (Roache, Quantification of uncertainty in computational fluid dynamics,
Annu. Rev. Fluid Mech. 29, 1997).
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq

from palpo.app.build.soft_parts import elements_of
from palpo.app.cli.progress import Progress
from palpo.app.runtime.memory import require_stiffness
from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import load_scene
from palpo.config.schema.body import Soft
from palpo.config.schema.scene import SceneSpec
from palpo.config.words import Refusal
from palpo.haptics.path import waypoints
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.systems.multirate.lock_step import LockStep

Floats = NDArray[np.float64]

BETWEEN, FINEST = (1.5, 5.0 / 3.0, 4.0 / 3.0), 2.0
"""Times as many cells along an edge: of these, the one that leaves the fewest parts of cells; and last."""
ORDERS = 0.5, 4.0
"""Between which an observed order is believed."""
KEPT = 0.05
"""Error of the force that a good mesh keeps."""
PIECE = 100
"""Ticks between two words on how far a run has come."""
TOUCHED = 0.01
"""Share of the largest force from which on the tool counts as pressing."""
REACHED = 0.999
COUNTS = {
    "block": ("divisions",), "cylinder": ("around", "along"), "sphere": ("divisions",),
    "ellipsoid": ("divisions",),
}  # fmt: skip
"""Keys of shapes that count their cells."""
CORNERS = 10
"""Of an element, at most."""
COST = 1.5
"""A run takes time as its nodes to this power: between a multiple of them and a factor's."""


class Press(NamedTuple):
    """The scene's own press on one mesh."""

    times: float
    """As many cells along an edge as the scene's own mesh has."""
    nodes: int
    elements: int
    size: float
    """Mean size of an element over that on the scene's own mesh."""
    depth: Floats
    """Way of the hand since the first touch on the scene's own mesh (n,) [m]."""
    force: Floats
    """(n,) [N]"""


class Limit(NamedTuple):
    """What three meshes say of none."""

    force: Floats
    """(n,) [N] along the press; of the finest mesh where they do not settle."""
    order: float
    """NaN where the forces do not approach a limit in one direction."""
    errors: tuple[float, ...]
    """Of each mesh's largest force, over the extrapolated one; without that, what they differ by."""

    def needed(self, sizes: Sequence[float]) -> float:
        """Size of elements, over the own mesh's, that keeps KEPT; NaN where the order is not known."""
        if not abs(self.errors[-1]) > 0.0:
            return math.nan
        return sizes[-1] * float((KEPT / abs(self.errors[-1])) ** (1.0 / self.order))


def extrapolated(sizes: Sequence[float], forces: Sequence[Floats]) -> Limit:
    """By the forces (n,) on three meshes at their largest, where all have the last entry's."""
    one, two, three = (float(force[-1]) for force in forces)
    a, b, c = sizes

    def disagrees(p: float) -> float:
        return (one - two) * (b**p - c**p) - (two - three) * (a**p - b**p)

    low, high = ORDERS
    if (one - two) * (two - three) > 0.0 and disagrees(low) * disagrees(high) < 0.0:
        order = float(brentq(disagrees, low, high))
        rest = forces[2] - (forces[1] - forces[2]) * c**order / (b**order - c**order)
        return Limit(rest, order, tuple(float(f[-1] / rest[-1] - 1.0) for f in forces))
    spread = (max(one, two, three) - min(one, two, three)) / max(abs(three), 1e-300)
    return Limit(forces[2], math.nan, (spread,) * 3)


def converge(
    scene: str, overrides: Sequence[str], duration: float, cap: float, progress: Progress
) -> tuple[list[Press], Limit]:
    """The press on the scene's own mesh and on two finer ones, and what they approach.

    duration [s]: of the scene's path. cap [s]: of what a finer run may take. Raises Refusal for a scene
    without soft bodies or a press, for a mesh that cannot be made finer, and for runs that take longer, or
    more memory, than there is.
    """
    spec = load_scene(scene, overrides)
    if not isinstance(spec, SceneSpec):
        raise Refusal(
            f"{scene}: soft bodies of two rates are needed here, and this is a scene of {spec.system}"
        )
    bodies = [body for body in spec.bodies if isinstance(body, Soft)]
    if not bodies:
        raise Refusal(f"{scene}: it has no soft body, whose mesh could be made finer")
    told = [*overrides, "contact.max_contacts=256"]
    finer = [
        (times, [*told, *(key for body in bodies for key in finer_mesh(body, times))])
        for times in (between(bodies), FINEST)
    ]
    path, turns = waypoints(
        spec.device.path,
        "smooth" if spec.device.smooth else "linear",
        spec.device.turns or None,
        spec.rates.servo_hz,
    ).rows(0, max(1, round(min(duration, spec.device.path[-1][0]) * spec.rates.servo_hz)))
    begun = time.perf_counter()
    with progress.stage("the scene's own mesh"):
        first = _pressed(scene, told, path, turns, progress)
    took = time.perf_counter() - begun
    force = np.linalg.norm(first.trace["force"], axis=1)
    if not force.max(initial=0.0) > 0.0:
        raise Refusal(f"{scene}: its path presses nothing, so that there is no force to compare")
    start = int(np.argmax(force > TOUCHED * force.max()))
    end = int(np.argmax(force >= REACHED * force.max())) + 1
    kept = [f'bodies.{name}.{key}="{value}"' for name, key, value in first.made]
    runs = [first]
    for times, more in finer:
        with progress.stage(f"{times:.3g} times as many cells along an edge"):
            nodes, elements = (round(times**3 * count) for count in (first.nodes, first.elements))
            require_stiffness(f"{scene}, {times:.3g} times as fine", nodes, elements, CORNERS)
            about = took * end / len(path) * (times**3) ** COST
            if about > cap:
                raise Refusal(
                    f"{scene}: the run with {times:.3g} times as many cells along an edge takes about "
                    f"{about / 60.0:.0f} min; allow more by --time-cap {math.ceil(about)}"
                )
            runs.append(_pressed(scene, [*more, *kept], path[:end], turns[:end], progress))
    depth = np.linalg.norm(path[start:end] - path[start], axis=1)
    presses = [
        Press(
            times,
            run.nodes, run.elements, (first.elements / run.elements) ** (1.0 / 3.0), depth,
            np.linalg.norm(run.trace["force"][start:end], axis=1),
        )
        for times, run in zip((1.0, *(times for times, _ in finer)), runs, strict=True)
    ]  # fmt: skip
    sizes = [press.size for press in presses]
    return presses, extrapolated(sizes, [press.force for press in presses])


class _Run(NamedTuple):
    trace: dict[str, NDArray[Any]]
    nodes: int
    elements: int
    made: list[tuple[str, str, str]]
    """Elements and solver of each soft body, by its name and key."""


def between(bodies: Sequence[Soft]) -> float:
    """The one of BETWEEN by which the counts of the bodies' cells come nearest to whole numbers."""
    counts = [
        count
        for body in bodies
        for key in COUNTS.get(body.geometry.kind, ())
        for count in np.atleast_1d(getattr(body.geometry, key))
    ]

    def left(times: float) -> float:
        return sum(abs(times * count - round(times * count)) / (times * count) for count in counts)

    return min(BETWEEN, key=lambda times: round(left(times), 9))


def finer_mesh(body: Soft, times: float) -> list[str]:
    """Overrides that give a soft body so many times as many cells along an edge.

    Raises Refusal where its shape does not say how it is cut.
    """
    g, place = body.geometry, f"bodies.{body.name}.geometry"
    if g.kind == "block":
        return [f"{place}.divisions={[round(times * cells) for cells in g.divisions]}"]
    if g.kind in COUNTS:
        return [f"{place}.{key}={round(times * getattr(g, key))}" for key in COUNTS[g.kind]]
    if g.kind == "liver":
        return [f"{place}.spacing={g.spacing / times!r}"]
    if g.kind in ("file", "segment") and g.size is not None:
        return [f"{place}.size={g.size / times!r}"]
    raise Refusal(
        f'{place}.kind = "{g.kind}": it does not say how it is cut; a block or a surface with a size does'
    )


def _pressed(scene: str, told: Sequence[str], path: Floats, turns: Floats, progress: Progress) -> _Run:
    """The scene along the hand's path (n, 3) and orientations (n, 4)."""
    spec = load_scene(scene, told)
    assert isinstance(spec, SceneSpec)
    built = build_scene(spec)
    soft = [member.body for member in built.members if isinstance(member.body, SoftBody)]
    counts = sum(len(body.x) for body in soft), sum(len(body.mesh.cells) for body in soft)
    specs = {body.name: body for body in spec.bodies if isinstance(body, Soft)}
    made = []
    for body in soft:
        solver = "direct" if body.hierarchy is None else "multigrid"
        name = elements_of(specs[body.name], body.mesh, solver == "multigrid")
        usual = next(key for key, kind in ELEMENTS.items() if isinstance(body.mesh, kind.mesh))
        made += [(body.name, "elements", name or usual), (body.name, "solver", solver)]
    run = LockStep(built)
    try:
        run.high.port.position[:] = path[0]
        traces = []
        for start in range(0, len(path), PIECE):
            piece = path[start : start + PIECE]
            traces.append(run.run(piece, turns[start : start + PIECE]))
            if len(traces[-1]["force"]) < len(piece):
                raise Refusal(
                    f"{scene}: the run on {counts[0]} nodes broke down; {run.broken or 'its force'}"
                )
            progress.come_to((start + len(piece)) / len(path))
    finally:
        run.close()
    return _Run({"force": np.concatenate([one["force"] for one in traces])}, *counts, made)


def print_converged(presses: Sequence[Press], found: Limit) -> None:
    """A line for each mesh, and which of them is fine enough."""
    table = Table("mesh", "nodes", "elements", "largest force", "error by the mesh")
    known = not math.isnan(found.order)
    for press, error in zip(presses, found.errors, strict=True):
        name = "the scene's own" if press.times == 1.0 else f"{press.times:.3g} times as fine"
        said = f"{100.0 * error:+.1f}%" if known else f"within {100.0 * error:.1f}%"
        table.add_row(name, f"{press.nodes:,}", f"{press.elements:,}", f"{press.force[-1]:.4g} N", said)
    Console(highlight=False).print(table)
    if not known:
        print("the forces approach no limit from one side: the mesh errs by what they differ by, at least")
        return
    print(f"extrapolated: {found.force[-1]:.4g} N, order {found.order:.2g} in the size of the elements")
    enough = next((k for k, error in enumerate(found.errors) if abs(error) <= KEPT), None)
    if enough is not None:
        mesh = "the scene's own mesh" if enough == 0 else f"one {presses[enough].times:.3g} times as fine"
        print(f"{100.0 * KEPT:g}% is kept by {mesh}")
        return
    needed = 1.0 / found.needed([press.size for press in presses])
    print(f"{100.0 * KEPT:g}% is kept by none of them; about {needed:.2g} times as fine as its own would do")


def draw_converged(path: Path, presses: Sequence[Press], found: Limit) -> None:
    """Force over the hand's way, on each mesh and extrapolated."""
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    for press in presses:
        axes.plot(1e3 * press.depth, press.force, lw=1.2, label=f"{press.nodes:,} nodes")
    if not math.isnan(found.order):
        axes.plot(1e3 * presses[0].depth, found.force, "k--", lw=1.0, label="extrapolated")
    axes.set(xlabel="way of the hand since first touch [mm]", ylabel="force [N]")
    axes.legend()
    figure.savefig(path, dpi=150)
