"""A recording as a film to show or to send: the run repeated, drawn without a display, as MP4 or GIF."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import check_file
from palpo.app.report.album import Film
from palpo.app.report.animation import animated
from palpo.app.report.draw import camera_of, drawn
from palpo.config.words import Refusal
from palpo.render.overlays import Overlays

Frame = NDArray[np.uint8]
Write = Callable[[Path, Iterable[Frame], tuple[int, int], float], None]
"""Writes pictures (h, w, 3) of this size, so many a second, into a file."""

SUFFIXES = (".mp4", ".gif")
FPS = {".mp4": 30.0, ".gif": 15.0}
"""Pictures a second unless told: a GIF keeps each as a picture of its own."""
SIZE = {".mp4": (1280, 720), ".gif": (640, 360)}
"""Pixels unless told, width and height."""
QUALITY = 8
"""Of the encoder's scale from 0 to 10."""
INSTALL = "pip install 'palpo[film]'"


def film(
    recording: Path,
    out: Path | None = None,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
    speed: float = 1.0,
    progress: Progress | None = None,
) -> Path:
    """Write what a recorded run looked like into a file; its path.

    recording: an HDF5 file of `palpo run --record`. out: ends in .mp4 or .gif; by default, an MP4 beside the
    recording. fps: pictures a second of the film. size: pixels, width and height, even numbers for an MP4.
    speed: seconds of the scene in a second of the film, 0.1 for slow motion.
    Raises Refusal, a sentence, for what cannot be; HapticsError for a recording that cannot be repeated;
    RenderUnavailable where pictures cannot be made.
    """
    out = recording.with_suffix(".mp4") if out is None else out
    kind = out.suffix.lower()
    if kind not in SUFFIXES:
        raise Refusal(f"--out {out}: a film is written to a file that ends in {' or '.join(SUFFIXES)}")
    fps, size = FPS[kind] if fps is None else fps, size or SIZE[kind]
    if not 1.0 <= fps <= 100.0:
        raise Refusal(f"--fps {fps:g}: give 1 to 100 pictures a second")
    if not 0.001 <= speed <= 1000.0:
        raise Refusal(f"--speed {speed:g}: give seconds of the scene in a second of the film, 0.001 to 1000")
    if min(size) < 64 or max(size) > 7680:
        raise Refusal(f"--size {size[0]}x{size[1]}: give 64 to 7680 pixels each way")
    if kind == ".mp4" and (size[0] % 2 or size[1] % 2):
        raise Refusal(f"--size {size[0]}x{size[1]}: an MP4 wants even numbers of pixels")
    check_file(out, "--out")
    write = _encoder(kind)
    progress = progress or Progress()
    from palpo.app.runtime.replay import replay

    done = replay(recording, progress=progress, film=Film(speed / fps, sys.maxsize))
    states = [state for state in done.film if np.isfinite(state.vertices).all()]
    if len(states) < 2:
        raise Refusal(f"{recording}: too short for a film of {fps:g} pictures a second at speed {speed:g}")
    if done.status:
        progress.say(
            f"the film shows the repeated run, which is not the recorded one: {done.result['exit_reason']}"
        )
    camera = camera_of(done.geometry, states, done.view, size[0] / size[1])
    with progress.stage(f"drawing {len(states)} pictures"):
        pictures = drawn(done.geometry, states, camera, size, Overlays(labels=False))
        part = out.with_name(f"part-{out.name}")
        try:
            write(part, _counted(pictures, len(states), progress), size, fps)
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    return out


def _counted(pictures: Iterable[Frame], n: int, progress: Progress) -> Iterator[Frame]:
    for k, picture in enumerate(pictures, 1):
        yield picture
        progress.come_to(k / n)


def _encoder(kind: str) -> Write:
    """What writes pictures to a file of this kind; Refusal if it is not installed."""
    if kind == ".gif":
        return _write_gif
    try:
        ffmpeg = importlib.import_module("imageio_ffmpeg")
    except ImportError as missing:
        raise Refusal(f"an MP4 needs {missing.name}: {INSTALL}; a film that ends in .gif does not") from None

    def write(out: Path, pictures: Iterable[Frame], size: tuple[int, int], fps: float) -> None:
        stream = ffmpeg.write_frames(
            str(out), size, fps=fps, quality=QUALITY, macro_block_size=2, ffmpeg_log_level="error"
        )
        try:
            stream.send(None)
            for picture in pictures:
                stream.send(np.ascontiguousarray(picture))
        finally:
            stream.close()

    return write


def _write_gif(out: Path, pictures: Iterable[Frame], _size: tuple[int, int], fps: float) -> None:
    shown = list(pictures)
    out.write_bytes(animated(shown, [k / fps for k in range(len(shown))]))
