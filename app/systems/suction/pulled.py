"""Any cup of a scene as a law of few numbers: its own body pushed on a plane and pulled off it, weightless.

As in palpo.physics.suction.reduced_cup, air gets out while it is pushed and none gets in while it is pulled;
a pump keeps the scene's lowest pressure instead.
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.app.systems.suction.build import build, cup_form
from palpo.config.load import scene_of, scene_tables
from palpo.config.schema.gas import ActiveGas, PumpedGas
from palpo.config.schema.suction import Cup, CupFile, OctopusArm, SuctionScene
from palpo.config.words import Refusal, choose
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.gas.wall_regions import Walls, walls_of_regions
from palpo.physics.suction.reduced_cup import NEVER, WAVES, PulledCup, ReducedCup, law_of
from palpo.physics.systems.suction.step import Suction

CLEARANCE = 3e-4
"""Height at which the cup begins [m]."""
SPEED = 5e-3
"""At which it is pushed and pulled [m/s]."""
REST = 0.3
"""For which it stays pushed [s]."""
LONGEST = 30e-3
"""How far it is pulled at most [m]."""
GONE = 0.3
"""Share of the most force below which a cup has let go."""
EASY = 50.0
"""Pressure above the atmosphere that lets air out under the rim [Pa]."""
AFTER = 3
"""Steps with a cavity before it is looked at: the first finds what was shut in."""


def reduce_scene(
    spec: SuctionScene, name: str, push: float, roughnesses: tuple[float, ...], progress: Progress
) -> ReducedCup:
    """The law of the cup of that name, pushed by `push` [m]; leak by the rms roughness of a wall [m].

    Raises Refusal for a name that is not there, for an arm, and InputError for a cup that holds nothing.
    """
    cup = next((one for one in spec.cups if one.name == name), None)
    if cup is None:
        raise Refusal(f"--cup {name}: {choose(name, [one.name for one in spec.cups])}")
    if isinstance(cup.geometry, OctopusArm):
        raise Refusal(f"bodies.{name}: an arm is no cup that is pulled off by its stem")
    alone = _alone(spec, cup, push)
    built = build(alone)
    suction, (form,) = built.suction, built.soft
    body = suction.cups[0].body
    handle = body.handle
    assert handle is not None
    lowest = float(form.mesh.nodes[:, 1].min())
    start, middle = float(handle.position[1]), form.mesh.nodes[form.touchable].mean(axis=0)
    modulus = form.material.youngs_modulus / (1.0 - form.material.poisson_ratio**2)
    walls = {
        rms: walls_of_regions(built.rest, seal_of(RoughSurface(rms, WAVES * rms), modulus), [])
        for rms in roughnesses
    }
    drive, steps = built.drives[0], round(alone.device.path[-1][0] / suction.h)
    pushed = round((push + lowest) / SPEED / suction.h) + round(REST / suction.h)
    rows: list[tuple[float, float, float, float]] = []
    times: dict[float, list[float]] = {rms: [] for rms in roughnesses}
    most = 0.0
    for step in range(steps):
        drive.prepare(suction.time + suction.h)
        suction.step()
        progress.come_to(step / steps)
        if step < pushed:
            continue
        force = float(suction.hold[0, 1])
        pressed, radius = _on_the_plane(suction, middle)
        rows.append((float(handle.position[1]) - start + lowest, force, pressed, radius))
        for rms, wall in walls.items():
            times[rms].append(_seconds(suction, wall))
        most = max(most, force)
        if most > 0.0 and (force < GONE * most or not suction.cavity_count):
            break
    suction.close()
    height, forces, pressed_, radii = np.array(rows).T
    radii = np.where(radii > 0.0, radii, radii.max())
    seen = PulledCup(height, forces, pressed_, radii, {rms: np.array(one) for rms, one in times.items()})
    law = law_of(name, push, float(suction.mu[0]), seen)
    pumped = isinstance(spec.gas, ActiveGas | PumpedGas)
    return law._replace(damping=float(form.material.beta), pumped=pumped)


def _on_the_plane(suction: Suction, middle: NDArray[np.float64]) -> tuple[float, float]:
    """The normal force on the plane [N], and its mean distance from the cup's axis [m]."""
    forces, places = suction.contacts.force[suction.solved], suction.rows.places()
    up = np.maximum(forces[:, 1], 0.0) * (np.abs(places[:, 1]) < 10.0 * suction.limits.contact)
    whole = float(up.sum())
    if not whole > 0.0:
        return 0.0, 0.0
    return whole, float(up @ np.linalg.norm((places - middle)[:, [0, 2]], axis=1)) / whole


def _seconds(suction: Suction, walls: Walls) -> float:
    """In which the suction falls to a third over those walls [s]."""
    flow = suction.conductance(0, walls) if suction.cavity_count else 0.0
    volume = float(suction.volume.sum())
    return min(volume / (2.0 * flow * suction.air.atmosphere), NEVER) if flow > 0.0 else NEVER


def _alone(spec: SuctionScene, cup: Cup, push: float) -> SuctionScene:
    """The scene of this cup over a plane that it is pushed on and pulled off."""
    tables: dict[str, Any] = scene_tables(spec.origin)
    own: dict[str, Any] = next(body for body in tables["bodies"] if body.get("name") == cup.name)
    form = cup_form(spec, spec.cups.index(cup))
    nodes = form.mesh.nodes - np.array(cup.placement.position)
    nodes = nodes @ quaternion_matrix(cup.placement.quaternion)
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    place = -np.array([0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2])])
    down = CLEARANCE + push
    times = np.cumsum([0.0, down / SPEED, REST, (LONGEST + down) / SPEED])
    path = [[float(t), 0.0, y, 0.0] for t, y in zip(times, (0.0, -down, -down, LONGEST), strict=True)]
    place[1] += CLEARANCE
    placement = {"position": place.tolist(), "scale": cup.placement.scale}
    own = {key: value for key, value in own.items() if key not in ("line", "drive")}
    if isinstance(cup.geometry, CupFile):  # held where it stood, which is elsewhere
        own["geometry"] = {**own["geometry"], "held": [{"nodes": form.held.tolist()}]}
    side = 4.0 * float((high - low)[[0, 2]].max())
    plate = {"kind": "plate", "side": side, "thickness": 0.5 * side, "cells": 12}
    gas: dict[str, Any] = {"kind": "airtight", "max_pressure": spec.gas.atmosphere + EASY}
    if isinstance(spec.gas, ActiveGas):
        gauge = min([spec.gas.gauge, *(pressure for _, pressure in spec.gas.table)])
        gas = {"kind": "active", "gauge": gauge}
    elif isinstance(spec.gas, PumpedGas):
        gas = {"kind": "active", "gauge": spec.gas.manifold.pump.lowest}
    gas |= {"atmosphere": spec.gas.atmosphere, "temperature": spec.gas.temperature}
    same = ("rates", "contact", "friction", "solver", "refine")
    kept: dict[str, Any] = {key: tables[key] for key in same if key in tables}
    alone: dict[str, Any] = {
        **kept,
        "title": f"{cup.name} is pulled off", "gravity": [0.0, 0.0, 0.0], "gas": gas,
        "bodies": [
            {**own, "placement": placement, "drive": {"kind": "scripted", "path": path}},
            {"name": "plane", "kind": "mesh", "geometry": plate},
        ],
        "device": {"path": [[0.0, 0.0, 0.0, 0.0], [path[-1][0], 0.0, 0.0, 0.0]]},
    }  # fmt: skip
    return cast(SuctionScene, scene_of(alone, spec.origin.path))
