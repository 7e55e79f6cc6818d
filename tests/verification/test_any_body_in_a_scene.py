"""A scene's soft body of any elements and law: the servo's model of it feels as the full body at 1 kHz."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.mesh.generate import hex_block
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.physics.systems.multirate.member import Member
from tests.verification.small_scenes import BALL_ON_BLOCK, proceed, resting, small_scene, straight


def pressed(kind: str, elements: str, law: str) -> np.ndarray:
    """Force [N] on a hand that presses a ball 2 mm into a block of those elements and that law, at rest."""
    scene = small_scene(BALL_ON_BLOCK)
    member = scene.members[0]
    plain = member.body
    mesh = plain.mesh
    if elements == "hex8":
        hexes = hex_block((0.06, 0.02, 0.06), (6, 2, 6))
        mesh = hexes.with_nodes(hexes.nodes + np.array([0.0, -0.01, 0.0]))
        np.testing.assert_allclose(mesh.nodes, plain.mesh.nodes, atol=1e-12)
    body = SoftBody(
        plain.name, mesh, replace(plain.material, law=law), plain.fixed, plain.gravity, elements=elements
    )
    scene.members[0] = Member(body, member.number, member.first)
    run = LockStep(scene, kind, "none")
    start = run.high.port.position.copy()
    proceed(run, straight(start, start - [0.0, 2e-3, 0.0], 150))
    force = proceed(run, resting(start - [0.0, 2e-3, 0.0], 150))["force"][-1].copy()
    run.close()
    return force


@pytest.mark.parametrize(("elements", "law"), [("hex8", "linear"), ("tet4", "neo-hookean")])
def test_the_force_is_that_of_the_full_body(elements, law):
    """At rest the model errs by what of the shape its columns miss: a thousandth at most."""
    model, full = (pressed(kind, elements, law) for kind in ("krylov", "monolithic"))
    assert full[1] > 0.2
    assert np.abs(model - full).max() < 1e-3 * full[1]
