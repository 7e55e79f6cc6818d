"""What a suction cup, or each cup of a scene, holds of a load; and its law for robots' simulators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from palpo.app.cli.progress import Progress, Silent
from palpo.app.library.blas import single_threaded
from palpo.app.library.refusals import refusing
from palpo.app.library.scene import Scene, load
from palpo.config.words import Refusal, choose
from palpo.physics.mesh.cups import CUPS

if TYPE_CHECKING:
    from palpo.app.report.gripper import PlacedCup
    from palpo.config.schema.suction import Cup
    from palpo.physics.suction.reduced_cup import HeldLoad, ReducedCup

ROUGHNESSES = (2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5)
"""Of the maps [m rms]; a load's own is added."""
PUSH, FRICTION = 1e-3, 0.6
"""How far a cup is pushed on [m], and the friction of one that no scene is told of."""


class CupLift(NamedTuple):
    """What a gripper's cups hold."""

    name: str
    """Of the cup, or of the scene."""
    cups: tuple[PlacedCup, ...]
    """Each with its law, `cups[0].law.limit` [N] the most that it holds, and its place, z up."""
    judged: ReducedCup
    """The law of the cup that is asked."""
    load: HeldLoad
    margins: dict[str, float]
    """What that cup has over what the load asks: "pull", "slip", "peel", "lie", "leak"; held above 1."""

    @property
    def holds(self) -> bool:
        """Whether the load is held."""
        return min(self.margins.values()) > 1.0

    def lifted(self, speed: float) -> float:
        """The largest mass [kg] that the cup lifts off the ground by itself, going up at a speed [m/s]."""
        from palpo.physics.suction.reduced_cup import lifted_mass

        return lifted_mass(self.judged, speed)

    def report(self, folder: str | Path) -> Path:
        """Write page, maps and law into a folder that is made; the page's path."""
        from palpo.app.report.lift_page import write_lift

        Path(folder).mkdir(parents=True, exist_ok=True)
        return write_lift(Path(folder), self.judged, self.load)

    def export(self, folder: str | Path) -> Path:
        """Write the gripper for MuJoCo, Drake and USD, with its law in Python, into a folder that is made."""
        from palpo.app.report.gripper import write_gripper

        Path(folder).mkdir(parents=True, exist_ok=True)
        write_gripper(Path(folder), self.name, self.cups)
        return Path(folder)


@refusing
@single_threaded
def lift(
    cup: str | Path | Scene,
    *,
    which: str | None = None,
    mass: float = 0.05,
    push: float = PUSH,
    mu: float | None = None,
    tilt: float = 0.0,
    offset: float = 0.0,
    below: float = 0.0,
    diameter: float = math.inf,
    rms: float = 1e-6,
    seconds: float = 10.0,
    progress: bool = False,
) -> CupLift:
    """What a suction cup holds of a load, by a pull off a plane; of a scene, each of its cups.

    cup: one of the thesis by its name, "small", computed as a solid of revolution; or a suction scene, whose
    cups are computed as their own bodies, whatever their shape. which: the cup of the scene that is asked for
    the margins, the first if not told. mass [kg] of the load, push [m] of the cup, mu: friction, the scene's
    own if not told; tilt of the cup's axis from the vertical [rad], offset of the load's centre of mass from
    it and its depth below the rim [m], diameter of what the rim stands on [m], rms roughness of it [m], and
    for how long it is to be held [s]. Raises Refusal for a cup that is not known or holds nothing.
    """
    from palpo.physics.suction.reduced_cup import HeldLoad, margins

    asked = HeldLoad(mass, tilt, offset, below, diameter, rms, seconds)
    telling = Progress() if progress else Silent()
    roughnesses = tuple(sorted({*ROUGHNESSES, rms}))
    if isinstance(cup, str) and cup in CUPS:
        if which is not None:
            raise Refusal(f"which = {which}: the cup {cup} is one; leave it out")
        cups = _named(cup, push, FRICTION if mu is None else mu, roughnesses, telling)
        name = cup
    else:
        scene = _scene(cup)
        if mu is not None:
            scene = scene.with_(friction={"default": mu})
        cups, name = _of_scene(scene, push, roughnesses, telling), Path(scene.name).stem
    names = [one.name for one in cups]
    if which is not None and which not in names:
        raise Refusal(f"{which}: {name} has no such cup; {choose(which, names)}")
    judged = cups[0 if which is None else names.index(which)].law
    return CupLift(name, tuple(cups), judged, asked, margins(judged, asked))


