"""The bodies of the slow loop, which answer the same questions about their points."""

from palpo.physics.bodies.chain_body import BeamBody, RigidBody
from palpo.physics.bodies.soft import SoftBody

LowBody = SoftBody | BeamBody | RigidBody
"""Each has `count` points and rotations, `positions()` and `velocities()` of all of them, and of chosen ones
`orientations`, `turns`, `columns`, `applied` and `gather`; `rides` and `rigid` say how it moves."""
