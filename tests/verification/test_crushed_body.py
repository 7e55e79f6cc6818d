"""A body that is crushed is found to be, whatever it is made of, and said to be after the run."""

import numpy as np
import pytest

from palpo.app.cli.main import main
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.quadratic import with_middles

CUBE = (0.02, 0.02, 0.02), (2, 2, 2)
KINDS = {
    "tet4": block(*CUBE), "tet4-patch": block(*CUBE), "tet10": with_middles(block(*CUBE))[1],
    "hex8": hex_block(*CUBE),
}  # fmt: skip


@pytest.mark.parametrize("elements", KINDS)
def test_an_element_is_inside_out_where_its_volume_is_not_positive(elements: str) -> None:
    """All of a mirrored body, none of one that is squeezed flat, turned and sheared."""
    mesh = KINDS[elements]
    body = SoftBody("cube", mesh, Material(1e4, 0.3, 1000.0), elements=elements)
    assert (body.volume_ratios() > 0.0).all()
    rest = body.x.copy()
    body.x[:] = rest @ np.array([[0.0, 1.0, 0.4], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.01]])
    assert (body.volume_ratios() > 0.0).all()
    np.testing.assert_allclose(body.volume_ratios(), 0.01)
    body.x[:] = rest * [1.0, -0.5, 1.0]
    assert (body.volume_ratios() < 0.0).all()


@pytest.mark.parametrize(("depth", "said"), [(0.004, False), (0.032, True)])
def test_a_run_says_that_a_body_was_crushed(depth: float, said: bool, capsys) -> None:
    """The ball of `probe`, pressed to that depth; its block is 30 mm thick, and the hand yields."""
    path = [[0.0, -0.010, 0.041, 0.0], [0.5, -0.010, 0.040 - depth, 0.0]]
    options = ["--set", f"device.path={path}", "--headless", "--lock-step", "--device", "mock"]
    assert main(["run", "probe", *options, "--duration", "0.8"]) == 0
    assert ("block was crushed" in " ".join(capsys.readouterr().out.split())) is said
