"""What a step remembers of contacts with a body whose parts turn differently."""

import numpy as np
from scipy.spatial.transform import Rotation

from palpo.physics.contact.laws import OPEN
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, resting, straight

BLOCK = BALL_ON_BLOCK[: BALL_ON_BLOCK.index('[[bodies]]\nname = "ball"')].replace("-0.0", "-0.1")
ROD = """
[[bodies]]
name = "{name}"
kind = "beam"
rate = "high"
geometry = {{ kind = "line", start = {start}, end = {end}, elements = {elements}, radius = 0.002 }}
material = {{ youngs_modulus = {modulus}, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }}

[[tools]]
body = "{name}"
device = {{ path = [[0, {x}, {y}, {z}], [1, {x}, {y}, {z}]] }}

[tools.hold]
end = "last"
orientation = true
stiffness = 500
damping = 1
rotational_stiffness = 0.5
rotational_damping = 0.0001
"""


def rod(name, start, end, elements, modulus):
    x, y, z = end
    return ROD.format(name=name, start=start, end=end, elements=elements, modulus=modulus, x=x, y=y, z=z)


def test_each_force_is_kept_in_the_axes_of_the_part_of_body_2_that_it_acts_on():
    """Two stiff rods bend a soft one that lies across below them, whose nodes turn by a tenth of a radian."""
    stiff = [
        rod(f"stiff-{k}", [x, 0.0045, -0.01], [x, 0.0045, 0.012], 1, 1e7) for k, x in enumerate((-0.02, 0.01))
    ]
    run = lock_step("\n".join([BLOCK, *stiff, rod("soft", [-0.03, 0, 0], [0.03, 0, 0], 8, 1e6)]))
    start, ticks = run.high.port.position.copy(), 200
    first = straight(start, start - [0.0002, 0.0095, 0.0], ticks)
    aside = np.array([0.03, 0.0, 0.0])
    second = aside + straight(start, start - [0.0002, 0.0025, 0.0], ticks)
    engine, both, apart = run.high.engine, 0, 0.0
    contacts, memory, soft = engine.contacts, engine.memory, run.side.held[2].chain
    for k in range(ticks):
        run.run(first[k : k + 1], others=[second[k : k + 1], resting(aside, 1)])
        bearing = np.flatnonzero(contacts.status[: contacts.count["found"][0]] != OPEN)
        held = memory.force[memory.present[0], : len(bearing)]
        assert (contacts.body[bearing, 1] == 2).all()
        nodes = soft.now.q[contacts.slots[bearing, 1, 0]]
        for own, q, force in zip(held, nodes, contacts.force[bearing], strict=True):
            back = Rotation.from_quat(q, scalar_first=True).inv().apply(force)
            np.testing.assert_allclose(own, back, atol=1e-12 * np.abs(force).max())
        if len(bearing) == 2:
            both, apart = both + 1, max(apart, np.abs(nodes[0] - nodes[1]).max())
    run.close()
    assert both > 10 and apart > 1e-2
