"""The systems of scenes: which there are, and which of them a scene's tables belong to."""

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from palpo.config.schema.hapco import HapcoScene
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.config.schema.snap import SnapScene
from palpo.config.schema.suction import SuctionScene
from palpo.config.words import in_words

SYSTEMS: Mapping[str, type[BaseScene]] = {
    "multirate": SceneSpec,
    "hapco": HapcoScene,
    "snap": SnapScene,
    "suction": SuctionScene,
}
"""The specification of the scenes of each system that comes with the program, by the system's name."""

GROUP = "palpo.systems"
"""Entry points of this group bring systems of other packages, objects as in `app/systems`, by their names."""


@cache
def brought() -> Mapping[str, EntryPoint]:
    """The systems of other packages that are installed, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in SYSTEMS}


@cache
def all_systems() -> Mapping[str, type[BaseScene]]:
    """The specification of the scenes of each system, those of other packages last.

    A package whose system cannot be loaded is left out, with a warning.
    """
    found = dict(SYSTEMS)
    for name, entry in brought().items():
        try:
            found[name] = entry.load().scene
        except Exception as error:
            warnings.warn(f"the system {name} ({entry.value}) is left out: {error}", stacklevel=2)
    return found


def system_told(tables: Mapping[str, Any]) -> Any:
    """The system of a scene: what the key `system` says, else what its bodies' kinds make it, else its keys.

    Of the keys, those count that scenes of one system alone have: it is the system with most of them, of
    systems with as many the one whose key comes first, and multi-rate without any.
    """
    if "system" in tables:
        return tables["system"]
    if claimed := _claimed(tables):
        return claimed
    places = {name: [i for i, key in enumerate(tables) if key in _own_keys(name)] for name in all_systems()}
    return max(places, key=lambda name: (len(places[name]), -min(places[name], default=0)))


def _claimed(tables: Mapping[str, Any]) -> str | None:
    """The system that the kinds of the listed bodies make a scene one of."""
    kinds = kinds_of(tables)
    return next((name for name, scene in all_systems().items() if scene.claims(kinds)), None)


def kinds_of(tables: Mapping[str, Any]) -> set[str]:
    """The kinds of the bodies in a scene's tables."""
    bodies = tables.get("bodies")
    listed = bodies if isinstance(bodies, list | tuple) else ()
    return {str(body.get("kind")) for body in listed if isinstance(body, Mapping)}


def foreign_key(tables: Mapping[str, Any], system: str) -> tuple[str, str] | None:
    """The first key that scenes of other systems have and this one's have not, and what is said of it."""
    for key in tables:
        owners = [name for name, scene in all_systems().items() if key in scene.model_fields]
        if owners and system not in owners:
            return (
                key,
                f"unknown key; it belongs to a scene of {in_words(owners)}, and {_why(tables, system)}",
            )
    return None


def _why(tables: Mapping[str, Any], system: str) -> str:
    """What makes a scene one of this system."""
    own = [f"`{key}`" for key in tables if key in _own_keys(system)]
    if "system" in tables:
        return f'system = "{system}" makes this one of {system}'
    if _claimed(tables):
        return f"bodies of kind {in_words(sorted(kinds_of(tables)), 'and')} make this one of {system}"
    if not own:
        return f"this is one of {system}"
    return f"{in_words(own, 'and')} {'makes' if len(own) == 1 else 'make'} this one of {system}"


def _own_keys(name: str) -> set[str]:
    """Keys of a system's scenes that those of no other have."""
    others = (scene.model_fields for other, scene in all_systems().items() if other != name)
    return set(all_systems()[name].model_fields).difference(*others)
