"""A quasi-static body in a hand, as a multi-rate scene has its tools.

A multi-rate scene knows a tool by frames: it tells the low loops and the picture where these are and how they
move. Of a quasi-static body each node of the boundary is one, and the last is the frame of its clamped nodes,
which the hand holds; so its deformed surface is what others see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_models import ChainModel, ChainState, rigid_model
from palpo.physics.bodies.quasistatic import QuasistaticBody

if TYPE_CHECKING:
    from palpo.physics.compliance.chain import Chain
    from palpo.physics.compliance.hold import Hold
    from palpo.physics.compliance.surface_state import Surface


class QuasistaticTool:
    """The body at rest, and what a scene asks of a tool's body: a model, and a state of its frames.

    The model has the body's mass and gravity; nothing moves by it.
    """

    def __init__(self, body: QuasistaticBody) -> None:
        # its compiled stages are those of scenes that have such a tool
        from palpo.physics.compliance.surface_state import told_state

        self.body = body
        self.model: ChainModel = rigid_model(body.mass, body.mass * np.eye(3), body.gravity)
        self.state: ChainState = told_state(body)

    @property
    def frame(self) -> int:
        """Number of the frame that the hand holds."""
        return len(self.state.x) - 1


def held_surface(
    tool: QuasistaticTool, gravity: NDArray[np.float64], state: ChainState, hold: Hold, capacity: int
) -> tuple[Surface, Chain]:
    """The body for the engine, and its frames, hold and gravity as those of a chain, in the same memory.

    gravity (3,) and hold are the scene's own, which an operator may change; capacity: points of a batch.
    """
    # compiled stages, which a picture at rest does without
    from palpo.physics.compliance.chain import make_chain
    from palpo.physics.compliance.surface_state import COUPLED, HELD, make_surface

    surface = make_surface(tool.body, capacity, HELD if hold.direct[0] == 1 else COUPLED)
    frame = surface.frame._replace(gains=hold.gains, target=hold.target, target_q=hold.target_q)
    model = tool.model._replace(gravity=gravity)
    chain = make_chain(model, state, [0], np.zeros((1, 3)), 1, hold)
    return surface._replace(frame=frame, gravity=gravity, told=state), chain
