"""The laws of materials beside Hooke's, a line each."""

from collections.abc import Callable

from palpo.physics.fem.fung import Fung
from palpo.physics.fem.law import IsotropicLaw, Shape
from palpo.physics.fem.mooney_rivlin import MooneyRivlin
from palpo.physics.fem.neo_hookean import NeoHookean
from palpo.physics.fem.ogden import Ogden

LINEAR = "linear"
"""Hooke's law in axes that turn with each element, which elements have by themselves."""

LAWS: dict[str, Callable[[float, float, Shape], IsotropicLaw]] = {
    "neo-hookean": NeoHookean,
    "mooney-rivlin": MooneyRivlin,
    "ogden": Ogden,
    "fung": Fung,
}
"""By their names: made of Lame constants at rest [Pa] and a shape."""
