"""More contacts than a scene has room for: what the hand holds is felt all the same."""

import numpy as np
import pytest

import palpo
from palpo.physics.collision.proximity import find_contacts, group_pairs
from palpo.physics.collision.proximity_contacts import POINT_TRIANGLE, Pairs, make_proximity_work
from palpo.physics.collision.topology import LOW, TOOL, join_shapes
from palpo.physics.contract.contacts import make_contacts
from palpo.physics.mesh.generate import box_surface
from tests.properties.contact_cases import ball, surface

SLAB_ON_TABLE = """
title = "A slab on a table"
[[bodies]]
name = "table"
kind = "tets"
geometry = { kind = "block", size = ["60 mm", "20 mm", "60 mm"], divisions = [9, 3, 9] }
placement = { position = [0, "-10 mm", 0] }
material = { name = "soft-tissue", youngs_modulus = "100 kPa" }
fixed = [{ box = [[-0.1, -0.03, -0.1], [0.1, -0.019, 0.1]] }]
[[bodies]]
name = "slab"
kind = "tets"
geometry = { kind = "block", size = ["55 mm", "15 mm", "55 mm"], divisions = [8, 3, 8] }
placement = { position = [0, "8.5 mm", 0] }
material = { name = "soft-tissue", youngs_modulus = "100 kPa" }
[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = "4 mm" }
placement = { position = [0, "25 mm", 0] }
mass = "30 g"
[tool]
body = "ball"
[tool.hold]
orientation = true
stiffness = "0.5 N/mm"
damping = "2 N s/m"
rotational_stiffness = "1 N m/rad"
rotational_damping = "0.002 N m s/rad"
[workspace]
offset = [0, "25 mm", 0]
[contact]
max_contacts = """


def pressed_on_slab(room: int) -> float:
    state = palpo.load(f"{SLAB_ON_TABLE}{room}").build().start()
    state.step(hand=[0.0, 0.025, 0.0], ticks=100)
    state.step(hand=[0.0, 0.018, 0.0], ticks=300)
    return float(state.force[1])


def test_a_tool_presses_on_a_body_that_rests_on_more_contacts_than_there_is_room_for():
    # the slab lies on fewer points, all over it: the ball's own contacts are the same
    assert pressed_on_slab(64) == pytest.approx(pressed_on_slab(256), rel=0.05)


def test_of_contacts_that_find_no_room_a_tool_s_are_the_last():
    box = box_surface((0.02, 0.02, 0.02), (1, 1, 1))
    shapes = [*(ball(0.001, LOW) for _ in range(9)), ball(0.001, TOOL), surface(box)]
    topology, first = join_shapes(shapes)
    side = np.linspace(-0.006, 0.006, 10)
    x = np.concatenate([np.stack([side, np.full(10, 0.011), side / 2.0], axis=1), box.vertices])
    triangles = np.arange(len(topology.triangles), dtype=np.int32)
    points = np.repeat(np.arange(10, dtype=np.int32), len(triangles))
    pairs = Pairs(np.full(points.size, POINT_TRIANGLE, np.int32), points, np.tile(triangles, 10))
    for room in (10, 4, 1):
        work, contacts = make_proximity_work(points.size), make_contacts(room)
        group_pairs(topology, pairs, points.size, work)
        mu = np.zeros((len(shapes), len(shapes)))
        find_contacts(topology, pairs, x, 0.0, 1e-3, 5e-4, mu, work, contacts)
        count = contacts.count[0]
        assert (count["found"], count["found"] + count["lost"]) == (room, 10)
        assert first[9] in contacts.slots[:room, 0, 0]
