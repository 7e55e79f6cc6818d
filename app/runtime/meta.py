"""What a recording says of its run, so that it can be repeated: written by the run, checked when read."""

import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from palpo.app.runtime.machine import LIBRARIES, version
from palpo.app.runtime.options import Options
from palpo.config.earlier import DEFAULTS
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.haptics.recording import Recording
from palpo.physics.numerics.arithmetic import arithmetic


def meta_of(
    options: Options,
    spec: BaseScene,
    kind: str,
    titles: Sequence[str],
    figures: Sequence[DeviceSpec],
    ticks: int | None,
) -> dict[str, Any]:
    """The scene with all that changed it, and the devices of its hands, the first one's first.

    kind: of the interface between two rates. ticks: of the run, None where somebody ends it.
    """
    origin = spec.origin
    return {
        "program": "palpo",
        "versions": {name: version(name) for name in LIBRARIES},
        "arithmetic": arithmetic(),
        "driver": "lock-step" if options.lock_step else "threads",
        "scene": {
            "name": options.scene,
            "path": str(origin.path.resolve()),
            "text": origin.text,
            "overrides": list(origin.overrides),
            "defaults": DEFAULTS,
        },
        "interface": kind,
        "device": titles[0],
        "device_spec": asdict(figures[0]),
        "further_devices": list(titles[1:]),
        "further_specs": [asdict(one) for one in figures[1:]],
        "ticks": ticks,
    }


def _sound(spec: DeviceSpec) -> DeviceSpec:
    """A device whose figures are numbers that its limits can be made of."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        if field.name in ("reach", "name"):
            continue
        if not np.all(np.asarray(value, float) >= 0.0):
            raise ValueError(f"{field.name} = {value} is no figure of a device")
    low, high = spec.reach
    if not all(a < b for a, b in zip(low, high, strict=True)) or not 0.0 < spec.max_force < math.inf:
        raise ValueError("its reach or its largest force is none of a device")
    return spec


class RecordedScene(BaseModel):
    """The scene of a recorded run, with all that changed it."""

    model_config = ConfigDict(strict=True)
    name: str
    path: str
    text: str
    overrides: list[str]
    defaults: int = 1
    """Of which generation what the text leaves out is."""


class RecordedRun(BaseModel):
    """What a recording says of its run, as far as a repetition needs it."""

    driver: Literal["lock-step", "threads"]
    arithmetic: dict[str, str] | None = None
    scene: RecordedScene
    interface: str
    device_spec: Annotated[DeviceSpec, AfterValidator(_sound)]
    further_specs: list[Annotated[DeviceSpec, AfterValidator(_sound)]] = []


def recorded_run(recording: Recording, path: str | Path) -> RecordedRun:
    """What a recording says of its run; raises HapticsError with the key and value that cannot be."""
    if recording.meta.get("program") != "palpo":
        raise HapticsError(f"{path}: not a recording of `palpo run`, so it cannot be repeated")
    try:
        return RecordedRun.model_validate(recording.meta)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise HapticsError(
            f"{path}: what it says of its run cannot be used: "
            f"{key} = {str(first['input'])[:80]}: {first['msg']}"
        ) from None
