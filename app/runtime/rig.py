"""The rig of a scene, made by its system.

A system is imported when a scene asks for it: its servo is compiled on import, which the first time takes
minutes for all of them.
"""

from collections.abc import Sequence
from typing import Any

from palpo.app.cli.progress import Progress, Silent
from palpo.app.runtime.system import DeviceAt, Further, Rig, Start
from palpo.app.systems.system import system_of
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import LimitParams
from palpo.haptics.workspace import Workspace

KIND = "none"
"""Of a system that has no interface between two rates."""


def check_kind(spec: Any, kind: str | None, lock_step: bool) -> str:
    """The kind of interface that a run of this scene uses; HapticsError for one that cannot be."""
    interfaces = system_of(spec).interfaces
    if not interfaces:
        if kind is not None:
            raise HapticsError(
                f"--interface {kind}: the kinds are those of the multi-rate system; leave it out of a "
                f"{spec.system} scene"
            )
        return KIND
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
    """A scene at rest, its servo on its device; further: the devices of the hands after the first."""
    start = Start(device_at, workspace, limits, kind, threads, rebased, progress or Silent(), further)
    return system_of(spec).make_rig(spec, start)
