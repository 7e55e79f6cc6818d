"""What a system of scenes brings to the program beside its specification; each is a folder here."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palpo.config.schema.scene import BaseScene
from palpo.config.systems import brought
from palpo.haptics.errors import HapticsError

if TYPE_CHECKING:
    from palpo.app.cli.progress import Progress
    from palpo.app.runtime.live import Live
    from palpo.app.runtime.rigs import DeviceAt, Further, Rig, Start
    from palpo.app.visual.picture import Shapes
    from palpo.haptics.limits import LimitParams
    from palpo.haptics.workspace import Workspace

YIELDS, ENGINE, PHYSICS = "palpo.physics.compliance", "palpo.physics.engine", "palpo.physics.systems"
"""Rooms of what is compiled ahead."""
NO_INTERFACE = "none"
"""Kind of a system that has no interface between two rates."""


class System(ABC):
    """One system. Its module is imported by itself, so what compiles is imported within the methods."""

    scene: type[BaseScene]
    """Specification of its scenes."""
    heading: str
    """Of its scenes in the launcher."""
    interfaces: tuple[str, ...] = ()
    """Kinds of interface between two rates, where it has one."""
    kinds: tuple[str, ...] = ()
    """Modules whose import compiles kinds of bodies that need not wait for the ticks."""
    ticks: tuple[str, ...]
    """Modules whose import compiles its ticks."""
    beside: tuple[str, ...] = ()
    """Modules of what the tick calls by address, so that it can be compiled beside the kinds of bodies."""

    rehearsed: tuple[str, ...] = ()
    """Shipped scenes that between them call all that scenes of this system may."""
    first: str = ""
    """A shipped scene that what it calls itself is compiled for, where a new user is likely to start it."""

    @property
    def folder(self) -> Path:
        """Where its package lies: `rig.py` there imports all that it runs."""
        return Path(str(sys.modules[type(self).__module__].__file__)).resolve().parent

    @abstractmethod
    def make_rig(self, spec: Any, start: Start) -> Rig:
        """The scene at rest, its servo on its device."""

    @abstractmethod
    def live_keys(self, spec: Any) -> list[Live]:
        """What may be changed while a scene runs, with its present value."""

    @abstractmethod
    def held_name(self, spec: Any) -> str:
        """Name of the shape that the hand holds; empty where it holds none."""

    def valve_key(self, spec: Any) -> str:
        """Live key of the valve that key x opens where the hand holds nothing; empty where there is none."""
        return ""

    def starts_anywhere(self) -> bool:
        """Whether a hand and what it holds may be told to begin elsewhere, by its path and its workspace."""
        return False

    @abstractmethod
    def add_shapes(self, spec: Any, shapes: Shapes) -> None:
        """What the scene looks like before it moves, from meshes alone."""

    def further_paths(self, spec: Any) -> dict[str, Any]:
        """Paths of shapes that the hand does not lead, by name."""
        return {}

    def rehearse(self, scenes: Iterable[str]) -> None:
        """Run what compiles the slow loops, and whatever else a run of these shipped scenes calls."""
        from palpo.app.systems.rehearsal import rehearse

        for scene in scenes:
            rehearse(scene)

    def rehearse_parts(self) -> None:
        """Run parts of the slow loops that need no tick, so that two processes share them; none here."""
        return

    def rehearse_beside(self) -> None:
        """The same of what another process can compile beside that, once it has the ticks; nothing here."""
        return


def find_system(name: str) -> System:
    """The system of this name, which is one of palpo.config.systems.all_systems."""
    outside = brought().get(name)
    found = outside.load() if outside else import_module(f"palpo.app.systems.{name}").SYSTEM
    assert isinstance(found, System)
    return found


def system_of(spec: Any) -> System:
    """The system of a scene."""
    return find_system(spec.system)


def check_kind(spec: Any, kind: str | None, lock_step: bool) -> str:
    """The kind of interface that a run of this scene uses; HapticsError for one that cannot be."""
    interfaces = system_of(spec).interfaces
    if not interfaces:
        if kind is not None:
            raise HapticsError(
                f"--interface {kind}: the kinds are those of the multi-rate system; leave it out of a "
                f"{spec.system} scene"
            )
        return NO_INTERFACE
    chosen = kind or str(spec.interface.kind)
    if chosen not in interfaces:
        raise HapticsError(f"--interface {chosen}: choose one of {', '.join(interfaces)}")
    if chosen == "monolithic" and not lock_step:
        raise HapticsError(
            "--interface monolithic: every body at the servo's rate is no real-time run; add --lock-step"
        )
    return chosen


def make_rig(
    spec: Any,
    kind: str,
    device_at: DeviceAt,
    workspace: Workspace,
    limits: LimitParams,
    threads: bool,
    rebased: bool = False,
    progress: Progress | None = None,
    further: Sequence[Further] = (),
) -> Rig:
    """A scene at rest, its servo on its device; further: the devices of the hands after the first.

    Only now is the system's own code imported: its servo is compiled on import, which the first time takes
    minutes for all of them.
    """
    from palpo.app.cli.progress import Silent
    from palpo.app.runtime.rigs import Start

    start = Start(device_at, workspace, limits, kind, threads, rebased, progress or Silent(), further)
    return system_of(spec).make_rig(spec, start)
