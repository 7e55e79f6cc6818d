"""The pictures that the README opens with, and one of each scene for the launcher, from runs of the shipped
scenes: `python -m palpo.app.report.gallery [FOLDER]`.

Both rates in one thread, without a clock, and drawn without a display: on one machine and driver every run
gives the same files. What the hand does is each scene's own path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from palpo.app.cli.progress import Progress
from palpo.app.report.album import Film
from palpo.app.report.animation import animated, in_few_colours
from palpo.app.report.draw import camera_of, drawn
from palpo.app.report.outcome import Outcome
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.config.load import CARDS, list_scenes
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render.camera import Camera
from palpo.render.overlays import Overlays
from palpo.render.scene_view import visible_points

FOLDER = Path("docs") / "pictures"
STILL, MOVING = (960, 720), (480, 400)
"""Pixels of a picture and of an animation, width and height."""
CARD = (300, 200)
"""Pixels of the launcher's picture of a scene."""
LOOKED_AT = 4.0
"""Seconds of a scene that its card is chosen from, at most."""
SHOWN = Overlays(axes=False, labels=False, fixed=False, device=False)
MARGIN = 1.06
PERIOD = 0.06
"""Seconds of the scene from one state to the next."""


@dataclass(frozen=True)
class Shot:
    """One picture: of which scene, when [s] and from where [degrees]; without a time, the whole run moves."""

    name: str
    scene: str
    azimuth: float
    elevation: float
    moment: float | None = None

    @property
    def file(self) -> str:
        """Its name below the folder."""
        return f"{self.name}.{'gif' if self.moment is None else 'png'}"


SHOTS = (
    Shot("wire-moving", "wire", 14.0, 14.0),
    Shot("hapco-block-moving", "hapco-block", 28.0, 24.0),
    Shot("snap-moving", "snap", 22.0, 20.0),
    Shot("suction-arm-moving", "suction-arm", 34.0, 14.0),
    Shot("organ", "organ", 30.0, 28.0, 3.5),
    Shot("hapco-thousand", "hapco-thousand", 30.0, 34.0, 2.0),
    Shot("mixed-press", "mixed-press", 24.0, 16.0, 2.1),
)


def keep_small(picture: Path, path: Path) -> None:
    """Write a picture for the docs in 256 colours, a third of its size."""
    with Image.open(picture) as image:
        image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def make(folder: Path, shots: Iterable[Shot] = SHOTS, progress: Progress | None = None) -> list[Path]:
    """Run each scene once, as long as its shots need, and write them into the folder; the files."""
    progress, written = progress or Progress(), []
    shots = tuple(shots)
    folder.mkdir(parents=True, exist_ok=True)
    for scene in dict.fromkeys(shot.scene for shot in shots):
        mine = [shot for shot in shots if shot.scene == scene]
        with progress.stage(f"running {scene}"):
            geometry, states = run(scene, [shot.moment for shot in mine])
        for shot in mine:
            with progress.stage(f"drawing {shot.file}"):
                written.append(folder / shot.file)
                shoot(shot, geometry, states, written[-1])
    return written


def run(scene: str, moments: Sequence[float | None]) -> tuple[SceneGeometry, list[SceneState]]:
    """The scene's states at an even pace, to the last of the moments [s] or to the end of its path."""
    last = None if None in moments else max(moment for moment in moments if moment is not None) + PERIOD
    done = _filmed(scene, last)
    return done.geometry, done.film


def _filmed(scene: str, duration: float | None) -> Outcome:
    """A run in lock-step and its film; RuntimeError if it did not end well."""
    session = Session(Options(scene, device="mock", lock_step=True, duration=duration))
    session.prepare()
    session.album.film = Film(PERIOD, sys.maxsize)
    done = session.run()
    if done.status:
        raise RuntimeError(f"{scene}: {done.result['exit_reason']}")
    return done


def shoot(shot: Shot, geometry: SceneGeometry, states: Sequence[SceneState], path: Path) -> None:
    """Draw one shot into a file."""
    if shot.moment is None:
        frames = _draw(shot, geometry, states, MOVING)
        path.write_bytes(animated(frames, [state.time for state in states]))
        return
    moment = shot.moment
    state = min(states, key=lambda one: abs(one.time - moment))
    in_few_colours(_draw(shot, geometry, [state], STILL), 256)[0].save(path, optimize=True)


def make_cards(
    folder: Path = CARDS, scenes: Iterable[str] = (), progress: Progress | None = None
) -> list[Path]:
    """A small picture of each scene, where the hand feels most within its first seconds; the files."""
    progress, written = progress or Progress(), []
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes or list_scenes():
        with progress.stage(f"a card of {scene}"):
            written.append(folder / f"{scene}.png")
            card(scene).save(written[-1], optimize=True)
    return written


def card(scene: str) -> Image.Image:
    """The launcher's picture of a scene, in few colours."""
    done = _filmed(scene, LOOKED_AT)
    state = max(done.film, key=lambda one: float(np.nan_to_num(np.linalg.norm(one.hand_force))))
    camera = camera_of(done.geometry, [state], done.view, CARD[0] / CARD[1])
    picture = next(drawn(done.geometry, [state], camera, CARD, SHOWN))
    return in_few_colours([picture], 96)[0]


def _draw(
    shot: Shot, geometry: SceneGeometry, states: Sequence[SceneState], size: tuple[int, int]
) -> list[NDArray[np.uint8]]:
    """Pictures of the states from one camera that holds them all, their arrows to one scale."""
    width, height = size
    seen = np.vstack([visible_points(geometry, state) for state in states])
    camera = Camera(azimuth=shot.azimuth, elevation=shot.elevation).fit(seen, width / height, MARGIN)
    return list(drawn(geometry, states, camera, size, SHOWN))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    make_cards()
