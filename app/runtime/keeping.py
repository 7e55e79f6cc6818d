"""What somebody at the window keeps of a run: its state, to go back to, and its scene as a file."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from palpo.app.library.checkpoint import Checkpoint, put, take
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.config.load import scene_tables
from palpo.config.schema.scene import BaseScene
from palpo.config.toml import write_toml
from palpo.config.words import Refusal
from palpo.haptics.control import is_frozen, tick_count
from palpo.physics.exchange.budget import Budget

FILES = ("path", "weights")
"""Keys of a scene that name a file; a relative name starts at the scene's folder."""


class Kept(NamedTuple):
    """A state of a run, in which its time stands still."""

    options: Options
    """What to run to go on from it."""
    checkpoint: Checkpoint
    """With arrays of its own."""
    seconds: float
    """Time of the scene."""
    budgets: tuple[Budget, ...]
    """What the steps of its slow loops were allowed to cost."""


def keep(session: Session, options: Options) -> Kept | None:
    """The state of a session that was paused; None until its servo stands still.

    options: those of a run of the same scene with the same values.
    """
    rig = session.rig
    if not is_frozen(rig.servo):
        return None
    session.trace.take()  # rows in the servo's ring would belong to nobody
    with session.slow.standing():
        taken = take(rig)
        arrays = {name: array.copy(order="K") for name, array in taken.arrays.items()}
    seconds = int(tick_count(rig.servo)) * rig.dt
    budgets = tuple(loop.budget for loop in session.slow.loops)
    return Kept(options, Checkpoint(taken.tree, arrays), seconds, budgets)


def options_again(session: Session) -> Options:
    """Those of a session, with what was changed meanwhile, not recorded."""
    kept = session.spec.origin.overrides
    return replace(session.options, overrides=kept, record=None, baseline=False)


def go_back(session: Session, kept: Kept) -> None:
    """Bring a session that was prepared and not run to a kept state, in its pause.

    A real device is where the hand is now, and not where it was: what is remembered of its pose goes.
    """
    rig = session.rig
    servos = (rig.servo, *rig.servo.led)
    real = [
        part
        for choice, servo in zip(session.choices, servos, strict=False)
        if choice.hardware
        for part in (*servo.device, *servo.pose)
    ]
    now = [(array, array.copy()) for array in real if hasattr(array, "copy")]
    put(kept.checkpoint, rig)
    for array, values in now:
        array[...] = values
    for loop, budget in zip(session.slow.loops, kept.budgets, strict=True):
        if budget != loop.budget:
            loop.low.set_budget(loop.budget)
    session.paused = True


def write_new(path: Path, text: str) -> None:
    """Write a file, whole from the first moment that it is seen; Refusal where one is there already."""
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        half.write_text(text, "utf-8")
        os.link(half, path)
    except FileExistsError:
        raise Refusal(f"{path}: is there already; choose another name") from None
    except OSError as error:
        raise Refusal(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        half.unlink(missing_ok=True)


def scene_text(spec: BaseScene) -> str:
    """The scene with its present values, as the text of a file that can stand anywhere."""
    tables = scene_tables(spec.origin)
    _from_anywhere(tables, spec.origin.path.resolve().parent)
    return write_toml(tables)


def _from_anywhere(value: Any, folder: Path) -> None:
    """Let the files that tables name be found from any folder."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in FILES and isinstance(item, str):
                value[key] = str((folder / Path(item).expanduser()).resolve())
            else:
                _from_anywhere(item, folder)
    elif isinstance(value, list):
        for item in value:
            _from_anywhere(item, folder)
