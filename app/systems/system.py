"""What a system of scenes brings to the program beside its specification; each is a file of this folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palpo.app.runtime.live import Live
    from palpo.app.runtime.system import Rig, Start
    from palpo.app.visual.rest import Shapes

YIELDS, ENGINE, PHYSICS = "palpo.physics.yields", "palpo.physics.engine", "palpo.physics.systems"
"""Rooms of what is compiled ahead."""


class System(ABC):
    """One system. Its module is imported by itself, so what compiles is imported within the methods."""

    heading: str
    """Of its scenes in the launcher."""
    interfaces: tuple[str, ...] = ()
    """Kinds of interface between two rates, where it has one."""
    ticks: tuple[str, ...]
    """Modules whose import compiles its ticks."""
    beside: tuple[str, ...] = ()
    """Modules of what the tick calls by address, so that it can be compiled beside the kinds of bodies."""

    @abstractmethod
    def make_rig(self, spec: Any, start: Start) -> Rig:
        """The scene at rest, its servo on its device."""

    @abstractmethod
    def live_keys(self, spec: Any) -> list[Live]:
        """What may be changed while a scene runs, with its present value."""

    @abstractmethod
    def held_name(self, spec: Any) -> str:
        """Name of the shape that the hand holds; empty where it holds none."""

    @abstractmethod
    def add_shapes(self, spec: Any, shapes: Shapes) -> None:
        """What the scene looks like before it moves, from meshes alone."""

    def further_paths(self, spec: Any) -> dict[str, Any]:
        """Paths of shapes that the hand does not lead, by name."""
        return {}

    def rehearse(self) -> None:  # noqa: B027
        """Run the slow loop of a small scene that no tick moves, so that it is compiled."""


def find_system(name: str) -> System:
    """The system of this name, which is one of palpo.config.load.SYSTEMS."""
    found = import_module(f"palpo.app.systems.{name}").SYSTEM
    assert isinstance(found, System)
    return found


def system_of(spec: Any) -> System:
    """The system of a scene."""
    return find_system(spec.system)
