"""The connectors by name."""

import difflib
from dataclasses import fields
from typing import Any, NamedTuple

from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors import buckle, cap, lan, two_prong
from palpo.physics.systems.snap.connectors.connector import Connector, overlap


class ConnectorKind(NamedTuple):
    """A generator: its dimensions, a frozen dataclass with `build(cells)`, and its two meshes."""

    about: str
    dimensions: type
    cells: dict[str, Any]


KINDS = {
    "two-prong": ConnectorKind(
        "two hooked prongs spread by a wedge, as in the paper",
        two_prong.TwoProng,
        {"coarse": two_prong.COARSE, "fine": two_prong.FINE},
    ),
    "lan": ConnectorKind(
        "the latch of a LAN plug under the lip of its jack",
        lan.Lan,
        {"coarse": lan.COARSE, "fine": lan.FINE},
    ),
    "cap": ConnectorKind(
        "a leak-stop cap whose lip stretches over a bead", cap.Cap, {"coarse": cap.COARSE, "fine": cap.FINE}
    ),
    "buckle": ConnectorKind(
        "a side-release buckle with two arms",
        buckle.Buckle,
        {"coarse": buckle.COARSE, "fine": buckle.FINE},
    ),
}


def generate(name: str, mesh: str = "coarse", **dimensions: float) -> Connector:
    """The connector `name` with its "coarse" or "fine" mesh; dimensions [m, rad] replace its own.

    Raises InputError for an unknown name, mesh or dimension, naming those there are, a dimension out of
    range, and dimensions with which the plug cannot latch.
    """
    if name not in KINDS:
        raise InputError(f"connector is {name!r}, expected {_one_of(name, list(KINDS))}.")
    kind = KINDS[name]
    if mesh not in kind.cells:
        raise InputError(f"{name}: mesh is {mesh!r}, expected {_one_of(mesh, list(kind.cells))}.")
    known = [field.name for field in fields(kind.dimensions)]
    for key, value in dimensions.items():
        if key not in known:
            raise InputError(f"{name}: there is no dimension {key!r}, expected {_one_of(key, known)}.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name}: {key} is {value!r}, expected a number.")
    built: Connector = kind.dimensions(**dimensions).build(kind.cells[mesh])
    latched = built.plug_at(built.stroke)
    if any(part.size for prong in built.prongs for part in overlap(prong, latched)):
        raise InputError(
            f"{name}: with these dimensions the latched plug runs into its socket; lengthen the prongs, or "
            "take a larger ramp or a smaller interference."
        )
    return built


def _one_of(given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    return f"one of {', '.join(known)}" + (f" (perhaps {near[0]})" if near else "")
