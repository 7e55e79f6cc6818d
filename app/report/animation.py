"""An animated picture as a GIF, which every browser and every page of a repository plays."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from palpo.physics.mesh.distinct import distinct_rows

Frame = NDArray[np.uint8]

LAST = 1.5
"""Seconds that the last frame stays before the first comes again."""
COLOURS = 255
"""Of the common palette; one more is kept for what does not change from frame to frame."""
SAMPLED = 8
"""Frames that the palette is chosen from."""


def in_few_colours(frames: Sequence[Frame], colours: int) -> list[Image.Image]:
    """Frames (h, w, 3) in one palette, without dithering, so that what stands still is the same in each."""
    few = np.stack(frames[:: max(1, len(frames) // SAMPLED)]).reshape(-1, 3)
    # by the root of how often they are met, so that a thin arrow keeps its colour before a wide sky
    met = distinct_rows(few)
    weighed = np.repeat(met.rows, np.ceil(np.sqrt(met.times)).astype(int), axis=0)
    palette = Image.fromarray(weighed[None]).quantize(colours, Image.Quantize.MEDIANCUT)
    return [Image.fromarray(f).quantize(palette=palette, dither=Image.Dither.NONE) for f in frames]


def animated(frames: Sequence[Frame], times: Sequence[float]) -> bytes:
    """A GIF that shows frames (h, w, 3) at these times [s], ascending, in a loop; empty without frames.

    All share one palette, so that what stands still is stored once.
    """
    if not frames:
        return b""
    first, *others = in_few_colours(frames, COLOURS)
    # a GIF counts hundredths of a second
    shown = [10 * max(2, round(100 * seconds)) for seconds in (*np.diff(times), LAST)]
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others, duration=shown, loop=0, disposal=1)
    return file.getvalue()
