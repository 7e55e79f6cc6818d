"""What a recording says of its run, so that it can be repeated."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from palpo.app.runtime.machine import LIBRARIES, version
from palpo.app.runtime.options import Options
from palpo.config.earlier import DEFAULTS
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device_spec import DeviceSpec
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
