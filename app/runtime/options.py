"""What to run and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palpo.app.streams.stream import Stream


@dataclass(frozen=True)
class Options:
    """What to run and how; the command line's own words."""

    scene: str
    overrides: tuple[str, ...] = ()
    device: str = "auto"
    further: tuple[str, ...] = ()
    """Devices of the hands after the first; simulated hands where none is named."""
    unit: str = "m"
    replay_scale: float = 1.0
    duration: float | None = None
    record: Path | None = None
    lock_step: bool = False
    interface: str | None = None
    baseline: bool = True
    export: Path | None = None
    """File for a contact problem of the run."""
    export_at: float | None = None
    """Time of that problem [s], in lock-step; else it is the last tick's."""
    ghost: Path | None = None
    """Recording whose tool is shown beside the live one, in a window."""
    window: bool = False
    """Whether somebody looks on, who can move a mouse and end the run."""
    page: bool = False
    """Whether that window is a page in a browser."""
    stream: Stream | None = None
    """What others hear the run by, open as long as it lasts."""
