"""What a step of cups remembers of its contacts, of which some come, some go and some no longer bear."""

import numpy as np

from palpo.physics.contract.contacts import append, make_contacts
from palpo.physics.contract.memory import make_memory
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.kernels import kernel
from palpo.physics.suction.contacts import WORLD, carry_on, recall_all, remember_all

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
CUPS, H = 2, 0.01


@kernel
def _append(contacts, identity, first, second):
    return append(contacts, identity, first, second)


def laid(numbers, ground):
    """Contacts of those numbers, below 100 of cup 0 and below 200 of cup 1, and of the ground."""
    contacts = make_contacts(256)
    contacts.frame[:] = np.eye(3)
    for number in sorted(numbers):
        _append(contacts, number, number // 100, CUPS)
    for number in ground:
        _append(contacts, number, CUPS, WORLD)
    return contacts, np.array([*sorted(numbers), *ground])


def test_what_bore_has_its_own_force_again_and_what_is_new_has_none():
    rng = np.random.default_rng(3)
    memory = Handle(make_memory(256))
    before, numbers = laid(rng.choice(200, 30, replace=False), 200 + rng.permutation(9))
    force = np.where(rng.random(len(numbers))[:, None] < 0.6, rng.standard_normal((len(numbers), 3)), 0.0)
    before.force[: len(numbers)] = force
    solved = np.arange(len(numbers))
    remember_all(memory, Handle(before), solved, np.zeros(3 * len(solved)), UPRIGHT)

    kept = numbers[numbers < 200][rng.random((numbers < 200).sum()) < 0.7]
    now, after = laid({*kept.tolist(), *range(5, 195, 7)}, 200 + rng.permutation(12))
    recall_all(memory, Handle(now), UPRIGHT, H)
    known = dict(zip(numbers.tolist(), force, strict=True))
    expected = np.array([known.get(number, np.zeros(3)) for number in after.tolist()])
    # UPRIGHT turns nothing: to the bit
    np.testing.assert_array_equal(now.force[: len(after)], expected)
    assert (expected != 0.0).any() and len(after) > len(kept), "or the test shows nothing"


def test_forces_that_change_evenly_go_on_so_and_those_of_one_step_stay():
    rng = np.random.default_rng(4)
    memory = Handle(make_memory(256))
    first, slope = rng.standard_normal((2, 200, 3))
    came, went = np.arange(3, 180, 9), np.arange(0, 180, 6)
    for step, numbers in enumerate((went, np.union1d(came, went))):
        contacts, _ = laid(numbers, [])
        contacts.force[: len(numbers)] = first[numbers] + step * slope[numbers]
        solved = np.arange(len(numbers))
        remember_all(memory, Handle(contacts), solved, np.zeros(3 * len(solved)), UPRIGHT)
    now, numbers = laid(range(180), [])
    recall_all(memory, Handle(now), UPRIGHT, H)
    carry_on(memory, Handle(now))
    force = now.force[:180]
    np.testing.assert_allclose(force[went], first[went] + 2 * slope[went], atol=1e-14)
    new = np.setdiff1d(came, went)
    np.testing.assert_array_equal(force[new], first[new] + slope[new])
    assert not force[np.setdiff1d(numbers, np.union1d(came, went))].any()