def _scene(cup: str | Path | Scene) -> Scene:
    """The suction scene; Refusal for what is neither that nor a cup."""
    from palpo.config.schema.suction import SuctionScene

    if isinstance(cup, str) and not any(mark in cup for mark in "./\\"):
        from palpo.app.library.scene import scenes

        if cup not in scenes():
            raise Refusal(f"cup {cup!r} is unknown; there are {', '.join(CUPS)}, and the suction scenes")
    scene = load(cup)
    if not isinstance(scene.spec, SuctionScene):
        raise Refusal(f"{scene.name}: this is a scene of {scene.system}; a suction scene has cups")
    return scene


def _named(
    cup: str, push: float, mu: float, roughnesses: tuple[float, ...], progress: Progress
) -> list[PlacedCup]:
    from palpo.physics.suction.reduced_cup import reduce_cup

    with progress.stage("simulating the cup as it is pulled off"):
        law = reduce_cup(cup, push, mu, roughnesses)
    shape = {"kind": "cup", "model": cup}
    shown = load("suction-plane").with_({"bodies.cup.geometry": shape})
    (placed,) = _placed(shown, [law])
    beta = _form(shown, 0).material.beta
    return [placed._replace(name="cup", law=law._replace(damping=beta))]


def _of_scene(
    scene: Scene, push: float, roughnesses: tuple[float, ...], progress: Progress
) -> list[PlacedCup]:
    """The cups of a scene; alike ones are pulled off once."""
    from palpo.app.systems.suction.pulled import reduce_scene

    spec: Any = scene.spec
    laws: list[ReducedCup] = []
    for i, cup in enumerate(spec.cups):
        twin = next((k for k in range(i) if _alike(spec.cups[k], cup)), None)
        if twin is not None:
            laws.append(laws[twin]._replace(cup=cup.name))
            continue
        with progress.stage(f"simulating {cup.name} as it is pulled off"):
            laws.append(reduce_scene(spec, cup.name, push, roughnesses, progress))
    return _placed(scene, laws)


def _alike(one: Cup, other: Cup) -> bool:
    """Whether two cups differ by name, place, drive, line and colour alone."""
    beside = {"name", "placement", "drive", "line", "colour"}
    same = one.model_dump(exclude=beside) == other.model_dump(exclude=beside)
    return same and one.placement.scale == other.placement.scale


def _placed(scene: Scene, laws: Sequence[ReducedCup]) -> list[PlacedCup]:
    """The cups with z up, about the middle of their rims."""
    from palpo.app.report.gripper import UPRIGHT, PlacedCup
    from palpo.haptics.workspace import quaternion_matrix
    from palpo.physics.mesh.surface import SurfaceMesh

    spec: Any = scene.spec
    found = []
    for i, (cup, law) in enumerate(zip(spec.cups, laws, strict=True)):
        surface = _form(scene, i).mesh.surface(cup.name).compact()
        axes = quaternion_matrix(cup.placement.quaternion)
        local = surface.vertices @ axes
        low, high = local.min(axis=0), local.max(axis=0)
        rim = axes @ np.array([0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2])])
        # its own axis is y, which becomes z as the scene's does
        found.append((cup.name, law, UPRIGHT @ rim, UPRIGHT @ axes @ UPRIGHT.T, surface))
    rims = np.array([one[2] for one in found])
    middle = np.array([*(0.5 * (rims.min(axis=0) + rims.max(axis=0))[:2]), rims[:, 2].min()])
    return [
        PlacedCup(
            name, law, rim - middle, axes,
            SurfaceMesh.from_triangles(surface.vertices @ UPRIGHT.T - middle, surface.triangles, name),
        )
        for name, law, rim, axes, surface in found
    ]  # fmt: skip


def _form(scene: Scene, i: int) -> Any:
    from palpo.app.systems.suction.build import cup_form

    spec: Any = scene.spec
    return cup_form(spec, i)
