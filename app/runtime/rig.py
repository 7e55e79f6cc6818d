"""The rig of a scene: which system it belongs to.

A system is imported when a scene asks for it: its servo is compiled on import, which the first time takes
minutes for all of them.
"""

from collections.abc import Sequence
from typing import Any

from palpo.app.cli.progress import Progress, Silent
from palpo.app.runtime.system import DeviceAt, Rig
from palpo.config.schema.hapco import HapcoScene
from palpo.config.schema.scene import SceneSpec
from palpo.config.schema.snap import SnapScene
from palpo.config.schema.suction import SuctionScene
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import LimitParams
from palpo.haptics.workspace import Workspace

KIND = "none"
"""Of a system that has no interface between two rates."""
KINDS = ("krylov", "paper", "extrapolated", "monolithic")
"""Interfaces between two rates."""


def system_of(spec: Any) -> str:
    """The name of a scene's system."""
    return str(spec.system)


def check_kind(spec: Any, kind: str | None, lock_step: bool) -> str:
    """The kind of interface that a run of this scene uses; HapticsError for one that cannot be."""
    if not isinstance(spec, SceneSpec):
        if kind is not None:
            raise HapticsError(
                f"--interface {kind}: the kinds are those of the multi-rate system; leave it out of a "
                f"{spec.system} scene"
            )
        return KIND
    chosen = kind or str(spec.interface.kind)
    if chosen not in KINDS:
        raise HapticsError(f"--interface {chosen}: choose one of {', '.join(KINDS)}")
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
    further: Sequence[DeviceAt] = (),
) -> Rig:
    """A scene at rest, its servo on its device; further: the devices of the hands after the first."""
    progress = progress or Silent()
    if isinstance(spec, HapcoScene):
        from palpo.app.runtime.hapco import HapcoRig

        return HapcoRig(spec, device_at, workspace, limits, threads, rebased, progress)
    if isinstance(spec, SnapScene):
        from palpo.app.runtime.snap import SnapRig

        return SnapRig(spec, device_at, workspace, limits, rebased, progress)
    if isinstance(spec, SuctionScene):
        from palpo.app.runtime.suction import SuctionRig

        return SuctionRig(spec, device_at, workspace, limits, threads, rebased, progress)
    from palpo.app.runtime.multirate import MultirateRig

    with progress.stage("building the scene"):
        return MultirateRig(spec, kind, device_at, workspace, limits, threads, rebased, further)
