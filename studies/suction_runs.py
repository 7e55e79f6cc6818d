"""Suction scenes led along their scripts, step by step, with what the studies keep of each step.

A study's scene is `suction-plane` with other values: `changes` makes them as `--set` would read them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from palpo.app.systems.suction.build import build
from palpo.config.load import load_scene
from palpo.config.schema.suction import ScriptedDrive, SuctionScene
from palpo.physics.suction.sides import FixedSide
from palpo.physics.systems.suction.step import Suction
from palpo.studies.processes import processes

Floats = NDArray[np.float64]
Waypoint = tuple[float, float]
Item = TypeVar("Item")
Result = TypeVar("Result")

SCENE = "suction-plane"
RESOLUTIONS = (76, 125, 141, 151, 159, 203, 363, 415, 455, 502, 552, 576)
"""The twelve of the thesis, table 4.3."""
CLEARANCE = 2e-3
"""Height of the cup above its partner at first [m]."""
PUSH = 1e-3
"""Push depth [m] that docs/suction.md fixed beforehand."""
LIFTING = 5e-3
"""Push [m] of the scenes in which whatever else is lifted; docs/suction.md."""
SIDE = 0.115
"""Edge of the cubes [m]."""
GROUND = -SIDE - 1e-4
"""Height of the ground under a cube [m]: the contact distance below it, so that it starts at rest."""
BLOCK = f'{{kind="block", size=[{SIDE!r}, {SIDE!r}, {SIDE!r}], divisions=[8, 8, 8]}}'
"""Geometry of the cubes, as a TOML table."""
GRAVITY = 9.81
THESIS = "thesis 000"
AIRTIGHT = 'gas={kind="airtight"}'
"""The thesis's own method, which the studies of its figures hold against them unless they say otherwise."""


class RunTrace(NamedTuple):
    """What a run keeps of each of its n steps, each (n,)."""

    time: Floats  # [s], at the step's end
    height: Floats  # [m] of the held nodes over where they started
    hold: Floats  # [N] vertical force on the held nodes, upward
    partner: Floats  # [m] of the partner's centre over where it started
    cavities: Floats
    flat: Floats  # those of them that are flattened
    pressure: Floats  # [Pa] of the cavity with the most air against the atmosphere, nan without one
    volume: Floats  # [m3] as solved, at the step's end
    amount: Floats  # [mol]
    law: Floats  # |p V / n R T - 1| as solved, largest of the cavities; nan without one
    rows: Floats
    geometric: Floats  # as law, with the volume that the next step finds

    def table(self) -> list[dict[str, Any]]:
        """For write_csv."""
        return [dict(zip(self._fields, map(float, step), strict=True)) for step in zip(*self, strict=True)]


