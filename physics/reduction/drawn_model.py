"""Where the servo has the low-rate bodies now: the reduced models of the last frames, kept for the picture.

The low loop leaves the model of each frame here before it publishes the frame; who draws takes the one that
belongs to the state of the servo (`ToolState.frame`). A model is never changed, entries are replaced whole,
so that neither side waits.
"""

from palpo.physics.reduction.body_model import BodyModel

KEPT = 4
"""Frames that the servo may still move by: the newest, the one it has, and room for a slow reader."""


class DrawnModels:
    """Models of the last frames by the frames' ids."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether anybody looks: without it nothing is kept."""
        self._frames: dict[int, tuple[BodyModel, ...]] = {}

    def keep(self, frame: int, models: tuple[BodyModel, ...]) -> None:
        """Leave the models of a frame, in the order of the low-rate bodies; from the low loop only."""
        newest = list(self._frames.items())[1 - KEPT :]
        self._frames = dict([*newest, (frame, models)])

    def of(self, frame: int) -> tuple[BodyModel, ...]:
        """The models of that frame; none where it is not known, or has no reduced bodies."""
        return self._frames.get(frame, ())
