"""Scenes, masses of the tool, speeds of the hand and paths on which rates are compared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from palpo.config.load import load_scene
from palpo.haptics.path import waypoint_path
from palpo.studies.force_errors import Floats

KINDS = ("krylov", "extrapolated", "paper")
LOW_HZ = (50, 20)
LATE = tuple(np.random.default_rng(0).uniform(1.5, 5.0, 64).tolist())
"""Slow periods that each slow step takes where the machine is late."""
A_LITTLE = tuple(np.random.default_rng(1).uniform(1.0, 2.0, 64).tolist())
"""The same where it is late by no more than a period."""
LATENESS = {"punctual": (1.0,), "frames up to 2 periods late": A_LITTLE, "frames 1.5 to 5 periods late": LATE}
PUNCTUAL, TWO_PERIODS, *_ = LATENESS
FINER = (2, 4)
"""Rates of the finer references over that of the servo."""
COARSE = ("bodies.cylinder.geometry.around=11", "bodies.cylinder.geometry.along=6")
"""The cylinder of `wire` in 414 tetrahedra."""
LANDING = (
    (0.0, 0.12, 0.2, 0.0), (0.02, 0.12, 0.2, 0.0), (0.37, 0.06, 0.265, 0.0), (0.52, 0.05, 0.22, 0.0),
    (0.67, 0.05, 0.215, 0.0),
)  # fmt: skip
"""A path (s, m) on which that cylinder is lifted and dropped; it lands at LANDS."""
LANDS = 0.43
SLIDE = ((0.0, 0.12, 0.2, 0.0), (0.05, 0.12, 0.2, 0.0), (0.45, 0.19, 0.2, 0.0))
"""A path (s, m) on which that cylinder is pulled aside quickly: its rear end is raised, and falls back."""
SLIDE_LANDS = 0.31
"""Time [s] at which it does: what comes after it is a landing."""
EVENTS = {"wire": (6.0, "until it is dropped"), "needle": (3.65, "until its tip jumps")}
"""Time [s] on a scene's own path from which a small difference grows by itself: the cylinder is dropped, the
needle jumps out of its dent, some milliseconds earlier or later."""
FEWER = (72, 48, 24)
"""Columns of the slide beside those of the scene."""
AFTER_LANDING = {50: 5.0, 200: 1.5}
"""Largest RMS error of krylov after a landing, per cent of the peak, by slow rate [Hz]."""


@dataclass(frozen=True)
class MultirateCase:
    """A scene under one mass of its tool and one speed of the hand."""

    scene: str
    mass: float
    """Factor on the tool's mass."""
    speed: float
    """Factor on the hand's speed."""
    ticks: int
    """Most ticks of the path; 0 for all."""
    kinds: tuple[str, ...]
    low_hz: tuple[int, ...]
    mesh: tuple[str, ...] = ()
    """The scene's keys that make its mesh another one."""
    landing: bool = False
    """Whether the path is LANDING, and errors are those after it."""
    slide: bool = False
    """Whether the path is SLIDE."""
    finer: tuple[int, ...] = FINER

    @property
    def path_of_its_own(self) -> bool:
        """Whether its path is not the scene's."""
        return self.landing or self.slide

    @property
    def calm(self) -> tuple[float, str]:
        """Time [s] up to which no small difference grows by itself on its path, and in words."""
        if self.slide:
            return SLIDE_LANDS, "until it lands"
        end, words = EVENTS.get(self.scene, (float("inf"), ""))
        return (float("inf"), "") if self.landing else (end / self.speed, words)

    @property
    def name(self) -> str:
        """For files and figures."""
        special = ", landing" if self.landing else ", slide" if self.slide else ""
        return f"{self.scene}, mass x {self.mass:g}, speed x {self.speed:g}{special}"

    def overrides(self) -> list[str]:
        """The scene's keys that make the tool `mass` times as heavy, and the mesh."""
        spec = load_scene(self.scene)
        tool = spec.tool_body
        if self.mass == 1.0:
            return [*self.mesh]
        if tool.kind == "beam":
            return [*self.mesh, f"bodies.{tool.name}.material.density={self.mass * tool.material.density}"]
        return [*self.mesh, f"bodies.{tool.name}.mass={self.mass * (tool.mass or 0.0)}"]

    def path(self, finer: int = 1) -> Floats:
        """The hand's target at the servo's rate, or at one `finer` times as high."""
        spec = load_scene(self.scene)
        rows: Sequence[tuple[float, ...]] = (
            LANDING if self.landing else SLIDE if self.slide else spec.device.path
        )
        rows = [(t / self.speed, *x) for t, *x in rows]
        kind: Literal["smooth", "linear"] = (
            "smooth" if self.landing or self.slide or spec.device.smooth else "linear"
        )
        path = waypoint_path(rows, kind, rate_hz=finer * spec.rates.servo_hz)[0]
        return path[: finer * self.ticks] if self.ticks else path


def all_cases(quick: bool) -> list[MultirateCase]:
    """Mass and speed are varied one at a time about the scene as it is; last comes the landing."""
    if quick:
        return [
            MultirateCase("wire", 1.0, 2.0, 700, ("krylov",), (50,), COARSE),
            MultirateCase("needle", 1.0, 1.0, 1200, ("krylov",), (50,), finer=FINER[:1]),
            MultirateCase("probe", 1.0, 1.0, 1300, ("krylov",), (50,), finer=FINER[:1]),
            MultirateCase("beams", 1.0, 1.0, 2000, KINDS, (50,)),
            replace(SLIDE_CASE, mesh=COARSE),
            LANDING_CASE,
        ]
    grid = ((1.0, 1.0), (0.25, 1.0), (4.0, 1.0), (1.0, 3.0))
    cases = [
        MultirateCase(scene, mass, speed, 0, KINDS, LOW_HZ)
        for scene in ("wire", "probe", "needle", "beams")
        for mass, speed in grid
    ]
    return [*cases, SLIDE_CASE, LANDING_CASE]


LANDING_CASE = MultirateCase("wire", 1.0, 1.0, 0, ("krylov",), tuple(AFTER_LANDING), COARSE, landing=True)
SLIDE_CASE = MultirateCase("wire", 1.0, 1.0, 0, ("krylov",), LOW_HZ, slide=True, finer=FINER[:1])