def changes(
    model: str, resolution: int, path: Sequence[Waypoint], partner: str = "", *, hz: float = 100.0,
    mu: float | None = None, clearance: float = CLEARANCE, x: float = 0.0, more: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """A cup of the thesis led along rows (t [s], height [m]) over what stands at y = 0.

    hz: steps a second. x [m]: how far beside the origin the cup is. partner, more: further overrides.
    """
    rows = ", ".join(f"[{float(t)!r}, 0, {float(y)!r}, 0]" for t, y in path)
    made = [
        f"rates.low_hz={hz!r}",
        AIRTIGHT,
        f'bodies.cup.geometry={{kind="cup", model="{model}", resolution={resolution}}}',
        f"bodies.cup.placement={{position=[{x!r}, {clearance!r}, 0]}}",
        f'bodies.cup.drive={{kind="scripted", path=[{rows}]}}',
    ]
    if partner:
        made.append(f"bodies.1={partner}")
    if mu is not None:
        made.append(f"friction.default={mu!r}")
    return [*made, *more]


def press_and_lift(
    depth: float, down: float = 0.4, press: float = 0.4, rest: float = 0.2, lift: float = 1.0,
    height: float = 0.02, after: float = 0.5,
) -> list[Waypoint]:  # fmt: skip
    """Path of a cup that comes down, is pressed by `depth` [m], rests, is lifted and waits; durations [s]."""
    times = np.cumsum([0.0, down, press, rest, lift, after]).tolist()
    low = -CLEARANCE - depth
    return list(zip(times, [0.0, -CLEARANCE, low, low, height, height], strict=True))


def rigid_cube(mass: float, geometry: str = BLOCK) -> str:
    """A rigid cube of 115 mm on the ground, its top at y = 0; mass [kg], geometry as a TOML table."""
    return (
        f'{{name="partner", kind="rigid", mass={mass!r}, ground={GROUND!r}, geometry={geometry}, '
        f"placement={{position=[0, {-0.5 * SIDE!r}, 0]}}}}"
    )


def soft_cube(geometry: str) -> str:
    """The thesis's soft cube, 10 kPa and 30 g, on the ground; its geometry as a TOML table."""
    material = '{name="silicone", youngs_modulus=10e3, poisson_ratio=0.42}'
    return (
        f'{{name="partner", kind="tets", mass=0.03, ground={GROUND!r}, material={material}, '
        f"geometry={geometry}, placement={{position=[0, {-0.5 * SIDE!r}, 0]}}}}"
    )


def lead(
    overrides: Sequence[str],
    before: Callable[[Suction], None] | None = None,
    after: Callable[[Suction], bool] | None = None,
    scene: str = SCENE,
) -> RunTrace:
    """The scene along the whole of its cup's path.

    before: called ahead of each step. after: called behind it; the run ends where it says so.
    """
    spec = load_scene(scene, overrides)
    built = build(spec)
    suction, drives, gauge = built.suction, built.drives, built.gauge
    handle = suction.cups[0].body.handle
    assert handle is not None
    start, base = handle.position[1], partner_height(suction)
    kept: list[tuple[float, ...]] = []
    geometric: list[float] = []
    identity, held = np.zeros(0, np.int64), np.zeros(0)
    for _ in range(round(overall(spec) / suction.h)):
        for drive in drives:
            drive.prepare(suction.time + suction.h)
        if gauge is not None:
            suction.gauge = gauge(suction.time + suction.h)
        if before is not None:
            before(suction)
        suction.step()
        geometric.append(_geometric(suction, identity, held))
        nrt = suction.amount * suction.air.rt
        identity, held = suction.identity, nrt / suction.pressure
        main = np.argsort(-nrt)[:1]
        kept.append(
            (
                suction.time,
                handle.position[1] - start,
                suction.hold[0, 1],
                partner_height(suction) - base,
                suction.cavity_count,
                suction.flat.sum(),
                (suction.pressure - suction.air.atmosphere)[main].sum() if main.size else np.nan,
                suction.volume[main].sum() if main.size else np.nan,
                suction.amount[main].sum() if main.size else np.nan,
                np.abs(suction.volume / held - 1.0).max() if main.size else np.nan,
                len(suction.solved),
            )
        )
        if after is not None and after(suction):
            break
    # what a step leaves is what the next one finds
    columns = [*np.array(kept).T, np.append(geometric[1:], np.nan)]
    return RunTrace._make(columns)


def overall(spec: SuctionScene) -> float:
    """Duration of the cup's path [s]."""
    drive = spec.cups[0].drive
    assert isinstance(drive, ScriptedDrive)
    return float(drive.path[-1][0])


def _geometric(suction: Suction, identity: NDArray[np.int64], held: Floats) -> float:
    """Largest |p V / n R T - 1| of the step before, whose cavities should have had volumes `held` [m3]."""
    errors = [
        abs(suction.start_volume[k] / held[list(identity).index(i)] - 1.0)
        for k, i in enumerate(suction.identity)
        if i in identity
    ]
    return float(max(errors, default=np.nan))


def partner_height(suction: Suction) -> float:
    """Height of the partner's centre [m]; 0 for one that never moves."""
    if isinstance(suction.partner, FixedSide):
        return 0.0
    return float(suction.partner.body.x[:, 1].mean())  # type: ignore[attr-defined]


def lifted(trace: RunTrace, least: float = 0.01) -> bool:
    """Whether the partner ends at least that high [m] over where it stood."""
    return bool(trace.partner[-1] > least)


def largest(values: Floats) -> float:
    """Of those that are not nan; 0 without any."""
    return float(np.nanmax(values, initial=-np.inf)) if np.isfinite(values).any() else 0.0


def spread(work: Callable[[Item], Result], items: Iterable[Item], what: str, quick: bool) -> list[Result]:
    """work(item) of each item, in order: over all cores, or here where it is quick; shows progress."""
    items, console = list(items), Console(stderr=True)
    if quick:
        return list(track(map(work, items), what, len(items), console=console))
    with processes() as pool:
        return list(track(pool.map(work, items), what, len(items), console=console))
