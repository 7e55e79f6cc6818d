"""Of many cups on one partner factors solve in single precision: of the present matrix, whatever is asked."""

import numpy as np

from palpo.app.systems.suction.build import build
from palpo.config.load import load_scene
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.cups import CUPS, GRIDS, POISSON_RATIO, cup
from palpo.physics.systems.suction import step

H = 0.01
SMALL = cup(CUPS["small"].shape, GRIDS[76])


def body(single):
    material = Material(CUPS["small"].youngs_modulus, POISSON_RATIO, 1e3, 0.0, 1e-3)
    made = HeldBody("cup", SMALL.mesh, material, SMALL.held, SMALL.rim, turn=0.0)
    made.single = single
    return made


def test_single_and_double_precision_solve_one_matrix_after_each_renewal_and_in_each_order():
    one, other = body(True), body(False)
    force = np.random.default_rng(3).standard_normal(one.x.shape)
    for count in (1, 4, one.last.size, 2):
        for made in (one, other):
            made.free_motion(H)
            whole = made.compliance(count, H)
        np.testing.assert_array_equal(one.compliance(count, H), whole)
        found, expected = one.respond(force, H), other.respond(force, H)
        # 6e-8 an entry, times what the condition of a cup's matrix makes of it
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        assert (found != expected).any(), "or the test shows nothing"
        for made in (one, other):
            made.x[made.free] += 1e-3 * force[made.free] * 0.1
            made.finish(np.zeros_like(made.x), H)


def gripper():
    made = build(load_scene("suction-gripper", [f"bodies.{i}.geometry.resolution=76" for i in range(4)]))
    suction, found = made.suction, []
    for _ in range(60):
        for drive in made.drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
        found.append(suction.hold.copy())
    suction.close()
    return [spec.body.single for spec in suction.cups], np.array(found)


def test_cups_solve_in_single_precision_where_they_are_many_and_hold_as_in_double(monkeypatch):
    few, expected = gripper()
    monkeypatch.setattr(step, "LARGE", 0)
    many, found = gripper()
    assert all(many) and not any(few)
    # a factor's age changes as much: renewals may come a step sooner or later
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * np.abs(expected).max())
