"""Published measurements of soft bodies: studies/curves/measured_bodies.toml."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from palpo.physics.fem.material import Material

RATIO = 0.499
"""Poisson's ratio of what is rubber. The library's 0.49 serves scenes; where a cylinder is pressed to 60% it
gives 10% less force than a volume that stays, which the authors' formula has."""


@cache
def measured() -> dict[str, dict[str, Any]]:
    """The tables by what was measured, SI units; each with its source, its licence and how sure it is."""
    return tomllib.loads((files("palpo.studies") / "curves/measured_bodies.toml").read_text("utf-8"))


def rubber(shear: float, law: str, shape: tuple[float, ...]) -> Material:
    """A rubber of a law, of that shear modulus at rest [Pa]."""
    return Material(2.0 * (1.0 + RATIO) * shear, RATIO, 1000.0, law=law, shape=shape)
