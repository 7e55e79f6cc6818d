"""A ball that is no smaller than the facets of a soft block, in a scene."""

import numpy as np
import pytest

from palpo.physics.contact.laws import SLIP, STICK
from palpo.physics.contract.contacts import append, make_contacts
from palpo.physics.contract.memory import close_memory, make_memory, open_memory, recall, remember
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.kernels import kernel
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, proceed, resting, straight

TOP, DEPTH, ASIDE = 0.016, 0.003, 4e-4
"""Where the ball's centre is as it touches, how far it is pressed in, and led aside [m]."""


def pressed(*told):
    """The ball pressed in, led aside and left there for half a second."""
    run = lock_step(
        BALL_ON_BLOCK, f"bodies.ball.geometry.radius={TOP}", "tool.hold.stiffness=5000",
        "tool.hold.damping=10", "bodies.ball.placement.position=[0.003, 0.0165, -0.002]", *told,
    )  # fmt: skip
    start = run.high.port.position.copy()
    down = np.array([start[0], TOP - DEPTH, start[2]])
    aside = down + np.array([ASIDE, 0.0, 0.0])
    path = straight(start, down, 100), straight(down, aside, 50), resting(aside, 500)
    trace = proceed(run, np.vstack(path))
    run.close()
    return trace


@pytest.fixture(scope="module")
def trace():
    return pressed()


def test_the_contact_distance_moves_no_surface_that_is_felt(trace):
    """A tenth of it leaves the force; before, 0.45 mm more of depth would have added a fifth."""
    other = pressed("contact.distance=5e-5")
    assert trace["force"][-1, 1] > 1.0
    np.testing.assert_allclose(other["force"], trace["force"], atol=2e-3 * trace["force"][-1, 1])


def test_what_sticks_to_a_surface_that_gives_way_does_not_creep(trace):
    """The tangential force stays; were the strain of the contacts forgotten, it would fade within ticks."""
    tangential = trace["force"][:, 0]
    assert abs(tangential[-1]) > 0.02
    assert np.ptp(tangential[-200:]) < 1e-3 * abs(tangential[-1])


@kernel
def _one(contacts, memory, u, q, h):
    remember(memory, contacts, 0, u, q)
    close_memory(memory)
    contacts.count[0].found = 0
    append(contacts, 7, 0, 1)
    recall(memory, contacts, 0, q, h)


@pytest.mark.parametrize("status", [STICK, SLIP])
def test_a_contact_that_gives_remembers_its_strain_and_of_its_slip_what_sticks(status):
    """offset = u - give r where it sticks, u being what the solver left, and -give r where it slides."""
    contacts, memory = make_contacts(1), make_memory(1)
    contacts.count["found"], contacts.identity[0], contacts.body[0] = 1, 7, (0, 1)
    contacts.frame[0], contacts.give[0], contacts.status[0] = np.eye(3)[[1, 2, 0]], 0.02, status
    force, u = np.array([0.3, 2.0, -0.4]), np.array([1e-5, 2e-6, -3e-6])
    contacts.force[0] = force
    open_memory(memory)
    _one(Handle(contacts), Handle(memory), u, np.array([1.0, 0.0, 0.0, 0.0]), 1e-3)
    left = np.array([u[2], 0.0, u[1]]) if status == STICK else np.zeros(3)
    np.testing.assert_allclose(contacts.offset[0], left - 0.02 * force * [1, 0, 1], atol=1e-18)
    np.testing.assert_array_equal(contacts.force[0], force)
