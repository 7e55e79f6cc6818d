"""A list of contacts that is full takes no more, counts what it lost, and keeps those it has as they are."""

import numpy as np
import pytest
from numba import njit

from palpo.physics.collision import mobile_contacts
from palpo.physics.contract import contacts

ROOM = 3


@njit
def _of_engine(c, k):
    return contacts.append(c, 10 + k, k, k + 1)


@njit
def _of_hapco(c, k):
    return mobile_contacts.append(c, 10 + k, 20 + k, 0.1 * k)


@pytest.mark.parametrize(
    ("module", "append"),
    [(contacts, _of_engine), (mobile_contacts, _of_hapco)],
    ids=["engine", "hapco"],
)
def test_a_full_list_loses_what_comes_and_keeps_what_it_has(module, append):
    made = module.make_contacts(ROOM)
    assert [append(made, k) for k in range(ROOM)] == list(range(ROOM))
    before = [np.array(array) for array in made[1:]]
    for more in range(1, 3):
        assert append(made, ROOM + more) == -1
        assert (int(made.count[0]["found"]), int(made.count[0]["lost"])) == (ROOM, more)
    assert all((a == b).all() for a, b in zip(before, made[1:], strict=True))
