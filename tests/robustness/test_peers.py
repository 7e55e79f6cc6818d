"""Solvers of others in processes of their own: what they answer, and that a crash is a row of the table."""

import os

import numpy as np
import pytest

from palpo.app.cli.peers import Apart, Peer
from palpo.app.cli.profile import solve_in_turns
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import stored


def crashing():
    """Crashes on more than so many contacts, fails below a friction, and else answers no force."""

    def call(w, b, mu, tolerance, most):
        if len(mu) > 20:
            os.abort()
        if mu[0] < 0.0:
            raise ValueError("no such friction")
        return np.zeros(len(b)), 3, 0.5

    return call


def test_a_peer_that_crashes_has_not_solved_it_and_takes_nothing_with_it():
    peer = Peer("crashing", Apart("crashing", crashing))
    stops = [(peer, Stop(1e-8, 10)), (find_solver("anderson"), Stop(1e-8, 5000))]
    crashed, ours = solve_in_turns("easy", stored("easy.npz"), stops, {})
    assert not crashed["converged"]
    assert "crashed on this problem" in crashed["refused"]
    assert ours["converged"]
    answered = solve_in_turns("paper", stored("wedge_paper.npz"), stops, {})[0]  # by a new process
    assert answered["iterations"] == 3


def test_what_a_peer_raises_is_said_in_a_sentence():
    call = Apart("crashing", crashing)
    with pytest.raises(InputError, match=r"crashing failed on this problem: ValueError: no such friction"):
        call(np.eye(3), np.zeros(3), np.full(1, -1.0), 1e-8, 10)
    r, count, seconds = call(np.eye(3), np.zeros(3), np.ones(1), 1e-8, 10)
    assert not r.any()
    assert (count, seconds) == (3, 0.5)
