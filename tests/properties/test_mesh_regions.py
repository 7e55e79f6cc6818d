"""Regions choose the nodes that lie in them, border included."""

import numpy as np
import pytest

from palpo.physics.mesh.generate import block
from palpo.physics.mesh.regions import nodes_in_box, nodes_in_sphere
from palpo.physics.numerics.errors import InputError

NODES = block((0.1, 0.2, 0.3), (2, 4, 6)).nodes


def test_a_box_takes_its_border_even_after_the_body_was_placed():
    moved = 0.001 * (1000.0 * NODES + [1.0 / 3.0, 7.0, 0.0])
    low = [-0.05 + 0.001 / 3.0, -np.inf, -np.inf]
    high = [-0.05 + 0.001 / 3.0, np.inf, np.inf]
    np.testing.assert_array_equal(nodes_in_box(moved, low, high), np.flatnonzero(NODES[:, 0] == -0.05))


def test_a_sphere_takes_the_nodes_within_its_radius():
    chosen = nodes_in_sphere(NODES, (0.0, 0.0, 0.0), 0.05)
    np.testing.assert_array_equal(chosen, np.flatnonzero(np.linalg.norm(NODES, axis=1) <= 0.05 + 1e-12))
    assert chosen.size == 7  # the centre and its six neighbours at 50 mm


def test_a_region_beside_the_body_takes_nothing():
    assert nodes_in_box(NODES, (1, 1, 1), (2, 2, 2)).size == 0
    assert nodes_in_sphere(NODES, (1, 1, 1), 0.1).size == 0


def test_an_impossible_region_is_refused():
    with pytest.raises(InputError, match="must not exceed"):
        nodes_in_box(NODES, (1, 0, 0), (0, 1, 1))
    with pytest.raises(InputError, match="radius is 0"):
        nodes_in_sphere(NODES, (0, 0, 0), 0.0)
