"""What an attachment takes out of contact, and what it does not."""

import numpy as np

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import parse_scene
from palpo.physics.collision.proximity_contacts import POINT_PLANE
from palpo.physics.systems.multirate.lock_step import LockStep

SCENE = """
title = "Wire joined to a block over a plane"

[[bodies]]
name = "ground"
kind = "plane"

[[bodies]]
name = "wire"
kind = "beam"
rate = "high"
geometry = { kind = "line", start = [0.01, 0.002, 0], end = [0.05, 0.03, 0], elements = 2, radius = "0.5 mm" }
material = "nylon"

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = ["20 mm", "20 mm", "20 mm"], divisions = [2, 2, 2] }
placement = { position = [0, "12 mm", 0] }
material = "gelatine"

[[attachments]]
kind = "point"
a = { body = "wire", end = "first" }
b = { body = "block", at = [0.01, 0.002, 0] }

[tool]
body = "wire"

[tool.hold]
end = "last"
"""


def test_a_joined_point_leaves_its_partner_alone_but_not_the_ground():
    """The block is the last body, so that no number of another body can stand for the plane's."""
    scene = build_scene(parse_scene(SCENE, "joined", ()))
    run = LockStep(scene, "krylov")
    try:
        run.low.step()
        pairs, topology = run.low.pairs, scene.topology
    finally:
        run.close()
    joined = int(scene.attachments.points[0, 0, 0])
    ground = (pairs.kind == POINT_PLANE) & (pairs.first == joined)
    assert ground.sum() == 1
    others = pairs.first[~ground & (pairs.kind != 1)]
    assert joined not in others
    assert set(np.unique(topology.point_body[pairs.first[pairs.kind == POINT_PLANE]])) == {1, 2}
