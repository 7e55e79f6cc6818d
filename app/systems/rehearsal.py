"""What a system compiles ahead beside its tick: shipped scenes are run for a moment, and looked at.

So whatever a run calls is called, with the types that it has in a run, and nothing is said twice.
"""

from palpo.app.report.draw import near_points
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.visual.held import held_name, shape_of
from palpo.app.visual.nearness import Nearness
from palpo.config.load import load_scene
from palpo.physics.exchange.snapshot import SceneState

SECONDS = 0.2
"""Ten slow periods of most scenes."""


def hurried(scene: str, seconds: float) -> tuple[str, ...]:
    """Changes by which a scene's hand and drives go their ways, and touch, in so many seconds."""
    spec = load_scene(scene)
    ways = {"device.path": spec.device.path}
    for cup in getattr(spec, "cups", ()):
        if hasattr(cup.drive, "path"):
            ways[f"cups.{cup.name}.drive.path"] = cup.drive.path
    share = min(1.0, seconds / max(way[-1][0] for way in ways.values()))
    return tuple(f"{key}={[[share * row[0], *row[1:]] for row in way]}" for key, way in ways.items())


def rehearse(scene: str) -> None:
    """Warm a scene up as for threads; run it in lock-step, drawn with all that the window may show."""
    changes = hurried(scene, SECONDS)
    options = Options(scene, changes, device="mock", baseline=False, lock_step=True, duration=SECONDS)
    warm, session = Session(options), Session(options)
    warm.prepare()
    warm.rig.warm_up(warm.progress)
    warm.rig.low.close()
    session.prepare()
    visual = session.visual
    held = shape_of(visual.geometry, held_name(session.spec))
    nearness = None if held is None else Nearness(visual.geometry, held)

    def look(state: SceneState, _fresh: bool) -> None:
        visual.strain = True
        near_points(visual.geometry, state)
        if nearness is not None:
            nearness.look(state)
        session.rig.low.in_force()

    session.run(look)
