"""Positions, directions and rotations as a scene writes them."""

import math
from typing import Annotated

from pydantic import AfterValidator

from palpo.config.schema.units import Angle, Length, Number

Vector = tuple[Number, Number, Number]
Position = tuple[Length, Length, Length]


def _unit(direction: Vector) -> Vector:
    length = math.hypot(*direction)
    if length == 0.0:
        raise ValueError("has no direction; write three numbers that are not all 0")
    return direction[0] / length, direction[1] / length, direction[2] / length


def _with_axis(rotation: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    if math.hypot(*rotation[:3]) == 0.0:
        raise ValueError("has a null axis; write [ax, ay, az, angle] with an axis of any length above 0")
    return rotation


Direction = Annotated[Vector, AfterValidator(_unit)]
AxisAngle = Annotated[tuple[Number, Number, Number, Angle], AfterValidator(_with_axis)]

NO_ROTATION = (0.0, 1.0, 0.0, 0.0)


def quaternion(rotation: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Unit quaternion (w, x, y, z) of an axis of any length and an angle [rad]."""
    ax, ay, az, angle = rotation
    s = math.sin(angle / 2) / math.hypot(ax, ay, az)
    return math.cos(angle / 2), ax * s, ay * s, az * s
